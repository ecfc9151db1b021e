package result

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/stage/cputime"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// png is a picture of a size in bytes, as base64.
func png(size int) string {
	b := []byte("\x89PNG\r\n\x1a\n")
	for i := len(b); i < size; i++ {
		b = append(b, byte(i*i>>3))
	}
	return base64.StdEncoding.EncodeToString(b)
}

// rows are many small objects, and the same as a table for people.
func rows(n int) (list, table string) {
	var l, t []string
	for i := range n {
		l = append(l, fmt.Sprintf(`{"name":"file-%d.txt","size":%d,"old":null}`, i, i*37))
		t = append(t, fmt.Sprintf(`| file-%d.txt | %d |`, i, i*37))
	}
	return "[" + strings.Join(l, ",") + "]", strings.Join(t, "\n")
}

// TestStructuredIsNotSaidTwice shows what is added to a result for clients that read
// texts: nothing that a block says, by a text that has it or by the bytes that it
// carries, and names in its place where something else is to be said.
func TestStructuredIsNotSaidTwice(t *testing.T) {
	picture, long := png(3000), strings.Repeat("Some words on the matter. ", 40)
	list, table := rows(40)
	text := func(s string) string { return `{"type":"text","text":` + string(appendQuoted(nil, s)) + `}` }
	quoted := func(s string) string { return string(appendQuoted(nil, s)) }
	image := `{"type":"image","data":"` + picture + `","mimeType":"image/png"}`
	for _, tt := range []struct{ name, structured, content, added string }{
		{"the only value of an object", `{"content":` + quoted(long) + `}`, text(long), ""},
		{"the only value, and short", `{"result":22}`, text("22"), ""},
		{"the JSON in another order and spelling", `{"a":1,"b":"\u00e9"}`, text(`{ "b": "é", "a": 1.0 }`), ""},
		{"the blocks themselves", `{"content":[` + image + `]}`, image, ""},
		{"the blocks themselves, with members less", `{"content":[` + image + `]}`, strings.Replace(image, "{", `{"annotations":{"priority":1},`, 1), ""},
		{"a blob and its place", `{"resource":{"uri":"file:///a","blob":"` + picture + `"}}`, `{"type":"resource","resource":{"uri":"file:///a","mimeType":"image/png","blob":"` + picture + `"}}`, ""},
		{"several texts", `{"files":["first words","other words"]}`, text("first words") + "," + text("other words"), ""},
		{"texts by their names", `{"stdout":` + quoted(long) + `,"stderr":"oh no"}`, text(long) + "," + text("oh no"), ""},
		{"what is empty beside a text", `{"stdout":` + quoted(long) + `,"stderr":"","code":null}`, text(long), ""},
		{"many rows that a table has", `{"rows":` + list + `}`, text(table), ""},
		{"many rows of another JSON", `{"result":` + list + `}`, text(`{"files":` + list + `,"more":false}`), ""},
		{"a link", `{"uri":"file:///some/place","name":"place"}`, `{"type":"resource_link","uri":"file:///some/place","name":"place"}`, ""},

		{"one member more than a text", `{"content":` + quoted(long) + `,"truncated":true}`, text(long), `{"content":"(see /content/0/text)","truncated":true}`},
		{"one member more than a picture", `{"width":40,"data":"` + picture + `"}`, image, `{"width":40,"data":"(see /content/0)"}`},
		{"a picture spelled otherwise", `{"alt":"A cat","url":"data:image\/png;base64,` + strings.ReplaceAll(picture, "/", `\/`) + `"}`, image, `{"alt":"A cat","url":"(see /content/0)"}`},
		{"many pictures", `{"n":2,"all":[` + strings.Repeat(image+",", 19) + image + `]}`, strings.Repeat(image+",", 19) + image, `{"n":2,"all":"(see /content)"}`},
		{"a sound", `{"seconds":3,"data":"` + picture + `"}`, strings.ReplaceAll(image, "image", "audio"), `{"seconds":3,"data":"(see /content/0)"}`},
		{"one member more than a table", `{"rows":` + list + `,"next":"c2"}`, text(table), `{"rows":"(see /content/0/text)","next":"c2"}`},
		{"one member more than the JSON", `{"rows":` + list + `,"total":90000}`, text(`{"rows":` + list + `}`), `{"rows":"(see /content/0/text)","total":90000}`},

		{"short values that stand in a text by chance", `{"count":3,"open":"a"}`, text("a list of 3 files in 3 folders"), `{"count":3,"open":"a"}`},
		{"a small list that a text has", `{"deleted":["a.txt"],"kept":["b.txt"]}`, text("a.txt b.txt"), `{"deleted":["a.txt"],"kept":["b.txt"]}`},
		{"few words do not speak for many values", `{"v":[` + strings.Repeat("1,2,3,", 200) + `4]}`, text("Numbers from 1 to 2, 3 or 4."), `{"v":[` + strings.Repeat("1,2,3,", 200) + `4]}`},
		{"one text does not speak for many values", `{"v":[` + strings.Repeat(`"ok",`, 200) + `"ok"]}`, text("ok"), `{"v":[` + strings.Repeat(`"ok",`, 200) + `"ok"]}`},
		{"nothing is said of many nulls", `{"v":[` + strings.Repeat("null,", 200) + `null]}`, text("Done."), `{"v":[` + strings.Repeat("null,", 200) + `null]}`},
		{"a sign is a part of a number", `{"v":[` + strings.Repeat("-1,", 200) + `-1]}`, text(strings.Repeat("1 ", 300)), `{"v":[` + strings.Repeat("-1,", 200) + `-1]}`},
		{"the names of a map are values", `{` + manyMembers(60) + `}`, text(strings.Repeat("7 ", 60)), `{` + manyMembers(60) + `}`},
		{"a map of booleans", `{` + strings.ReplaceAll(manyMembers(60), `l":7`, `l":true`) + `}`, text(strings.Repeat("true ", 60)), `{` + strings.ReplaceAll(manyMembers(60), `l":7`, `l":true`) + `}`},
		{"a boolean", `{"ok":true}`, text("All done, ok."), `{"ok":true}`},
		{"a text for people alone", `{"content":` + quoted(long) + `}`, strings.Replace(text(long), "{", `{"annotations":{"audience":["user"]},`, 1), `{"content":` + quoted(long) + `}`},
		{"a picture that nobody carries", `{"qr":"` + png(9000) + `"}`, text("Your code."), `{"qr":"(image/png, 9000 bytes: base64 in structuredContent)"}`},
		{"nothing beside it", `{"a":[1,2]}`, "", `{"a":[1,2]}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := `{"content":[` + tt.content + `],"structuredContent":` + tt.structured + `}`
			if !json.Valid([]byte(in)) {
				t.Fatalf("no JSON: %s", in)
			}
			want := in
			if tt.added != "" {
				want = `{"content":[` + strings.TrimPrefix(tt.content+","+text(tt.added), ",") + `],"structuredContent":` + tt.structured + `}`
			}
			if diff := cmp.Diff(want, string(Dual(dragoman.Result{Content: json.RawMessage(in)}, false).Content)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func manyMembers(n int) string {
	var members []string
	for i := range n {
		members = append(members, fmt.Sprintf(`"member number %c%c":7`, 'a'+i/26, 'a'+i%26))
	}
	return strings.Join(members, ",")
}

// TestDualKeepsTheServersText: limits hold for what a model reads, and what we add
// gives way before anything of the server's.
func TestDualKeepsTheServersText(t *testing.T) {
	line := "words of the server, and more of them\n"
	long := strings.Repeat(line, 400)
	list, _ := rows(2000)
	text := func(s string) string { return `{"type":"text","text":` + string(appendQuoted(nil, s)) + `}` }
	image := `{"type":"image","data":"` + png(90_000) + `","mimeType":"image/png"}`
	type result struct {
		Content []struct{ Type, Text, Data string }
		SC      json.RawMessage `json:"structuredContent"`
	}
	for _, tt := range []struct {
		name, content, structured string
		schema                    bool
		check                     func(t *testing.T, r result, told bool)
	}{
		{"copies do not count", text(long), `{"content":` + string(appendQuoted(nil, long)) + `}`, true, func(t *testing.T, r result, told bool) {
			if told || len(r.Content) != 1 || r.Content[0].Text != long {
				t.Errorf("told %t, %d blocks", told, len(r.Content))
			}
		}},
		{"ours has the rest of the room", text(long), list, true, func(t *testing.T, r result, told bool) {
			if !told || len(r.Content) != 3 || r.Content[0].Text != long || !json.Valid([]byte(r.Content[1].Text)) {
				t.Fatalf("told %t, %d blocks", told, len(r.Content))
			}
			sum := len(r.Content[0].Text) + len(r.Content[1].Text) + len(r.Content[2].Text)
			if sum > DefaultLimit || sum < DefaultLimit*9/10 || string(r.SC) != list {
				t.Errorf("%d characters", sum)
			}
		}},
		{"no room for ours", text(strings.Repeat("x", DefaultLimit-10)), list, true, func(t *testing.T, r result, told bool) {
			if told || len(r.Content) != 1 || string(r.SC) != list {
				t.Errorf("told %t, %d blocks", told, len(r.Content))
			}
		}},
		{"a picture does not lift the limit", image + "," + text(strings.Repeat(line, 4000)), `{"picture":` + image + `}`, true, func(t *testing.T, r result, told bool) {
			if !told || len(r.Content) != 3 || r.Content[0].Data != png(90_000) || len(r.Content[1].Text)+len(r.Content[2].Text) > DefaultLimit {
				t.Errorf("told %t, %d blocks", told, len(r.Content))
			}
		}},
		{"a picture does not count", image + "," + text(long), `{"picture":` + image + `}`, false, func(t *testing.T, r result, told bool) {
			if told || len(r.Content) != 2 || !strings.Contains(string(r.SC), png(90_000)) {
				t.Errorf("told %t, %d blocks, %d bytes", told, len(r.Content), len(r.SC))
			}
		}},
		{"without a schema both are cut alike", "", list, false, func(t *testing.T, r result, told bool) {
			if !told || len(r.Content) != 2 || len(r.Content[0].Text)+len(r.Content[1].Text) > DefaultLimit || len(r.SC) > DefaultLimit {
				t.Errorf("told %t, %d blocks, %d bytes", told, len(r.Content), len(r.SC))
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tool := &dragoman.Tool{Name: "t"}
			if tt.schema {
				tool.OutputSchema = json.RawMessage(`{"type":"object"}`)
			}
			shape := &Shape{Shelf: &Shelf{}, Caller: "ann"}
			in := dragoman.Result{Content: json.RawMessage(`{"content":[` + tt.content + `],"structuredContent":` + tt.structured + `,"_meta":{"kept":1.0}}`)}
			out := shape.Dual(dragoman.Call{Tool: tool}, in, false)
			var r result
			decode(t, string(out.Content), &r)
			if !strings.HasSuffix(string(out.Content), `"_meta":{"kept":1.0}}`) {
				t.Errorf("_meta is lost: %.300s", out.Content)
			}
			tt.check(t, r, out.Info.Truncated)
		})
	}
}

// TestDualCanBeReadToItsEnd: what was cut at the MCP door is found by read_more, under
// the pointers that the result gives.
func TestDualCanBeReadToItsEnd(t *testing.T) {
	long := strings.Repeat("words of the server, and more of them\n", 2000)
	list, _ := rows(2000)
	for pointer, in := range map[string]string{
		"/content/1/text":    `{"content":[{"type":"image","data":"","mimeType":"image/png"},{"type":"text","text":` + string(appendQuoted(nil, long)) + `}]}`,
		"/structuredContent": `{"content":[],"structuredContent":` + list + `}`,
	} {
		shape := &Shape{Shelf: &Shelf{}, Caller: "ann"}
		out := shape.Dual(dragoman.Call{}, dragoman.Result{Content: json.RawMessage(in)}, false)
		var r struct{ Content []struct{ Text string } }
		decode(t, string(out.Content), &r)
		var note struct {
			Truncated struct {
				Handle string
				Cut    []struct {
					Pointer      string
					Total, Shown int
				}
			}
		}
		decode(t, r.Content[len(r.Content)-1].Text, &note)
		if len(note.Truncated.Cut) != 1 || note.Truncated.Cut[0].Pointer != pointer {
			t.Fatalf("%s: the cut is %+v", pointer, note.Truncated)
		}
		cut := note.Truncated.Cut[0]
		args := fmt.Sprintf(`{"handle":%q,"pointer":%q,"offset":%d}`, note.Truncated.Handle, pointer, cut.Shown)
		page := shape.Shelf.Read("ann", json.RawMessage(args))
		if page.Problem != nil || !strings.Contains(string(page.Content), fmt.Sprintf(`"total":%d`, cut.Total)) {
			t.Errorf("%s: %v %.300s", pointer, page.Problem, page.Content)
		}
	}
}

// TestEnvelopeSaysOnce: a model is told the same only once, and gets pictures as
// pictures.
func TestEnvelopeSaysOnce(t *testing.T) {
	picture, long := png(9000), strings.Repeat("Some words on the matter. ", 40)
	quoted := func(s string) string { return string(appendQuoted(nil, s)) }
	image := `{"type":"image","data":"` + picture + `","mimeType":"image/png"}`
	list, table := rows(40)
	for _, tt := range []struct {
		name, in     string
		data, parts  string // "" for none
		images, blob int
	}{
		{"a picture in both", `{"content":[` + image + `],"structuredContent":{"content":[` + image + `]}}`,
			`{"content":[{"type":"image","data":"(see /meta/parts/0)","mimeType":"image/png"}]}`,
			`[{"type":"image","mime_type":"image/png","bytes":9000,"attached_image":1}]`, 1, 0},
		{"a picture that no block carries", `{"content":[],"structuredContent":{"url":"data:image/png;base64,` + picture + `","alt":"A cat"}}`,
			`{"url":"(image/png, 9000 bytes: attached image 1)","alt":"A cat"}`, "", 1, 0},
		{"a picture in a text that is JSON", `{"content":[{"type":"text","text":` + quoted(`{"shot":"`+picture+`"}`) + `}]}`,
			`{"shot":"(image/png, 9000 bytes: attached image 1)"}`, "", 1, 0},
		{"a text and one member more", `{"content":[{"type":"text","text":` + quoted(long) + `}],"structuredContent":{"content":` + quoted(long) + `,"more":true}}`,
			`{"content":` + quoted(long) + `,"more":true}`, "", 0, 0},
		{"the JSON of a member", `{"content":[{"type":"text","text":"{\"b\":2,\"a\":1}"}],"structuredContent":{"result":{"a":1,"b":2},"more":true}}`,
			`{"result":{"a":1,"b":2},"more":true}`, "", 0, 0},
		{"a table without a word of its own", `{"content":[{"type":"text","text":` + quoted(table) + `}],"structuredContent":{"rows":` + list + `,"more":true}}`,
			`{"rows":` + list + `,"more":true}`, "", 0, 0},
		{"a text that says more", `{"content":[{"type":"text","text":"Nothing was deleted."}],"structuredContent":{"deleted":[]}}`,
			`{"deleted":[]}`, `[{"type":"text","text":"Nothing was deleted."}]`, 0, 0},
		{"a name is no value", `{"content":[{"type":"text","text":"ok"}],"structuredContent":{"ok":false,"n":1}}`,
			`{"ok":false,"n":1}`, `[{"type":"text","text":"ok"}]`, 0, 0},
		{"the text of a file", `{"content":[{"type":"resource","resource":{"uri":"file:///a","text":` + quoted(long) + `}}],"structuredContent":{"text":` + quoted(long) + `}}`,
			`{"text":"(see /meta/parts/0/resource/text)"}`, `[{"type":"resource","resource":{"uri":"file:///a","text":` + quoted(long) + `}}]`, 0, 0},
		{"an error with a picture", `{"content":[` + image + `,{"type":"text","text":"no"}],"structuredContent":{"shot":"` + picture + `"},"isError":true}`,
			`{"error":"tool_error","message":"no","structuredContent":{"shot":"(see /meta/parts/0)"}}`,
			`[{"type":"image","mime_type":"image/png","bytes":9000,"attached_image":1}]`, 1, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			shape := &Shape{Images: true}
			m := shape.Message(call, dragoman.Result{Content: json.RawMessage(tt.in)})
			var e struct {
				Data json.RawMessage
				Meta struct{ Parts json.RawMessage }
			}
			decode(t, m.Text, &e)
			if diff := cmp.Diff(tt.data, string(e.Data)); diff != "" {
				t.Errorf("data, -want +got:\n%s", diff)
			}
			if diff := cmp.Diff(tt.parts, string(e.Meta.Parts)); diff != "" {
				t.Errorf("parts, -want +got:\n%s", diff)
			}
			if len(m.Images) != tt.images {
				t.Errorf("%d images", len(m.Images))
			}
		})
	}
	// Where pictures are not seen they have a handle, which is readable.
	shape := &Shape{Shelf: &Shelf{}, Caller: "ann"}
	m := shape.Message(call, dragoman.Result{Content: json.RawMessage(`{"content":[],"structuredContent":{"shot":"` + picture + `"}}`)})
	page := shape.Shelf.Read("ann", json.RawMessage(`{"handle":"`+m.Handle+`.b0"}`))
	if !strings.Contains(m.Text, `"(image/png, 9000 bytes: handle `+m.Handle+`.b0)"`) || page.Problem != nil || !strings.Contains(string(page.Content), `"total":9000,`) {
		t.Errorf("%s: %v", m.Text, page.Problem)
	}
}

// TestNothingIsLostByNotSayingItTwice: whatever a text of ours leaves out stands in a
// block, and structuredContent stays as it came.
func TestNothingIsLostByNotSayingItTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		res := mcpResult().Draw(t, "result")
		out := Dual(res, false)
		if !json.Valid(out.Content) {
			t.Fatalf("not JSON: %s", out.Content)
		}
		var before, after struct {
			Content []json.RawMessage
			SC      json.RawMessage `json:"structuredContent"`
			IsError bool
		}
		if json.Unmarshal(res.Content, &before) != nil || json.Unmarshal(out.Content, &after) != nil || string(before.SC) != string(after.SC) {
			t.Fatalf("%s became %s", res.Content, out.Content)
		}
		added := len(after.Content) - len(before.Content)
		if added < 0 || added > 1 || added == 1 && (before.IsError || before.SC == nil) {
			t.Fatalf("%d blocks were added to %s", added, res.Content)
		}
		for i := range before.Content {
			if string(before.Content[i]) != string(after.Content[i]) {
				t.Fatalf("block %d changed", i)
			}
		}
		if added == 0 && before.SC != nil && !before.IsError && len(before.Content) == 0 {
			t.Fatalf("nobody says it: %s", out.Content)
		}
	})
}

// TestJudgingIsLinear: a server cannot make it dear to find out what its blocks say.
func TestJudgingIsLinear(t *testing.T) {
	result := func(n int) dragoman.Result {
		var blocks, values []string
		for i := range n {
			// All begin alike, so that each comparison takes its time, and none is found.
			blocks = append(blocks, `{"type":"text","text":"`+strings.Repeat("a", 1000)+fmt.Sprint(i)+`"}`)
			values = append(values, `{"type":"text","text":"`+strings.Repeat("a", 999)+fmt.Sprint(-i)+`"}`)
		}
		return dragoman.Result{Content: json.RawMessage(`{"content":[` + strings.Join(blocks, ",") + `],"structuredContent":[` + strings.Join(values, ",") + `]}`)}
	}
	for name, do := range map[string]func(dragoman.Result){
		"for clients": func(r dragoman.Result) { (&Shape{Limit: 100_000_000}).Dual(dragoman.Call{}, r, false) },
		"for models":  func(r dragoman.Result) { (&Shape{}).Message(call, r) },
	} {
		small, large := result(100), result(800)
		took := func(r dragoman.Result) time.Duration { return cputime.Of(func() { do(r) }) }
		took(small)
		a, b := took(small), took(large)
		t.Logf("%s: %v, and %v for 8 times as much", name, a, b)
		if b > 24*a+100*time.Millisecond {
			t.Errorf("%s: 8 times as much took %v after %v", name, b, a)
		}
	}
}
