package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// sseConnection is a connection over HTTP+SSE: one stream with all that the server sends,
// and an address to post to.
type sseConnection struct {
	responseMux
	requester
	endpoint *url.URL
	cancel   context.CancelFunc
	events   *eventReader
	body     io.Closer
}

func (t HTTP) openSSE(ctx context.Context, p *peer) (connection, error) {
	r, err := newRequester(p, t)
	if err != nil {
		return nil, err
	}
	lasting, cancel := context.WithCancel(p.ctx)
	defer context.AfterFunc(ctx, cancel)()
	l := &sseConnection{responseMux: newResponseMux(), requester: r, cancel: cancel}
	if err := l.begin(lasting); err != nil {
		cancel()
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, err
	}
	p.start(l.read)
	return l, nil
}

// errNoEndpoint: there is HTTP+SSE, and it leads elsewhere or nowhere.
var errNoEndpoint = fmt.Errorf("%w: HTTP+SSE without an address of its own to post to", ErrAnswer)

// begin opens the stream and waits for the address.
func (l *sseConnection) begin(ctx context.Context) error {
	req := l.request(http.MethodGet, l.address(), nil)
	resp, err := l.do(ctx, &req, nil)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK || mediaType(resp.Header) != typeStream {
		if err := delivered(resp); err != nil {
			return err
		}
		return fmt.Errorf("%w: not an event stream", ErrAnswer)
	}
	l.body = resp.Body
	body, err := content(resp, l.p.limits.Ratio)
	if err != nil {
		_ = l.body.Close()
		return err
	}
	l.events = newEventReader(body, l.p.limits.Message, &position{})
	for range 16 { // other events may come first, though none should
		ev, err := l.events.next(ctx)
		if err != nil {
			_ = l.body.Close()
			return &TransportError{Err: fmt.Errorf("waiting for the address to post to: %w", err)}
		}
		if ev.name != "endpoint" {
			continue
		}
		address := string(bytes.TrimSpace(ev.data))
		ref, err := url.Parse(address)
		if err == nil {
			if l.endpoint = l.address().ResolveReference(ref); l.endpoint.Scheme == l.url.Scheme && l.endpoint.Host == l.url.Host {
				return nil
			}
		}
		_ = l.body.Close()
		return fmt.Errorf("%w: it says %q", errNoEndpoint, bounded(address, 200))
	}
	_ = l.body.Close()
	return errNoEndpoint
}

func (l *sseConnection) read() {
	defer l.body.Close()
	for {
		data, err := l.events.message(l.p.ctx)
		if err != nil {
			if err == io.EOF {
				err = errors.New("the MCP server closed the stream")
			}
			l.fail(err)
			return
		}
		l.p.heard.Add(1)
		err = readMessages(data, func(m message) {
			if !m.answer() {
				l.events.flood.Add(len(data))
				l.p.receive(l, nil, m)
			} else if !l.deliver(m) {
				l.events.flood.Add(len(data))
			}
		})
		if err != nil {
			l.events.flood.Add(len(data))
			l.p.log.Warn("MCP server sent an event that is no message", "error", err)
		}
	}
}

func (l *sseConnection) established(*session) {}

func (l *sseConnection) roundTrip(ctx context.Context, x *exchange) (message, error) {
	return l.responseMux.roundTrip(ctx, x, l.post, func(x *exchange) {
		l.p.tell(func(ctx context.Context) { _ = l.send(ctx, cancelled(x.id)) })
	})
}

func (l *sseConnection) send(ctx context.Context, body []byte) error { return l.post(ctx, body, nil) }

// post posts a message. Any 2xx means that the server has it; the answer comes
// on the stream.
func (l *sseConnection) post(ctx context.Context, body []byte, w *pendingResponse) error {
	req := l.request(http.MethodPost, l.endpoint, body)
	if v := l.p.protocolVersion(); v != "" {
		req.Header[headerVersion] = []string{v}
	}
	var leaves func()
	if w != nil {
		w.state.Store(writing)
		leaves = w.of.markSent
	}
	resp, err := l.do(ctx, &req, leaves)
	if err == nil {
		err = delivered(resp)
	}
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

func (l *sseConnection) close() error {
	l.fail(ErrClosed)
	l.cancel()
	return nil
}

func (*sseConnection) network() string { return overTCP }
