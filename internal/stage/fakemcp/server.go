package fakemcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
)

// A Server is one fake MCP server. It is an http.Handler for Streamable HTTP and
// speaks newline-delimited JSON over [Server.Serve] and [Server.Pipe]. It is safe
// for concurrent use, by any number of clients and in all ways at once.
type Server struct {
	*Log

	cfg     Config
	info    []byte // {"name":…,"version":…}
	faults  *faults
	tools   atomic.Pointer[toolList]
	ran     sync.Map // tool name → *atomic.Int64
	cursors atomic.Int64
	dead    atomic.Bool

	// exit ends a child process; nil where there is none to end.
	exit func(code int)

	mu        sync.Mutex
	sessions  map[string]*connection
	listeners map[*listener]struct{}
	kept      map[string][]byte // answers that a client may fetch by event id
	ids       int
}

// New returns a server. It panics when Config.LogFile cannot be opened: a test
// has nothing better to do with that error.
func New(cfg Config) *Server {
	log, err := newLog(&cfg)
	if err != nil {
		panic(err)
	}
	if cfg.Name == "" {
		cfg.Name = "fake"
	}
	s := &Server{
		Log:       log,
		cfg:       cfg,
		faults:    newFaults(cfg.Faults),
		sessions:  make(map[string]*connection),
		listeners: make(map[*listener]struct{}),
		kept:      make(map[string][]byte),
	}
	s.info = append(quote([]byte(`{"name":`), cfg.Name), `,"version":"1.0.0"}`...)
	s.publish(slices.Concat(cfg.Tools, generated(cfg.Count)))
	return s
}

// SetTools replaces the server's tools and tells everybody who listens. It
// returns when all have been told; over a pipe that takes somebody who reads.
func (s *Server) SetTools(tools []Tool) {
	s.publish(tools)
	var telling sync.WaitGroup
	s.mu.Lock()
	for l := range s.listeners {
		telling.Go(l.listChanged)
	}
	s.mu.Unlock()
	telling.Wait()
}

// change is what the ListChanged fault does to the tools.
func (s *Server) change() {
	tools := slices.Clone(s.tools.Load().tools)
	if len(tools) > 0 {
		tools[0].Definition, tools[0].Description = nil, "Changed since it was listed first"
	}
	s.SetTools(append(tools, Tool{Name: "added"}))
}

// A peer is the way back to the client for one request.
type peer interface {
	// notify sends a message that is not the answer; respond sends the answer,
	// once, with its error code or 0. Both own the bytes only until they return.
	notify([]byte)
	respond(code int, answer []byte)
	// garbage sends something that is no message, and flood n bytes of it.
	garbage(string)
	flood(n int)
}

// A connection is what a server knows about one client: a session over HTTP, a
// pair of pipes. It may be nil, for modern requests over HTTP.
type connection struct {
	hangup func() // ends the connection from the server's side; nil where a request does

	mu      sync.Mutex
	running map[string]context.CancelFunc     // by request id
	asked   map[string]chan<- json.RawMessage // by the id of the question
}

// begin makes the request one that can be cancelled, until end is called.
func (c *connection) begin(ctx context.Context, id json.RawMessage) (_ context.Context, end func()) {
	ctx, cancel := context.WithCancel(ctx)
	key := string(id)
	c.mu.Lock()
	if c.running == nil {
		c.running = make(map[string]context.CancelFunc)
	}
	c.running[key] = cancel
	c.mu.Unlock()
	return ctx, func() {
		c.mu.Lock()
		delete(c.running, key)
		c.mu.Unlock()
		cancel()
	}
}

func (c *connection) cancel(id json.RawMessage) {
	if c == nil {
		return
	}
	c.mu.Lock()
	cancel := c.running[string(id)]
	c.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

// A listener is a stream on which a client hears about changes.
type listener struct {
	mu           sync.Mutex // held until the client may hear something
	peer         peer
	subscription json.RawMessage // the id of a modern subscription; nil for legacy
}

func (l *listener) listChanged() {
	b := []byte(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"`)
	if l.subscription != nil {
		b = append(b, `,"params":{"_meta":{"io.modelcontextprotocol/subscriptionId":`...)
		b = append(b, l.subscription...)
		b = append(b, `}}`...)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.peer.notify(append(b, '}'))
}

// listen adds a listener and returns how to take it away.
func (s *Server) listen(l *listener) (stop func()) {
	s.mu.Lock()
	s.listeners[l] = struct{}{}
	s.mu.Unlock()
	return func() {
		s.mu.Lock()
		delete(s.listeners, l)
		s.mu.Unlock()
	}
}

// die ends the process, or what stands for it: the connection, and over HTTP
// whatever comes after.
func (s *Server) die(f Fault, c *connection) {
	s.dead.Store(true)
	if s.exit != nil {
		s.exit(f.Code)
	}
	if c != nil && c.hangup != nil {
		c.hangup()
	}
}

// message is what a client sends, as far as a server looks at it.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Result json.RawMessage `json:"result"`
	Params struct {
		Name            string          `json:"name"`
		Arguments       json.RawMessage `json:"arguments"`
		Cursor          *string         `json:"cursor"`
		ProtocolVersion string          `json:"protocolVersion"`
		RequestID       json.RawMessage `json:"requestId"`
		Notifications   json.RawMessage `json:"notifications"`
		RequestState    string          `json:"requestState"`
		InputResponses  struct {
			Answer json.RawMessage `json:"answer"`
		} `json:"inputResponses"`
		Meta struct {
			Version       string          `json:"io.modelcontextprotocol/protocolVersion"`
			ProgressToken json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
	} `json:"params"`
}

func parse(raw []byte) (*message, error) {
	m := new(message)
	if err := json.Unmarshal(raw, m); err != nil {
		return nil, fmt.Errorf("read a message: %w", err)
	}
	return m, nil
}

func (m *message) modern() bool { return m.Params.Meta.Version != "" }

// request reports whether m wants an answer.
func (m *message) request() bool { return m.Method != "" && m.ID != nil && string(m.ID) != "null" }

// logged is the method under which m stands in the log.
func (m *message) logged() string {
	if m.Method == "" {
		return Response
	}
	return m.Method
}

// waits reports whether answering m can take longer than computing the answer.
func (s *Server) waits(m *message) bool {
	if s.faults != nil || m.Method == "subscriptions/listen" {
		return true
	}
	if m.Method != "tools/call" {
		return false
	}
	t := s.tools.Load().byName[m.Params.Name]
	return t != nil && (t.Delay > 0 || t.Do == Progress || t.Do == Ask)
}

// open appends a response up to the members of its result object, of which there
// must be at least one; "}}" closes it.
func (m *message) open(b []byte) []byte {
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = append(b, m.ID...)
	b = append(b, `,"result":{`...)
	if m.modern() {
		b = append(b, `"resultType":"complete",`...)
	}
	return b
}

// result returns a response with the members of a result object, or none.
func (m *message) result(members []byte) []byte {
	b := m.open(make([]byte, 0, len(members)+128))
	b = append(b, members...)
	return append(bytes.TrimSuffix(b, []byte(",")), `}}`...)
}

// fail returns an error response and its code; data is a JSON value or empty.
func (m *message) fail(code int, text, data string) (int, []byte) {
	id := m.ID
	if id == nil {
		id = json.RawMessage("null")
	}
	b := append([]byte(`{"jsonrpc":"2.0","id":`), id...)
	b = append(b, `,"error":{"code":`...)
	b = strconv.AppendInt(b, int64(code), 10)
	b = append(b, `,"message":`...)
	b = quote(b, text)
	if data != "" {
		b = append(b, `,"data":`+data...)
	}
	return code, append(b, `}}`...)
}
