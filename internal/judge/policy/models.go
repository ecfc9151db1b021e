package policy

import (
	"slices"
	"strings"

	"github.com/cedar-policy/cedar-go/types"
	"github.com/cedar-policy/cedar-go/x/exp/ast"

	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// LimitsModels reports whether there may be a model that a caller may not use: so that a
// request of which nobody knows the model is none for this caller. It asks for models with
// the names that rules tell apart, and for one that none of them has.
func (p *Policy) LimitsModels(who caller.Caller) bool {
	if p == nil || p.open(&who) {
		return false
	}
	class := p.seer(&who)
	if limited, ok := p.limited.Get(class, ""); ok {
		return limited
	}
	limited := slices.ContainsFunc(p.modelNames, func(name string) bool {
		return p.Decide(Request{Caller: who, Action: Model, Name: name}).Effect != Allow
	})
	p.limited.Put(class, "", limited, int64(len(class)))
	return limited
}

// limitedBytes bounds what is remembered of who may use every model.
const limitedBytes = 16 << 20

// noModel is the name of no model.
const noModel = "\ue000 no model \ue000"

// names returns names that a policy tells apart: its texts, and one for each of its
// patterns.
func (p *policy) names() (names []string) {
	tree := (*ast.Policy)(p.AST())
	var texts func(v types.Value)
	texts = func(v types.Value) {
		switch v := v.(type) {
		case types.String:
			names = append(names, string(v))
		case types.EntityUID: // a model, or the group of a pattern
			names = append(names, strings.NewReplacer("*", "", "?", "x").Replace(string(v.ID)))
		case types.Set:
			for each := range v.All() {
				texts(each)
			}
		}
	}
	for _, e := range entitiesOf(tree.Resource) {
		texts(e)
	}
	for _, c := range tree.Conditions {
		ast.Inspect(ast.NewNode(c.Body), func(n ast.IsNode) bool {
			switch n := n.(type) {
			case ast.NodeTypeLike:
				for _, with := range []string{"", "x"} {
					names = append(names, filled(n.Value, with))
				}
			case ast.NodeValue:
				texts(n.Value)
			}
			return true
		})
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

// filled returns a text that a pattern matches.
func filled(p types.Pattern, with string) string {
	document, err := p.MarshalJSON()
	parts, err2 := rawjson.Elements(document)
	if err != nil || err2 != nil {
		return ""
	}
	var b strings.Builder
	for _, part := range parts {
		if o, err := rawjson.ParseObject(part); err == nil {
			text, _ := rawjson.String(o.Get("Literal"))
			b.WriteString(text)
		} else {
			b.WriteString(with)
		}
	}
	return b.String()
}
