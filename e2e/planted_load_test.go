package e2e

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// A plant is one fault, planted in a correct server.
type plant struct {
	ID    string
	Of    string         // the correct server
	Fault string         // in words
	Patch map[string]any // what makes the fault; empty for one of the wire
	// Want are rules of which any finds it.
	Want string

	Only   string // a carrier that can have it
	Not    string // a carrier that cannot: it sends no such thing
	Era    string // an era that can have it
	Stdio  bool   // it shows in a process
	Asks   bool   // it shows where the server knows who asks
	HTTP   *bool  // whether it shows over HTTP; nil means everywhere
	Attack string // the handle of the tool to attack
	Wire   bool   `json:"-"` // planted_wire_test.go makes it
	// Also are further rules that are right about it.
	Also string
	// Missed is why nobody finds it yet.
	Missed string
}

// readPlants reads a file of testdata/planted.
func readPlants(t *testing.T, name string) (out []plant) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "planted", name))
	if err != nil {
		t.Fatal(err)
	}
	if text, err = yaml.YAMLToJSON(text); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return out
}

// readBases reads the correct servers.
func readBases(t *testing.T) (out map[string]map[string]any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "planted", "bases.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if text, err = yaml.YAMLToJSON(text); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// patched is a correct server with the plant's fault.
func (p *plant) patched(bases map[string]map[string]any) map[string]any {
	spec, _ := grown(bases[p.Of], p.Patch).(map[string]any) // a base is an object
	tools, _ := spec["tools"].(map[string]any)
	if n, ok := tools["clones"].(float64); ok {
		delete(tools, "clones")
		original, _ := tools["get"].(map[string]any)
		for i := range int(n) {
			clone := maps.Clone(original)
			clone["name"] = fmt.Sprintf("weather_get_region_%d", i)
			clone["description"] = fmt.Sprintf(`Gets the forecast of region %d of the country, by a station in it, such as "harbour". Returns degrees Celsius and millimetres of rain.`, i)
			tools[fmt.Sprintf("get_%d", i)] = clone
		}
	}
	return spec
}

// grown is a merge patch (RFC 7396) in which a value may say how it is made: a text by
// repeat, append, tags, selectors, base64, hex and secret; a schema by nested, many and
// doubling.
func grown(target, patch any) any {
	p, ok := patch.(map[string]any)
	if !ok {
		if list, ok := patch.([]any); ok {
			return grownList(list)
		}
		return patch
	}
	if text, ok := madeText(target, p); ok {
		return text
	}
	out := map[string]any{}
	if was, ok := target.(map[string]any); ok {
		maps.Copy(out, was)
	}
	for name, value := range p {
		switch n, _ := value.(float64); {
		case value == nil:
			delete(out, name)
		case name == "nested":
			maps.Copy(out, nested(int(n)))
		case name == "many":
			for i := range int(n) {
				out[fmt.Sprintf("field_%d", i)] = map[string]any{"type": "string", "maxLength": 40, "description": fmt.Sprintf("Value of the field %d of the form", i)}
			}
		case name == "doubling":
			maps.Copy(out, doubling(int(n)))
		default:
			out[name] = grown(out[name], value)
		}
	}
	return out
}

func grownList(list []any) []any {
	out := make([]any, len(list))
	for i, item := range list {
		out[i] = grown(nil, item)
	}
	return out
}

func madeText(target any, p map[string]any) (string, bool) {
	of := func(name string) string { s, _ := p[name].(string); return s } // what is none is empty
	wrap := func(s string) (string, bool) { return of("before") + s + of("after"), true }
	switch {
	case p["append"] != nil:
		more, ok := p["append"].(string)
		if !ok {
			if m, isMap := p["append"].(map[string]any); isMap {
				more, ok = madeText("", m)
			}
		}
		was, _ := target.(string) // what is none is empty
		return was + more, ok
	case p["repeat"] != nil && p["times"] != nil:
		n, _ := p["times"].(float64)
		return wrap(strings.Repeat(of("repeat"), int(n)))
	case p["base64"] != nil:
		return wrap(base64.StdEncoding.EncodeToString([]byte(of("base64"))))
	case p["hex"] != nil:
		return wrap(hex.EncodeToString([]byte(of("hex"))))
	case p["tags"] != nil:
		return wrap(shifted(of("tags"), 0xE0000))
	case p["selectors"] != nil:
		return wrap(shifted(of("selectors"), 0xE0100))
	case p["secret"] != nil: // put together here, so that no scanner of repositories stops at it
		key := "Q7ZJ4XK2M9" + "PL3VW8"
		return strings.ReplaceAll(of("secret"), "%s", key), true
	}
	return "", false
}

func shifted(s string, by rune) string {
	return strings.Map(func(r rune) rune { return r + by }, s)
}

func nested(n int) map[string]any {
	out := map[string]any{"type": "string", "maxLength": 40, "description": "Value to compare with"}
	for i := range n {
		out = map[string]any{"type": "object", "description": fmt.Sprintf("Part %d of the filter", i), "additionalProperties": false, "properties": map[string]any{"part": out}}
	}
	return out
}

func doubling(n int) map[string]any {
	defs := map[string]any{"a0": map[string]any{"type": "object"}}
	for i := range n {
		ref := map[string]any{"$ref": fmt.Sprintf("#/$defs/a%d", i)}
		defs[fmt.Sprintf("a%d", i+1)] = map[string]any{"allOf": []any{ref, ref}}
	}
	return map[string]any{"$defs": defs, "allOf": []any{map[string]any{"$ref": fmt.Sprintf("#/$defs/a%d", n)}}}
}
