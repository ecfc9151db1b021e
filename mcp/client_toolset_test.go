package mcp

import (
	"testing"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
	"github.com/dragoman-mcp/dragoman/toolsettest"
)

// TestToolset: a client of a server that serves a toolset is as good as the
// toolset, in both eras.
func TestToolset(t *testing.T) {
	for _, era := range []Era{Legacy, Modern} {
		t.Run(era.String(), func(t *testing.T) {
			toolsettest.Run(t, func(t *testing.T, inner *toolsettest.Inner) dragoman.Toolset {
				c, err := Connect(t.Context(), pipeTo(t, inner, fakemcp.Era(era.String())), &ClientOptions{Label: "wire", Can: dragoman.AskForm})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = c.Close() })
				return c
			})
		})
	}
}

// TestPanicOfAListener: a panic in what hears of progress ends the call with a
// panic where it was made, and nothing else.
func TestPanicOfAListener(t *testing.T) {
	inner := toolsettest.NewInner()
	c, err := Connect(t.Context(), pipeTo(t, inner, fakemcp.LegacyOnly), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	list, _ := c.List(t.Context())
	loop := dragoman.Loop{Tools: c}
	res, err := loop.Call(t.Context(), dragoman.Call{Tool: list.Tools.Find(toolsettest.Steps), Progress: func(dragoman.Progress) { panic("mine") }})
	if err != nil || res.Problem == nil || res.Problem.Code != dragoman.CodeInternal || res.Ran != dragoman.RanMaybe {
		t.Errorf("%+v, %v", res, err)
	}
	if res, err := c.Call(t.Context(), dragoman.Call{Tool: list.Tools.Find(toolsettest.Echo)}); err != nil || res.Problem != nil {
		t.Errorf("the next call: %+v, %v", res.Problem, err)
	}
}

func pipeTo(t *testing.T, inner dragoman.Toolset, era fakemcp.Era) Pipe {
	r, w := fakemcp.PipeToolset(t.Context(), inner, era)
	return Pipe{Reader: r, Writer: w}
}
