package sse

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// parts reads in parts of which each is no longer than said.
type parts struct {
	r io.Reader
	n int
}

func (p parts) Read(b []byte) (int, error) { return p.r.Read(b[:min(len(b), p.n)]) }

// simple reads a stream as the standard says, and as Event does: what follows the last line
// end is a line.
func simple(in string) (out []string) {
	in = strings.TrimPrefix(in, "\xef\xbb\xbf")
	in = strings.ReplaceAll(strings.ReplaceAll(in, "\r\n", "\n"), "\r", "\n")
	var name, id string
	var data []string
	var retry time.Duration
	any := false
	for line := range strings.SplitSeq(strings.TrimSuffix(in, "\n"), "\n") {
		if line == "" {
			if any {
				out = append(out, fmt.Sprintf("%s|%s|%s|%s", name, id, strings.Join(data, "\n"), retry))
			}
			name, data, retry, any = "", nil, 0, false
			continue
		}
		if line[0] == ':' {
			if !any {
				out = append(out, "comment")
				name, data, retry = "", nil, 0
			}
			continue
		}
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "data":
			data, any = append(data, value), true
		case "event":
			name, any = value, true
		case "id":
			if !strings.Contains(value, "\x00") {
				id, any = value, true
			}
		case "retry":
			if value != "" && strings.Trim(value, "0123456789") == "" {
				ms, err := strconv.ParseInt(value, 10, 64)
				if err == nil && ms < 1<<42 {
					retry, any = time.Duration(ms)*time.Millisecond, true
				}
			}
		}
	}
	if any && data != nil {
		out = append(out, fmt.Sprintf("%s|%s|%s|%s", name, id, strings.Join(data, "\n"), retry))
	}
	return out
}

// FuzzReader: whatever a stream is and however it is cut, its events are those of the standard.
func FuzzReader(f *testing.F) {
	f.Add("\xef\xbb\xbf:c\r\nevent: x\rid: 7\nretry: 20\ndata: {\ndata: }\r\n\r\ndata\r\rdata: n")
	f.Add("retry: 99999999999999999\n\nid: a\x00\ndata:x\n\n")
	f.Fuzz(func(t *testing.T, in string) {
		want := simple(in)
		for name, r := range map[string]io.Reader{
			"whole": strings.NewReader(in), "bytes": iotest.OneByteReader(strings.NewReader(in)),
			"three": parts{strings.NewReader(in), 3}, "end with data": iotest.DataErrReader(strings.NewReader(in)),
		} {
			got, err := read(NewReader(r, 1<<20))
			if !errors.Is(err, io.EOF) || fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
				t.Errorf("%s, %q: got %q, %v; want %q", name, in, got, err, want)
			}
		}
	})
}

// TestManyLineEnds: what a line costs does not grow with what has arrived behind it.
func TestManyLineEnds(t *testing.T) {
	event := "data: " + strings.Repeat("x", 4<<20)
	for _, end := range []string{"\n", "\r", "\r\n"} {
		out, err := read(NewReader(strings.NewReader(event+strings.Repeat(end, 2<<20)), 16<<20))
		if err != io.EOF || len(out) != 1 {
			t.Errorf("%q: %d events, %v", end, len(out), err)
		}
	}
}
