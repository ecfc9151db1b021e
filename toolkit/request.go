package toolkit

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// A Request says who asks, and for what. Tools, resources, prompts, completers
// and [Middleware] find it with [RequestFrom].
type Request struct {
	// Caller is who asks: their user, their rights.
	Caller
	// Kind is "tool", "resource", "prompt" or "completion".
	Kind string
	// Name of the tool or the prompt, or the address of the resource. For a
	// completion it is what is completed, such as "prompt discuss_book".
	Name string
	// Arguments of a tool, checked and with defaults filled in, or of a prompt, as
	// a JSON object; nil for everything else.
	Arguments json.RawMessage
	// Client is the program that asks, as it calls itself. Nothing proves it.
	Client string
	// Session is the id of the session over HTTP in revisions before 2026-07-28;
	// empty elsewhere.
	Session string
	// Header of the HTTP request, without its credentials; nil elsewhere.
	Header http.Header
	// SDK is the official SDK's request behind a tool's call, for what the toolkit
	// has no word for: the session, _meta, answers to input requests. Nil for
	// everything else. Sampling, and forms beyond [Ask], work in both eras where the
	// function returns a *sdk.CallToolResult with InputRequests: it is called again,
	// with SDK.Params.InputResponses. Calls of the session, such as CreateMessage, are
	// refused in the modern era.
	SDK *sdk.CallToolRequest
}

// RequestFrom returns the request that ctx belongs to. It is never nil; outside
// of a call it is the zero Request, of nobody.
func RequestFrom(ctx context.Context) *Request {
	if r, ok := ctx.Value(runningKey{}).(*running); ok {
		return r.Request
	}
	return &Request{}
}

// A Middleware stands around every call of a tool, a resource, a prompt and a
// completer: next is what it stands around. What it returns instead is treated as
// if the function itself had; a Refusal such as that of [Refuse] reaches the
// model. It can put values into the context that it hands on, and call next not
// at all (with an error), once, or again.
//
// It runs after rights and rates were checked and, for tools, after the arguments
// were, within the call's time limit.
type Middleware func(ctx context.Context, r *Request, next func(context.Context) error) error

// A running call is what its context carries.
type running struct {
	*Request
	session *sdk.ServerSession
	token   any   // see job
	asks    *asks // nil where nobody can be asked

	mu   sync.Mutex
	last float64
	sent bool
	over bool
}

type runningKey struct{}

// newRequest is the Request of something that came over the wire.
func newRequest(ctx context.Context, kind, name string, client *sdk.Implementation, session *sdk.ServerSession, extra *sdk.RequestExtra) *Request {
	r := &Request{Kind: kind, Name: name, Caller: callerOf(ctx, extra)}
	if client != nil {
		r.Client = client.Name
	}
	if session != nil {
		r.Session = session.ID()
	}
	if extra != nil && extra.Header != nil {
		r.Header = extra.Header.Clone()
		for _, secret := range []string{"Authorization", "Proxy-Authorization", "Cookie"} {
			r.Header.Del(secret)
		}
	}
	return r
}
