package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/dragoman-mcp/dragoman"
)

// outcome makes the result of a call that came to an answer or an error.
func (f *pendingCall) outcome(a *answer, err error) dragoman.Result {
	var asks *dragoman.Asks
	switch {
	case err != nil:
		asks = f.urlRequired(err)
	case a.asks:
		asks, err = f.inputRequired(a.object)
	default:
		failed := string(a.object.Get("isError")) == "true"
		return dragoman.Result{Content: f.c.content(a), Failed: failed, Task: a.taskID, Ran: dragoman.RanYes}
	}
	if asks != nil {
		return dragoman.Result{Asks: asks}
	}
	res := dragoman.Result{Ran: ranOf(err, f.c.session.Load().era)}
	switch {
	case f.made.Load():
		res.Ran = dragoman.RanYes
	case errors.Is(err, errTimeUp), errors.Is(err, errGone), f.ctx.Err() != nil && f.c.ctx.Err() == nil:
		res.Ran = dragoman.RanMaybe
		if !f.sent.Load() {
			res.Ran = dragoman.RanNot
		}
	}
	res.Problem = f.problem(err)
	return res
}

// content is the result as it came, but for a structuredContent of null from a legacy
// server. Until 2025-11-25 it is an object or absent, and null is how serializers that
// keep empty members write absent.
func (c *Client) content(a *answer) json.RawMessage {
	if c.session.Load().era != Legacy || string(a.object.Get("structuredContent")) != "null" {
		return a.raw
	}
	a.object.Delete("structuredContent")
	return a.object.Bytes()
}

// ranOf says whether a call of a server of an era ran that ended with err. A legacy server
// may use the codes of the modern era as it likes (JSON-RPC 2.0, "Error object").
func ranOf(err error, era Era) dragoman.Ran {
	if errors.Is(err, ErrTooLarge) {
		return dragoman.RanYes
	}
	if errors.As(err, new(*AuthorizationError)) || errors.As(err, new(*sessionGone)) || errors.Is(err, errUnsent) {
		return dragoman.RanNot
	}
	if e, ok := errors.AsType[*TransportError](err); ok && !e.Sent {
		return dragoman.RanNot
	}
	if e, ok := errors.AsType[*RPCError](err); ok && (e.Code == codeMethodNotFound || era == Modern && e.modern()) {
		return dragoman.RanNot
	}
	return dragoman.RanMaybe
}

// problem says in words for a model why a call has no result.
func (f *pendingCall) problem(err error) *dragoman.Problem {
	t := f.call.Tool
	switch {
	case errors.Is(err, errTaskCancelled):
		return &dragoman.Problem{Code: dragoman.CodeCanceled, Message: "The tool's server cancelled the call. It may have taken effect in part.", Err: err}
	case errors.Is(err, errTimeUp):
		return dragoman.Unanswered(t, fmt.Sprintf("The server%s gave no answer within %s.", f.c.named(), f.c.o.Timeout))
	case errors.Is(err, errUnsent):
		return unavailable(fmt.Errorf("%w: nothing could be sent for %s", err, unsentPatience))
	case errors.Is(err, errGone), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return &dragoman.Problem{Code: dragoman.CodeCanceled, Message: "The call was given up."}
	case errors.Is(err, ErrTooLarge):
		return &dragoman.Problem{
			Code: dragoman.CodeTooLarge, Err: err,
			Message: "The tool's result is too large to be read. The call may have taken effect.",
		}
	}
	if e, ok := errors.AsType[*AuthorizationError](err); ok {
		p := &dragoman.Problem{Code: dragoman.CodeNeedsAuthorization, Message: "The tool's server asks for credentials that are not configured.", Err: err}
		if e.Status == http.StatusForbidden {
			p.Message = "The tool's server asks for more rights than the configured credentials have."
		}
		return p
	}
	if e, ok := errors.AsType[*TransportError](err); ok {
		if !e.Sent {
			return unavailable(err)
		}
		p := dragoman.Unanswered(t, "The connection to the tool's server broke before it answered.")
		p.Err = err
		return p
	}
	if e, ok := errors.AsType[*RPCError](err); ok {
		p := &dragoman.Problem{Code: dragoman.CodeProtocol, Message: "The tool's server answered: " + bounded(e.Message, 1000), Err: err}
		if e.Code == codeInvalidParams {
			p.Code = dragoman.CodeInvalidArguments
		}
		return p
	}
	if e, ok := errors.AsType[*StatusError](err); ok {
		return e.problem(t)
	}
	p := &dragoman.Problem{Code: dragoman.CodeProtocol, Message: "The tool's server could not complete the call.", Err: err}
	if errors.Is(err, ErrAnswer) {
		p.Message = "The tool's server gave an answer that is not valid. The call may have taken effect."
	}
	return p
}

// problem says what a status means for a call of t. None of them proves that the
// call was not acted on.
func (e *StatusError) problem(t *dragoman.Tool) *dragoman.Problem {
	var p *dragoman.Problem
	switch {
	case e.Status == http.StatusTooManyRequests, e.Status == http.StatusServiceUnavailable:
		p = dragoman.Unanswered(t, "The tool's server was too busy to answer.")
	case e.Status == http.StatusRequestEntityTooLarge:
		p = &dragoman.Problem{Code: dragoman.CodeTooLarge, Message: "The call is larger than the tool's server accepts."}
	case e.Status/100 == 3:
		p = &dragoman.Problem{Code: dragoman.CodeProtocol, Message: fmt.Sprintf("The tool's server received the call and answered with a redirect (HTTP status %d), which is not followed: it may have taken effect.", e.Status)}
	case e.Status >= 500:
		p = dragoman.Unanswered(t, fmt.Sprintf("The tool's server failed with HTTP status %d before it answered.", e.Status))
	default:
		p = &dragoman.Problem{Code: dragoman.CodeProtocol, Message: fmt.Sprintf("The tool's server refused the call with HTTP status %d.", e.Status)}
	}
	if e.RetryAfter > 0 {
		p.RetryAfter = e.RetryAfter
	}
	p.Err = e
	return p
}

func unavailable(err error) *dragoman.Problem {
	return &dragoman.Problem{
		Code: dragoman.CodeServerUnavailable, Err: err,
		Message: "The tool's server cannot be reached; the call was not made.",
	}
}

// named returns the label in quotes behind a space; nothing without a label.
func (c *Client) named() string {
	if c.o.Label == "" {
		return ""
	}
	return fmt.Sprintf(" %q", c.o.Label)
}
