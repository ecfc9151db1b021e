package console

import (
	"encoding/json"
	"errors"
	"html/template"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/identity/signin"
)

var (
	operatorForTests = signin.Operator
	signInSlower     = signin.ErrSlower.Error()
)

// TestBeside: lines that both have stand beside each other, others between them, and each
// change at the line that it is about.
func TestBeside(t *testing.T) {
	pairs := beside(json.RawMessage(`{"type":"object","properties":{"a":{"type":"string","minLength":1},"b":{}},"additionalProperties":false}`),
		json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"},"b":{}}}`),
		[]dialect.Change{{Pointer: ""}, {Pointer: "/properties/a"}})
	var got strings.Builder
	for _, p := range pairs {
		side := func(l *line) string {
			if l == nil {
				return "-"
			}
			return strings.TrimSpace(l.Text)
		}
		got.WriteString(side(p.Left) + " | " + side(p.Right))
		for _, n := range p.Changes {
			got.WriteString(" " + string(rune('0'+n)))
		}
		got.WriteString("\n")
	}
	const want = `{ | { 1
"type": "object", | "type": "object",
"properties": { | "properties": {
"a": { | "a": { 2
"type": "string", | "type": "string"
"minLength": 1 | -
}, | },
"b": {} | "b": {}
}, | }
"additionalProperties": false | -
} | }
`
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestLinesOfAnything: what is no JSON, or too deep, or too long to be compared, is shown
// all the same.
func TestLinesOfAnything(t *testing.T) {
	deep := json.RawMessage(strings.Repeat("[", 200) + strings.Repeat("]", 200))
	if got := lines(deep); len(got) == 0 || len(got) > 3*maxNested {
		t.Errorf("%d lines", len(got))
	}
	if got := lines(json.RawMessage("{")); len(got) != 1 || got[0].Text != "{" {
		t.Errorf("%+v", got)
	}
	long := json.RawMessage("[" + strings.Repeat(`{"a":1},`, 3000) + "{}]")
	if got := beside(long, long, nil); len(got) != len(lines(long)) {
		t.Errorf("%d pairs", len(got))
	}
	var whole strings.Builder
	for _, l := range lines(json.RawMessage(`{"n":12345678901234567890.0,"s":"a\u202eb"}`)) {
		whole.WriteString(l.Text)
	}
	if got := whole.String(); !strings.Contains(got, "12345678901234567890.0") || strings.Contains(got, "\u202e") {
		t.Error(got)
	}
}

// TestForm: nested objects, unions and references within the schema become fields.
func TestForm(t *testing.T) {
	fields, arguments := form(json.RawMessage(`{"type":"object","required":["name","where","kind"],"$defs":{"place":{"type":"object","required":["city"],"properties":{"city":{"type":"string"},"zip":{"type":["string","null"]}}},"tree":{"type":"object","properties":{"child":{"$ref":"#/$defs/tree"}}}},
		"properties":{"name":{"type":"string","description":"who"},"where":{"$ref":"#/$defs/place"},"kind":{"enum":["a","b"]},"n":{"type":"integer"},"maybe":{"anyOf":[{"type":"number"},{"type":"null"}]},
		"either":{"oneOf":[{"title":"A","type":"object","properties":{"x":{"type":"boolean"}}},{"type":"string"}]},"list":{"type":"array"},"tree":{"$ref":"#/$defs/tree"},"a/b":{"type":"string"}}}`))
	var got []string
	var walk func([]field, string)
	walk = func(fields []field, indent string) {
		for _, f := range fields {
			got = append(got, indent+f.Pointer+" "+f.Kind)
			if len(got) > 60 {
				return
			}
			walk(f.Fields, indent+" ")
			for _, b := range f.Branches {
				got = append(got, indent+" or "+b.Title)
				walk(b.Fields, indent+"  ")
			}
		}
	}
	walk(fields[:6], "")
	want := []string{"/name text", "/where object", " /where/city text", " /where/zip text", "/kind choice", "/n integer", "/maybe number", "/either union", " or A", "  /either/x boolean", " or string", "  /either text"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if fields[6].Kind != "json" || fields[8].Pointer != "/a~1b" {
		t.Errorf("%+v", fields[6:])
	}
	var begin map[string]any
	if err := json.Unmarshal([]byte(arguments), &begin); err != nil || len(begin) != 3 || begin["kind"] != "a" {
		t.Errorf("%s %v", arguments, err)
	}
	for _, odd := range []string{`true`, `{}`, `[]`, `{"$ref":"#"}`, `{"properties":{"a":{"$ref":"#/properties/a"}}}`, `{"properties":{"a":true}}`, `{"properties":[]}`, `{"properties":{"a":{"enum":[]}},"required":"a"}`} {
		form(json.RawMessage(odd))
	}
}

// TestPieces: what shows nothing is spelled out, and no other character is lost.
func TestPieces(t *testing.T) {
	var got strings.Builder
	for _, p := range pieces("a\u202eb\nc\u200b\U000E0041") {
		if p.Odd {
			got.WriteString("<" + p.Text + ">")
		} else {
			got.WriteString(p.Text)
		}
	}
	if got.String() != "a<U+202E>b\nc<U+200B><U+E0041>" {
		t.Error(got.String())
	}
	if blanks("a\u00a0b")[1].Text != "U+00A0" || len(pieces("a\u00a0b")) != 1 {
		t.Error("spaces are not told apart")
	}
}

// TestNext: signing in leads to pages of ours, and nowhere else.
func TestNext(t *testing.T) {
	for wanted, want := range map[string]string{
		"/console/tools?q=a": "/console/tools?q=a", "": Root, "//evil.example/console/": Root, "https://evil.example/console/": Root, `/console/\evil`: Root,
		"/v1/models": Root, "/console/sign-out": Root, "javascript:alert(1)": Root, "/console/../v1": Root,
	} {
		if got := next(wanted); got != want {
			t.Errorf("next(%q) = %q", wanted, got)
		}
	}
}

// TestLanguage: the browser chooses.
func TestLanguage(t *testing.T) {
	for accept, want := range map[string]string{"": "en", "fr,zh-CN;q=0.8,en;q=0.5": "zh", "en-GB,zh": "en", "zh-Hans": "zh", "de": "en"} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Accept-Language", accept)
		if got := language(r); got != want {
			t.Errorf("language(%q) = %s", accept, got)
		}
	}
}

// TestPagesHaveNothingOfTheirOwn: no page has a script or a style in it, which the policy
// of the console would not run.
func TestPagesHaveNothingOfTheirOwn(t *testing.T) {
	entries, err := files.ReadDir("pages")
	if err != nil || len(entries) < 12 {
		t.Fatal(len(entries), err)
	}
	for _, e := range entries {
		text, err := files.ReadFile("pages/" + e.Name())
		if err != nil {
			t.Fatal(err)
		}
		for _, wrong := range []string{"<style", " style=", " onclick=", " onload=", "http://", "https://", "javascript:"} {
			if strings.Contains(string(text), wrong) {
				t.Errorf("%s has %q", e.Name(), wrong)
			}
		}
	}
	script, err := files.ReadFile("assets/console.js")
	if err != nil || strings.Count(string(script), "\n") > 500 || strings.Contains(string(script), "innerHTML") {
		t.Errorf("the script: %d lines, %v", strings.Count(string(script), "\n"), err)
	}
}

// TestPagesCanBeMade: each page is HTML in which every value has its place. What is wrong
// there would show only when somebody opens the page.
func TestPagesCanBeMade(t *testing.T) {
	for lang, all := range pages() {
		for name, page := range all {
			err := page.ExecuteTemplate(io.Discard, "page", view{Lang: lang, Data: nil})
			if wrong, ok := errors.AsType[*template.Error](err); ok {
				t.Errorf("%s: %v", name, wrong)
			}
		}
	}
}
