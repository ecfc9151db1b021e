package catalog

import (
	"fmt"
	"testing"

	"github.com/dragoman-mcp/dragoman/toolsettest"
)

// A selection that is used again is chosen once for each list; others are told
// apart, and what is kept is bounded.
func TestSelections(t *testing.T) {
	inner := toolsettest.NewInner()
	var s Selections
	one := Selection{{Server: toolsettest.Server, Match: []string{"*__e*"}}}
	list, err := s.Of(inner, one).List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := s.Of(inner, Selection{{Server: toolsettest.Server, Match: []string{"*__e*"}}}).List(t.Context()); again != list {
		t.Error("the same selection was chosen anew")
	}
	for _, other := range []Selection{
		{{Server: toolsettest.Server}},
		{{Server: toolsettest.Server, Match: []string{"*__e*"}, ReadOnly: true}},
		{{Server: toolsettest.Server, Tools: []string{}, Match: []string{"*__e*"}}},
		{{Server: toolsettest.Server, Tools: []string{"*__e*"}}},
		{{Server: toolsettest.Server, Match: []string{"*__e*"}}, {Server: "b"}},
	} {
		if got, _ := s.Of(inner, other).List(t.Context()); got == list {
			t.Errorf("%+v is taken for %+v", other, one)
		}
	}
	if s.Of(inner, nil) != inner {
		t.Error("no selection is another toolset")
	}
	for i := range 3 * maxSelections {
		s.Of(inner, Selection{{Server: fmt.Sprint(i)}})
		s.Of(inner, one)
	}
	if len(s.kept) > maxSelections {
		t.Errorf("%d selections are kept", len(s.kept))
	}
	if again, _ := s.Of(inner, one).List(t.Context()); again != list {
		t.Error("a selection that is in use was forgotten")
	}
}
