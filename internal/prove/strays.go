package prove

import (
	"regexp"

	"github.com/dragoman-mcp/dragoman/schema"
)

// strays reports whether a value has a member that none of the schemas for it
// declares. An object inside another one of which nothing is declared is a map, and
// its members are no strays; a tool of which nothing is declared has no parameters,
// unless it says that it takes any.
func strays(root, v *schema.Node) bool {
	open := !root.Has("properties") && root.Get("additionalProperties").IsBool(true)
	return strayIn(root, []*schema.Node{root}, v, !open)
}

// strayIn does so for the schemas of one value. closed reports that what is not
// declared is a stray in any case.
func strayIn(root *schema.Node, schemas []*schema.Node, v *schema.Node, closed bool) bool {
	var all []*schema.Node
	for _, n := range schemas {
		all = inPlace(root, n, all, 0)
	}
	switch v.Kind() {
	case schema.Array:
		for i, item := range v.Items() {
			var inner []*schema.Node
			for _, n := range all {
				if prefix := n.Get("prefixItems").Items(); i < len(prefix) {
					inner = append(inner, prefix[i])
				} else if items := n.Get("items"); items != nil {
					inner = append(inner, items)
				}
			}
			if strayIn(root, inner, item, false) {
				return true
			}
		}
	case schema.Object:
		for _, m := range v.Members() {
			inner, known := declaring(all, m.Name, closed)
			if !known || strayIn(root, inner, m.Value, false) {
				return true
			}
		}
	}
	return false
}

// inPlace adds n and all schemas that judge the same value.
func inPlace(root, n *schema.Node, all []*schema.Node, depth int) []*schema.Node {
	if n = follow(root, n); n == nil || depth > 10 || len(all) > 200 {
		return all
	}
	all = append(all, n)
	for sub := range n.Subschemas() {
		if sub.InPlace() && sub.Keyword != "not" {
			all = inPlace(root, sub.Node, all, depth+1)
		}
	}
	return all
}

// declaring returns the schemas of a member, and whether any schema declares it,
// by its name or by a rule for names, or none declares anything.
func declaring(all []*schema.Node, name string, anything bool) (inner []*schema.Node, known bool) {
	for _, n := range all {
		anything = anything || n.Has("properties")
		if p := n.Get("properties").Get(name); p != nil {
			inner, known = append(inner, p), true
		}
		for _, p := range n.Get("patternProperties").Members() {
			if re, err := regexp.Compile(p.Name); err != nil || re.MatchString(name) {
				inner, known = append(inner, p.Value), true
			}
		}
		if free := n.Get("additionalProperties"); free.Kind() == schema.Object && len(free.Members()) > 0 {
			inner, known = append(inner, free), true
		}
	}
	return inner, known || !anything
}
