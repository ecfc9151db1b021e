package toolkit

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/lint"
	"github.com/dragoman-mcp/dragoman/schema"
)

// What the toolkit wants of names, descriptions, hints and schemas are rules of
// package lint: those that leave no room for judgement, so that a server is never
// kept from starting by a guess. All others are for dragoman lint. A list of verbs is
// never complete: a name with another word in that place is in the form that N005
// wants, and gives a warning.
var (
	serverRules = sync.OnceValue(func() []lint.Rule { return lint.Only("N010", "N011") })
	toolRules   = sync.OnceValue(func() []lint.Rule {
		return lint.Only("N001", "N002", "N003", "N005", "N008", "N012", "D001", "A003", "A009", "A010", "S001", "S002", "S003", "S004", "S013")
	})
	// sampleRules are for schemas that tags make. In a schema that an author brings,
	// as from a document of somebody else's, a default may be wrong without harm.
	sampleRules = sync.OnceValue(func() []lint.Rule { return lint.Only("S022") })
)

// waysOut say what to do about a finding in the toolkit's own words, by rule.
var waysOut = map[string]string{
	"N005": " (add a verb with Options.Verbs)",
	"A009": "; say Yes or No to each",
}

// checkServer holds the server's own name to the rules.
func (s *Server) checkServer() (problems []error) {
	for _, f := range lint.Judge(&lint.Server{Name: s.name, Author: s.author()}, nil, serverRules()) {
		problems = append(problems, broken("", f))
	}
	return problems
}

// broken says what breaks a rule, and the rule's id, of which dragoman lint
// --explain tells why.
func broken(where string, f lint.Finding) error {
	if where != "" {
		where += ": "
	}
	return fmt.Errorf("%s%s%s [%s]", where, f.Message, waysOut[f.Rule], f.Rule)
}

// checkHeld holds the tool to the rules. What its schemas lack because of other
// problems is not said again.
func (b *binding) checkHeld() {
	var o rawjson.Object
	o.Set("name", rawjson.Quote(b.tool.Name))
	o.Set("description", rawjson.Quote(b.tool.Description))
	o.Set("annotations", b.tool.Hints.stated())
	rules := toolRules()
	switch {
	case len(b.problems) > 0:
		o.Set("inputSchema", json.RawMessage(`{"type":"object"}`))
	default:
		o.Set("inputSchema", b.input)
		if b.in.exemplified(map[*shape]bool{}) {
			rules = slices.Concat(rules, sampleRules())
		}
		if b.out.exemplified(map[*shape]bool{}) {
			o.Set("outputSchema", b.output)
			rules = slices.Concat(toolRules(), sampleRules())
		}
	}
	s := &lint.Server{Author: b.server.author()}
	for _, f := range lint.Judge(s, []json.RawMessage{o.Bytes()}, rules) {
		if f.Rule == "N005" && b.server.namesResource(b.tool.Name) {
			b.server.warn(fmt.Errorf("tool %q: %w", b.tool.Name, broken("", f)))
			continue
		}
		b.problems = append(b.problems, broken(b.where(f), f))
	}
	b.read = s.Tools[0].Input
}

// where spells the place of a finding: as the author of a Go type knows it, or
// for a schema of their own as the place in that.
func (b *binding) where(f lint.Finding) string {
	if inner, ok := strings.CutPrefix(f.Pointer, "/inputSchema"); ok {
		return b.in.goPath(inner)
	}
	if inner, ok := strings.CutPrefix(f.Pointer, "/outputSchema"); ok {
		return b.out.goPath(inner)
	}
	return ""
}

// checkSamples finds defaults and examples in tags that break the rules that the
// tags beside them make, where there is no tool: see [InputSchema] and [AddPrompt].
func (s *shape) checkSamples(text json.RawMessage) error {
	if !s.exemplified(map[*shape]bool{}) {
		return nil
	}
	var o rawjson.Object
	o.Set("inputSchema", text)
	var problems []error
	for _, f := range lint.Judge(&lint.Server{}, []json.RawMessage{o.Bytes()}, sampleRules()) {
		problems = append(problems, broken(s.goPath(strings.TrimPrefix(f.Pointer, "/inputSchema")), f))
	}
	return errors.Join(problems...)
}

// exemplified reports whether there is a default or an example in a shape.
func (s *shape) exemplified(seen map[*shape]bool) bool {
	if s == nil || seen[s] {
		return false
	}
	seen[s] = true
	if s.item != nil && s.item.of.exemplified(seen) {
		return true
	}
	for _, f := range s.fields {
		if r := &f.at.rules; r.fallback != nil || len(r.examples) > 0 || f.at.of.exemplified(seen) {
			return true
		}
	}
	return false
}

// goPath spells the place of a default or an example in the schema as the author
// of the Go type knows it: Trip.Stay.Nights for /properties/stay/properties/nights.
// Inside $defs, and in a schema that no type made, it stays as it is.
func (s *shape) goPath(pointer string) string {
	if s.kind == kindCustom {
		return pointer
	}
	pointer = strings.TrimSuffix(strings.TrimSuffix(pointer, "/default"), "/examples")
	path, at := typeName(s.goType), s
	for rest := pointer; rest != ""; {
		if inner, ok := strings.CutPrefix(rest, "/items"); ok && at.item != nil {
			path, at, rest = path+"[]", at.item.of, inner
			continue
		}
		if inner, ok := strings.CutPrefix(rest, "/additionalProperties"); ok && at.item != nil {
			path, at, rest = path+"[]", at.item.of, inner
			continue
		}
		inner, ok := strings.CutPrefix(rest, "/properties/")
		if !ok {
			return pointer
		}
		name, after, more := strings.Cut(inner, "/")
		i := slices.IndexFunc(at.fields, func(f *field) bool { return schema.Pointer(f.name) == "/"+name })
		if i < 0 {
			return pointer
		}
		path, at, rest = path+"."+at.fields[i].goName, at.fields[i].at.of, ""
		if more {
			rest = "/" + after
		}
	}
	return path
}
