package door

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/iotest"

	"github.com/dragoman-mcp/dragoman/openai/model"
)

// roomy notes how much room is made for what it says.
type roomy struct {
	io.Reader
	came int
	most float64 // of the room in relation to what came, where that is more than firstRoom
}

func (r *roomy) Read(p []byte) (int, error) {
	if room := r.came + len(p); room > firstRoom {
		r.most = max(r.most, float64(room)/float64(r.came))
	}
	n, err := r.Reader.Read(p)
	r.came += n
	return n, err
}

// A body is read whole, whatever was announced, and the room for it is never more than
// a few times what has come.
func TestReadAll(t *testing.T) {
	body := make([]byte, 1<<20+1)
	for i := range body {
		body[i] = byte(i % 251)
	}
	var before []byte // another body, which is still what it was
	for _, size := range []int{0, 1, firstRoom - 1, firstRoom, firstRoom + 1, 4 * firstRoom, 100_000, len(body)} {
		for _, announced := range []int64{-1, 0, 10, int64(size) - 1, int64(size), int64(size) + 1, 1 << 40} {
			for name, r := range map[string]io.Reader{
				"at once":     bytes.NewReader(body[:size]),
				"end in data": iotest.DataErrReader(bytes.NewReader(body[:size])),
				"in halves":   iotest.HalfReader(bytes.NewReader(body[:size])),
			} {
				reader := &roomy{Reader: r}
				got, err := readAll(reader, announced)
				if err != nil || !bytes.Equal(got, body[:size]) {
					t.Fatalf("%d bytes of %d %s: %d, %v", size, announced, name, len(got), err)
				}
				if cap(got) > max(firstRoom, 2*size) {
					t.Errorf("%d bytes of %d %s are kept in room for %d", size, announced, name, cap(got))
				}
				if !bytes.Equal(before, body[:len(before)]) {
					t.Fatalf("%d bytes of %d %s took the room of another body", size, announced, name)
				}
				before = got
				if reader.most > 5 {
					t.Errorf("%d bytes of %d %s: room for %.1f times of what came", size, announced, name, reader.most)
				}
			}
		}
	}
	if got, err := readAll(iotest.ErrReader(errors.ErrUnsupported), 100); got != nil || !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("an error became %q, %v", got, err)
	}
}

// TestReadAgain: a body that was read is the same to the next who reads it, whole or in
// pieces, and bound as any other.
func TestReadAgain(t *testing.T) {
	body := bytes.Repeat([]byte("weather "), 20_000)
	request := func(r io.ReadCloser) *http.Request {
		return &http.Request{Body: r, ContentLength: int64(len(body))}
	}
	again := ReadAgain(body)
	got, err := ReadBody(httptest.NewRecorder(), request(again), 0)
	if err != nil || &got[0] != &body[0] || len(got) != len(body) {
		t.Errorf("%d bytes, %v: a copy, or not all of it", len(got), err)
	}
	if rest, err := ReadBody(httptest.NewRecorder(), request(again), 0); err != nil || len(rest) != 0 {
		t.Errorf("%d bytes, %v, behind the end", len(rest), err)
	}
	again = ReadAgain(body)
	if _, err := io.CopyN(io.Discard, again, 10); err != nil {
		t.Fatal(err)
	}
	if got, err = ReadBody(httptest.NewRecorder(), request(again), 0); err != nil || !bytes.Equal(got, body[10:]) {
		t.Errorf("%d bytes, %v: not what was left", len(got), err)
	}
	_, err = ReadBody(httptest.NewRecorder(), request(ReadAgain(body)), 1000)
	if e, ok := errors.AsType[*model.Error](err); !ok || e.Code != model.CodeBodyTooLarge {
		t.Errorf("%v, want %s", err, model.CodeBodyTooLarge)
	}
}
