package safehttp_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/dragoman-mcp/dragoman/internal/text/secret"
	"github.com/dragoman-mcp/dragoman/internal/wire/safehttp"
)

func TestReadAll(t *testing.T) {
	for text, large := range map[string]bool{"": false, "1234": false, "12345": false, "123456": true} {
		got, err := safehttp.ReadAll(strings.NewReader(text), 5)
		switch {
		case large && (!errors.Is(err, safehttp.ErrTooLarge) || got != nil):
			t.Errorf("%q: got %q, %v", text, got, err)
		case !large && (err != nil || string(got) != text):
			t.Errorf("%q: got %q, %v", text, got, err)
		}
	}
	if _, err := safehttp.ReadAll(iotest.ErrReader(io.ErrUnexpectedEOF), 5); err != io.ErrUnexpectedEOF {
		t.Errorf("got %v", err)
	}
}

func TestLimitBody(t *testing.T) {
	readers := map[string]func(io.Reader) io.Reader{
		"whole":    func(r io.Reader) io.Reader { return r },
		"one byte": iotest.OneByteReader,
		"data+EOF": iotest.DataErrReader,
	}
	for name, wrap := range readers {
		for text, large := range map[string]bool{"": false, "1234": false, "12345": false, "123456": true, strings.Repeat("x", 100): true} {
			body := safehttp.LimitBody(io.NopCloser(wrap(strings.NewReader(text))), 5)
			got, err := io.ReadAll(body)
			if want := text[:min(5, len(text))]; string(got) != want {
				t.Errorf("%s, %q: got %q", name, text, got)
			}
			if large != errors.Is(err, safehttp.ErrTooLarge) || !large && err != nil {
				t.Errorf("%s, %q: %v", name, text, err)
			}
			if n, err := body.Read(make([]byte, 1)); large && (n != 0 || !errors.Is(err, safehttp.ErrTooLarge)) {
				t.Errorf("%s, %q: read again: %d, %v", name, text, n, err)
			}
		}
	}
}

func TestLimitBodyCloses(t *testing.T) {
	closed := closer{Reader: strings.NewReader("")}
	if err := safehttp.LimitBody(&closed, 5).Close(); err != nil || !closed.done {
		t.Errorf("closed %v, %v", closed.done, err)
	}
}

type closer struct {
	io.Reader
	done bool
}

func (c *closer) Close() error { c.done = true; return nil }

func TestValidHeader(t *testing.T) {
	for name, want := range map[string]bool{"X-Api_Key.1": true, "": false, "a b": false, "a:": false, "ä": false, "a\n": false} {
		if err := safehttp.CheckHeaders(map[string]secret.Text{name: secret.New("v")}); (err == nil) != want {
			t.Errorf("the header %q: %v", name, err)
		}
	}
	for value, want := range map[string]bool{"": true, "a b\tc": true, "语": true, "a\nb": false, "a\r": false, "\x00": false, "\x7f": false} {
		if got := safehttp.ValidHeaderValue(value); got != want {
			t.Errorf("ValidHeaderValue(%q) = %v", value, got)
		}
		if err := safehttp.CheckHeaders(map[string]secret.Text{"X-A": secret.New(value)}); (err == nil) != want {
			t.Errorf("the value %q: %v", value, err)
		}
	}
}
