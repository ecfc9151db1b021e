package policy

import (
	"fmt"
	"testing"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
)

// hundred are a hundred rules as an operator with many teams and servers has.
func hundred(arguments bool) Config {
	var c Config
	for i := range 100 {
		r := Rule{Name: fmt.Sprintf("rule %d", i)}
		patterns := []string{fmt.Sprintf("server%d__get_*", i%20), fmt.Sprintf("server%d__list_*", i%20)}
		switch i % 5 {
		case 0:
			r.Deny = []string{fmt.Sprintf("server%d__drop_*", i%20)}
		case 1:
			r.Ask = []string{fmt.Sprintf("server%d__delete_*", i%20)}
			r.When.Caller = []string{fmt.Sprintf("team%d-*", i)}
		case 2:
			r.Allow, r.When.Effect = patterns, []string{"read_only"}
		default:
			r.Allow = patterns
		}
		if arguments {
			r.When.Arguments = []Argument{{Name: "owner", Match: []string{fmt.Sprintf("org%d-*", i)}}}
		}
		c.Rules = append(c.Rules, r)
	}
	c.Rules = append(c.Rules[:99], Rule{Name: "last", Allow: []string{"server7__*"}})
	return c
}

func BenchmarkDecide(b *testing.B) {
	target := tool("server7", "get_issue", "")
	for _, bench := range []struct {
		name string
		c    Config
	}{{"remembered", hundred(false)}, {"arguments", hundred(true)}} {
		p := must(b, bench.c)
		r := Request{Caller: free(caller.Caller{ID: "key-1", Name: "team7-ci"}), Action: Call, Tool: target, Arguments: []byte(`{"owner":"org7-x","repo":"y","number":7}`)}
		if v := p.Decide(r); v.Effect != Allow {
			b.Fatalf("%+v", v)
		}
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p.Decide(r)
			}
		})
	}
	// Every rule looks at arguments and none is ruled out before it does.
	p := must(b, func() Config {
		c := hundred(true)
		for i := range c.Rules {
			c.Rules[i].Allow, c.Rules[i].Ask, c.Rules[i].Deny = []string{"*"}, nil, nil
			c.Rules[i].When.Caller, c.Rules[i].When.Effect = nil, nil
		}
		return c
	}())
	b.Run("all look", func(b *testing.B) {
		b.ReportAllocs()
		r := Request{Caller: alice, Action: Call, Tool: target, Arguments: []byte(`{"owner":"org7-x","repo":"y","number":7}`)}
		for b.Loop() {
			p.Decide(r)
		}
	})
	b.Run("new", func(b *testing.B) { // nothing is remembered of the target
		b.ReportAllocs()
		p := must(b, hundred(false))
		what := target0(target)
		r := Request{Caller: alice, Action: Call, Tool: target}
		for b.Loop() {
			p.decide(&r, &what, false)
		}
	})
}

func target0(t *dragoman.Tool) target { return target{"tool", t.Server, t.Original, t} }

func BenchmarkView(b *testing.B) {
	p := must(b, hundred(false))
	var all []dragoman.Tool
	for i := range 1300 {
		all = append(all, *tool(fmt.Sprintf("server%d", i%20), fmt.Sprintf("get_%d", i), ""))
		if i%3 == 0 {
			all[i] = *tool(fmt.Sprintf("server%d", i%20), fmt.Sprintf("drop_%d", i), "")
		}
	}
	list := &dragoman.List{Tools: dragoman.NewTools(all)}
	b.Run("same list", func(b *testing.B) {
		for b.Loop() {
			p.List(alice, list)
		}
	})
	b.Run("same tools", func(b *testing.B) {
		for b.Loop() {
			p.View(alice, list.Tools)
		}
	})
	b.Run("new caller", func(b *testing.B) {
		i := 0
		for b.Loop() {
			i++
			p.View(free(caller.Caller{ID: fmt.Sprint("key-", i)}), list.Tools)
		}
	})
}
