package door_test

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/door"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// What an error does not say to clients stands in the log, once.
func TestFailLogsReason(t *testing.T) {
	why := errors.New("the disk is gone")
	for name, err := range map[string]error{
		"told":     &model.Error{Status: http.StatusBadGateway, Code: "login_failed", Message: "The gateway's log says why.", Err: why},
		"not told": why,
	} {
		var log bytes.Buffer
		w := httptest.NewRecorder()
		door.Fail(slog.New(slog.NewTextHandler(&log, nil)), door.OpenAI, w, httptest.NewRequest("GET", "/", nil), err)
		if n := strings.Count(log.String(), why.Error()); n != 1 || strings.Contains(w.Body.String(), why.Error()) {
			t.Errorf("%s: %d times in the log %s, told: %s", name, n, log.String(), w.Body)
		}
	}
}
