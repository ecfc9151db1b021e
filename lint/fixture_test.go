package lint

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/judge/pin"
)

// base is a tool with which nothing is wrong. Fixtures are merge patches
// (RFC 7396) of it.
const base = `{
	"name": "notes_get_note", "title": "Get a note",
	"description": "Gets one note by its name, such as \"groceries\". Use it when you know the name. Returns the text.",
	"inputSchema": {"type": "object", "properties": {"title": {"type": "string", "description": "Name of the note", "examples": ["groceries"]}}, "required": ["title"], "additionalProperties": false},
	"outputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
	"annotations": {"readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false}
}`

// A fixture is what one rule is tried on. Bad and Good are arrays of patches, one
// for each tool; each array in a set is one server.
type fixture struct {
	bad, good string
	server    func(*Server) // for what is not in a list
	badOnly   func(*Server) // only for bad
	targets   func(*Target)
	lock      []byte
}

// second is a patch that makes a second tool beside the first, different in what
// matters.
const second = `{"name":"notes_list_tags","title":"List the tags","description":"Lists all tags of all notes, at most 50 at a time. Use it before filtering. Returns names.",` + listInput + `}`

const listInput = `"inputSchema":{"properties":{"title":null,"limit":{"type":"integer","minimum":1,"maximum":50,"default":20,"description":"Number of tags"},"format":{"type":"string","enum":["json","markdown"],"description":"Form of the result"}},"required":null}, "outputSchema":{"properties":{"has_more":{"type":"boolean"}}}`

// writing is a patch that makes the tool one that writes.
const writing = `"name":"notes_set_note","title":"Set a note","description":"Replaces the text of one note by its name, such as \"groceries\". Returns the text.","annotations":{"readOnlyHint":false,"destructiveHint":true}`

func TestStaticRules(t *testing.T) {
	for _, r := range Rules() {
		if r.Live != nil || r.group() == 'L' {
			continue // rules about running servers are tried in live_test.go, the linter's own in suppress_test.go
		}
		f, ok := fixtures[r.ID]
		if !ok || f.bad == "" {
			t.Errorf("%s has no fixture", r.ID)
			continue
		}
		t.Run(r.ID, func(t *testing.T) {
			t.Parallel()
			bad := fired(t, f, f.bad, true)
			if !slices.Equal(bad, []string{r.ID}) {
				t.Errorf("the bad fixture fires %v", bad)
			}
			good := f.good
			if good == "" {
				good = `[{}]`
			}
			if fires := fired(t, f, good, false); len(fires) != 0 {
				t.Errorf("the good fixture fires %v", fires)
			}
		})
	}
	for id := range fixtures {
		if _, ok := Explain(id); !ok {
			t.Errorf("there is a fixture for %s and no such rule", id)
		}
	}
}

// fired lints the tools that patches describe and returns the rules that fired.
func fired(t *testing.T, f fixture, patches string, bad bool) []string {
	t.Helper()
	var sets [][]json.RawMessage
	if strings.HasPrefix(patches, `[[`) {
		must(t, json.Unmarshal([]byte(patches), &sets))
	} else {
		sets = make([][]json.RawMessage, 1)
		must(t, json.Unmarshal([]byte(patches), &sets[0]))
	}
	var targets []Target
	for i, set := range sets {
		target := Target{Label: "notes" + strings.Repeat("2", i), List: list(t, set)}
		if f.targets != nil && bad {
			f.targets(&target)
		}
		targets = append(targets, target)
	}
	o := Options{Lock: f.lock, Rules: Rules()}
	r := lintWith(t, targets, o, func(s *Server) {
		if f.server != nil {
			f.server(s)
		}
		if f.badOnly != nil && bad {
			f.badOnly(s)
		}
	})
	return rulesOf(r)
}

// lintWith is Run with a hook that can add to what is known of a server.
func lintWith(t *testing.T, targets []Target, o Options, add func(*Server)) *Report {
	t.Helper()
	r, err := run(t.Context(), targets, o, add)
	must(t, err)
	return r
}

func rulesOf(r *Report) []string {
	ids := map[string]bool{}
	for _, f := range r.Findings {
		ids[f.Rule] = true
	}
	return slices.Sorted(maps.Keys(ids))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// list makes an answer to tools/list of patches of the base tool. A patch that is
// a string is a definition as it is.
func list(t *testing.T, patches []json.RawMessage) json.RawMessage {
	t.Helper()
	var tools []string
	for _, p := range patches {
		var text string
		if json.Unmarshal(p, &text) == nil {
			tools = append(tools, text)
			continue
		}
		var tool, patch any
		must(t, json.Unmarshal([]byte(base), &tool))
		must(t, json.Unmarshal(p, &patch))
		b, err := json.Marshal(merge(tool, patch))
		must(t, err)
		tools = append(tools, string(b))
	}
	return json.RawMessage(`{"tools":[` + strings.Join(tools, ",") + `]}`)
}

// merge is JSON Merge Patch.
func merge(target, patch any) any {
	p, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	out, ok := target.(map[string]any)
	if !ok {
		out = map[string]any{}
	}
	for name, value := range p {
		if value == nil {
			delete(out, name)
		} else {
			out[name] = merge(out[name], value)
		}
	}
	return out
}

// lockOf pins one tool.
func lockOf(label, definition string) []byte {
	var l pin.Lock
	var tool any
	if err := json.Unmarshal([]byte(definition), &tool); err != nil {
		panic(err)
	}
	b, err := json.Marshal(tool)
	if err != nil {
		panic(err)
	}
	l.Set(label, []pin.Seen{{Key: pin.Key{Kind: pin.Tool, Name: "notes_get_note"}, Definition: b}})
	return l.Bytes()
}
