package lint

import (
	"bytes"
	"strings"
	"testing"
)

// TestPatchIsMinimal: mending touches the lines in which something is wrong, and no
// others, however the list is laid out and the character written.
func TestPatchIsMinimal(t *testing.T) {
	const saved = "{\n\t\"tools\": [\n\t\t{\n\t\t\t\"name\":  \"notes_get_note\", \"title\": \"Get\\u200b a n\u202eote\",\n\t\t\t\"description\": \"Gets one note by its name, such as \\\"a\\\\\\\". Returns the text, as it is.\",\n\t\t\t\"inputSchema\": {\n\t\t\t\t\"properties\": { },\n\t\t\t\t\"additionalProperties\" : {}\n\t\t\t},\n\t\t\t\"x\": 1.50e1\n\t\t}\n\t]\n}\n"
	r, err := Run(t.Context(), []Target{{Label: "notes", List: []byte(saved), File: "notes.json"}}, Options{Rules: Only("S001", "S008", "X001")})
	must(t, err)
	patch, mended := r.Patch()
	var changed []string
	for line := range bytes.Lines(patch) {
		if (line[0] == '+' || line[0] == '-') && !bytes.HasPrefix(line, []byte("+++")) && !bytes.HasPrefix(line, []byte("---")) {
			changed = append(changed, strings.TrimSpace(string(line)))
		}
	}
	want := []string{
		"-\t\t\t\"name\":  \"notes_get_note\", \"title\": \"Get\\u200b a n\u202eote\",",
		"+\t\t\t\"name\":  \"notes_get_note\", \"title\": \"Get a note\",",
		"+\t\t\t\t\"type\": \"object\",",
	}
	if mended != 2 || strings.Join(changed, "\n") != strings.Join(want, "\n") {
		t.Errorf("%d mended:\n%s", mended, patch)
	}
}

// TestMembersAreInserted: a member stands as the one behind it does.
func TestMembersAreInserted(t *testing.T) {
	for in, want := range map[string]string{
		`{}`:                      `{"m": 1}`,
		` { } `:                   ` {"m": 1 } `,
		`{"a":2}`:                 `{"m": 1, "a":2}`,
		`{ "a":2}`:                `{ "m": 1, "a":2}`,
		"{\n  \"a\":2\n}":         "{\n  \"m\": 1,\n  \"a\":2\n}",
		"{\r\n\t\"a\":{\"b\":1}}": "{\r\n\t\"m\": 1,\r\n\t\"a\":{\"b\":1}}",
	} {
		if got := string(insert([]byte(in), span{0, len(in)}, `"m": 1`)); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

// TestHiddenInEscapes: what is hidden goes however it is spelled, and nothing else does.
func TestHiddenInEscapes(t *testing.T) {
	for in, want := range map[string]string{
		`{"a\u200b":"\ud83d\ude00\u202Ex"}`:    `{"a":"\ud83d\ude00x"}`,
		`{"a":"\\u200b \"\u2066\" \n\t"}`:      `{"a":"\\u200b \"\" \n\t"}`,
		`{"a":"\udb40\udc41b"}`:                `{"a":"b"}`, // a tag
		`{"lone":"\ud83d \\", "b":"\u00e9"}`:   `{"lone":"\ud83d \\", "b":"\u00e9"}`,
		"{\"a\":\"\u2062\u00e9\", \"b\":\"\"}": "{\"a\":\"\u00e9\", \"b\":\"\"}",
	} {
		if got := string(withoutHidden([]byte(in))); got != want {
			t.Errorf("%s became %s, want %s", in, got, want)
		}
	}
}
