package mcp

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// ask puts what a call asks to a legacy client, all at once, and waits for its
// answers.
func (v *incomingRequest) ask(ctx context.Context, asks *dragoman.Asks) (*dragoman.Answers, error) {
	type answered struct {
		key   string
		reply json.RawMessage
		err   error
	}
	replies := make(chan answered, len(asks.Questions))
	for _, q := range asks.Questions {
		go func() {
			reply, err := v.conn.request(ctx, v.to, requestOf(q.Kind), legacyParams(q))
			replies <- answered{q.Key, reply, err}
		}()
	}
	a := &dragoman.Answers{Replies: map[string]json.RawMessage{}}
	var failed error
	for range asks.Questions {
		r := <-replies
		if r.err != nil {
			failed = r.err
		} else if r.reply != nil {
			a.Replies[r.key] = r.reply
		}
	}
	return a, failed
}

// legacyParams returns the params of a question for a legacy client. Servers of the modern
// era give visits to addresses no ids, and legacy clients refuse those that have none (MCP
// 2025-11-25, "Elicitation", URL Mode Elicitation Requests).
func legacyParams(q dragoman.Question) json.RawMessage {
	if q.Kind != dragoman.AskURL || object(q.Params).Get("elicitationId") != nil {
		return q.Params
	}
	o := object(q.Params).Clone()
	o.Set("elicitationId", rawjson.Quote(rand.Text()))
	return o.Bytes()
}

// answersEarly reports whether a request brought along the answers to all that is
// asked. Those to questions that nobody put are unexpected and mean nothing (MCP
// 2026-07-28, "Multi Round-Trip Requests": a server SHOULD ignore them).
func (in *inbound) answersEarly(asks *dragoman.Asks) bool {
	for _, q := range asks.Questions {
		if _, ok := in.early[q.Key]; !ok || q.Operator {
			return false
		}
	}
	return len(asks.Questions) > 0
}

// requestOf returns the method that asks a question of a kind.
func requestOf(kind dragoman.Kind) string {
	switch kind {
	case dragoman.AskSampling:
		return "sampling/createMessage"
	case dragoman.AskRoots:
		return "roots/list"
	}
	return "elicitation/create"
}

// inputRequired makes the result by which a modern client is asked.
func inputRequired(asks *dragoman.Asks) json.RawMessage {
	o := rawjson.Object{}
	o.Set("resultType", json.RawMessage(`"input_required"`))
	if len(asks.Questions) > 0 {
		requests := rawjson.Object{}
		for _, q := range asks.Questions {
			request := rawjson.Object{}
			request.Set("method", rawjson.Quote(requestOf(q.Kind)))
			params := q.Params
			if params == nil {
				// Roots are asked for without any, and the client of the official Go SDK (1.8.0)
				// cannot read a result with a question that has none.
				params = json.RawMessage("{}")
			}
			request.Set("params", params)
			requests.Set(q.Key, request.Bytes())
		}
		o.Set("inputRequests", requests.Bytes())
	}
	o.Set("requestState", rawjson.Quote(base64.RawURLEncoding.EncodeToString(asks.State)))
	return o.Bytes()
}
