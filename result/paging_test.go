package result

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dragoman-mcp/dragoman"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// A gotPage is what a program makes of a page of read_more.
type gotPage struct {
	Total, Count, Offset int
	Unit                 Unit
	Items                any
	HasMore              bool `json:"has_more"`
	NextOffset           *int `json:"next_offset"`
	Cut                  []gotCut
}

type gotCut struct {
	Pointer      string
	Unit         Unit
	Total, Shown int
}

// reader pages through one kept result as a model would, through messages.
type reader struct {
	t      interface{ Fatalf(string, ...any) }
	shape  *Shape
	handle string
	pages  int
	far    *Shelf // at another process
}

// documents are those that a shelf has left outside.
type documents map[string][]byte

func (d documents) Keep(caller, handle string, document []byte) { d[caller+" "+handle] = document }

func (d documents) Find(_ context.Context, caller, handle string) []byte {
	return d[caller+" "+handle]
}

// elsewhere reads as another process does, which has the document alone.
func (r *reader) elsewhere(args json.RawMessage) dragoman.Result {
	if r.far == nil {
		outside := documents{}
		handle, _, _ := strings.Cut(r.handle, ".")
		if k := r.shape.Shelf.get(context.Background(), r.shape.Caller, handle); k != nil {
			outside.Keep(r.shape.Caller, handle, k.encode())
		}
		r.far = &Shelf{Beyond: outside}
	}
	return r.far.Read(r.shape.Caller, args)
}

func decode(t interface{ Fatalf(string, ...any) }, text string, into any) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		t.Fatalf("decoding %q: %v", text, err)
	}
}

func (r *reader) page(pointer string, unit Unit, offset int) gotPage {
	args, _ := json.Marshal(map[string]any{"handle": r.handle, "pointer": pointer, "offset": offset, "unit": unit})
	tool := ReadMoreTool()
	read := r.shape.Shelf.Read(r.shape.Caller, args)
	if far := r.elsewhere(args); string(far.Content) != string(read.Content) {
		r.t.Fatalf("another process reads %s, not %s", far.Content, read.Content)
	}
	m := r.shape.Message(dragoman.Call{Tool: &tool}, read)
	if m.Cut {
		r.t.Fatalf("a page at %q was cut again: %s", pointer, m.Text)
	}
	if n := utf8.RuneCountInString(m.Text); n > r.shape.limit() {
		r.t.Fatalf("a page of %d characters, limit %d", n, r.shape.limit())
	}
	var message struct {
		Status string
		Data   json.RawMessage
	}
	decode(r.t, m.Text, &message)
	if message.Status != "success" {
		r.t.Fatalf("reading %s: %s", args, m.Text)
	}
	var p gotPage
	decode(r.t, string(message.Data), &p)
	if r.pages++; p.HasMore && p.Count == 0 {
		r.t.Fatalf("no progress at %q: %s", pointer, m.Text)
	}
	return p
}

// restore reads the whole value at a pointer, as a decoded JSON value.
func (r *reader) restore(pointer string, unit Unit) any {
	var text strings.Builder
	items, members := []any{}, map[string]any{}
	for offset := 0; ; {
		p := r.page(pointer, unit, offset)
		for _, c := range p.Cut {
			part := r.restore(c.Pointer, c.Unit)
			p.Items = r.set(p.Items, strings.TrimPrefix(c.Pointer, pointer), part, offset)
		}
		unit = p.Unit
		switch v := p.Items.(type) {
		case string:
			text.WriteString(v)
		case []any:
			items = append(items, v...)
		case map[string]any:
			maps.Copy(members, v)
		}
		if !p.HasMore {
			break
		}
		offset = *p.NextOffset
	}
	switch unit {
	case JSONText:
		var v any
		decode(r.t, text.String(), &v)
		return v
	case Characters:
		return text.String()
	case Members:
		return members
	default:
		return items
	}
}

// set replaces the value at a pointer below v, whose items begin at offset.
func (r *reader) set(v any, pointer string, part any, offset int) any {
	if pointer == "" {
		return part
	}
	token, _, _ := strings.Cut(pointer[1:], "/")
	rest := pointer[1+len(token):]
	token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
	switch v := v.(type) {
	case []any:
		i, err := strconv.Atoi(token)
		if err != nil || i-offset < 0 || i-offset >= len(v) {
			r.t.Fatalf("the cut at %s is not on its page", pointer)
		}
		v[i-offset] = r.set(v[i-offset], rest, part, 0)
		return v
	case map[string]any:
		if _, ok := v[token]; !ok {
			r.t.Fatalf("the cut at %s is not on its page", pointer)
		}
		v[token] = r.set(v[token], rest, part, 0)
		return v
	}
	r.t.Fatalf("the cut at %s is in a %T", pointer, v)
	return nil
}

func TestPagingRestoresTheWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := jsonValue(4).Draw(t, "value")
		shape := &Shape{
			Limit: rapid.SampledFrom([]int{1000, 2000, 25000}).Draw(t, "limit"),
			Shelf: &Shelf{}, Caller: "ann",
		}
		m := shape.Message(call, dragoman.Result{Content: json.RawMessage(`{"content":[],"structuredContent":` + value + `}`)})
		if !m.Cut {
			return
		}
		r := &reader{t: t, shape: shape, handle: m.Handle}
		var want any
		decode(t, value, &want)
		if got := r.restore("/data", ""); !reflect.DeepEqual(got, want) {
			t.Fatalf("by parts: got %v", got)
		}
		if len(value) > 20_000 {
			return
		}
		if got := r.restore("/data", JSONText); !reflect.DeepEqual(got, want) {
			t.Fatalf("by text: got %v", got)
		}

		// What the message shows, with what it says was cut put in, is the whole.
		var message struct {
			Data any
			Meta struct{ Truncated struct{ Cut []gotCut } }
		}
		decode(t, m.Text, &message)
		for _, c := range message.Meta.Truncated.Cut {
			message.Data = r.set(message.Data, strings.TrimPrefix(c.Pointer, "/data"), r.restore(c.Pointer, c.Unit), 0)
		}
		if got := message.Data; !reflect.DeepEqual(got, want) {
			t.Fatalf("by cuts: got %v", got)
		}
	})
}

func TestPagingByLinesAndBytes(t *testing.T) {
	var text strings.Builder
	for i := range 500 {
		fmt.Fprintf(&text, "line %d with \u202e and \t\r\n", i)
	}
	shape := &Shape{Limit: 1000, Shelf: &Shelf{}, Inline: -1}
	blob := strings.Repeat("AAECAwQFBgcICQ==", 0) + strings.Repeat("AAECAwQFBgcI", 300)
	m := shape.Message(call, dragoman.Result{Content: json.RawMessage(
		`{"content":[{"type":"text","text":` + string(appendQuoted(nil, text.String())) + `},{"type":"audio","mimeType":"audio/x-raw","data":"` + blob + `"}]}`)})
	r := &reader{t: t, shape: shape, handle: m.Handle}
	var lines []string
	for offset := 0; ; {
		p := r.page("/data/0/text", Lines, offset)
		for _, line := range p.Items.([]any) {
			lines = append(lines, line.(string))
		}
		if !p.HasMore {
			break
		}
		offset = *p.NextOffset
	}
	if diff := cmp.Diff(text.String(), strings.Join(lines, "\n")); diff != "" {
		t.Errorf("lines, -want +got:\n%s", diff)
	}

	var message struct {
		Data []struct {
			Handle string
			Bytes  int
		}
	}
	decode(t, m.Text, &message)
	r.handle = message.Data[1].Handle
	var data strings.Builder
	for offset := 0; ; {
		p := r.page("", Bytes, offset)
		data.WriteString(p.Items.(string))
		if !p.HasMore {
			break
		}
		offset = *p.NextOffset
	}
	if data.String() != blob || message.Data[1].Bytes != 2700 {
		t.Errorf("%d bytes came back as %d characters of base64, want %d", message.Data[1].Bytes, data.Len(), len(blob))
	}
}

// TestPagingThroughBytesOfAKnownType: pages of binary data hold the data, whatever its first
// bytes tell, and no page is a picture.
func TestPagingThroughBytesOfAKnownType(t *testing.T) {
	for _, head := range []string{"\x89PNG\r\n\x1a\n", "%PDF-1.7\n"} {
		for _, sees := range []bool{false, true} {
			shape := &Shape{Shelf: &Shelf{}, Images: sees}
			blob := base64.StdEncoding.EncodeToString([]byte(strings.Repeat(head+"0123456789", 4000)))
			// More pictures than go along: the last one is not among them.
			image := `{"type":"image","mimeType":"image/png","data":"` + blob + `"}`
			blocks := strings.Repeat(image+",", maxImages) + image
			m := shape.Message(call, dragoman.Result{Content: json.RawMessage(`{"content":[` + blocks + `]}`)})
			var message struct{ Data []struct{ Handle string } }
			decode(t, m.Text, &message)
			r := &reader{t: t, shape: shape, handle: message.Data[maxImages].Handle}
			var data []byte
			for offset, more := 0, true; more; {
				p := r.page("", Bytes, offset)
				piece, err := base64.StdEncoding.DecodeString(p.Items.(string))
				if err != nil {
					t.Fatalf("%q at %d: items are no base64: %.100q", head, offset, p.Items)
				}
				data = append(data, piece...)
				if more = p.HasMore; more {
					offset = *p.NextOffset
				}
			}
			if got := base64.StdEncoding.EncodeToString(data); got != blob {
				t.Errorf("%q: %d characters of base64 came back, want %d", head, len(got), len(blob))
			}
		}
	}
}

// TestLineTooLong: of a line that fits into no answer a model is told where it begins, in
// characters, and finds it there.
func TestLineTooLong(t *testing.T) {
	before := "one\nzwei \u00fc\n\n"
	text := before + strings.Repeat("x", 3000) + "\nlast"
	shape := &Shape{Limit: 1000, Shelf: &Shelf{}, Inline: -1}
	m := shape.Message(call, dragoman.Result{Content: json.RawMessage(`{"content":[{"type":"text","text":` + string(appendQuoted(nil, text)) + `}]}`)})
	read := func(args string) dragoman.Result {
		return shape.Shelf.Read(shape.Caller, json.RawMessage(`{"handle":"`+m.Handle+`","pointer":"/data",`+args+`}`))
	}
	if res := read(`"unit":"lines","offset":0`); res.Problem != nil {
		t.Fatalf("the lines before: %v", res.Problem)
	}
	res := read(`"unit":"lines","offset":3`)
	start := utf8.RuneCountInString(before)
	if res.Problem == nil || !strings.HasPrefix(res.Problem.Message, fmt.Sprintf("Line 3 is too long for one answer: it has 3000 characters and begins at character %d.", start)) ||
		len(res.Problem.Fields) != 1 || res.Problem.Fields[0].Expected != fmt.Sprintf("'characters', with offset %d", start) {
		t.Fatalf("%+v", res.Problem)
	}
	r := &reader{t: t, shape: shape, handle: m.Handle}
	if p := r.page("/data", Characters, start); !strings.HasPrefix(p.Items.(string), "xxx") {
		t.Errorf("there begins %q", p.Items)
	}
	if p := r.page("/data", Characters, start-1); !strings.HasPrefix(p.Items.(string), "\nxxx") {
		t.Errorf("before it stands %q", p.Items)
	}
}

// A message shows in any form whether there is more of it to be read.
func TestHasHandle(t *testing.T) {
	long := strings.Repeat("x", 3000)
	for _, profile := range []Profile{Envelope, Text, Structured, Raw} {
		for _, content := range []string{
			`{"content":[],"structuredContent":["` + long + `"]}`,
			`{"content":[{"type":"audio","mimeType":"audio/wav","data":"` + strings.Repeat("AAAA", 1000) + `"}]}`,
			`{"content":[{"type":"text","text":"short"}]}`,
		} {
			for _, shelf := range []*Shelf{nil, {}} {
				s := &Shape{Profile: profile, Limit: MinLimit, Shelf: shelf}
				m := s.Message(dragoman.Call{Name: "t"}, dragoman.Result{Content: json.RawMessage(content)})
				if HasHandle(m.Text) != (m.Handle != "") {
					t.Errorf("%s: handle %q of %s", profile, m.Handle, m.Text)
				}
			}
		}
	}
}
