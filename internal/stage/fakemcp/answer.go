package fakemcp

import (
	"bytes"
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Error codes of JSON-RPC and of MCP that a server sends.
const (
	codeMethodNotFound = -32601
	codeInvalidParams  = -32602
	codeInternal       = -32603
	codeHeaderMismatch = -32020
	codeVersion        = -32022
)

// notified takes in a notification or a response of the client.
func (s *Server) notified(c *connection, m *message) {
	if m.Method == "notifications/cancelled" {
		c.cancel(m.Params.RequestID)
	}
	if m.Method == "" {
		c.replied(m)
	}
}

// answer answers one request over p, or does not, when ctx ends or a fault says
// so.
func (s *Server) answer(ctx context.Context, p peer, c *connection, m *message) {
	if s.dead.Load() {
		return
	}
	if s.faults != nil {
		if f, ok := s.faults.strike(DieOnCall, m); ok {
			s.die(f, c)
			return
		}
		if _, ok := s.faults.strike(Hang, m); ok {
			<-ctx.Done()
			return
		}
		p = s.spoil(p, m)
	}
	switch m.Method {
	case "initialize":
		if m.modern() || !s.cfg.Era.legacy() {
			p.respond(m.fail(codeMethodNotFound, "method not found", ""))
			return
		}
		p.respond(0, m.result(s.initialized(m)))
	case "server/discover":
		if !s.cfg.Era.modern() {
			p.respond(m.fail(codeMethodNotFound, "method not found", ""))
			return
		}
		p.respond(0, m.result(s.discovered()))
	case "ping":
		p.respond(0, m.result(nil))
	case "tools/list":
		s.answerList(p, m)
	case "tools/call":
		s.call(ctx, p, c, m)
	case "subscriptions/listen":
		s.subscribe(ctx, p, m)
	default:
		if members := s.texts(m); members != nil {
			p.respond(0, m.result(members))
			return
		}
		p.respond(m.fail(codeMethodNotFound, "method not found", ""))
	}
}

func (s *Server) initialized(m *message) []byte {
	version := m.Params.ProtocolVersion
	if !slices.Contains(legacyVersions, version) {
		version = Legacy
	}
	if s.cfg.Version != "" {
		version = s.cfg.Version
	}
	b := quote([]byte(`"protocolVersion":`), version)
	b = append(b, `,"serverInfo":`...)
	b = append(b, s.info...)
	return s.capabilities(b)
}

func (s *Server) capabilities(b []byte) []byte {
	b = append(b, `,"capabilities":{"tools":{"listChanged":true}`...)
	if s.cfg.Prompts != nil {
		b = append(b, `,"prompts":{}`...)
	}
	if s.cfg.Skills != nil {
		b = append(b, `,"resources":{},"extensions":{"io.modelcontextprotocol/skills":{}}`...)
	}
	b = append(b, '}')
	if s.cfg.Instructions != "" {
		b = append(b, `,"instructions":`...)
		b = quote(b, s.cfg.Instructions)
	}
	return b
}

func (s *Server) discovered() []byte {
	b := append([]byte(`"supportedVersions":`), s.supported()...)
	b = append(b, `,"ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":`...)
	b = append(b, s.info...)
	b = append(b, '}')
	return s.capabilities(b)
}

// supported is the JSON array of protocol versions that the server speaks.
func (s *Server) supported() string {
	var versions []string
	if s.cfg.Era.modern() {
		versions = append(versions, strconv.Quote(Modern))
	}
	if s.cfg.Era.legacy() {
		versions = append(versions, strconv.Quote(Legacy))
	}
	return "[" + strings.Join(versions, ",") + "]"
}

func (s *Server) answerList(p peer, m *message) {
	members := s.listTools(m)
	if members == nil {
		p.respond(m.fail(codeInvalidParams, "unknown cursor", ""))
		return
	}
	if m.modern() {
		members = append([]byte(`"ttlMs":0,"cacheScope":"private",`), members...)
	}
	p.respond(0, m.result(members))
}

// subscribe answers a modern subscriptions/listen, which lasts until the client
// cancels it.
func (s *Server) subscribe(ctx context.Context, p peer, m *message) {
	if !m.modern() {
		p.respond(m.fail(codeMethodNotFound, "method not found", ""))
		return
	}
	meta := `"_meta":{"io.modelcontextprotocol/subscriptionId":` + string(m.ID) + `}`
	acknowledge := func(agreed string) {
		p.notify([]byte(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":` + agreed + `,` + meta + `}}`))
	}
	if !bytes.Contains(m.Params.Notifications, []byte(`"toolsListChanged"`)) {
		acknowledge(`{}`)
		p.respond(0, m.result([]byte(meta)))
		return
	}
	l := &listener{peer: p, subscription: m.ID}
	l.mu.Lock()
	defer s.listen(l)()
	acknowledge(`{"toolsListChanged":true}`)
	l.mu.Unlock()
	<-ctx.Done()
}

// call runs a tool.
func (s *Server) call(ctx context.Context, p peer, c *connection, m *message) {
	t := s.tools.Load().byName[m.Params.Name]
	if t == nil {
		p.respond(m.fail(codeInvalidParams, "unknown tool: "+m.Params.Name, ""))
		return
	}
	t.ran.Add(1)
	s.add(Entry{Method: Ran, ID: m.ID, Tool: t.Name}, nil)
	if !t.work(ctx, p, m) {
		return
	}
	if t.Do == Ask {
		s.ask(ctx, p, c, m, t)
		return
	}
	if t.Do == RPCError {
		p.respond(m.fail(codeInternal, "the fake tool "+t.Name+" broke", ""))
		return
	}
	if s.faults != nil {
		if f, ok := s.faults.strike(Deep, m); ok {
			n := f.Size
			if n == 0 {
				n = 10_000
			}
			p.respond(0, m.result([]byte(`"content":[],"structuredContent":`+strings.Repeat(`{"a":`, n)+`1`+strings.Repeat(`}`, n))))
			return
		}
		if _, ok := s.faults.strike(BadUTF8, m); ok {
			p.respond(0, m.result([]byte("\"content\":[{\"type\":\"text\",\"text\":\"\xff\xfe and \xc3(\"}]")))
			return
		}
	}
	buf := buffers.Get().(*[]byte)
	answer := append(t.result(m.open((*buf)[:0]), m), `}}`...)
	p.respond(0, answer)
	if cap(answer) <= maxPooled {
		*buf = answer
		buffers.Put(buf)
	}
	if s.faults != nil {
		if _, ok := s.faults.strike(ListChanged, m); ok {
			s.change()
		}
	}
}

// buffers hold answers while they are made and sent; a larger one is not kept.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

const maxPooled = 64 << 10

// work is the time that a call takes; false when it was cancelled.
func (t *offered) work(ctx context.Context, p peer, m *message) bool {
	steps := 1
	if t.Do == Progress {
		steps = t.Steps
		if steps == 0 {
			steps = 3
		}
	}
	for i := range steps {
		if t.Delay > 0 {
			timer := time.NewTimer(t.Delay)
			select {
			case <-timer.C:
			case <-ctx.Done():
				timer.Stop()
				return false
			}
		}
		if token := m.Params.Meta.ProgressToken; t.Do == Progress && token != nil {
			b := append([]byte(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":`), token...)
			b = append(b, `,"progress":`...)
			b = strconv.AppendInt(b, int64(i+1), 10)
			b = append(b, `,"total":`...)
			b = strconv.AppendInt(b, int64(steps), 10)
			b = append(b, `,"message":"step `...)
			b = strconv.AppendInt(b, int64(i+1), 10)
			p.notify(append(b, `"}}`...))
		}
	}
	return ctx.Err() == nil
}

// result appends the members of the tool's result object.
func (t *offered) result(b []byte, m *message) []byte {
	arguments := []byte(m.Params.Arguments)
	if arguments == nil {
		arguments = []byte(`{}`)
	}
	switch t.Do {
	case Structured:
		return append(append(text(b, arguments, ``), `,"structuredContent":`...), arguments...)
	case Counter:
		n := t.ran.Load()
		b = text(b, strconv.AppendInt(nil, n, 10), ``)
		b = append(b, `,"structuredContent":{"executions":`...)
		b = strconv.AppendInt(b, n, 10)
		return append(b, '}')
	case Big:
		return text(b, bytes.Repeat([]byte("x"), t.Size), ``)
	case Image:
		return text(b, []byte("One pixel"), `,{"type":"image","mimeType":"image/png","data":"`+pixel+`"}`)
	case UnknownContent:
		return text(b, []byte("before"), `,{"type":"hologram","beam":{"lux":1e3},"data":"AAEC"},{"type":"text","text":"after"}`)
	case Fail:
		return append(text(b, []byte("The fake tool "+t.Name+" failed as it was told to"), ``), `,"isError":true`...)
	case Empty:
		return append(b, `"content":[]`...)
	case Fixed:
		inner := bytes.TrimSpace(t.Result)
		return append(b, inner[1:len(inner)-1]...)
	default:
		return text(b, arguments, ``)
	}
}

// text appends a content array of a text block and of the blocks in more.
func text(b, s []byte, more string) []byte {
	b = append(b, `"content":[{"type":"text","text":`...)
	b = quote(b, s)
	b = append(b, '}')
	b = append(b, more...)
	return append(b, ']')
}
