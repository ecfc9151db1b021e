package door

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// DefaultMaxBody bounds the body of a request where nobody says otherwise, in bytes.
const DefaultMaxBody = 32 << 20

// ReadBody reads a request's body of at most that many bytes; of [DefaultMaxBody] if most
// is zero. How slowly it may come is package deadline's business. What is returned may be
// another reader's, too, where the body was read before: see [ReadAgain].
func ReadBody(w http.ResponseWriter, r *http.Request, most int64) ([]byte, error) {
	if most <= 0 {
		most = DefaultMaxBody
	}
	if read, ok := r.Body.(*readBefore); ok && read.Len() == len(read.body) && int64(len(read.body)) <= most {
		_, _ = read.Seek(0, io.SeekEnd)
		return read.body, nil
	}
	body, err := readAll(http.MaxBytesReader(w, r.Body, most), r.ContentLength)
	if err == nil {
		return body, nil
	}
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, &model.Error{
			Status: http.StatusRequestEntityTooLarge, Type: model.TypeInvalidRequest, Code: model.CodeBodyTooLarge,
			Message: fmt.Sprintf("The request body is larger than %d bytes.", tooLarge.Limit), Err: err,
		}
	}
	return nil, Unread(err)
}

// Unread is the error for a body that broke off, or whose client was too slow.
func Unread(err error) error {
	return &model.Error{
		Status: http.StatusBadRequest, Type: model.TypeInvalidRequest, Code: model.CodeInvalidRequest,
		Message: "The request body could not be read.", Err: err,
	}
}

// ReadAgain returns a body that was read as one that is still to be read. Nobody changes it.
func ReadAgain(body []byte) io.ReadCloser { return &readBefore{*bytes.NewReader(body), body} }

// A readBefore is a body that is there already.
type readBefore struct {
	bytes.Reader
	body []byte
}

func (*readBefore) Close() error { return nil }

// firstRoom is the room that is made for a body before anything of it has come, in
// bytes.
const firstRoom = 4 << 10

// roomsOf has room that is used while a body comes, of sixteen and of 64 KiB.
var roomsOf = map[int]*sync.Pool{4 * firstRoom: {}, 16 * firstRoom: {}}

// readAll reads all of r, which is said to have announced bytes, or -1. The room for
// it grows with what has come, fourfold: whoever announces much and sends nothing
// costs next to nothing. What is returned has at most twice the room that it takes: it may
// be kept for hours.
func readAll(r io.Reader, announced int64) ([]byte, error) {
	all := make([]byte, 0, min(max(announced, bytes.MinRead), firstRoom))
	for {
		n, err := r.Read(all[len(all):cap(all)])
		all = all[:len(all)+n]
		switch {
		case err == io.EOF && (roomsOf[cap(all)] != nil || cap(all) > max(firstRoom, 2*len(all))):
			defer free(all)
			return bytes.Clone(all), nil
		case err == io.EOF:
			return all, nil
		case err != nil:
			free(all)
			return nil, err
		case len(all) < cap(all):
			continue
		}
		room := 4 * cap(all)
		if announced >= int64(len(all)) {
			room = int(min(int64(room), announced+1)) // the end may be yet to come
		}
		grown := append(roomFor(room), all...)
		free(all)
		all = grown
	}
}

// roomFor returns room for so many bytes.
func roomFor(size int) []byte {
	if pool := roomsOf[size]; pool != nil {
		if room, ok := pool.Get().(*[]byte); ok {
			return (*room)[:0]
		}
	}
	return make([]byte, 0, size)
}

// free keeps room for another body.
func free(room []byte) {
	if pool := roomsOf[cap(room)]; pool != nil {
		pool.Put(&room)
	}
}

// Texts reads a body that is a JSON object, and returns what says the text of a member:
// empty where it has none of that name, letter by letter.
func Texts(body []byte) (text func(name string) string, err error) {
	var o *rawjson.Object
	if err = rawjson.Check(body); err == nil {
		o, err = rawjson.ParseObject(body)
	}
	if err != nil {
		return nil, model.Invalid("", "The request body is not the JSON object that is wanted here: "+err.Error()+".")
	}
	return func(name string) string {
		said, _ := rawjson.String(o.Get(name))
		return said
	}, nil
}
