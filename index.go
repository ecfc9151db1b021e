package dragoman

import "strings"

// An Index finds tools by the names that models and people use for them. It is
// safe for concurrent use.
type Index struct {
	exact  map[string]*Tool
	folded map[string]*Tool // nil value: several tools share the folded name
}

// NewIndex returns an Index of tools, which it keeps and which must not change.
func NewIndex(tools []Tool) *Index {
	x := &Index{
		exact:  make(map[string]*Tool, len(tools)),
		folded: make(map[string]*Tool, 2*len(tools)),
	}
	for i := range tools {
		t := &tools[i]
		x.exact[t.Name] = t
		name := strings.ToLower(t.Name)
		x.fold(name, t)
		if original := strings.ToLower(t.Original); original != name {
			x.fold(original, t)
		}
	}
	return x
}

func (x *Index) fold(name string, t *Tool) {
	other, taken := x.folded[name]
	switch {
	case taken && (other == t || t.Quarantined != nil):
		return // nobody means a tool in quarantine who can mean another
	case other != nil && other.Quarantined == nil, taken && other == nil:
		t = nil
	}
	x.folded[name] = t
}

// Find returns the tool of that name, or nil. A name in the wrong case, or
// without the prefix that tells servers apart, is understood where only one
// tool can be meant.
func (x *Index) Find(name string) *Tool {
	if t := x.exact[name]; t != nil {
		return t
	}
	return x.folded[strings.ToLower(name)]
}

// Exact returns the tool whose public name is exactly name, or nil.
func (x *Index) Exact(name string) *Tool { return x.exact[name] }
