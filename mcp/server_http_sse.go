package mcp

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// An SSE serves HTTP+SSE, the transport of 2024-11-05, for clients that know
// nothing newer: a GET opens the stream that carries everything to the client, and
// names the address to which the client posts. It trusts its caller as
// [Server.ServeHTTP] does. Make it with [Server.SSE].
type SSE struct {
	server *Server
	post   string

	mu      sync.Mutex
	streams map[string]*sseStream
}

// An sseStream is one open stream.
type sseStream struct {
	*sharedConnection
	owner string
}

// A sseSink takes messages to a client that has one stream for everything: where the client
// is far behind, whoever sends waits, since any message may be an answer.
type sseSink struct {
	stream *serverStream
	gone   <-chan struct{}
}

func (s sseSink) send(msg []byte) bool { return s.stream.sendInTurn(msg, s.gone) }

// SSE returns a handler of HTTP+SSE. Clients post to post, an absolute path that
// has to lead to the same handler.
func (s *Server) SSE(post string) *SSE {
	s.init()
	return &SSE{server: s, post: post, streams: map[string]*sseStream{}}
}

// ServeHTTP serves the stream (GET) and the messages (POST).
func (e *SSE) ServeHTTP(w http.ResponseWriter, r *http.Request) { e.serve(w, r, e.server.Host) }

// ServeAs is ServeHTTP where host says who answers the request, in place of
// [Server.Host].
func (e *SSE) ServeAs(w http.ResponseWriter, r *http.Request, host func(*http.Request) (Host, error)) {
	e.serve(w, r, host)
}

func (e *SSE) serve(w http.ResponseWriter, r *http.Request, find finder) {
	switch r.Method {
	case http.MethodGet:
		e.stream(w, r, find)
	case http.MethodPost:
		e.message(w, r, find)
	default:
		w.Header().Set("Allow", "GET, POST")
		http.Error(w, "a stream is opened with GET, and messages are sent with POST", http.StatusMethodNotAllowed)
	}
}

// idleCheck is how often a stream that is to end is asked whether it can.
const idleCheck = 50 * time.Millisecond

// stream serves a client from the first byte of its stream to the last.
func (e *SSE) stream(w http.ResponseWriter, r *http.Request, find finder) {
	host, err := find(r)
	if err != nil {
		http.Error(w, "nobody answers here", http.StatusBadRequest)
		return
	}
	if _, event := accepts(r.Header); !event {
		http.Error(w, "the answer is text/event-stream", http.StatusNotAcceptable)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	to := newServerStream("")
	to.once = true
	id := rand.Text()
	c := &sseStream{sharedConnection: e.server.newSharedConnection(ctx, sseSink{to, ctx.Done()}), owner: host.Owner()}
	e.mu.Lock()
	full := len(e.streams) >= e.server.MaxSessions
	if !full {
		e.streams[id] = c
	}
	e.mu.Unlock()
	if full {
		http.Error(w, "too many sessions", http.StatusServiceUnavailable)
		return
	}
	defer c.close()
	defer func() {
		e.mu.Lock()
		delete(e.streams, id)
		e.mu.Unlock()
	}()
	defer cancel() // who waits for room waits no more
	defer context.AfterFunc(e.server.listening, func() {
		for !c.idle() && sleep(ctx, idleCheck) == nil {
		}
		to.end()
	})()
	out := newStreamWriter(w)
	out.begin()
	query := r.URL.Query() // what the host reads in the address of the stream holds for its messages
	query.Set("sessionId", id)
	if out.write(fmt.Appendf(nil, "event: endpoint\ndata: %s\n\n", &url.URL{Path: e.post, RawQuery: query.Encode()})) == nil {
		out.follow(ctx.Done(), to, 0, false)
	}
}

// message takes a message of a client; the answer goes to its stream.
func (e *SSE) message(w http.ResponseWriter, r *http.Request, find finder) {
	host, err := find(r)
	if err != nil {
		http.Error(w, "nobody answers here", http.StatusBadRequest)
		return
	}
	if mediaType(r.Header) != typeJSON {
		http.Error(w, "the body has to be application/json", http.StatusUnsupportedMediaType)
		return
	}
	e.mu.Lock()
	c := e.streams[r.URL.Query().Get("sessionId")]
	e.mu.Unlock()
	if c == nil || c.owner != host.Owner() {
		http.Error(w, "there is no such session in this process: open a stream anew, and where several processes are behind one address, have it and what is posted to it reach the same one", http.StatusNotFound)
		return
	}
	most := e.server.message.Load()
	body, err := io.ReadAll(io.LimitReader(r.Body, most+1))
	switch {
	case err != nil:
		http.Error(w, "the body could not be read", http.StatusBadRequest)
		return
	case int64(len(body)) > most:
		http.Error(w, "the message is too large", http.StatusRequestEntityTooLarge)
		return
	}
	in := c.read(bytes.TrimSpace(body))
	if in != nil {
		if refused := in.refusedBy(r.Context(), host); refused != nil {
			refused.write(w, in.id)
			return
		}
		c.take(host, in) // with the rights of whoever sends it, not those that the stream was opened with
	}
	w.WriteHeader(http.StatusAccepted)
}
