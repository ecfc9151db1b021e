package lint

import (
	"strings"
	"testing"
	"testing/synctest"
)

// TestMovedLists: a list that is another one after calls that only read is a change, and
// one that moves by itself is none.
func TestMovedLists(t *testing.T) {
	for name, tt := range map[string]struct {
		entries func(m *model) int
		fires   bool
	}{
		"by calls":  {func(m *model) int { return min(m.calls, 1) }, true},
		"steady":    {func(*model) int { return 1 }, false},
		"by itself": {func() func(*model) int { n := 0; return func(*model) int { n++; return n } }(), false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newModel(t, "legacy")
				m.resources = true
				answering("resources/list", func(m *model, q query) []string {
					entry := `{"uri":"notes://x","name":"x","mimeType":"text/plain"}`
					return []string{q.reply(`{"resources":[` + strings.TrimSuffix(strings.Repeat(entry+",", tt.entries(m)), ",") + `]}`)}
				})(m)
				r, err := Run(t.Context(), []Target{m.overPipe()}, Options{Rules: Only("A006"), long: 1000})
				must(t, err)
				if got := len(r.Findings) > 0; got != tt.fires {
					t.Errorf("%+v", r.Findings)
				}
			})
		})
	}
}

// TestNotificationsOnLines: an answer to a notification is found on standard output, too.
func TestNotificationsOnLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newModel(t, "legacy")
		m.before = func(_ *model, q query) ([]string, bool) {
			return []string{`{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"method not found"}}`},
				q.ID == nil && strings.HasSuffix(q.Method, nonsense)
		}
		r, err := Run(t.Context(), []Target{m.overPipe()}, Options{Rules: Only("P012"), long: 1000})
		must(t, err)
		if len(r.Findings) != 1 {
			t.Errorf("%+v", r.Findings)
		}
	})
}

// TestToolsThatGrow: tools that differ from one time to the next depend on the time, not
// on the client's name.
func TestToolsThatGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newModel(t, "legacy")
		n := 0
		answering("tools/list", func(m *model, q query) []string {
			if q.Params.Cursor != nil {
				return nil
			}
			n++
			return []string{strings.Replace(m.answer(q), "Gets one note", "Gets note "+strings.Repeat("x", n), 1)}
		})(m)
		r, err := Run(t.Context(), []Target{m.overPipe()}, Options{Rules: Only("P010", "X028"), long: 1000})
		must(t, err)
		if got := rulesOf(r); len(got) != 1 || got[0] != "P010" {
			t.Errorf("fires %v", got)
		}
	})
}

// TestToolsThatComeLate: a server that lists some of its tools a moment after it is ready
// does so whatever the client is called.
func TestToolsThatComeLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newModel(t, "modern")
		others := 0
		answering("tools/list", func(m *model, q query) []string {
			who, _ := q.Params.Meta["io.modelcontextprotocol/clientInfo"].(map[string]any)
			if who["name"] != otherName || q.Params.Cursor != nil {
				return nil
			}
			if others++; others > 1 {
				return nil
			}
			return []string{strings.Replace(m.answer(q), "Gets one note", "Gets a note, soon", 1)}
		})(m)
		r, err := Run(t.Context(), []Target{m.overPipe()}, Options{Rules: Only("P010", "X028"), long: 1000})
		must(t, err)
		if got := rulesOf(r); len(got) != 1 || got[0] != "P010" {
			t.Errorf("fires %v", got)
		}
	})
}
