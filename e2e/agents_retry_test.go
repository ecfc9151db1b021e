package e2e

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
	"github.com/dragoman-mcp/dragoman/rehearsal"
)

// TestAgentsRepeatNothing: Codex and Claude Code ask again where an answer breaks off, and
// do not say that they do. What a tool of ours changed before is not done again.
func TestAgentsRepeatNothing(t *testing.T) {
	t.Parallel()
	model := &rehearsal.Model{}
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || bytes.Contains(body, []byte(`"role":"tool"`)) {
			http.Error(w, `{"error":{"message":"It fell over.","type":"server_error"}}`, http.StatusInternalServerError)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		model.ServeHTTP(w, r)
	}))
	t.Cleanup(up.Close)
	tools, log := fake(t, fakemcp.Config{Tools: []fakemcp.Tool{{Name: "echo"}, {Name: "again"}}})
	g := start(t, nil, servers{"tools": tools, "other": idle(t)}, with("models", []any{map[string]any{"match": "*", "base_url": up.URL + "/v1"}})).ready()

	x := startCodex(t, g, true)
	x.fails = true
	if f := x.ask("CALL tools__echo\nSAY Done.", "-c", "model_providers.dragoman.stream_max_retries=2"); len(f.Fails) < 3 || len(f.Texts) != 0 {
		t.Errorf("Codex says %+v", f)
	}
	c := startClaude(t, g, "CLAUDE_CODE_MAX_RETRIES=2")
	c.fails = true
	if f := c.ask("CALL tools__again\nSAY Done."); !f.Failed {
		t.Errorf("Claude Code says %+v", f)
	}
	if got := ran(t, log); !slices.Equal(got, []string{"echo", "again"}) {
		t.Errorf("of ours ran %s", got)
	}
}
