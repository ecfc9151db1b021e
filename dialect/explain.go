package dialect

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/schema"
)

// maxFields is the number of wrong arguments that a model is told about.
const maxFields = 8

// invalidArguments tells a model what is wrong with its arguments.
func invalidArguments(violations []schema.Violation) *dragoman.Problem {
	violations = oneOf(violations)
	p := &dragoman.Problem{Code: dragoman.CodeInvalidArguments}
	var words []string
	for i, v := range violations {
		if i == maxFields {
			words = append(words, fmt.Sprintf("and %d more", len(violations)-i))
			break
		}
		p.Fields = append(p.Fields, dragoman.Field{Path: v.Path, Expected: v.Expected, Missing: v.Missing})
		words = append(words, v.String())
	}
	p.Message = "The arguments do not fit the tool's input schema: " + strings.Join(words, "; ") + "."
	return p
}

// oneOf makes of the violations of all alternatives of a union one, or those of
// the alternative that was meant: a model that is told all of them at once does
// not know that one is enough.
func oneOf(violations []schema.Violation) []schema.Violation {
	var out []schema.Violation
	done := map[string]bool{}
	for _, v := range violations {
		switch {
		case v.Union == "":
			out = append(out, v)
		case !done[v.Union]:
			done[v.Union] = true
			out = append(out, summary(alternatives(violations, v.Union))...)
		}
	}
	return out
}

// alternatives groups the violations of one union by its alternatives.
func alternatives(violations []schema.Violation, union string) [][]schema.Violation {
	var groups [][]schema.Violation
	at := map[int]int{}
	for _, v := range violations {
		if v.Union != union {
			continue
		}
		i, known := at[v.Alternative]
		if !known {
			i = len(groups)
			at[v.Alternative] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], v)
	}
	return groups
}

// summary says what one union wants.
func summary(groups [][]schema.Violation) []schema.Violation {
	path := groups[0][0].UnionPath
	wrongType := func(group []schema.Violation) bool {
		return slices.ContainsFunc(group, func(v schema.Violation) bool { return v.Path == path && v.Keyword == "type" })
	}
	wrongTag := func(group []schema.Violation) bool {
		return slices.ContainsFunc(group, func(v schema.Violation) bool { return v.Keyword == "const" || v.Keyword == "enum" })
	}
	of := groups
	if without := except(groups, wrongType); len(without) > 0 {
		of = without
	}
	if without := except(of, wrongTag); len(without) > 0 {
		of = without
	}
	if len(of) == 1 {
		return of[0]
	}
	var phrases []string
	all := schema.Violation{Path: path, Keyword: "anyOf"}
	for _, group := range of {
		phrase := phraseOf(group, path)
		if !slices.Contains(phrases, phrase) {
			phrases = append(phrases, phrase)
		}
		for _, v := range group {
			if v.Path == path {
				all.Types = append(all.Types, v.Types...)
			}
		}
	}
	all.Expected = phrases[0]
	if len(phrases) > 1 {
		all.Expected = "one of: " + cut(strings.Join(phrases, " or "), maxPhrases)
	}
	return []schema.Violation{all}
}

// maxPhrases is the length of what is said about the alternatives of a union.
const maxPhrases = 600

func except(groups [][]schema.Violation, wrong func([]schema.Violation) bool) [][]schema.Violation {
	return slices.DeleteFunc(slices.Clone(groups), wrong)
}

// phraseOf says what one alternative wants, with paths below that of the union.
func phraseOf(group []schema.Violation, path string) string {
	if len(group) == 1 && group[0].Path == path {
		return group[0].Expected
	}
	var words []string
	for _, v := range group {
		v.Path = strings.TrimPrefix(v.Path, path)
		words = append(words, v.String())
	}
	return "(" + strings.Join(words, "; ") + ")"
}

// written says where in the arguments, as the model wrote them, the places of
// violations are, which are places in the server's form.
func (r *record) written(value *schema.Node, violations []schema.Violation) []schema.Violation {
	out := slices.Clone(violations)
	for i, v := range out {
		out[i].Path = r.place(value, v.Path)
		if v.Union != "" {
			out[i].UnionPath = r.place(value, v.UnionPath)
		}
	}
	return out
}

func (r *record) place(value *schema.Node, path string) string {
	if path == "" {
		return ""
	}
	tokens := strings.Split(path, "/")[1:]
	for i, t := range tokens {
		tokens[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(t)
	}
	return schema.Pointer(r.placeIn(r.root, value, tokens, 0)...)
}

// placeIn leads tokens, a path in the server's form of v, through the schema n
// as it is sent.
func (r *record) placeIn(n, v *schema.Node, tokens []string, depth int) []string {
	if len(tokens) == 0 || n == nil || depth > schema.MaxNesting {
		return tokens
	}
	if m := r.marks[n]; m != nil {
		tokens = lead(m.ops, v, tokens)
	}
	if len(tokens) == 0 {
		return nil
	}
	if target := resolveRef(r.root, n); target != nil {
		return r.placeIn(target, v, tokens, depth+1)
	}
	if branch := r.meant(n, v); branch != nil {
		return r.placeIn(branch, v, tokens, depth+1)
	}
	return append([]string{tokens[0]}, r.placeIn(childSchema(n, tokens[0]), childValue(v, tokens[0]), tokens[1:], depth+1)...)
}

// lead leads a path through what was done to a value.
func lead(ops []mapping, v *schema.Node, tokens []string) []string {
	for _, op := range ops {
		if len(tokens) == 0 {
			return nil
		}
		if leads, ok := op.(interface {
			lead(v *schema.Node, tokens []string) []string
		}); ok {
			tokens = leads.lead(v, tokens)
		}
	}
	return tokens
}

// meant is the alternative of a union that a value, as it was written, is
// nearest to: one that it fits, or one that names its members.
func (r *record) meant(n, v *schema.Node) *schema.Node {
	w := walk{record: r}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		branches := n.Get(keyword).Items()
		for i, branch := range branches {
			if r.mapped[branch] && len(r.sent.ValidateAt(r.paths[n]+"/"+keyword+"/"+strconv.Itoa(i), v)) == 0 {
				return branch
			}
		}
		for _, branch := range branches {
			if w.namesMembers(branch, v) {
				return branch
			}
		}
		if branch := r.ofKind(branches, v); branch != nil {
			return branch
		}
	}
	return nil
}

// ofKind is the one alternative that takes values of v's kind; nil where there are
// several.
func (r *record) ofKind(branches []*schema.Node, v *schema.Node) (only *schema.Node) {
	for _, branch := range branches {
		target := branch
		for range schema.MaxDepth {
			next := resolveRef(r.root, target)
			if next == nil {
				break
			}
			target = next
		}
		kind := typeOfValue(v)
		if types := typesOf(target); slices.Contains(types, kind) || kind == "integer" && slices.Contains(types, "number") || len(types) == 0 {
			if only != nil {
				return nil
			}
			only = branch
		}
	}
	return only
}

func childSchema(n *schema.Node, token string) *schema.Node {
	if p := n.Get("properties").Get(token); p != nil {
		return p
	}
	i, err := strconv.Atoi(token)
	if prefix := n.Get("prefixItems").Items(); err == nil && i < len(prefix) {
		return prefix[i]
	}
	if err == nil && n.Has("items") {
		return n.Get("items")
	}
	if extra := n.Get("additionalProperties"); extra.Kind() == schema.Object {
		return extra
	}
	return nil
}

func childValue(v *schema.Node, token string) *schema.Node {
	if v.Kind() == schema.Array {
		if i, err := strconv.Atoi(token); err == nil && i >= 0 && i < len(v.Items()) {
			return v.Items()[i]
		}
		return nil
	}
	return v.Get(token)
}
