package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/observe"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// Call runs one call. For tools/call the params are made of the tool's Original
// name and the call's Arguments; for any other method the call's Arguments are
// the params (such as {"name":…,"arguments":…} for prompts/get or {"uri":…} for
// resources/read), in which the Original of the call's Entry, if it has one,
// takes the place of the name or URI. The call's Meta goes into _meta. The
// arguments leave, and the result arrives, byte for byte.
//
// A task that the server makes of a call is handed over where the call takes one
// ([dragoman.Result.Task]), and watched to its end where it does not: its state is
// asked for as often as the server wants, and it is cancelled when ctx ends. It is
// never made twice.
//
// What the server asks while it works is a [dragoman.Asks] in the result. A call
// of a legacy server goes on meanwhile, for five minutes, and at most 64 calls
// of a client do; the same call with [dragoman.Answers] brings its result. A
// modern server keeps nothing.
//
// Whatever the server does wrong is a Problem in the result, and Ran says whether
// the call ran:
//
//   - an error of the protocol is [dragoman.CodeProtocol] with the server's
//     message; the one for invalid params, [dragoman.CodeInvalidArguments];
//   - a request that provably did not reach the server is
//     [dragoman.CodeServerUnavailable];
//   - a request that may have reached it, without an answer, is what
//     [dragoman.Unanswered] says;
//   - 401, and 403 with a challenge, are [dragoman.CodeNeedsAuthorization], an
//     answer over the limit is [dragoman.CodeTooLarge].
//
// An error is the end of ctx, and the server was told about it.
func (c *Client) Call(ctx context.Context, call dragoman.Call) (dragoman.Result, error) {
	start := time.Now()
	ctx, span := observe.Begin(ctx, observe.ClientRequest)
	res, err := c.leg(ctx, &call)
	c.requested(span, &call, &res, err)
	res.Ran = res.Ran.After(call.Answers)
	if call.Answers == nil {
		res.Info.Duration = time.Since(start)
	}
	return res, err
}

// leg makes a call, or goes on with one.
func (c *Client) leg(ctx context.Context, call *dragoman.Call) (dragoman.Result, error) {
	r := &request{method: call.Method, meta: call.Meta}
	if r.method == "" {
		r.method = methodTool
	}
	if problem := c.shape(r, call); problem != nil {
		return dragoman.Result{Problem: problem, Ran: dragoman.RanNot}, nil
	}
	if ctx.Err() != nil && call.Answers == nil {
		return dragoman.Result{Ran: dragoman.RanNot}, context.Cause(ctx)
	}
	if r.method == listenMethod && c.session.Load().era == Legacy {
		return c.listenLegacy(ctx, call)
	}
	var g continuation
	if a := call.Answers; a != nil {
		switch {
		case len(a.State) == 0:
			return dragoman.Result{Problem: foreign(), Ran: dragoman.RanNot}, nil
		case a.State[0] == stateParked:
			f := c.resume(a.State[1:], a)
			if f == nil {
				return dragoman.Result{Problem: unknownOutcome()}, nil
			}
			return f.leg(ctx, call)
		case a.State[0] != stateInput && a.State[0] != stateURL:
			return dragoman.Result{Problem: foreign(), Ran: dragoman.RanNot}, nil
		case a.Gone:
			return dragoman.Result{Problem: &dragoman.Problem{Code: dragoman.CodeCanceled, Message: "The call was given up."}, Ran: dragoman.RanNot}, nil
		}
		g = readState(a)
		if g.problem == nil && a.State[0] == stateInput && c.session.Load().era != Modern {
			g.problem = unknownOutcome() // it is another server now
		}
		if g.problem != nil {
			return dragoman.Result{Problem: g.problem, Ran: dragoman.RanNot}, nil
		}
		r.join(g.members)
	}
	return c.startCall(ctx, call, r, g).leg(ctx, call)
}

// unknownOutcome is the problem of a call that goes on where nothing is known of
// it.
func unknownOutcome() *dragoman.Problem {
	return &dragoman.Problem{
		Code:    dragoman.CodeUnknownOutcome,
		Message: "The call that the answers are for is not known here any more. It may or may not have taken effect: check before you repeat it.",
	}
}

// perform sends the request of a call.
func (c *Client) perform(ctx context.Context, r *request) (*answer, error) {
	t := r.pending.call.Tool
	switch {
	case r.method == methodTaskResult:
		return c.taskResult(ctx, r)
	case r.method != methodTool || t == nil:
		return c.do(ctx, r)
	}
	a, err := c.runTool(ctx, r)
	if e, ok := errors.AsType[*RPCError](err); ok && e.Code == codeHeaderMismatch && c.session.Load().era == Modern {
		return c.relabel(ctx, r, err)
	}
	return a, err
}

// shape builds the params of call.
func (c *Client) shape(r *request, call *dragoman.Call) *dragoman.Problem {
	if call.Problem != nil {
		return call.Problem
	}
	if call.Arguments != nil {
		if err := rawjson.Check(call.Arguments); err != nil || rawjson.Kind(call.Arguments) != '{' {
			return &dragoman.Problem{Code: dragoman.CodeInvalidArguments, Message: "The arguments are not a JSON object."}
		}
	}
	if call.Meta != nil && rawjson.Check(call.Meta) != nil {
		return &dragoman.Problem{Code: dragoman.CodeInvalidArguments, Message: "The call's _meta is not JSON."}
	}
	if r.method != methodTool {
		r.params = aimed(r.method, call)
		if err := r.prepare(); err != nil {
			return &dragoman.Problem{Code: dragoman.CodeInvalidArguments, Message: "The arguments are not a JSON object."}
		}
		return nil
	}
	t := call.Tool
	switch {
	case t == nil:
		return &dragoman.Problem{Code: dragoman.CodeUnknownTool, Message: "There is no such tool."}
	case t.Quarantined != nil:
		return t.Quarantined
	}
	r.name = t.Original
	if c.session.Load().era == Modern {
		// A definition with bad annotations was quarantined; one that was not
		// listed over HTTP needs no headers.
		if params, err := paramHeaders(t.InputSchema); err == nil {
			r.headers = params.of(call.Arguments)
		}
	}
	arguments := call.Arguments
	if arguments == nil {
		arguments = []byte(`{}`)
	}
	r.inner = make([]byte, 0, len(t.Original)+len(arguments)+32)
	r.inner = append(r.inner, `"name":`...)
	r.inner = rawjson.AppendQuote(r.inner, t.Original)
	r.inner = append(r.inner, `,"arguments":`...)
	r.inner = append(r.inner, arguments...)
	return nil
}

// aimed returns the params of a call with the name or URI by which the server
// knows the call's entry.
func aimed(method string, call *dragoman.Call) json.RawMessage {
	e := call.Entry
	if e == nil {
		return call.Arguments
	}
	key := "name"
	if e.Kind != dragoman.Prompt {
		key = "uri"
	}
	params := object(call.Arguments).Clone()
	switch {
	case method == "completion/complete":
		ref := object(params.Get("ref")).Clone()
		ref.Set(key, rawjson.Quote(e.Original))
		params.Set("ref", ref.Bytes())
	case e.Kind != dragoman.Template: // whose URI is made by the caller
		params.Set(key, rawjson.Quote(e.Original))
	}
	return params.Bytes()
}

// relabel repeats a call that the server refused because of its Mcp-Param
// headers, with those that the tool's present definition asks for.
func (c *Client) relabel(ctx context.Context, r *request, refused error) (*answer, error) {
	if err := c.refresh(ctx, "tools"); err != nil {
		return nil, refused
	}
	tools := c.lists.now().Tools.All()
	for i := range tools {
		t := &tools[i]
		if t.Original != r.pending.call.Tool.Original || t.Quarantined != nil || c.o.Pinned && t.Pin != r.pending.call.Tool.Pin {
			continue
		}
		params, err := paramHeaders(t.InputSchema)
		if err != nil {
			return nil, refused
		}
		r.headers = params.of(r.pending.call.Arguments)
		return c.runTool(ctx, r)
	}
	return nil, refused
}
