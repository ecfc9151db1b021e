package fakemcp

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// A toolsetServer serves a toolset on lines of JSON, in one era.
type toolsetServer struct {
	inner dragoman.Toolset
	era   Era

	mu      sync.Mutex // taken to write, too
	out     io.Writer
	running map[string]context.CancelFunc
	waiting map[string]chan json.RawMessage // elicitations, by id
	asked   int
	can     dragoman.Kind // what a legacy client declared
	work    sync.WaitGroup
}

// PipeToolset serves the tools of inner, which has one form to fill in at most,
// by its original names, and returns the client's ends: what the server says, and
// what it hears. Closing the latter ends the server; so does ctx.
func PipeToolset(ctx context.Context, inner dragoman.Toolset, era Era) (io.ReadCloser, io.WriteCloser) {
	fromServer, out := io.Pipe()
	in, toServer := io.Pipe()
	s := &toolsetServer{inner: inner, era: era, out: out, running: map[string]context.CancelFunc{}, waiting: map[string]chan json.RawMessage{}}
	ctx, stop := context.WithCancel(ctx)
	context.AfterFunc(ctx, func() { _ = in.Close() })
	go func() {
		lines := bufio.NewReader(in)
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				break
			}
			s.message(ctx, members(line))
		}
		stop()
		_ = out.Close() // so that nobody hangs who writes
		s.work.Wait()
	}()
	return fromServer, toServer
}

func members(b []byte) *rawjson.Object {
	o, err := rawjson.ParseObject(b)
	if err != nil {
		return &rawjson.Object{}
	}
	return o
}

func (s *toolsetServer) write(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = fmt.Fprintf(s.out, format+"\n", args...)
}

func (s *toolsetServer) message(ctx context.Context, m *rawjson.Object) {
	id, params := m.Get("id"), members(m.Get("params"))
	respond := func(result string) { s.write(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result) }
	switch method, _ := rawjson.String(m.Get("method")); method {
	case "initialize":
		s.can = canOf(params.Get("capabilities"))
		respond(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}}}`)
	case "server/discover":
		if s.era == LegacyOnly {
			s.write(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`, id)
			return
		}
		respond(`{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}}}`)
	case "notifications/initialized":
		s.tellChanges(ctx)
	case "subscriptions/listen":
		s.tellChanges(ctx)
		s.write(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{}}`)
	case "tools/list":
		list, _ := s.inner.List(ctx)
		var items []json.RawMessage
		for _, t := range list.Tools.All() {
			items = append(items, t.Definition)
		}
		respond(`{"tools":` + string(rawjson.AppendArray(nil, items)) + `}`)
	case "tools/call":
		ctx, cancel := context.WithCancel(ctx)
		s.mu.Lock()
		s.running[string(id)] = cancel
		s.mu.Unlock()
		s.work.Go(func() { defer cancel(); s.call(ctx, id, params) })
	case "ping":
		respond(`{}`)
	case "notifications/cancelled":
		s.mu.Lock()
		cancel := s.running[string(params.Get("requestId"))]
		s.mu.Unlock()
		if cancel != nil {
			cancel()
		}
	case "":
		s.mu.Lock()
		answer := s.waiting[string(id)]
		s.mu.Unlock()
		if answer != nil {
			answer <- m.Get("result")
		}
	}
}

func canOf(capabilities json.RawMessage) (can dragoman.Kind) {
	if members(members(capabilities).Get("elicitation")).Get("form") != nil {
		can = dragoman.AskForm
	}
	return can
}

// tellChanges tells the client about each change from now on.
func (s *toolsetServer) tellChanges(ctx context.Context) {
	list, _ := s.inner.List(ctx)
	s.work.Go(func() {
		for {
			select {
			case <-list.Changed:
				list, _ = s.inner.List(ctx)
				s.write(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
			case <-ctx.Done():
				return
			}
		}
	})
}

func (s *toolsetServer) call(ctx context.Context, id json.RawMessage, params *rawjson.Object) {
	name, _ := rawjson.String(params.Get("name"))
	list, _ := s.inner.List(ctx)
	meta := members(params.Get("_meta"))
	call := dragoman.Call{Tool: named(list, name), Arguments: params.Get("arguments"), Can: s.can}
	if s.era == ModernOnly {
		call.Can = canOf(meta.Get("io.modelcontextprotocol/clientCapabilities"))
		if state, ok := rawjson.String(params.Get("requestState")); ok {
			call.Answers = &dragoman.Answers{State: []byte(state), Replies: map[string]json.RawMessage{}}
			for _, m := range members(params.Get("inputResponses")).Members {
				call.Answers.Replies[m.Name] = m.Value
			}
		}
	}
	if token := meta.Get("progressToken"); token != nil {
		call.Progress = func(p dragoman.Progress) {
			s.write(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%v,"total":%v}}`, token, p.Progress, p.Total)
		}
	}
	for {
		res, err := s.inner.Call(ctx, call)
		switch {
		case err != nil:
		case res.Problem != nil:
			s.write(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":%s}}`, id, rawjson.Quote(res.Problem.Message))
		case res.Asks == nil:
			content := string(res.Content)
			if res.Failed {
				content = content[:len(content)-1] + `,"isError":true}`
			}
			s.write(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, content)
		case s.era == ModernOnly:
			q := res.Asks.Questions[0]
			s.write(`{"jsonrpc":"2.0","id":%s,"result":{"resultType":"input_required","requestState":%s,"inputRequests":{%s:{"method":"elicitation/create","params":%s}}}}`,
				id, rawjson.Quote(string(res.Asks.State)), rawjson.Quote(q.Key), q.Params)
		default:
			call.Answers = s.elicit(ctx, res.Asks)
			continue
		}
		return
	}
}

// elicit asks a legacy client what a call asks.
func (s *toolsetServer) elicit(ctx context.Context, asks *dragoman.Asks) *dragoman.Answers {
	q := asks.Questions[0]
	answer := make(chan json.RawMessage, 1)
	s.mu.Lock()
	s.asked++
	id := fmt.Sprintf(`"question %d"`, s.asked)
	s.waiting[id] = answer
	s.mu.Unlock()
	s.write(`{"jsonrpc":"2.0","id":%s,"method":"elicitation/create","params":%s}`, id, q.Params)
	a := &dragoman.Answers{State: asks.State}
	select {
	case reply := <-answer:
		action, _ := rawjson.String(members(reply).Get("action"))
		a.Gone = action == "cancel"
		a.Replies = map[string]json.RawMessage{q.Key: reply}
	case <-ctx.Done():
		a.Gone = true
	}
	return a
}

// named returns the tool that inner knows by a name.
func named(list *dragoman.List, name string) *dragoman.Tool {
	for i, t := range list.Tools.All() {
		if t.Original == name {
			return &list.Tools.All()[i]
		}
	}
	return nil
}
