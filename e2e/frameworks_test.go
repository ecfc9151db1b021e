package e2e

import (
	"slices"
	"strings"
	"testing"
)

// LangChain and LlamaIndex have conversations of their own around a client:
// what the gateway hides from a plain client must be hidden from them, too, and
// their own tool must get its calls.

func TestLangChain(t *testing.T) {
	g, _, log := toolsGateway(t)
	for _, scenario := range []string{"invoke", "stream"} {
		t.Run(scenario, func(t *testing.T) {
			g.t = t
			got := g.script("langchain.mjs", scenario, hidden)
			if got.Content != said || got.Finish != "stop" || got.Steps != 1 || len(got.Names) != 0 || len(got.Errors) != 0 {
				t.Errorf("the client got %+v", got)
			}
			if n := string(got.Usage["input_tokens"]); n == "" || n == "0" {
				t.Errorf("usage is %s", got.Usage)
			}
		})
	}
	before := len(ran(t, log))
	for i, scenario := range []string{"invoke-tools", "stream-tools"} {
		t.Run(scenario, func(t *testing.T) {
			g.t = t
			got := g.script("langchain.mjs", scenario, mixed)
			judgeMixed(t, got)
			if !slices.Equal(got.Roles, []string{"human", "ai", "tool", "ai"}) || got.Finish != "stop" {
				t.Errorf("the client's history is %s, the last reason %q", got.Roles, got.Finish)
			}
			if n := len(ran(t, log)) - before; n != 2*(i+1) {
				t.Errorf("%d calls ran so far, want %d", n, 2*(i+1))
			}
		})
	}
}

func TestLlamaIndex(t *testing.T) {
	g, up, log := toolsGateway(t)
	for _, scenario := range []string{"exec", "stream"} {
		t.Run(scenario, func(t *testing.T) {
			g.t = t
			if got := g.script("llamaindex.mjs", scenario, hidden); got.Content != said || len(got.Names) != 0 {
				t.Errorf("the client got %+v", got)
			}
		})
	}
	before := len(ran(t, log))
	for i, scenario := range []string{"exec-tools", "agent"} {
		t.Run(scenario, func(t *testing.T) {
			g.t = t
			judgeMixed(t, g.script("llamaindex.mjs", scenario, mixed))
			if n := len(ran(t, log)) - before; n != 2*(i+1) {
				t.Errorf("%d calls ran so far, want %d", n, 2*(i+1))
			}
			results := 0
			for _, m := range up.last().Messages {
				if m.Role == "tool" {
					results++
				}
			}
			if results != 3 {
				t.Errorf("at the end the model saw %d results, want two of ours and the client's", results)
			}
		})
	}
}

// judgeMixed judges a conversation of the client's tool and ours.
func judgeMixed(t *testing.T, got facts) {
	t.Helper()
	if !strings.HasSuffix(got.Content, "All done.") || !slices.Equal(got.Names, []string{"multiply"}) || len(got.Errors) != 0 {
		t.Errorf("the client got %+v", got)
	}
	if len(got.Local) != 1 || got.Local[0].A != 6 || got.Local[0].B != 7 {
		t.Errorf("the client's tool got %+v", got.Local)
	}
}
