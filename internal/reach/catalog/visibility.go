package catalog

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/state/weakcache"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// ForModels keeps the lists without the tools that are for views alone (MCP Apps,
// "Tool visibility": a host must not show those to a model).
type ForModels struct {
	lists weakcache.Map[dragoman.List, *dragoman.List]
	tools weakcache.Map[dragoman.Tools, *dragoman.Tools]
}

// Of returns a toolset without those tools.
func (m *ForModels) Of(tools dragoman.Toolset) dragoman.Toolset { return &modelTools{tools, m} }

type modelTools struct {
	dragoman.Toolset
	made *ForModels
}

// List returns the list without those tools; the same where there are none.
func (t *modelTools) List(ctx context.Context) (*dragoman.List, error) {
	inner, err := t.Toolset.List(ctx)
	if err != nil || inner.Tools == nil {
		return inner, err
	}
	kept := t.made.tools.Get(inner.Tools, func() *dragoman.Tools {
		all := inner.Tools.All()
		if !slices.ContainsFunc(all, AppOnly) {
			return nil
		}
		return dragoman.NewTools(slices.DeleteFunc(slices.Clone(all), AppOnly))
	})
	if kept == nil {
		return inner, nil
	}
	return t.made.lists.Get(inner, func() *dragoman.List {
		list := *inner
		list.Tools = kept
		return &list
	}), nil
}

// AppOnly reports whether a tool is for the views of its server alone.
func AppOnly(t dragoman.Tool) bool {
	models, _ := Visibility(&t)
	return !models
}

// Visibility reports whether models may see a tool, and whether the views of its
// server may call it: both, unless its definition says otherwise (MCP Apps, "Tool
// visibility").
func Visibility(t *dragoman.Tool) (models, views bool) {
	if !bytes.Contains(t.Definition, []byte(`"visibility"`)) {
		return true, true
	}
	at := t.Definition
	for _, name := range []string{"_meta", "ui", "visibility"} {
		o, err := rawjson.ParseObject(at)
		if err != nil {
			return true, true
		}
		at = o.Get(name)
	}
	who, err := rawjson.Elements(at)
	if err != nil || len(who) == 0 {
		return true, true
	}
	says := func(whom string) bool {
		return slices.ContainsFunc(who, func(w json.RawMessage) bool { return string(w) == whom })
	}
	return says(`"model"`), says(`"app"`)
}
