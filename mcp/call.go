package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/rawjson"
)

// Call runs one call. For tools/call the params are made of the tool's Original
// name and the call's Arguments; for any other method the call's Arguments are
// the params (such as {"name":…,"arguments":…} for prompts/get or {"uri":…} for
// resources/read), and Tool is not needed. The call's Meta goes into _meta. The
// arguments leave, and the result arrives, byte for byte.
//
// Whatever the server does wrong is a Problem in the result:
//
//   - an error of the protocol is [dragoman.CodeProtocol] with the server's
//     message; the one for invalid params, [dragoman.CodeInvalidArguments];
//   - a request that provably did not reach the server, or that it was too busy
//     for, is [dragoman.CodeServerUnavailable];
//   - a request that may have reached it, without an answer, is
//     [dragoman.CodeUnknownOutcome];
//   - 401 and 403 are [dragoman.CodeNeedsAuthorization], an answer over the
//     limit is [dragoman.CodeTooLarge].
//
// An error is the end of ctx, and the server was told about it.
func (c *Client) Call(ctx context.Context, call dragoman.Call) (dragoman.Result, error) {
	return c.callAsking(ctx, call, nil)
}

func (c *Client) callAsking(ctx context.Context, call dragoman.Call, ask func(context.Context, Question) (Reply, error)) (dragoman.Result, error) {
	start := time.Now()
	r := &request{method: call.Method, meta: call.Meta, ask: ask}
	if r.method == "" {
		r.method = "tools/call"
	}
	if problem := c.shape(r, &call); problem != nil {
		return dragoman.Result{Problem: problem, Ran: dragoman.RanNot}, nil
	}
	if call.Progress != nil {
		defer c.track(r, call.Progress)()
	}
	var a *answer
	var err error
	if call.Tool != nil && r.method == "tools/call" && call.Tool.Definition != nil && needsTask(call.Tool.Definition) {
		a, err = c.runTask(ctx, r)
	} else {
		a, err = c.do(ctx, r)
	}
	if e, ok := errors.AsType[*RPCError](err); ok && e.Code == codeHeaderMismatch && call.Tool != nil {
		a, err = c.relabel(ctx, r, &call, err)
	}
	res := dragoman.Result{Info: dragoman.Info{Duration: time.Since(start)}}
	switch {
	case err == nil:
		res.Content, res.Ran = a.raw, dragoman.RanYes
		res.Failed = string(a.object.Get("isError")) == "true"
	case ctx.Err() != nil:
		return dragoman.Result{}, fmt.Errorf("calling the server: %w", context.Cause(ctx))
	default:
		c.log.Debug("MCP call failed", "server", c.o.Label, "method", r.method, "error", err)
		res.Problem, res.Ran = problemOf(err), ranOf(err)
	}
	return res, nil
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
	if r.method != "tools/call" {
		r.params = call.Arguments
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

// relabel repeats a call that the server refused because of its Mcp-Param
// headers, with those that the tool's present definition asks for.
func (c *Client) relabel(ctx context.Context, r *request, call *dragoman.Call, refused error) (*answer, error) {
	l, err := c.ToolList(ctx)
	if err != nil {
		return nil, refused
	}
	for i := range l.Tools {
		t := &l.Tools[i]
		if t.Original != call.Tool.Original || t.Quarantined != nil {
			continue
		}
		params, err := paramHeaders(t.InputSchema)
		if err != nil {
			return nil, refused
		}
		r.headers = params.of(call.Arguments)
		c.listChanged("tools")
		return c.do(ctx, r)
	}
	return nil, refused
}

// ranOf says whether a call that ended with err ran.
func ranOf(err error) dragoman.Ran {
	if errors.Is(err, ErrTooLarge) {
		return dragoman.RanYes
	}
	if _, ok := errors.AsType[*AuthorizationError](err); ok {
		return dragoman.RanNot
	}
	if e, ok := errors.AsType[*TransportError](err); ok && !e.Sent {
		return dragoman.RanNot
	}
	if e, ok := errors.AsType[*RPCError](err); ok && (e.Code == codeMethodNotFound || e.modern()) {
		return dragoman.RanNot
	}
	return dragoman.RanMaybe
}

// problemOf says in a Problem why a call has no result.
func problemOf(err error) *dragoman.Problem {
	p := &dragoman.Problem{Code: dragoman.CodeProtocol}
	if errors.Is(err, ErrTooLarge) {
		p.Code = dragoman.CodeTooLarge
		p.Message = "The tool's result is too large to be read. The call may have taken effect."
		return p
	}
	if e, ok := errors.AsType[*AuthorizationError](err); ok {
		p.Code = dragoman.CodeNeedsAuthorization
		p.Message = "The tool's server asks for credentials that are not configured."
		if e.Status == http.StatusForbidden {
			p.Message = "The tool's server asks for more rights than the configured credentials have."
		}
		return p
	}
	if e, ok := errors.AsType[*TransportError](err); ok {
		if e.Sent {
			return unknownOutcome()
		}
		p.Code = dragoman.CodeServerUnavailable
		p.Message = "The tool's server can not be reached; the call was not made."
		return p
	}
	if e, ok := errors.AsType[*RPCError](err); ok {
		p.Message = "The tool's server answered: " + bounded(e.Message, 1000)
		if e.Code == codeInvalidParams {
			p.Code = dragoman.CodeInvalidArguments
		}
		return p
	}
	if e, ok := errors.AsType[*StatusError](err); ok {
		p.RetryAfter = e.RetryAfter
		switch e.Status {
		case http.StatusTooManyRequests, http.StatusServiceUnavailable:
			p.Code = dragoman.CodeServerUnavailable
			p.Message = "The tool's server is too busy and did not take the call. Try again later."
		case http.StatusRequestEntityTooLarge:
			p.Code = dragoman.CodeTooLarge
			p.Message = "The call is larger than the tool's server accepts."
		default:
			p.Message = fmt.Sprintf("The tool's server refused the call with HTTP status %d.", e.Status)
			if e.Status >= 500 {
				return unknownOutcome()
			}
		}
		return p
	}
	if errors.Is(err, ErrAnswer) {
		p.Message = "The tool's server gave an answer that is not valid. The call may have taken effect."
		return p
	}
	p.Message = "The tool's server could not complete the call."
	return p
}

func unknownOutcome() *dragoman.Problem {
	return &dragoman.Problem{
		Code:    dragoman.CodeUnknownOutcome,
		Message: "The connection to the tool's server broke before it answered. The call may or may not have taken effect: check before you repeat it.",
	}
}
