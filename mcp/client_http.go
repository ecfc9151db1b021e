package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/wire/headervalue"
)

// HTTP is a [Transport] over Streamable HTTP: MCP 2026-07-28, and 2025-03-26 to
// 2025-11-25 with sessions, a listening stream and resumption. A server that
// knows neither is tried with HTTP+SSE, the transport of 2024-11-05.
type HTTP struct {
	// URL is the MCP endpoint.
	URL string
	// Client makes the requests. Its Timeout must be zero, since streams last.
	// Redirects are followed within the same origin only, whatever the client
	// says, and as far as it says, and only by what changes nothing, such as the
	// handshake and lists: a call that is redirected fails, since its server may have
	// acted on it. An error of its transport that has a method Unhandled() bool, which
	// returns true, says that the server got the request and refused it. If nil, a client
	// of our own is used.
	Client *http.Client
	// Header holds headers to send with each request, such as Authorization.
	// Headers of the protocol win over them.
	Header http.Header
	// SSE is for servers that are known to speak nothing newer than HTTP+SSE.
	SSE bool
}

const (
	headerSession  = "Mcp-Session-Id"
	headerVersion  = "Mcp-Protocol-Version"
	headerLast     = "Last-Event-Id"
	typeJSON       = "application/json"
	typeStream     = "text/event-stream"
	smallBody      = 64 << 10        // of answers that hold no message
	cancelPatience = 5 * time.Second // for a cancellation to be delivered
	deletePatience = 2 * time.Second // for a session to be deleted
)

// httpConnection is a connection over Streamable HTTP. Each request has its own answer or
// stream, so nothing is shared but the session.
type httpConnection struct {
	requester
	session   atomic.Pointer[string] // Mcp-Session-Id
	listening atomic.Pointer[listeningStream]
}

// listeningStream are the listening stream of a legacy session.
type listeningStream struct {
	stop context.CancelFunc
	open context.Context // ends when the stream is open, or will not be soon
}

func (t HTTP) open(ctx context.Context, p *peer) (connection, error) {
	if t.SSE {
		return t.openSSE(ctx, p)
	}
	r, err := newRequester(p, t)
	if err != nil {
		return nil, err
	}
	return &httpConnection{requester: r}, nil
}

// down never is: the next request may reach the server again.
func (h *httpConnection) down() <-chan struct{} { return nil }
func (h *httpConnection) cause() error          { return nil }

// sessionHeaders sets what each request of a session carries.
func (h *httpConnection) sessionHeaders(req *http.Request, version string) {
	if version != "" {
		req.Header[headerVersion] = []string{version}
	}
	if id := h.session.Load(); id != nil {
		req.Header[headerSession] = []string{*id}
	}
}

// readMethods may be repeated by the HTTP client when a connection that was kept
// open turns out to be closed: they change nothing.
var readMethods = map[string]bool{
	"server/discover": true, "ping": true, "initialize": true, "tools/list": true, "prompts/list": true,
	"prompts/get": true, "resources/list": true, "resources/templates/list": true, "resources/read": true,
	"completion/complete": true, "tasks/get": true, "tasks/list": true, "tasks/result": true,
}

func (h *httpConnection) roundTrip(ctx context.Context, x *exchange) (message, error) {
	if h.p.ctx.Err() != nil {
		return message{}, &TransportError{Err: h.p.cause()}
	}
	if !x.modern && takesInput(x.method) {
		// A server may ask something on the listening stream while it works. What
		// it sends before it has the stream is lost.
		if e := h.listening.Load(); e != nil {
			select {
			case <-e.open.Done():
			case <-ctx.Done():
				return message{}, ctx.Err()
			}
		}
	}
	// It ends with the client too, and outlives ctx by the time that it takes to tell a
	// legacy server.
	t := h.tether(ctx, x)
	req := h.request(http.MethodPost, h.address(), x.body)
	if x.method != "initialize" {
		h.sessionHeaders(&req, x.version)
	}
	if x.modern {
		req.Header["Mcp-Method"] = callsTool
		if x.method != methodTool {
			req.Header["Mcp-Method"] = []string{x.method}
		}
		if x.name != "" {
			req.Header["Mcp-Name"] = []string{headervalue.Encode(x.name)}
		}
		for _, p := range x.headers {
			req.Header[p.name] = []string{p.value}
		}
	}
	if readMethods[x.method] {
		req.Header["X-Idempotency-Key"] = nil // never sent; see http.Transport
	}
	resp, err := h.do(t.ctx, &req, x.markSent)
	if err != nil {
		t.end()
		return message{}, h.ended(ctx, err)
	}
	h.p.heard.Add(1)
	m, rest, err := h.answer(t.ctx, x, resp)
	if rest == nil {
		t.end()
	} else {
		// The answer is here. What follows is the end of the stream, and reading
		// it keeps the connection for the next request.
		kept := t
		kept.keep()
		h.drain(rest, kept.end)
	}
	if err != nil {
		return message{}, h.ended(ctx, err)
	}
	return m, nil
}

// A tether is what ends a request, beside its answer.
type tether struct {
	ctx             context.Context // of the request
	call            *pendingCall    // whose own context that is; nil for another one
	held            bool            // the call's context is kept for what reads on
	unwatch, unbind func() bool
	cancel          context.CancelFunc
}

// tether returns what ends a request, and has told the server where it has to be told.
func (h *httpConnection) tether(ctx context.Context, x *exchange) tether {
	if x.pending != nil && x.modern && ctx == x.pending.ctx {
		// Nobody has to be told, and that one ends with the client and with whoever waits.
		return tether{ctx: ctx, call: x.pending}
	}
	var t tether
	t.ctx, t.cancel = context.WithCancel(context.WithoutCancel(ctx))
	t.unwatch = context.AfterFunc(ctx, func() {
		if !x.modern && x.cancelable() {
			h.tell(x)
		}
		t.cancel()
	})
	if x.pending == nil { // a call ends with the client by itself
		t.unbind = context.AfterFunc(h.p.ctx, t.cancel)
	}
	return t
}

// keep lets the request be, whose answer is here, for what reads on. It has to be ended all
// the same.
func (t *tether) keep() {
	if t.call != nil {
		t.held = true
		t.call.holds.Add(1)
		return
	}
	t.unwatch()
}

// readsOn reports whether what comes behind an answer is read in the context of its call,
// which has to last as long: see [tether.keep].
func (c *Client) readsOn() bool {
	_, http := c.link.(*httpConnection)
	return http && c.session.Load().era == Modern
}

// end ends the request. It is called once.
func (t *tether) end() {
	if t.call != nil {
		if t.held {
			t.call.release()
		}
		return
	}
	t.unwatch()
	if t.unbind != nil {
		t.unbind()
	}
	t.cancel()
}

// ended returns the error of a request, and the end of the context or of the
// client in place of what that did to it.
func (h *httpConnection) ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if h.p.ctx.Err() != nil {
		e, ok := errors.AsType[*TransportError](err)
		return &TransportError{Sent: !ok || e.Sent, Err: h.p.cause()}
	}
	return err
}

// drain reads a stream to its end in the background, for a little while, and calls end
// once.
func (h *httpConnection) drain(rest io.ReadCloser, end func()) {
	ok := h.p.start(func() {
		timer := time.AfterFunc(time.Second, end)
		_, _ = io.CopyN(io.Discard, rest, smallBody)
		first := timer.Stop()
		_ = rest.Close()
		if first {
			end()
		}
	})
	if !ok {
		_ = rest.Close()
		end()
	}
}

// tell tells a legacy server that nobody waits for x. It returns when the server
// knows, or a moment later.
func (h *httpConnection) tell(x *exchange) {
	h.p.tell(func(ctx context.Context) { _ = h.send(ctx, cancelled(x.id)) })
}

// answer reads the answer to x. rest is what is left of its stream, if anything;
// otherwise the body is closed.
func (h *httpConnection) answer(ctx context.Context, x *exchange, resp *http.Response) (m message, rest io.ReadCloser, err error) {
	stream := resp.StatusCode == http.StatusOK && mediaType(resp.Header) == typeStream
	if !stream {
		defer resp.Body.Close()
	}
	if x.method == "initialize" && resp.StatusCode == http.StatusOK {
		h.session.Store(nil)
		if id := resp.Header.Get(headerSession); id != "" && len(id) <= 4<<10 {
			h.session.Store(&id)
		}
	}
	switch {
	case stream:
		return h.follow(ctx, x, resp)
	case resp.StatusCode/100 == 2:
		limit := h.p.limits
		body, err := readBody(resp, limit.Message, limit.Ratio)
		if err != nil {
			return m, nil, asSent(err)
		}
		m, err := h.find(x, bytes.TrimSpace(body))
		return m, nil, err
	}
	return m, nil, h.refused(x, resp)
}

// asSent makes a TransportError of an error of a body.
func asSent(err error) error {
	if errors.Is(err, ErrTooLarge) || errors.Is(err, ErrAnswer) {
		return err
	}
	return &TransportError{Sent: true, Err: err}
}

// find takes the answer to x out of a body, and receives what else is there.
func (h *httpConnection) find(x *exchange, body []byte) (found message, err error) {
	if len(body) == 0 {
		return found, fmt.Errorf("%w: it took the request and said nothing", ErrAnswer)
	}
	ok := false
	err = readMessages(body, func(m message) {
		switch {
		case !m.answer():
			h.p.receive(h, x, m)
		case !ok && x.answeredBy(m):
			found, ok = m, true
		}
	})
	if err == nil && !ok {
		err = fmt.Errorf("%w: it is for another request", ErrAnswer)
	}
	return found, err
}

// answeredBy reports whether m answers x: by its id, or as an error of a server
// that could not even read the id.
func (x *exchange) answeredBy(m message) bool {
	if m.id == nil {
		return m.err != nil
	}
	id, ok := m.number()
	return ok && id == x.id
}

// refused makes an error of an answer with a status other than 2xx.
func (h *httpConnection) refused(x *exchange, resp *http.Response) error {
	body, err := readBody(resp, smallBody, h.p.limits.Ratio)
	if err != nil {
		body = nil
	}
	refused := statusError(resp, body)
	status, ok := errors.AsType[*StatusError](refused)
	if !ok {
		return refused
	}
	m, err := h.find(x, bytes.TrimSpace(body))
	isError := err == nil && m.err != nil
	inSession := !x.modern && x.method != "initialize" && h.session.Load() != nil
	switch {
	// Many servers answer a session that they do not know with 400, without a code
	// that JSON-RPC or MCP knows. A bad request was not acted on either, but may be
	// bad for another reason.
	case inSession && resp.StatusCode == http.StatusNotFound,
		inSession && resp.StatusCode == http.StatusBadRequest && (!isError || m.err.Code > codeInvalidRequest && !m.err.modern()):
		if isError {
			refused = m.err
		}
		return &sessionGone{refused, resp.StatusCode == http.StatusBadRequest}
	case isError && status.Status < 500 && status.Status != http.StatusTooManyRequests && status.Status != http.StatusForbidden:
		return &rejected{status.Status, m.err}
	}
	return refused
}

// send posts a notification, or an answer to the server. Any 2xx is fine.
func (h *httpConnection) send(ctx context.Context, body []byte) error {
	req := h.request(http.MethodPost, h.address(), body)
	h.sessionHeaders(&req, h.p.protocolVersion())
	resp, err := h.do(ctx, &req, nil)
	if err != nil {
		return h.ended(ctx, err)
	}
	return delivered(resp)
}

// close deletes the session, if there is one.
func (h *httpConnection) close() error {
	if h.session.Load() != nil {
		ctx, cancel := context.WithTimeout(context.Background(), deletePatience)
		defer cancel()
		req := h.request(http.MethodDelete, h.address(), nil)
		h.sessionHeaders(&req, h.p.protocolVersion())
		if resp, err := h.do(ctx, &req, nil); err == nil {
			_ = delivered(resp)
		}
	}
	return nil
}

func (*httpConnection) network() string { return overTCP }
