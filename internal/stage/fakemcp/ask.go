package fakemcp

import (
	"context"
	"encoding/json"
	"strconv"
)

// ask runs a tool that asks: it sends elicitation/create with the tool's Question
// and answers with the reply as text, byte for byte. A modern client is asked with a
// result, and calls again; a legacy one is asked while its call waits.
func (s *Server) ask(ctx context.Context, p peer, c *connection, m *message, t *offered) {
	reply := m.Params.InputResponses.Answer
	switch {
	case reply == nil && m.modern():
		b := append([]byte(`{"jsonrpc":"2.0","id":`), m.ID...)
		b = append(b, `,"result":{"resultType":"input_required","requestState":"asked","inputRequests":{"answer":{"method":"elicitation/create","params":`...)
		b = append(b, t.question()...)
		p.respond(0, append(b, `}}}}`...))
		return
	case reply == nil:
		if reply = s.elicit(ctx, p, c, t.question()); reply == nil {
			return
		}
	case m.Params.RequestState != "asked":
		p.respond(m.fail(codeInvalidParams, "a state that nobody gave out", ""))
		return
	}
	p.respond(0, m.result(text(nil, reply, ``)))
}

// elicit asks a legacy client and waits for its reply; nil when the call ends first.
func (s *Server) elicit(ctx context.Context, p peer, c *connection, question json.RawMessage) json.RawMessage {
	s.mu.Lock()
	s.ids++
	id := `"question-` + strconv.Itoa(s.ids) + `"`
	s.mu.Unlock()
	answer := make(chan json.RawMessage, 1)
	c.wait(id, answer)
	defer c.wait(id, nil)
	b := append([]byte(`{"jsonrpc":"2.0","id":`+id+`,"method":"elicitation/create","params":`), question...)
	p.notify(append(b, '}'))
	select {
	case reply := <-answer:
		return reply
	case <-ctx.Done():
		return nil
	}
}

// wait hands the reply to a question to answer; nil hands it to nobody any more.
func (c *connection) wait(id string, answer chan<- json.RawMessage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asked == nil {
		c.asked = make(map[string]chan<- json.RawMessage)
	}
	if answer == nil {
		delete(c.asked, id)
		return
	}
	c.asked[id] = answer
}

// replied takes in the reply to a question; one that nobody waits for is ignored.
func (c *connection) replied(m *message) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if answer := c.asked[string(m.ID)]; answer != nil {
		delete(c.asked, string(m.ID))
		answer <- m.Result
	}
}

// question returns what an Ask tool asks: whether it may go on, if nothing else.
func (t *Tool) question() json.RawMessage {
	if t.Question != nil {
		return t.Question
	}
	return json.RawMessage(`{"message":"Go on?","requestedSchema":{"type":"object","properties":{}}}`)
}
