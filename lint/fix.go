package lint

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/rogpeppe/go-internal/diff"
)

// A fix mends one rule in the text of a definition, where there is only one way to mend
// it, and leaves every other character as it stands. It reports whether it did anything.
type fix struct {
	rule string
	do   func(definition []byte) ([]byte, bool)
}

var fixes = []fix{
	{"S001", fixObject},
	{"S008", fixOpen},
	{"X001", fixHidden},
}

// fixObject says that a schema is of an object, where it is one in all but name.
func fixObject(definition []byte) ([]byte, bool) {
	const empty = `{"type": "object", "additionalProperties": false}`
	in := spanOf(definition, "/inputSchema")
	if in.kind(definition) == 0 {
		return insert(definition, span{0, len(definition)}, `"inputSchema": `+empty), true
	}
	if in.kind(definition) == 'n' {
		return in.replace(definition, empty), true
	}
	typed := spanOf(definition, "/inputSchema/type").kind(definition) != 0
	properties := spanOf(definition, "/inputSchema/properties").kind(definition) != 0
	if in.kind(definition) != '{' || typed || !properties && !in.bare(definition) {
		return definition, false
	}
	return insert(definition, in, `"type": "object"`), true
}

// fixOpen closes the schema of a tool without arguments.
func fixOpen(definition []byte) ([]byte, bool) {
	if open := spanOf(definition, "/inputSchema/additionalProperties"); open.kind(definition) != 0 {
		return open.replace(definition, "false"), true
	}
	in := spanOf(definition, "/inputSchema")
	if in.kind(definition) != '{' {
		return definition, false
	}
	return insert(definition, in, `"additionalProperties": false`), true
}

// fixHidden takes hidden characters out of all texts and names.
func fixHidden(definition []byte) ([]byte, bool) {
	fixed := withoutHidden(definition)
	return fixed, len(fixed) != len(definition)
}

// Patch returns a unified diff that mends the findings for which there is only
// one way, and how many those are. The diff is of saved lists, or of laid-out
// definitions where the server was running; it is empty where there is nothing
// to mend, and touches no line in which nothing is. Suppressed findings, and those of a
// baseline, are left alone.
func (r *Report) Patch() (patch []byte, mended int) {
	for _, a := range r.Servers {
		s := a.Server
		text := bytes.Clone(s.Source)
		// From the last tool to the first, so that offsets before it stay.
		for _, t := range slices.Backward(s.Tools) {
			before := []byte(t.Definition)
			if s.File == "" {
				before = laidOut(t.Definition)
			}
			after, n := r.mend(t, before)
			if n == 0 {
				continue
			}
			mended += n
			if s.File == "" {
				name := s.Label + "/" + fileName(t.Name) + ".json"
				patch = append(patch, diff.Diff(name, before, name, after)...)
				continue
			}
			if bytes.HasPrefix(text[t.start.offset:], before) {
				text = slices.Replace(text, t.start.offset, t.start.offset+len(before), after...)
			}
		}
		if s.File != "" && !bytes.Equal(text, s.Source) {
			patch = append(patch, diff.Diff(s.File, s.Source, s.File, text)...)
		}
	}
	return patch, mended
}

// mend returns the text of a tool's definition with everything mended that can be.
func (r *Report) mend(t *Tool, definition []byte) (mended []byte, n int) {
	if t.Root == nil {
		return nil, 0
	}
	for _, f := range fixes {
		if !slices.ContainsFunc(r.Findings, func(g Finding) bool { return g.Rule == f.rule && g.tool == t }) {
			continue
		}
		if fixed, did := f.do(definition); did {
			definition = fixed
			n++
		}
	}
	return definition, n
}

func laidOut(definition json.RawMessage) []byte {
	var b bytes.Buffer
	if json.Indent(&b, definition, "", "  ") != nil {
		return definition
	}
	return append(b.Bytes(), '\n')
}
