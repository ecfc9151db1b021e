package toolkit

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// writeTime bounds one write to a client that may have stopped reading.
const writeTime = 30 * time.Second

// streams serves the HTTP+SSE transport of MCP 2024-11-05: a GET opens a stream
// on which answers come, and messages are POSTed beside it. The SDK has one, too;
// this one lets a stream belong to the caller who opened it, tells with each
// message who sent it, and knows which answers are still to come, so that a
// server that stops can wait for them.
type streams struct {
	server *Server
	built  *sdk.Server

	mu   sync.Mutex
	open map[string]*stream
}

// SSE serves the HTTP+SSE transport of MCP 2024-11-05, which newer revisions
// deprecate, behind the same guard as [Server.Handler].
func (s *Server) SSE() (http.Handler, error) {
	built, err := s.SDK()
	if err != nil {
		return nil, err
	}
	return s.guard(&streams{server: s, built: built, open: map[string]*stream{}}), nil
}

func (s *streams) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodGet:
		s.listen(w, r)
	case http.MethodPost:
		s.post(w, r)
	default:
		w.Header().Set("Allow", "GET, POST")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
	}
}

// owner is whose stream it is, or empty for nobody in particular.
func owner(r *http.Request) string {
	if info := auth.TokenInfoFromContext(r.Context()); info != nil {
		return info.UserID
	}
	return ""
}

// listen holds a stream open until the client leaves or the server closes.
func (s *streams) listen(w http.ResponseWriter, r *http.Request) {
	id := rand.Text()
	endpoint := *r.URL
	endpoint.RawQuery = "sessionid=" + id
	t := &stream{
		owner: owner(r), endpoint: endpoint.RequestURI(), to: w, calls: &s.server.calls,
		incoming: make(chan jsonrpc.Message, 100), done: make(chan struct{}), pending: map[jsonrpc.ID]bool{},
	}
	s.mu.Lock()
	s.open[id] = t
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.open, id)
		s.mu.Unlock()
	}()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	session, err := s.built.Connect(r.Context(), t, nil)
	if err != nil {
		return // the client has left
	}
	defer session.Close()
	defer t.Close() // or the session waits for calls that nobody can be answered
	select {
	case <-r.Context().Done():
	case <-t.done:
	case <-s.server.ctx.Done():
	}
}

// post takes one message for a stream.
func (s *streams) post(w http.ResponseWriter, r *http.Request) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		http.Error(w, "Content-Type must be application/json", http.StatusUnsupportedMediaType)
		return
	}
	s.mu.Lock()
	t := s.open[r.URL.Query().Get("sessionid")]
	s.mu.Unlock()
	if t == nil || t.owner != owner(r) {
		http.Error(w, "there is no such session", http.StatusNotFound)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		http.Error(w, tooLarge.Error(), http.StatusRequestEntityTooLarge)
		return
	}
	if err != nil {
		http.Error(w, "cannot read the request", http.StatusBadRequest)
		return
	}
	m, err := jsonrpc.DecodeMessage(body)
	if checkMessage(body) != nil || err != nil {
		http.Error(w, "not a JSON-RPC message", http.StatusBadRequest)
		return
	}
	if call, ok := m.(*jsonrpc.Request); ok {
		call.Extra = &sdk.RequestExtra{TokenInfo: auth.TokenInfoFromContext(r.Context()), Header: r.Header}
		switch {
		case call.IsCall():
			t.enter(call.ID)
		case call.Method == "notifications/cancelled":
			t.leave(cancelled(call.Params)) // it may never be answered
		}
	}
	select {
	case t.incoming <- m:
		w.WriteHeader(http.StatusAccepted)
	case <-t.done:
		http.Error(w, "the session has ended", http.StatusNotFound)
	case <-r.Context().Done():
	}
}

// cancelled is the id of the call that its caller no longer wants.
func cancelled(params json.RawMessage) jsonrpc.ID {
	var p struct {
		RequestID any `json:"requestId"`
	}
	if json.Unmarshal(params, &p) != nil {
		return jsonrpc.ID{}
	}
	id, err := jsonrpc.MakeID(p.RequestID)
	if err != nil {
		return jsonrpc.ID{}
	}
	return id
}

// A stream is one session. It is the SDK's transport and connection.
type stream struct {
	owner, endpoint string
	calls           *census
	incoming        chan jsonrpc.Message
	done            chan struct{}

	mu      sync.Mutex // guards writes, too: none may come after the GET has returned
	to      http.ResponseWriter
	closed  bool
	pending map[jsonrpc.ID]bool // calls that were taken and not answered
}

// SupportsProtocolVersion keeps revisions out that do not know this transport.
func (t *stream) SupportsProtocolVersion(version string) bool { return version < firstModern }

// Connect tells the client where to send its messages.
func (t *stream) Connect(context.Context) (sdk.Connection, error) {
	return t, t.send("endpoint", []byte(t.endpoint))
}

// SessionID is empty: a session lasts as long as its stream.
func (t *stream) SessionID() string { return "" }

func (t *stream) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case m := <-t.incoming:
		return m, nil
	case <-t.done:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (t *stream) Write(_ context.Context, m jsonrpc.Message) error {
	data, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	err = t.send("message", data)
	if answer, ok := m.(*jsonrpc.Response); ok {
		t.leave(answer.ID)
	}
	return err
}

// send writes one event. JSON has no line breaks, so one line of data holds it.
func (t *stream) send(event string, data []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return io.EOF
	}
	to := http.NewResponseController(t.to)
	_ = to.SetWriteDeadline(time.Now().Add(writeTime)) // not every writer has deadlines
	text := append([]byte("event: "+event+"\ndata: "), data...)
	if _, err := t.to.Write(append(text, "\n\n"...)); err != nil {
		return err
	}
	return to.Flush()
}

// Close ends the session. Nobody will be answered any more.
func (t *stream) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil
	}
	t.closed = true
	close(t.done)
	for range t.pending {
		t.calls.leave()
	}
	t.pending = nil
	return nil
}

func (t *stream) enter(id jsonrpc.ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed && !t.pending[id] {
		t.pending[id] = true
		t.calls.enter()
	}
}

func (t *stream) leave(id jsonrpc.ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pending[id] {
		delete(t.pending, id)
		t.calls.leave()
	}
}
