package openai_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/dragoman-mcp/dragoman/openai/chat"
	"github.com/dragoman-mcp/dragoman/openai/messages"
	"github.com/dragoman-mcp/dragoman/openai/model"
	"github.com/dragoman-mcp/dragoman/openai/responses"
)

// TestNewWithoutModel: a conversation that was made without a model is refused with an error
// that its client can be told, as all that New refuses is.
func TestNewWithoutModel(t *testing.T) {
	w := httptest.NewRecorder()
	for name, made := range map[string]func() error{
		"chat": func() error { _, err := chat.New(&chat.Request{}, w, chat.Options{}); return err },
		"messages": func() error {
			_, err := messages.New(&messages.Request{}, w, messages.Options{})
			return err
		},
		"responses": func() error {
			_, err := responses.New(&responses.Request{}, w, responses.Options{})
			return err
		},
	} {
		if e, ok := errors.AsType[*model.Error](made()); !ok || e.Status != http.StatusInternalServerError {
			t.Errorf("%s: %v", name, made())
		}
	}
}
