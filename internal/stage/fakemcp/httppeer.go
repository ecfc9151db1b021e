package fakemcp

import (
	"bytes"
	"net/http"
	"strconv"
	"sync"
)

// Header values that are the same in every answer, made once.
var (
	jsonType   = []string{"application/json"}
	streamType = []string{"text/event-stream"}
)

// An httpPeer answers one HTTP request: with a JSON body if the answer is all
// there is to say, otherwise with an event stream.
type httpPeer struct {
	w      http.ResponseWriter
	modern bool // error codes have HTTP statuses
	status int  // of the answer; zero means what its error code says

	mu       sync.Mutex
	stream   bool // answer with a stream in any case
	begun    bool // the stream's header is sent
	answered bool
	closed   bool                // the request is over
	cut      func(answer []byte) // takes the answer of a stream that breaks
}

func (p *httpPeer) notify(b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.event(b)
	}
}

// close keeps p from writing after the request is over.
func (p *httpPeer) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
}

func (p *httpPeer) respond(code int, b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answered = true
	if p.cut != nil {
		p.cut(b)
		panic(http.ErrAbortHandler)
	}
	if p.begun || p.stream && code == 0 {
		p.event(b)
		return
	}
	h := p.w.Header()
	h["Content-Type"] = jsonType
	h["Content-Length"] = []string{strconv.Itoa(len(b))}
	if status := p.statusOf(code); status != http.StatusOK {
		p.w.WriteHeader(status)
	}
	p.w.Write(b)
}

func (p *httpPeer) statusOf(code int) int {
	switch {
	case p.status != 0:
		return p.status
	case p.modern && code == codeMethodNotFound:
		return http.StatusNotFound
	case p.modern && code == codeInvalidParams:
		return http.StatusBadRequest
	default:
		return http.StatusOK
	}
}

// open begins an event stream before there is anything to say.
func (p *httpPeer) open() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begin()
}

// begin sends the header of an event stream.
func (p *httpPeer) begin() {
	if p.begun {
		return
	}
	p.begun = true
	h := p.w.Header()
	h["Content-Type"] = streamType
	h.Set("Cache-Control", "no-cache")
	p.w.WriteHeader(http.StatusOK)
	p.flush()
}

func (p *httpPeer) event(b []byte) {
	p.begin()
	e := make([]byte, 0, len(b)+32)
	e = append(e, "event: message\ndata: "...)
	e = append(e, oneLine(b)...)
	p.w.Write(append(e, "\n\n"...))
	p.flush()
}

func (p *httpPeer) flush() { http.NewResponseController(p.w).Flush() }

func (p *httpPeer) garbage(s string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.event([]byte(s))
}

func (p *httpPeer) flood(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begin()
	p.w.Write([]byte("data: "))
	writeFlood(p.w, n)
	p.w.Write([]byte("\n\n"))
	p.flush()
}

// breaks begins a stream that ends before its answer.
func (p *httpPeer) breaks(s *Server, f Fault) {
	s.mu.Lock()
	s.ids++
	id := "event-" + strconv.Itoa(s.ids)
	s.mu.Unlock()
	p.begin()
	p.w.Write([]byte("id: " + id + "\nretry: 10\ndata: \n\n"))
	p.flush()
	p.cut = func(answer []byte) {
		if !f.Resumable {
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.kept[id] = bytes.Clone(answer)
	}
}
