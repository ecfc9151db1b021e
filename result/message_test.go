package result

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/text/invisible"
	"pgregory.net/rapid"
)

// jsonValue draws a JSON text of any shape, at times with space, escapes and
// hidden characters in it, and at times big.
func jsonValue(depth int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		kinds := []string{"null", "bool", "number", "string", "array", "object", "long", "list", "tower"}
		if depth == 0 {
			kinds = kinds[:4]
		}
		space := rapid.SampledFrom([]string{"", "", " ", "\n\t"}).Draw(t, "space")
		switch rapid.SampledFrom(kinds).Draw(t, "kind") {
		case "null":
			return "null"
		case "bool":
			return "true"
		case "number":
			return rapid.SampledFrom([]string{"0", "-1.50e+3", "9007199254740993", strings.Repeat("7", 700)}).Draw(t, "number")
		case "string":
			return jsonString().Draw(t, "string")
		case "array":
			return "[" + space + strings.Join(rapid.SliceOfN(jsonValue(depth-1), 0, 6).Draw(t, "array"), space+","+space) + space + "]"
		case "object":
			var members []string
			for i, v := range rapid.SliceOfN(jsonValue(depth-1), 0, 6).Draw(t, "object") {
				name := jsonString().Draw(t, "name")
				members = append(members, fmt.Sprintf(`"%d%s%s:%s%s`, i, name[1:], space, space, v))
			}
			return "{" + strings.Join(members, space+","+space) + "}"
		case "long":
			return `"` + strings.Repeat(rapid.SampledFrom([]string{"x", "语", `\n`, `\ud83d\ude00`, "\u202e", "🏴\U000e0067"}).Draw(t, "unit"), rapid.IntRange(1, 3000).Draw(t, "n")) + `"`
		case "list":
			one := jsonValue(depth-1).Draw(t, "one")
			return "[" + strings.Repeat(one+",", min(rapid.IntRange(0, 300).Draw(t, "n"), 60_000/len(one))) + one + "]"
		default:
			n := rapid.IntRange(1, 400).Draw(t, "n")
			open, close := "[", "]"
			if rapid.Bool().Draw(t, "objects") {
				open, close = `{"a/~b":`, "}"
			}
			return strings.Repeat(open, n) + "1" + strings.Repeat(close, n)
		}
	})
}

func jsonString() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		parts := rapid.SliceOfN(rapid.SampledFrom([]string{
			"a", "Beijing", " ", "北京", `\"`, `\\`, `\/`, `\u0000`, `\u00e9`, `\ud834\udd1e`, "\u007f", "\u009b", "\u2066", "\U000e0041", "~", "/", strings.Repeat("k", 170),
		}), 0, 5).Draw(t, "parts")
		return `"` + strings.Join(parts, "") + `"`
	})
}

// mcpResult draws an MCP result.
func mcpResult() *rapid.Generator[dragoman.Result] {
	return rapid.Custom(func(t *rapid.T) dragoman.Result {
		var members []string
		if rapid.Bool().Draw(t, "structured") {
			members = append(members, `"structuredContent":`+jsonValue(4).Draw(t, "value"))
		}
		var blocks []string
		for range rapid.IntRange(0, 3).Draw(t, "blocks") {
			text := rapid.OneOf(jsonString(), rapid.Map(jsonValue(3), func(s string) string { return string(appendQuoted(nil, s)) })).Draw(t, "text")
			blocks = append(blocks, rapid.SampledFrom([]string{
				`{"type":"text","text":` + text + `}`,
				`{"type":"text","text":` + text + `,"annotations":{"audience":["user"]}}`,
				`{"type":"text","text":` + text + `,"annotations":{"priority":0.9},"_meta":{"x":1}}`,
				`{"type":"image","mimeType":"image/png","data":"iVBORw0KGgo="}`,
				`{"type":"audio","mimeType":"audio/wav","data":` + text + `}`,
				`{"type":"resource_link","uri":"file:///a","name":` + text + `}`,
				`{"type":"resource","resource":{"uri":"file:///a","text":` + text + `}}`,
				`{"type":"hologram","waves":` + text + `}`,
				text,
			}).Draw(t, "block"))
		}
		members = append(members, `"content":[`+strings.Join(blocks, ", ")+`]`)
		if rapid.IntRange(0, 4).Draw(t, "failed") == 0 {
			members = append(members, `"isError":true`)
		}
		return dragoman.Result{
			Content: json.RawMessage("{" + strings.Join(members, ",") + "}"),
			Info:    dragoman.Info{Note: rapid.SampledFrom([]string{"", "A note.", strings.Repeat("ü\u202e", 400)}).Draw(t, "note")},
		}
	})
}

func TestMessageFitsAndIsJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shape := Shape{
			Profile: rapid.SampledFrom([]Profile{"", Text, Structured, Raw}).Draw(t, "profile"),
			Limit:   rapid.SampledFrom([]int{1000, 1001, 1500, 4000, 25000}).Draw(t, "limit"),
			Tokens:  rapid.SampledFrom([]int{0, 400, 2000}).Draw(t, "tokens"),
			Images:  rapid.Bool().Draw(t, "images"),
		}
		if rapid.Bool().Draw(t, "shelf") {
			shape.Shelf = &Shelf{}
		}
		res := mcpResult().Draw(t, "result")
		call := call
		if rapid.IntRange(0, 4).Draw(t, "long names") == 0 {
			long := strings.Repeat("語\u202e\"\n", 100)
			call.Tool = &dragoman.Tool{Name: long, Server: long}
		}
		if rapid.IntRange(0, 9).Draw(t, "problem") == 0 {
			res.Problem = &dragoman.Problem{Code: "timeout", Message: strings.Repeat("long \x00", rapid.IntRange(0, 400).Draw(t, "message")), AuditID: "a"}
			for range rapid.IntRange(0, 100).Draw(t, "fields") {
				res.Problem.Fields = append(res.Problem.Fields, dragoman.Field{Path: "/a", Expected: "\xff", Missing: true})
			}
		}
		if !json.Valid(res.Content) {
			t.Fatalf("the test made invalid JSON: %s", res.Content)
		}
		m := shape.Message(call, res)
		if n := utf8.RuneCountInString(m.Text); n > shape.Limit {
			t.Fatalf("%d characters, limit %d: %s", n, shape.Limit, m.Text)
		}
		if n := EstimateTokens(m.Text); shape.Tokens > 0 && n > max(shape.Tokens, MinLimit) {
			t.Fatalf("about %d tokens, limit %d", n, shape.Tokens)
		}
		text := m.Text
		if shape.Profile == Text {
			_, fenced, _ := strings.Cut(text, "\n```json\n")
			text = strings.TrimSuffix(fenced, "\n```")
		}
		if !json.Valid([]byte(text)) {
			t.Fatalf("not JSON: %s", m.Text)
		}
		if shape.Profile == "" || shape.Profile == Text {
			members := memberNames(t, text)
			if strings.Join(members, " ") != "status data meta" {
				t.Fatalf("members %q: %s", members, text)
			}
		}
		for _, r := range m.Text {
			if invisible.Stray(r) && r != '\n' && r != '\t' {
				t.Fatalf("%U is in the message: %q", r, m.Text)
			}
		}
	})
}

var call = dragoman.Call{ID: "c1", Tool: &dragoman.Tool{Name: "weather__get_weather", Original: "get_weather", Server: "weather"}}

func memberNames(t interface{ Fatalf(string, ...any) }, text string) (names []string) {
	d, err := scan([]byte(text))
	if err != nil {
		t.Fatalf("scanning %s: %v", text, err)
	}
	for _, m := range d.children(d.root) {
		names = append(names, string(appendDecoded(nil, m.name)))
	}
	return names
}

// TestLeastRoom puts everything that takes room into the smallest message.
func TestLeastRoom(t *testing.T) {
	long := strings.Repeat("語\u202e\"\n", 100)
	call := dragoman.Call{Tool: &dragoman.Tool{Name: long, Server: long}}
	x := strings.Repeat("x", 5000)
	for _, data := range []string{`"` + x + `"`, `[["` + x + `"]]`, strings.Repeat("7", 5000), `{"` + x + `":1}`} {
		for _, profile := range []Profile{Envelope, Text, Structured, Raw} {
			shape := &Shape{Profile: profile, Limit: 1, Tokens: 1, Shelf: &Shelf{}}
			m := shape.Message(call, dragoman.Result{
				Content: json.RawMessage(`{"content":[{"type":"text","text":"` + x + `y"}],"structuredContent":` + data + `}`),
				Info:    dragoman.Info{Note: long, Duration: 1 << 60, Cached: true},
			})
			text := m.Text
			if _, fenced, ok := strings.Cut(text, "\n```json\n"); ok {
				text = strings.TrimSuffix(fenced, "\n```")
			}
			if n := utf8.RuneCountInString(m.Text); n > MinLimit || !json.Valid([]byte(text)) || m.Handle == "" {
				t.Errorf("%s: %d characters, handle %q: %s", profile, n, m.Handle, m.Text)
			}
		}
	}
}

// TestDigestMarksLongNumbers: a number is not another one in the readable part of a message.
func TestDigestMarksLongNumbers(t *testing.T) {
	fits, long := strings.Repeat("1234567890", 4), strings.Repeat("1234567890", 5)
	m := (&Shape{Profile: Text}).Message(call, dragoman.Result{Content: json.RawMessage(
		`{"content":[],"structuredContent":{"fits":` + fits + `,"long":` + long + `}}`)})
	for _, want := range []string{"- fits: " + fits + "\n", "- long: " + fits + "…\n", `"long":` + long} {
		if !strings.Contains(m.Text, want) {
			t.Errorf("it does not have %q: %s", want, m.Text)
		}
	}
}
