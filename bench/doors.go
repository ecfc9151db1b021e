package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
)

// modelDoors are the doors at which a model is asked, beside Chat, with the request of
// [chatBody] in their own form.
var modelDoors = []struct{ name, path, body string }{
	{"Responses, nothing stored", "/v1/responses", `{"model":"%s","stream":%t,"store":false,"temperature":0.2,"instructions":"You are an assistant who answers in a few words and does not make things up.","input":"What did a dragoman do, and why did both sides trust him?"}`},
	{"Responses, stored", "/v1/responses", `{"model":"%s","stream":%t,"temperature":0.2,"instructions":"You are an assistant who answers in a few words and does not make things up.","input":"What did a dragoman do, and why did both sides trust him?"}`},
	{"Messages", "/v1/messages", `{"model":"%s","stream":%t,"max_tokens":1000,"temperature":0.2,"system":"You are an assistant who answers in a few words and does not make things up.","messages":[{"role":"user","content":"What did a dragoman do, and why did both sides trust him?"}]}`},
}

// doors is (q): the CPU time of the same work at each door at which a model is asked: an
// answer with a tool offered, a conversation with one tool call, and a stream. Direct is
// the Chat door of the same gateway.
func (b *bench) doors(ctx context.Context) error {
	servers := stdioServers(map[string]fakemcp.Config{"other": {Keep: -1, Count: 1}})
	servers["bench"] = b.oneServer()["bench"]
	s := setting{body: chatBody("tool", false), servers: servers, arrived: holdsResult}
	gateway, err := b.gateway(ctx, contenderNames[ours], b.binary, s)
	if err != nil {
		return err
	}
	defer b.stop(contenderNames[ours])
	if _, err := b.settled(ctx, gateway.base, s); err != nil {
		return err
	}
	c := &contest{bench: b, setting: s}
	c.sides[ours], c.sides[direct] = gateway, gateway
	for _, work := range []struct {
		name, model string
		stream      bool
	}{{"an answer, tools offered", "plain", false}, {"one tool call", "tool", false}, {"a stream of 20 chunks", "stream-20", true}} {
		for _, door := range modelDoors {
			body := fmt.Appendf(nil, door.body, work.model, work.stream)
			c.do[ours] = func(ctx context.Context) error { return askAt(ctx, gateway.base+door.path, body) }
			c.do[direct] = func(ctx context.Context) error { return post(ctx, gateway.base, chatBody(work.model, work.stream)) }
			_, cost, err := c.rates(ctx, clients)
			if err != nil {
				return fmt.Errorf("%s: %w", door.name, err)
			}
			b.add(row{item: "q", what: strings.Join([]string{door.name, work.name}, ": "), figures: cost, show: duration})
		}
	}
	return nil
}

// askAt sends a request to a door and reads the answer to its end.
func askAt(ctx context.Context, url string, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	return send(req)
}
