package caller

import (
	"net/http/httptest"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

// TestKeysOfAnthropicsClients: x-api-key is a key on the routes of Anthropic's API, and
// nothing anywhere else.
func TestKeysOfAnthropicsClients(t *testing.T) {
	f, err := New(Config{APIKeys: []secret.Text{secret.New("s3cret")}}, secret.Text{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		path    string
		headers []string
		status  int
	}{
		{"/v1/messages", []string{"X-Api-Key", "s3cret"}, 0},
		{"/v1/messages/count_tokens", []string{"X-Api-Key", "s3cret"}, 0},
		{"/v1/messages", []string{"Authorization", "Bearer s3cret"}, 0},
		{"/v1/messages", []string{"Authorization", "Bearer s3cret", "X-Api-Key", "s3cret"}, 0},
		{"/v1/messages", []string{"Authorization", "Bearer s3cret", "X-Api-Key", "other"}, 400},
		{"/v1/messages", []string{"X-Api-Key", "other"}, 401},
		{"/v1/models", []string{"X-Api-Key", "s3cret", "Anthropic-Version", "2023-06-01"}, 0},
		{"/v1/models", []string{"X-Api-Key", "s3cret"}, 401},
		{"/v1/models/m", []string{"X-Api-Key", "s3cret", "Anthropic-Version", "2023-06-01"}, 0},
		{"/v1/models/m", []string{"X-Api-Key", "s3cret"}, 401},
		{"/v1/chat/completions", []string{"X-Api-Key", "s3cret", "Anthropic-Version", "2023-06-01"}, 401},
		{"/v1/messagesx", []string{"X-Api-Key", "s3cret"}, 401},
	} {
		r := httptest.NewRequest("POST", tt.path, nil)
		for i := 0; i < len(tt.headers); i += 2 {
			r.Header.Set(tt.headers[i], tt.headers[i+1])
		}
		c, err := f.Recognise(r)
		switch {
		case tt.status == 0 && (err != nil || !c.Valid()):
			t.Errorf("%s %v: %v", tt.path, tt.headers, err)
		case tt.status != 0 && refused(t, err).Status != tt.status:
			t.Errorf("%s %v: %v", tt.path, tt.headers, err)
		}
	}
}
