package mcp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/toolsettest"
)

// TestNullBesideTheOther: of result and error, one that is null is not there.
func TestNullBesideTheOther(t *testing.T) {
	for text, want := range map[string]string{
		`{"jsonrpc":"2.0","id":1,"result":null,"error":{"code":-32602,"message":"no such city"}}`: "MCP error -32602: no such city",
		`{"jsonrpc":"2.0","id":1,"error":null,"result":{}}`:                                       "",
		`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"},"result":{}}`:                   "two answers",
		`{"jsonrpc":"2.0","id":1,"error":null,"result":null}`:                                     "not an object",
	} {
		m, err := readMessage([]byte(text))
		switch {
		case err != nil:
		case m.bad != nil:
			err = m.bad
		case m.err != nil:
			err = m.err
		}
		if got := fmt.Sprint(err); want == "" && err != nil || !strings.Contains(got, want) {
			t.Errorf("%s is read as %s", text, got)
		}
	}
}

// FuzzMessages: whatever a server writes is read without a panic, and a result
// that is taken for one is valid JSON and part of what was written.
func FuzzMessages(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":1,"result":{}}`, `[{"id":1,"result":{}},{"method":"x"}]`,
		`{"id":1,"error":{"code":1e3,"message":"m","data":[]}}`, `{"id":"1","method":"ping"}`,
		`{"result":{"a":"}"},"jsonrpc":"2.0","id":3}`, `{"jsonrpc":"2.0","id":1,"result":{"a":`, `{`, `[`, "\xff",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		_ = readMessages(b, func(m message) {
			if m.answer() && m.bad == nil && m.err == nil {
				if m.result == nil || !bytes.Contains(b, m.result) || validJSON(m.result) != nil {
					t.Errorf("%q gave the result %q", b, m.result)
				}
			}
			m.number()
		})
	})
}

// FuzzFlatID: the id that is found in the ends of a message is the one that the
// whole message has.
func FuzzFlatID(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":1,"result":{"id":2}}`, `{"result":{"id":2},"jsonrpc":"2.0","id":1}`,
		`{"result":{"x":"},\"jsonrpc\":\"2.0\",\"id\":5"},"jsonrpc":"2.0","id":1}`,
		`{"result":["a"],"id":7,"jsonrpc":"2.0"}`, `{"result":{"x":{}},"method":"}","jsonrpc":"2","id":4}`,
	} {
		f.Add(s, 20)
	}
	f.Fuzz(func(t *testing.T, s string, keep int) {
		if rawjson.Check([]byte(s)) != nil || keep < 1 {
			return
		}
		keep = min(keep, len(s))
		id := flatID([]byte(s[:keep]), []byte(s[len(s)-keep:]))
		if id == nil {
			return
		}
		if want := object([]byte(s)).Get("id"); !bytes.Equal(id, want) {
			t.Errorf("%q: found the id %s, it is %s", s, id, want)
		}
	})
}

func TestFlatID(t *testing.T) {
	for _, tc := range []struct{ head, tail, want string }{
		{`{"jsonrpc":"2.0","id":12,"result":{"a":[`, ``, "12"},
		{`{ "id" : "12" ,"result":{`, ``, `"12"`},
		{`{"result":{"id":7,`, `"x"}],"jsonrpc":"2.0","id":12} `, "12"},
		{`{"result":{"id":7,`, `"x"}],"id":12,"jsonrpc":"2.0"}`, "12"},
		{`{"result":{"id":7,`, `"x"}],"id":12}`, ""},
		{`{"result":{"id":7,`, `"jsonrpc":"2.0","id":12}}`, ""},
		{`{"result":{"id":7,`, `"jsonrpc":"2.0","id":12}`, ""},
		{`{"result":{"id":7,`, `{"jsonrpc":"2.0","id":12}`, ""},
		{`not JSON`, `not JSON`, ""},
		{``, ``, ""},
	} {
		if got := string(flatID([]byte(tc.head), []byte(tc.tail))); got != tc.want {
			t.Errorf("flatID(%s … %s) = %s, want %s", tc.head, tc.tail, got, tc.want)
		}
	}
}

func TestEvents(t *testing.T) {
	text := ": a comment\n\n\r\nevent: e\r\nid: 1\r\ndata:x\r\ndata: y \r\n\r\n" +
		"retry: 250\n\nretry: -1\nid: a\x00b\ndata\n\n:\ndata: " + strings.Repeat("z", 5000) + "\n\nunknown: 1\nevent: last\n\ndata: cut off"
	var at position
	r := newEventReader(strings.NewReader(text), 6000, &at)
	want := []event{
		{"e", []byte("x\ny ")}, {"", nil}, {"", []byte{}}, {"", []byte(strings.Repeat("z", 5000))}, {"last", nil},
	}
	for i, w := range want {
		ev, err := r.next(t.Context())
		if err != nil || ev.name != w.name || !bytes.Equal(ev.data, w.data) {
			t.Errorf("event %d: %q %.20q, %v", i, ev.name, ev.data, err)
		}
	}
	if _, err := r.next(t.Context()); err != io.EOF {
		t.Errorf("the end: %v", err)
	}
	if at.last != "1" || at.retry != 250*time.Millisecond {
		t.Errorf("position %+v", at)
	}
	r = newEventReader(endless{}, 6000, &at)
	if _, err := r.next(t.Context()); !errors.Is(err, ErrTooLarge) {
		t.Errorf("an endless line: %v", err)
	}
}

func FuzzEvents(f *testing.F) {
	f.Add([]byte("id: 1\ndata: x\n\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var at position
		r := newEventReader(bytes.NewReader(b), 100, &at)
		for {
			ev, err := r.next(t.Context())
			if err != nil {
				return
			}
			if len(ev.data) > 100+16 {
				t.Fatalf("an event of %d bytes", len(ev.data))
			}
		}
	})
}

// TestByteOrderMarkOfAClient: a client whose runtime writes one in front of everything is
// understood, as a server is.
func TestByteOrderMarkOfAClient(t *testing.T) {
	var out bytes.Buffer
	in := strings.NewReader("\ufeff" + greeting + "\n")
	if err := (&Server{}).ServeLines(t.Context(), &toolsetHost{tools: toolsettest.NewInner()}, in, &out); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), `"protocolVersion"`) {
		t.Errorf("%s", out.String())
	}
}
