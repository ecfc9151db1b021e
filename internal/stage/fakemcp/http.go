package fakemcp

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// maxBody is how much of a request body a server reads.
const maxBody = 64 << 20

// ServeHTTP speaks Streamable HTTP of both eras on every path: legacy with
// sessions, modern without.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.dead.Load() {
		panic(http.ErrAbortHandler)
	}
	if s.cfg.Token != "" && r.Header.Get("Authorization") != "Bearer "+s.cfg.Token {
		s.add(Entry{Method: r.Method, Header: r.Header}, nil)
		w.Header().Set("WWW-Authenticate", `Bearer realm="fake", error="invalid_token"`)
		http.Error(w, "a token is needed", http.StatusUnauthorized)
		return
	}
	switch r.Method {
	case http.MethodPost:
		s.post(w, r)
	case http.MethodGet:
		s.get(w, r)
	case http.MethodDelete:
		s.add(Entry{Method: r.Method, Header: r.Header}, nil)
		s.mu.Lock()
		delete(s.sessions, r.Header.Get("Mcp-Session-Id"))
		s.mu.Unlock()
	default:
		w.Header().Set("Allow", "GET, POST, DELETE")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
	}
}

var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

func (s *Server) post(w http.ResponseWriter, r *http.Request) {
	body := bodies.Get().(*bytes.Buffer)
	defer bodies.Put(body)
	body.Reset()
	if _, err := body.ReadFrom(http.MaxBytesReader(w, r.Body, maxBody)); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	p := &httpPeer{w: w}
	m, err := parse(body.Bytes())
	if err != nil {
		p.status = http.StatusBadRequest
		p.respond((&message{}).fail(-32700, "parse error", ""))
		return
	}
	s.add(Entry{Method: m.logged(), ID: m.ID, Header: r.Header}, body.Bytes())
	if s.faults != nil && s.misbehave(w, r, m) {
		return
	}
	c, ok := s.admit(p, r, m)
	if !ok {
		return
	}
	if !m.request() {
		s.notified(c, m)
		w.WriteHeader(http.StatusAccepted)
		return
	}
	p.modern = c == nil
	p.stream = s.cfg.SSE
	if f, ok := s.faults.strike(BrokenStream, m); ok {
		p.breaks(s, f)
	}
	defer p.close()
	ctx := r.Context()
	if c != nil && s.waits(m) {
		var end func()
		ctx, end = c.begin(ctx, m.ID)
		defer end()
	}
	s.answer(ctx, p, c, m)
	if s.dead.Load() {
		panic(http.ErrAbortHandler)
	}
	if !p.answered && r.Context().Err() != nil {
		s.add(Entry{Method: Disconnected, ID: m.ID}, nil)
	}
}

// admit finds the connection that the message belongs to: nil for modern ones. It
// answers what has no business here, and then reports false.
func (s *Server) admit(p *httpPeer, r *http.Request, m *message) (*connection, bool) {
	if accept := r.Header.Get("Accept"); !strings.Contains(accept, "application/json") || !strings.Contains(accept, "text/event-stream") {
		http.Error(p.w, "Accept must name application/json and text/event-stream", http.StatusNotAcceptable)
		return nil, false
	}
	p.status = http.StatusBadRequest
	defer func() { p.status = 0 }()
	if m.modern() && s.cfg.Era.modern() {
		return nil, s.admitModern(p, r, m)
	}
	if !s.cfg.Era.legacy() {
		if m.Method == "initialize" {
			p.respond(m.fail(codeVersion, "unsupported protocol version",
				fmt.Sprintf(`{"supported":%s,"requested":%q}`, s.supported(), m.Params.ProtocolVersion)))
		} else {
			p.respond(m.fail(codeInvalidParams, "_meta lacks the protocol version", ""))
		}
		return nil, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.Method == "initialize" && !m.modern() {
		s.ids++
		id := "session-" + strconv.Itoa(s.ids)
		c := new(connection)
		s.sessions[id] = c
		p.w.Header().Set("Mcp-Session-Id", id)
		return c, true
	}
	id := r.Header.Get("Mcp-Session-Id")
	if id == "" {
		p.respond(m.fail(-32000, "no session id", ""))
		return nil, false
	}
	if _, drop := s.faults.strike(DropSession, m); drop {
		delete(s.sessions, id)
	}
	c := s.sessions[id]
	if c == nil {
		p.status = http.StatusNotFound
		p.respond(m.fail(-32001, "session not found", ""))
		return nil, false
	}
	return c, true
}

// admitModern checks that the headers of a modern request say what its body says.
func (s *Server) admitModern(p *httpPeer, r *http.Request, m *message) bool {
	if v := m.Params.Meta.Version; v != Modern {
		p.respond(m.fail(codeVersion, "unsupported protocol version", fmt.Sprintf(`{"supported":%s,"requested":%q}`, s.supported(), v)))
		return false
	}
	wrong := ""
	switch {
	case r.Header.Get("Mcp-Protocol-Version") != Modern:
		wrong = "MCP-Protocol-Version"
	case r.Header.Get("Mcp-Method") != m.Method:
		wrong = "Mcp-Method"
	case m.Method == "tools/call" && !strings.HasPrefix(r.Header.Get("Mcp-Name"), "=?base64?") && r.Header.Get("Mcp-Name") != m.Params.Name:
		wrong = "Mcp-Name"
	}
	if wrong != "" {
		p.respond(m.fail(codeHeaderMismatch, "the header "+wrong+" does not match the body", ""))
		return false
	}
	return true
}

// get opens the stream of a legacy session, or sends an answer that a broken
// stream lost.
func (s *Server) get(w http.ResponseWriter, r *http.Request) {
	s.add(Entry{Method: r.Method, Header: r.Header}, nil)
	last := r.Header.Get("Last-Event-ID")
	s.mu.Lock()
	c := s.sessions[r.Header.Get("Mcp-Session-Id")]
	kept := s.kept[last]
	s.mu.Unlock()
	p := &httpPeer{w: w, stream: true}
	switch {
	case !s.cfg.Era.legacy() || r.Header.Get("Mcp-Session-Id") == "":
		http.Error(w, "no stream here", http.StatusMethodNotAllowed)
	case c == nil:
		http.Error(w, "session not found", http.StatusNotFound)
	case kept != nil:
		p.respond(0, kept)
	default:
		defer p.close()
		defer s.listen(&listener{peer: p})()
		p.open()
		<-r.Context().Done()
	}
}

// misbehave answers with the HTTP fault that strikes, if one does.
func (s *Server) misbehave(w http.ResponseWriter, r *http.Request, m *message) bool {
	if f, ok := s.faults.strike(Status, m); ok {
		if f.Status == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", `Bearer realm="fake"`)
		}
		if f.RetryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(f.RetryAfter))
		}
		http.Error(w, "the fake server answers "+strconv.Itoa(f.Status), f.Status)
		return true
	}
	if _, ok := s.faults.strike(HTML, m); ok {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		io.WriteString(w, "<!doctype html><title>Sign in</title><p>Please sign in to go on.</p>")
		return true
	}
	if f, ok := s.faults.strike(Bomb, m); ok {
		size := f.Size
		if size == 0 {
			size = 256 << 20
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
		fmt.Fprintf(z, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"`, m.ID)
		writeFlood(z, size)
		io.WriteString(z, `"}]}}`)
		z.Close()
		return true
	}
	if f, ok := s.faults.strike(SlowLoris, m); ok {
		s.dribble(w, r, m, f.Every)
		return true
	}
	return false
}

// dribble sends a byte now and then until the client has had enough.
func (s *Server) dribble(w http.ResponseWriter, r *http.Request, m *message, every time.Duration) {
	if every == 0 {
		every = 50 * time.Millisecond
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"`, m.ID)
	rc := http.NewResponseController(w)
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		rc.Flush()
		select {
		case <-ticker.C:
			io.WriteString(w, "x")
		case <-r.Context().Done():
			s.add(Entry{Method: Disconnected, ID: m.ID}, nil)
			return
		}
	}
}
