package lint

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/dragoman-mcp/dragoman/internal/wire/headervalue"
)

// TestConsequences: one fault is one finding. What follows from it is not said beside it.
func TestConsequences(t *testing.T) {
	run := func(t *testing.T, target Target, want ...string) {
		t.Helper()
		r, err := Run(t.Context(), []Target{target}, Options{})
		must(t, err)
		if got := rulesOf(r); !slices.Equal(got, want) {
			t.Errorf("fires %v, want %v", got, want)
			for _, f := range r.Findings {
				t.Logf("%s %s: %s", f.Rule, f.Tool, f.Message)
			}
		}
	}
	t.Run("a result for any method is no answer of another client", func(t *testing.T) {
		t.Parallel()
		m := newModel(t, "legacy")
		m.before = func(_ *model, q query) ([]string, bool) {
			return []string{q.reply(`{}`)}, strings.HasPrefix(q.Method, nonsense)
		}
		run(t, m.overHTTP(t), "P005")
	})
	t.Run("an error for every list is no answer of another client", func(t *testing.T) {
		t.Parallel()
		m := newModel(t, "legacy")
		m.before = func(_ *model, q query) ([]string, bool) {
			return []string{q.fail(-32601, "method not found")}, q.Method == "tools/list"
		}
		run(t, m.overHTTP(t), "P019")
	})
	t.Run("calls of a tool whose name their header cannot carry", func(t *testing.T) {
		t.Parallel()
		m := newModel(t, modern)
		misname(t, m)
		m.before = func(_ *model, q query) ([]string, bool) {
			return []string{q.fail(-32020, "headers and body differ")}, q.Method == "tools/call" && strings.HasPrefix(q.Params.Name, "n\u043e")
		}
		run(t, m.overHTTP(t), "N008", "N012")
	})
	t.Run("lists whose answers come with another id are not missing", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			m := newModel(t, "legacy")
			m.before = func(m *model, q query) ([]string, bool) {
				if q.Method != "tools/list" {
					return nil, false
				}
				b, _ := json.Marshal(string(q.ID))
				q.ID = b
				return []string{m.answer(q)}, true
			}
			run(t, m.overPipe(), "P022")
		})
	})
}

// misname writes the name of the first tool with a Cyrillic letter.
func misname(t *testing.T, m *model) {
	t.Helper()
	m.tools[0] = json.RawMessage(strings.Replace(string(m.tools[0]), `"name":"notes_`, `"name":"n\u043etes_`, 1))
	if !strings.Contains(string(m.tools[0]), `\u043e`) {
		t.Fatal("the tool kept its name")
	}
}

// TestNamesInHeaders: a name that a header cannot carry travels as the protocol says, so that
// no server is told of for refusing it.
func TestNamesInHeaders(t *testing.T) {
	m := newModel(t, modern)
	misname(t, m)
	var encoded atomic.Bool
	m.handler = func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		header := r.Header.Get("Mcp-Name")
		name, ok := headervalue.Decode(header)
		if strings.HasPrefix(name, "n\u043e") && strings.HasPrefix(header, "=?") {
			encoded.Store(true)
		}
		if !ok || strings.ContainsRune(header, '\u043e') {
			t.Errorf("Mcp-Name is %q", header)
		}
		next.ServeHTTP(w, r)
	}
	_, err := Run(t.Context(), []Target{m.overHTTP(t)}, Options{})
	must(t, err)
	if !encoded.Load() {
		t.Error("the tool was never called")
	}
}
