package sse

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func read(r *Reader) (out []string, err error) {
	for {
		e, err := r.Next()
		if err != nil {
			return out, err
		}
		if e.Comment {
			out = append(out, "comment")
			continue
		}
		out = append(out, fmt.Sprintf("%s|%s|%s|%s", e.Name, e.ID, e.Data, e.Retry))
	}
}

func TestReader(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"plain", "data: a\n\ndata: b\n\n", "||a|0s ||b|0s"},
		{"crlf", "data: a\r\n\r\ndata:b\r\n\r\n", "||a|0s ||b|0s"},
		{"cr", "data: a\r\rdata: b\r\r", "||a|0s ||b|0s"},
		{"no last blank line", "data: a\n\ndata: [DONE]", "||a|0s ||[DONE]|0s"},
		{"no last blank line, crlf", "data: [DONE]\r", "||[DONE]|0s"},
		{"fields", ":hi\nevent: x\nid: 7\nretry: 20\ndata: {\ndata: }\n\ndata: n\n\n", "comment x|7|{\n}|20ms |7|n|0s"},
		{"priming", "id: 1\ndata:\n\n", "|1||0s"},
		{"bom, unknown field", "\xef\xbb\xbfdata: a\nfoo: bar\n\n\n\n", "||a|0s"},
		{"long", "data: " + strings.Repeat("x", 9000) + "\n\n", "||" + strings.Repeat("x", 9000) + "|0s"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, r := range []io.Reader{strings.NewReader(tc.in), iotest.OneByteReader(strings.NewReader(tc.in))} {
				got, err := read(NewReader(r, 1<<20))
				if err != io.EOF || strings.Join(got, " ") != tc.want {
					t.Errorf("got %q, %v; want %q", got, err, tc.want)
				}
			}
		})
	}
}

func TestDropLast(t *testing.T) {
	r := NewReader(strings.NewReader("id: 1\n\ndata:\n\nid: 2\ndata: half"), 100)
	r.DropLast = true
	first, _ := r.Next()
	if first.Data != nil || first.ID != "1" {
		t.Errorf("an event without data is %+v", first)
	}
	if second, _ := r.Next(); second.Data == nil {
		t.Error("an event with empty data is one without")
	}
	if e, err := r.Next(); err != io.EOF {
		t.Errorf("the stream ended in an event: %+v, %v", e, err)
	}
}

func TestReaderBounds(t *testing.T) {
	for _, in := range []string{
		"data: " + strings.Repeat("x", 20000),
		strings.Repeat("data: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n", 1000),
	} {
		if _, err := read(NewReader(strings.NewReader(in), 10000)); !errors.Is(err, ErrTooLarge) {
			t.Errorf("got %v, want ErrTooLarge", err)
		}
	}
}

// TestPending: nothing is pending behind an event that has arrived whole, whatever its lines
// end in.
func TestPending(t *testing.T) {
	for _, end := range []string{"\n", "\r", "\r\n"} {
		event := "data: a" + end + end
		r := NewReader(strings.NewReader(event+event), 1000)
		for _, pending := range []bool{true, false} {
			if e, err := r.Next(); err != nil || string(e.Data) != "a" || r.Pending() != pending {
				t.Errorf("%q: %q, %v, pending %t", end, e.Data, err, r.Pending())
			}
		}
	}
}

// repeated is a stream that goes on for ever.
type repeated string

func (r repeated) Read(b []byte) (int, error) {
	n := 0
	for n+len(r) <= len(b) {
		n += copy(b[n:], r)
	}
	return n, nil
}

// TestEventsWithoutEnd: an event that never ends is too large, whatever its lines are.
func TestEventsWithoutEnd(t *testing.T) {
	for _, line := range []string{"data: x\n", "data\n", "id: 1\n", "event: e\n", "other: x\n", "database: x\n", "\n", "\r"} {
		if _, err := NewReader(repeated(line), 1<<20).Next(); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%q: %v", line, err)
		}
	}
	// A comment is one of its own where no event has begun, and otherwise a part of it.
	begun := NewReader(io.MultiReader(strings.NewReader("data: x\n"), repeated(": still there\n")), 1<<20)
	if _, err := begun.Next(); !errors.Is(err, ErrTooLarge) {
		t.Errorf("comments within an event: %v", err)
	}
}
