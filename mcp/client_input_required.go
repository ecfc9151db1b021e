package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// What a state of ours begins with says how its call goes on.
const (
	stateParked byte = 'p' // a call of a legacy server that is parked here
	stateInput  byte = 'i' // a call of a modern server that is made again with input
	stateURL    byte = 'u' // a call that is made again when somebody has visited an address
)

// inputRequired makes questions of a modern server's input_required (MCP
// 2026-07-28, "Multi Round-Trip Requests").
func (f *pendingCall) inputRequired(asked *rawjson.Object) (*dragoman.Asks, error) {
	if f.round >= f.c.limits.Rounds {
		return nil, fmt.Errorf("%w: it asked for input %d times", ErrAnswer, f.round+1)
	}
	asks, forms := &dragoman.Asks{}, rawjson.Object{}
	if raw := asked.Get("inputRequests"); raw != nil {
		requests, err := rawjson.ParseObject(raw)
		if err != nil {
			return nil, fmt.Errorf("%w: inputRequests: %w", ErrAnswer, err)
		}
		for _, m := range requests.Members {
			request := object(m.Value)
			method, _ := rawjson.String(request.Get("method"))
			params := request.Get("params")
			kind := asking(method, params)
			if need := needed(kind, params); kind == 0 || need&f.call.Can&f.c.o.Can != need {
				return nil, fmt.Errorf("%w: it asks for %s, which was not declared", ErrAnswer, bounded(method, 60))
			}
			asks.Questions = append(asks.Questions, dragoman.Question{Key: m.Name, Kind: kind, Server: f.c.o.Label, Params: params})
			form := rawjson.Object{}
			form.Set("kind", strconv.AppendInt(nil, int64(kind), 10))
			if kind == dragoman.AskForm {
				form.Set("form", defaults(params))
			}
			forms.Set(m.Name, form.Bytes())
		}
	}
	if len(asks.Questions) == 0 {
		// It had nothing to ask: it wants to be asked later.
		asks.After = min(100*time.Millisecond<<f.round, 5*time.Second)
	}
	asks.State = f.state(stateInput, &forms, asked.Get("requestState"))
	return asks, nil
}

// urlRequired makes questions of the error by which a server of 2025-11-25 says
// that somebody has to visit an address before the call can be made; nil where it
// is another error, or nobody can be asked. Who said yes has agreed to go there, and may
// not be back yet ("Elicitation", Completion Notifications for URL Mode): a server that
// asks for the same visits again is asked again after a while, and nobody else is.
func (f *pendingCall) urlRequired(err error) *dragoman.Asks {
	e, ok := errors.AsType[*RPCError](err)
	if !ok || e.Code != codeURLRequired || f.call.Can&f.c.o.Can&dragoman.AskURL == 0 || f.round >= f.c.limits.Rounds {
		return nil
	}
	elicitations, err := rawjson.Elements(object(e.Data).Get("elicitations"))
	if err != nil || len(elicitations) == 0 {
		return nil
	}
	asks, forms := &dragoman.Asks{}, rawjson.Object{}
	var visits []string
	for i, params := range elicitations {
		if asking("elicitation/create", params) != dragoman.AskURL {
			return nil
		}
		id, _ := rawjson.String(object(params).Get("elicitationId"))
		if slices.Contains(f.visits, id) {
			continue
		}
		if id != "" {
			visits = append(visits, id)
		}
		key := strconv.Itoa(i + 1)
		asks.Questions = append(asks.Questions, dragoman.Question{Key: key, Kind: dragoman.AskURL, Server: f.c.o.Label, Params: params})
		forms.Set(key, json.RawMessage(`{"kind":`+strconv.Itoa(int(dragoman.AskURL))+`}`))
	}
	if len(asks.Questions) == 0 {
		asks.After = min(time.Second<<(f.round-1), 30*time.Second)
	}
	f.visits = append(f.visits, visits...)
	asks.State = f.state(stateURL, &forms, nil)
	return asks
}

// state returns what a call is made again with: how often it was asked, what, and
// the server's own state.
func (f *pendingCall) state(kind byte, forms *rawjson.Object, theirs json.RawMessage) []byte {
	o := rawjson.Object{}
	o.Set("round", strconv.AppendInt(nil, int64(f.round+1), 10))
	o.Set("questions", forms.Bytes())
	if theirs != nil {
		o.Set("state", theirs)
	}
	if len(f.visits) > 0 {
		visits := make([]json.RawMessage, len(f.visits))
		for i, id := range f.visits {
			visits[i] = rawjson.Quote(id)
		}
		o.Set("visits", rawjson.AppendArray(nil, visits))
	}
	return append([]byte{kind}, o.Bytes()...)
}

// A continuation is a state that was brought back.
type continuation struct {
	round   int
	visits  []string // that somebody has agreed to
	members []byte   // that the request is made with this time
	problem *dragoman.Problem
}

// readState reads the state of a call that is made again, and the answers.
func readState(a *dragoman.Answers) (g continuation) {
	o, err := rawjson.ParseObject(a.State[1:])
	if err != nil || rawjson.Check(a.State[1:]) != nil {
		g.problem = foreign()
		return g
	}
	g.round, _ = rawjson.Int(o.Get("round"))
	g.visits = stringList(o.Get("visits"))
	responses := rawjson.Object{}
	for _, m := range object(o.Get("questions")).Members {
		q := object(m.Value)
		kind, _ := rawjson.Int(q.Get("kind"))
		reply, err := answered(dragoman.Kind(kind), q.Get("form"), a.Replies[m.Name])
		action, _ := rawjson.String(object(reply).Get("action"))
		if err != nil || a.State[0] == stateURL && action != "accept" {
			g.problem = &dragoman.Problem{
				Code:    dragoman.CodeUnanswered,
				Message: "The tool's server asked for something that it needs, and did not get it, so the call was given up.",
			}
			return g
		}
		responses.Set(m.Name, reply)
	}
	if a.State[0] == stateURL {
		return g
	}
	if len(responses.Members) > 0 {
		g.members = append([]byte(`"inputResponses":`), responses.Bytes()...)
	}
	if state := o.Get("state"); state != nil {
		if len(g.members) > 0 {
			g.members = append(g.members, ',')
		}
		g.members = append(append(g.members, `"requestState":`...), state...)
	}
	return g
}

func foreign() *dragoman.Problem {
	return &dragoman.Problem{Code: dragoman.CodeDenied, Message: "The answers do not belong to this call, so it was not continued."}
}
