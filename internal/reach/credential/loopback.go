package credential

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"
)

// redirectPath is the path of redirect addresses.
const redirectPath = "/callback"

// ErrRedirect is what [CheckRedirect] returns.
var ErrRedirect = errors.New("a redirect_uri is http://127.0.0.1:PORT" + redirectPath + " or http://[::1]:PORT" + redirectPath)

// CheckRedirect reports why a browser must not be sent to an address with an answer:
// it is not the one that a [Loopback] has on the machine of the person who logs in
// (RFC 8252 section 7.3). Anywhere else, whoever began a login could have it finished
// by somebody who was sent a link.
func CheckRedirect(address string) error {
	u, err := url.Parse(address)
	if err == nil {
		var at netip.AddrPort
		at, err = netip.ParseAddrPort(u.Host)
		if err == nil && at.Port() != 0 && (at.Addr() == netip.IPv6Loopback() || at.Addr() == netip.AddrFrom4([4]byte{127, 0, 0, 1})) &&
			address == "http://"+at.String()+redirectPath {
			return nil
		}
	}
	return ErrRedirect
}

// A Loopback listens on this machine for what an authorization server sends back.
// Make it with [ListenLoopback].
type Loopback struct {
	url    string
	server *http.Server
	want   chan expected
}

type expected struct {
	state string
	got   chan Answer
}

// ListenLoopback listens on a port that is free.
func ListenLoopback() (*Loopback, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening for the answer of the login: %w", err)
	}
	l := &Loopback{url: "http://" + listener.Addr().String() + redirectPath, want: make(chan expected, 1)}
	l.server = &http.Server{Handler: l, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 32 << 10}
	go func() { _ = l.server.Serve(listener) }()
	return l, nil
}

// Close ends listening.
func (l *Loopback) Close() { l.server.Close() }

// Redirect is the address that browsers are to be sent back to.
func (l *Loopback) Redirect() string { return l.url }

// Visit shows a person the address of an authorization server, and waits until the
// browser comes back.
func (l *Loopback) Visit(ctx context.Context, address string, show func(ctx context.Context, address string)) (Answer, error) {
	u, err := url.Parse(address)
	if err != nil {
		return Answer{}, err
	}
	got := l.expect(u.Query().Get("state"))
	show(ctx, address)
	select {
	case answer := <-got:
		return answer, nil
	case <-ctx.Done():
		return Answer{}, context.Cause(ctx)
	}
}

// expect returns where the answer with a state comes. A login has one at a time.
func (l *Loopback) expect(state string) <-chan Answer {
	select {
	case <-l.want: // of a request before this one, that nobody waits for
	default:
	}
	e := expected{state, make(chan Answer, 1)}
	l.want <- e
	return e.got
}

// ServeHTTP takes an answer, once. What does not have the state of the request does
// not come from where we sent the person.
func (l *Loopback) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	var e expected
	select {
	case e = <-l.want:
	default:
	}
	if r.Method != http.MethodGet || r.URL.Path != redirectPath || e.state == "" || q.Get("state") != e.state {
		if e.got != nil {
			select {
			case l.want <- e:
			default: // there is a request after it
			}
		}
		http.Error(w, "Nobody waits for this.", http.StatusBadRequest)
		return
	}
	e.got <- Answer{Code: q.Get("code"), State: e.state, Issuer: q.Get("iss"), Error: q.Get("error")}
	fmt.Fprintln(w, "Dragoman has the answer. You can close this page.")
}
