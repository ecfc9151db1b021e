package result

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/text/invisible"
)

var scanSeeds = []string{
	`{}`, `[]`, `""`, `0`, `-0.5e+10`, `true`, `null`, ` [ 1 , { "a" : "b" } ] `, `{"a":1,"a":2}`, `"\ud83d\ude00\ud800"`, "\"\u202e\u007f\"",
	`[1,]`, `{"a"}`, `{"a":}`, `01`, `1.`, `-`, `1e`, `tru`, `"\x"`, `"\u12"`, "\"\n\"", `[`, `]`, `{]`, `1 2`, ``, `"`, `"\`, `{"a":1,}`, `{,}`, `[,1]`, `nul`,
	strings.Repeat("[", 300) + strings.Repeat("]", 300), strings.Repeat(`{"a":`, 200) + "1" + strings.Repeat("}", 200),
}

// FuzzScan compares the scanner with encoding/json: what is accepted, and that
// the cleaned text is the same value in valid JSON.
func FuzzScan(f *testing.F) {
	for _, s := range scanSeeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if !utf8.Valid(b) || bytes.Count(b, []byte("["))+bytes.Count(b, []byte("{")) > 9000 {
			return
		}
		d, err := scan(b)
		if (err == nil) != json.Valid(b) {
			t.Fatalf("scan: %v, encoding/json: %v", err, json.Valid(b))
		}
		if err != nil {
			return
		}
		clean := d.appendNode(nil, d.root)
		if n := utf8.RuneCount(clean); n != d.root.chars {
			t.Fatalf("%d characters, counted %d: %s", n, d.root.chars, clean)
		}
		var want, got any
		decode(t, string(b), &want)
		decode(t, string(clean), &got)
		if !reflect.DeepEqual(want, got) {
			t.Fatalf("%s became %s", b, clean)
		}
		for _, r := range string(clean) {
			if invisible.Stray(r) {
				t.Fatalf("%U is in %s", r, clean)
			}
		}
		if again, err := scan(clean); err != nil || !again.root.plain {
			t.Fatalf("cleaning %s again: %v", clean, err)
		}
		if !d.sameText(d.root, clean) || !sameTokens(clean, b) {
			t.Fatalf("%s is not the same as %s", b, clean)
		}
	})
}

// FuzzMessage shapes anything at all.
func FuzzMessage(f *testing.F) {
	for _, s := range scanSeeds {
		f.Add([]byte(`{"content":[{"type":"text","text":"x"},{"type":"image","data":`+s+`}],"structuredContent":`+s+`}`), 1000)
		f.Add([]byte(s), 1200)
	}
	f.Fuzz(func(t *testing.T, content []byte, limit int) {
		limit = 1000 + limit&0xfff
		for _, profile := range []Profile{Envelope, Structured, Raw} {
			shape := &Shape{Profile: profile, Limit: limit, Shelf: &Shelf{}, Images: limit%2 == 0}
			m := shape.Message(call, dragoman.Result{Content: content})
			if n := utf8.RuneCountInString(m.Text); n > limit || !json.Valid([]byte(m.Text)) {
				t.Fatalf("%d characters of %d, or not JSON: %s", n, limit, m.Text)
			}
		}
		Dual(dragoman.Result{Content: content}, true)
	})
}

// FuzzRead asks for anything at all.
func FuzzRead(f *testing.F) {
	f.Add("", "/data", 0, 1, "items")
	f.Add(".b0", "", 2, 5, "bytes")
	f.Add(".b1", "/data/x~1", -2, 5, "lines")
	f.Add("", "/meta/parts/0/text", 3, 0, "json")
	f.Fuzz(func(t *testing.T, part, pointer string, offset, limit int, unit string) {
		shape := &Shape{Limit: 1000, Shelf: &Shelf{}, Inline: -1}
		m := shape.Message(call, dragoman.Result{Content: []byte(
			`{"content":[{"type":"text","text":"` + strings.Repeat("tail\\n", 300) + `"},{"type":"image","data":"AAAA"}],"structuredContent":{"x/":[` + strings.Repeat(`"a",`, 300) + `{}]}}`)})
		args, _ := json.Marshal(map[string]any{"handle": m.Handle + part, "pointer": pointer, "offset": offset, "limit": limit, "unit": unit})
		tool := ReadMoreTool()
		page := shape.Message(dragoman.Call{Tool: &tool}, shape.Shelf.Read("", args))
		if page.Cut || !json.Valid([]byte(page.Text)) {
			t.Fatalf("cut %v, or not JSON: %s", page.Cut, page.Text)
		}
	})
}

// TestHugeResults shapes and pages what a hostile server may send. Work that
// grows with the square of the size would take it hours.
func TestHugeResults(t *testing.T) {
	const size, string16 = 1 << 20, 16 << 20
	for name, content := range map[string]string{
		"one string":      `{"content":[{"type":"text","text":"` + strings.Repeat("x", string16) + `"}]}`,
		"escapes":         `{"content":[{"type":"text","text":"` + strings.Repeat(`\ud800`, size/6) + `"}]}`,
		"claims JSON":     `{"content":[{"type":"text","text":"` + strings.Repeat(`[`, size) + `"}]}`,
		"tower":           `{"content":[],"structuredContent":` + strings.Repeat("[", size/2) + strings.Repeat("]", size/2) + `}`,
		"tower, 10,000":   `{"content":[],"structuredContent":` + strings.Repeat(`{"a":`, 10_000) + "1" + strings.Repeat("}", 10_000) + `}`,
		"towers":          `{"content":[],"structuredContent":[` + strings.Repeat(strings.Repeat("[", 300)+strings.Repeat("]", 300)+",", size/601) + `1]}`,
		"one name":        `{"content":[],"structuredContent":{"` + strings.Repeat("n", size) + `":1}}`,
		"members":         `{"content":[],"structuredContent":{` + strings.Repeat(`"a":1,`, size/6) + `"b":2}}`,
		"blocks":          `{"content":[` + strings.Repeat(`{"type":"text"},`, size/16) + `7]}`,
		"one number":      `{"content":[],"structuredContent":` + strings.Repeat("7", size) + `}`,
		"base64":          `{"content":[{"type":"image","data":"` + strings.Repeat("AAAA", string16/4) + `"}]}`,
		"space":           `{"content":[],"structuredContent":[` + strings.Repeat(" ", size) + `]}`,
		"not UTF-8":       `{"content":[{"type":"text","text":"` + strings.Repeat("\xff", size) + `"}]}`,
		"same, reordered": `{"content":[{"type":"text","text":"{\"b\":1,\"a\":[` + strings.Repeat("1,", size/4) + `1]}"}],"structuredContent":{"a":[` + strings.Repeat("1,", size/4) + `1],"b":1}}`,
	} {
		t.Run(name, func(t *testing.T) {
			for _, profile := range []Profile{Envelope, Text, Raw} {
				shape := &Shape{Profile: profile, Shelf: &Shelf{}}
				m := shape.Message(call, dragoman.Result{Content: []byte(content)})
				if n := utf8.RuneCountInString(m.Text); n > DefaultLimit {
					t.Fatalf("%d characters", n)
				}
				if profile != Text && !json.Valid([]byte(m.Text)) {
					t.Fatalf("not JSON: %.200s", m.Text)
				}
				if !m.Cut {
					continue
				}
				page := shape.Shelf.Read("", json.RawMessage(`{"handle":"`+m.Handle+`","offset":1}`))
				if binary := strings.Contains(m.Text, m.Handle+".b0"); page.Problem != nil && !binary {
					t.Errorf("reading on: %v", page.Problem)
				}
			}
		})
	}
}

// TestEscape: how much of a document an escape is, how wide it is written, and whether it
// may stay as it is.
func TestEscape(t *testing.T) {
	for text, want := range map[string][3]any{
		`\n`: {2, 2, true}, `\"x`: {2, 2, true}, `\/`: {2, 1, false}, `\`: {0, 0, false}, `\x`: {0, 0, false}, `\u12`: {0, 0, false}, `\u12g4`: {0, 0, false},
		`\u0041`: {6, 1, false}, `\u00aa`: {6, 1, false}, `\u00AA`: {6, 1, false}, `\u0909`: {6, 1, false}, `\uffff`: {6, 1, false}, `\ud7ff`: {6, 1, false}, `\ue000`: {6, 1, false},
		`\u0022`: {6, 6, true}, `\u005C`: {6, 6, true}, `\u0000`: {6, 6, true}, `\u000a`: {6, 6, true}, `\u007f`: {6, 6, true}, `\u202e`: {6, 6, true}, `\udb40\udc41`: {12, 12, true},
		`\ud83d\ude00`: {12, 1, false}, `\ud83d`: {6, 1, false}, `\ud83dx`: {6, 1, false}, `\ud83d\u0041`: {6, 1, false}, `\ud83d\ud83d`: {6, 1, false},
		`\ude00`: {6, 1, false}, `\udfff`: {6, 1, false}, `\udc00`: {6, 1, false}, `\udbff\udfff`: {12, 1, false}, `\ud800\ue000`: {6, 1, false},
	} {
		size, width, clean := escape([]byte(text))
		if got := [3]any{size, width, clean}; got != want {
			t.Errorf("%s is %v, want %v", text, got, want)
		}
	}
}
