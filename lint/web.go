package lint

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/internal/wire/sse"
)

// A webWire is a wire over HTTP: the client's requests pass through its
// RoundTrip, and single requests go out beside them with the same headers.
type webWire struct {
	record *record
	url    string
	header http.Header
	client *http.Client // without the tap

	mu      sync.Mutex
	session string // Mcp-Session-Id
	version string
	old     string // HTTP+SSE: where messages go; answers come on the stream
	waiting *waiting
	ended   chan struct{}
}

func newWebWire(r *record, t Target) *webWire {
	client := t.Client
	if client == nil {
		client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	return &webWire{record: r, url: t.URL, header: t.Header, client: client, waiting: newWaiting(), ended: make(chan struct{})}
}

// tapped returns the client for package mcp, whose traffic is watched.
func (w *webWire) tapped() *http.Client {
	c := *w.client
	c.Transport = w
	return &c
}

// RoundTrip passes a request of the client on and reads along.
func (w *webWire) RoundTrip(req *http.Request) (*http.Response, error) {
	next := w.client.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	resp, err := next.RoundTrip(req)
	if err != nil {
		return resp, err
	}
	w.learn(req, resp)
	resp.Body = &along{ReadCloser: resp.Body, wire: w, stream: isStream(resp.Header)}
	return resp, nil
}

func (w *webWire) learn(req *http.Request, resp *http.Response) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
		w.session = id
	}
	if v := req.Header.Get("Mcp-Protocol-Version"); v != "" && resp.StatusCode < 300 {
		w.version = v
	}
	if isStream(resp.Header) {
		w.record.write(func(l *Live) { l.Web.Streams = append(l.Web.Streams, resp.Header) })
	}
}

// typed notes the content type of a message, where it is another one than it should be.
func (w *webWire) typed(resp *http.Response) {
	if is := resp.Header.Get("Content-Type"); resp.StatusCode < 300 && !ofTheProtocol(is) {
		w.record.write(func(l *Live) {
			if len(l.Web.Types) < maxStray {
				l.Web.Types = append(l.Web.Types, is)
			}
		})
	}
}

func isStream(h http.Header) bool {
	return strings.HasPrefix(strings.ToLower(h.Get("Content-Type")), "text/event-stream")
}

// along is a body that is read along: each message in it is noted.
type along struct {
	io.ReadCloser
	wire   *webWire
	stream bool
	text   []byte
}

func (a *along) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p)
	a.wire.record.count(n)
	if len(a.text)+n <= maxMessage {
		a.text = append(a.text, p[:n]...)
	}
	if a.stream {
		a.events()
	}
	return n, err
}

// events notes what is complete of an event stream.
func (a *along) events() {
	for {
		i := bytes.Index(a.text, []byte("\n\n"))
		if i < 0 {
			return
		}
		event := a.text[:i]
		a.text = a.text[i+2:]
		name, data := "", []byte(nil)
		for line := range bytes.SplitSeq(event, []byte("\n")) {
			if text, ok := bytes.CutPrefix(line, []byte("data:")); ok {
				data = append(data, bytes.TrimSpace(text)...)
			}
			if text, ok := bytes.CutPrefix(line, []byte("event:")); ok {
				name = string(bytes.TrimSpace(text))
			}
		}
		a.wire.event(name, data)
	}
}

// event notes one event. The transport of 2024-11-05 begins with the address for
// messages, and all answers come on its stream.
func (w *webWire) event(name string, data []byte) {
	if m, ok := parseRPC(data); ok {
		w.record.message(m)
		if w.stream() != "" {
			w.record.progress(w.waiting.progressed(m))
			w.waiting.take(m)
		}
		return
	}
	if base, err := url.Parse(w.url); name == "endpoint" && err == nil {
		if endpoint, err := base.Parse(string(data)); err == nil {
			w.mu.Lock()
			w.old = endpoint.String()
			w.mu.Unlock()
		}
	}
}

// stream returns where messages go on the transport of 2024-11-05; empty on
// Streamable HTTP.
func (w *webWire) stream() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.old
}

func (a *along) Close() error {
	if m, ok := parseRPC(a.text); ok && !a.stream {
		a.wire.record.message(m)
	}
	return a.ReadCloser.Close()
}

// request makes a POST as the client would, with what m changes.
func (w *webWire) request(ctx context.Context, m raw) (*http.Request, error) {
	where := w.url
	if old := w.stream(); old != "" {
		where = old
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, where, bytes.NewReader(m.body))
	if err != nil {
		return nil, err
	}
	maps.Copy(req.Header, w.header)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	w.mu.Lock()
	if w.session != "" {
		req.Header.Set("Mcp-Session-Id", w.session)
	}
	if w.version != "" {
		req.Header.Set("Mcp-Protocol-Version", w.version)
	}
	w.mu.Unlock()
	for name, value := range m.header {
		switch {
		case value == "":
			req.Header.Del(name)
		case name == "Host":
			req.Host = value
		default:
			req.Header.Set(name, value)
		}
	}
	return req, nil
}

func (w *webWire) exchange(ctx context.Context, m raw) Answer {
	began := time.Now()
	req, err := w.request(ctx, m)
	if err != nil {
		return Answer{Err: err}
	}
	var answers <-chan rpc
	old := w.stream() != "" && !m.silent
	if old {
		answers = w.waiting.add(m.id)
	}
	resp, err := w.client.Do(req)
	if err != nil {
		w.waiting.drop(m.id)
		if ctx.Err() != nil {
			err = errSilent
		}
		return Answer{Err: err, Took: time.Since(began)}
	}
	defer resp.Body.Close()
	if old && resp.StatusCode < 300 {
		return w.waiting.wait(ctx, m.id, answers, w.ended, began)
	}
	a := w.read(resp, m.id)
	if ctx.Err() != nil && a.Err != nil {
		a.Err = errSilent
	}
	a.Took, a.Status, a.Header = time.Since(began), resp.StatusCode, resp.Header
	return a
}

// read reads the answer out of a response: the body, or the event that has the
// id.
func (w *webWire) read(resp *http.Response, id string) Answer {
	body := &counted{resp.Body, w.record}
	if !isStream(resp.Header) {
		text, err := io.ReadAll(io.LimitReader(body, maxMessage+1))
		if len(text) > maxMessage {
			w.record.flooded("a body of over " + megabytes(maxMessage))
			return Answer{Err: errTooLarge}
		}
		m, ok := parseRPC(text)
		if !ok {
			return Answer{Body: string(text[:min(len(text), 4<<10)]), Err: err}
		}
		w.record.message(m)
		w.typed(resp)
		if is := string(m.ID); id != "" && is != id && !rawjson.IsNull(m.ID) && m.Method == "" {
			w.record.odd("an answer to " + quote(is) + " where " + quote(id) + " was asked")
		}
		return m.answer()
	}
	w.record.write(func(l *Live) { l.Web.Streams = append(l.Web.Streams, resp.Header) })
	progress := 0
	events := sse.NewReader(body, maxMessage)
	for {
		event, err := events.Next()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = errors.New("the stream ended before the answer")
			}
			return Answer{Err: err, Progress: progress}
		}
		m, ok := parseRPC(event.Data)
		if !ok {
			continue
		}
		w.record.message(m)
		w.record.progress(w.waiting.progressed(m))
		switch {
		case m.Method == "notifications/progress":
			progress++
		case m.Method == "" && (string(m.ID) == id || m.Error != nil && (m.ID == nil || string(m.ID) == "null")):
			a := m.answer()
			a.Progress = progress
			return a
		case m.Method == "":
			w.record.odd("an answer to " + quote(string(m.ID)) + " where " + quote(id) + " was asked")
		}
	}
}

func (w *webWire) gone() <-chan struct{} { return w.ended }

func (w *webWire) end() {}
