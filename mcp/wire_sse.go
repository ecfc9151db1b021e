package mcp

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/wire/flood"
	"github.com/dragoman-mcp/dragoman/internal/wire/sse"
)

// An event is one event of a text/event-stream (HTML, "Server-sent events").
type event struct {
	name string // empty means message
	data []byte // in memory of its own; nil when there was none
}

// An eventReader reads events of bounded size, and remembers where to resume. What its
// caller counts as nothing that was asked for, and comments, it reads at a bounded rate.
type eventReader struct {
	r     *sse.Reader
	at    *position
	flood flood.Meter
}

// A position is where a stream can be resumed, and when.
type position struct {
	last  string        // id of the last event
	retry time.Duration // what the server asked for; zero when it did not
}

func newEventReader(r io.Reader, limit int64, at *position) *eventReader {
	events := sse.NewReader(r, int(min(limit, math.MaxInt32)))
	events.DropLast = true
	return &eventReader{r: events, at: at}
}

// message returns the data of the next event that can be a message.
func (e *eventReader) message(ctx context.Context) ([]byte, error) {
	for {
		ev, err := e.next(ctx)
		if err != nil {
			return nil, err
		}
		if data := bytes.TrimSpace(ev.data); len(data) > 0 && (ev.name == "" || ev.name == "message") {
			return data, nil
		}
		e.flood.Add(len(ev.data))
	}
}

// next returns the next event, with data or without. An event that the stream
// ends in is dropped, as the standard wants. ctx is that of whoever reads the stream.
func (e *eventReader) next(ctx context.Context) (event, error) {
	for {
		e.flood.Wait(ctx)
		ev, err := e.r.Next()
		if errors.Is(err, sse.ErrTooLarge) {
			err = fmt.Errorf("%w: %w", ErrTooLarge, err)
		}
		if err != nil {
			return event{}, err
		}
		if ev.Comment {
			e.flood.Add(0)
			continue
		}
		if ev.ID != "" && len(ev.ID) <= 4<<10 {
			e.at.last = ev.ID
		}
		if ev.Retry > 0 {
			e.at.retry = min(ev.Retry, 10*time.Minute)
		}
		return event{name: ev.Name, data: bytes.Clone(ev.Data)}, nil
	}
}

// mediaType returns the media type of an HTTP answer, without its parameters.
func mediaType(h http.Header) string {
	t, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	return strings.ToLower(strings.TrimSpace(t))
}

// An inflater undoes the content encoding of an HTTP answer, and ends one that
// grows too much.
type inflater struct {
	io.Reader // gzip, once it has begun
	body      io.Reader
	in, out   int64
	ratio     int64
}

// content returns the body of resp as the server meant it.
func content(resp *http.Response, ratio int64) (io.Reader, error) {
	switch encoding := strings.ToLower(resp.Header.Get("Content-Encoding")); encoding {
	case "", "identity":
		return resp.Body, nil
	case "gzip", "x-gzip":
		return &inflater{body: resp.Body, ratio: ratio}, nil
	default:
		return nil, fmt.Errorf("%w: content encoding %q", ErrAnswer, bounded(encoding, 40))
	}
}

func (i *inflater) Read(p []byte) (int, error) {
	if i.Reader == nil {
		// Not before somebody reads: the header of a stream may come late.
		z, err := gzip.NewReader(counter{i})
		if err == gzip.ErrHeader {
			return 0, fmt.Errorf("%w: not gzip", ErrAnswer)
		}
		if err != nil {
			return 0, err
		}
		i.Reader = z
	}
	n, err := i.Reader.Read(p)
	if i.out += int64(n); i.out > 64<<10 && i.out/i.ratio > i.in {
		return 0, fmt.Errorf("%w: compressed more than %d times", ErrTooLarge, i.ratio)
	}
	return n, err
}

// counter counts the compressed bytes.
type counter struct{ i *inflater }

func (c counter) Read(p []byte) (int, error) {
	n, err := c.i.body.Read(p)
	c.i.in += int64(n)
	return n, err
}

// readBody reads the body of resp, at most limit bytes.
func readBody(resp *http.Response, limit, ratio int64) ([]byte, error) {
	r, err := content(resp, ratio)
	if err != nil {
		return nil, err
	}
	size := int64(512)
	if r == resp.Body && resp.ContentLength > 0 {
		if resp.ContentLength > limit {
			return nil, fmt.Errorf("%w: a body of %d bytes", ErrTooLarge, resp.ContentLength)
		}
		size = min(resp.ContentLength, 1<<20) + 1 // one more byte, to see the end
	}
	b := make([]byte, 0, size)
	for {
		if len(b) == cap(b) {
			// Doubled, and with no more room than is needed to see that it is too
			// much: all of it together stays below twice the limit.
			room := 2 * int64(cap(b))
			if room > limit/2 {
				room = limit + 1
			}
			// Who has sent as much as that is believed the rest: a result may be
			// kept for long, and all of this room with it.
			if r == resp.Body && resp.ContentLength >= int64(cap(b)) {
				room = resp.ContentLength + 1
			}
			b = append(make([]byte, 0, room), b...)
		}
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if int64(len(b)) > limit {
			return nil, fmt.Errorf("%w: a body of over %d bytes", ErrTooLarge, limit)
		}
		if err == io.EOF {
			return b, nil
		}
		if err != nil {
			return nil, err
		}
	}
}
