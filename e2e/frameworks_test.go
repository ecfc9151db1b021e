package e2e

import (
	"slices"
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
	g.mix(t, log, "langchain.mjs", []string{"invoke-tools", "stream-tools"}, func(t *testing.T, got facts) {
		if !slices.Equal(got.Roles, []string{"human", "ai", "tool", "ai"}) || got.Finish != "stop" {
			t.Errorf("the client's history is %s, the last reason %q", got.Roles, got.Finish)
		}
	})
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
	g.mix(t, log, "llamaindex.mjs", []string{"exec-tools", "agent"}, func(t *testing.T, _ facts) {
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
