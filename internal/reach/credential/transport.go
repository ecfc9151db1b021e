package credential

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"github.com/dragoman-mcp/dragoman/internal/reach/tlsfiles"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

// early is how long before its end a token is renewed.
const early = 30 * time.Second

// retryAfter is how long nobody asks for a token again where that failed.
const retryAfter = 10 * time.Second

// A source gets tokens for a server without a person. Its methods are called one at
// a time, but for basis.
type source interface {
	// token returns the token that there is, renewed where it is about to end; empty
	// where there is none.
	token(ctx context.Context) (string, error)
	// another returns another token than shown, which the server answered like this.
	// A [*LoginError] says that it takes a person.
	another(ctx context.Context, shown string, r *http.Request, res *http.Response) (string, error)
	// useless hears that the server did not take what another returned either, and
	// answered like this; it says what a person can do, nil for nothing. It is not to be
	// asked for yet another one for a while.
	useless(token string, res *http.Response) *LoginError
	// basis is what tokens are made from. Where it has become another one, a token
	// may be had that could not before.
	basis() string
}

// A Transport shows a server the token that it wants. Make it with [NewTransport].
type Transport struct {
	next   http.RoundTripper
	server *url.URL
	client *http.Client // for authorization servers

	turn   chan struct{} // of those who ask the source: a lock that can be waited for with a context; has room for one
	source source

	last struct { // refusal of the server
		sync.Mutex
		refused bool
		stuck   *LoginError
		basis   string // of the source by then
	}
}

// TransportOptions say whose tokens a [Transport] shows, and to whom.
type TransportOptions struct {
	// Account is the server, and on whose behalf it is used.
	Account Account
	// LogIn is how a person logs in, such as "run dragoman login tickets".
	LogIn  string
	Config Config
	// TLS is for the server and the issuer of Config.
	TLS tlsfiles.Files
	// Store has the tokens of logins; nil for none.
	Store Store
	// Subjects has what callers showed the gateway; nil for nothing.
	Subjects *Subjects
}

// newTransport returns a transport for a server, around another one, that has no source yet.
func newTransport(next http.RoundTripper, server *url.URL) *Transport {
	return &Transport{next: next, server: server, turn: make(chan struct{}, 1)}
}

// NewTransport returns a transport for a server, around another one.
func NewTransport(next http.RoundTripper, o TransportOptions) (*Transport, error) {
	u, err := url.Parse(o.Account.Server)
	if err != nil {
		return nil, err
	}
	t := newTransport(next, u)
	switch o.Config.Grant {
	case ClientCredentialsGrant:
		t.client = newClient(u, o.Config.Issuer, o.TLS)
		t.source = &machine{config: o.Config, client: t.client, server: o.Account.Server}
	case TokenExchangeGrant:
		t.client = newExchangeClient(o.TLS)
		t.source = &exchange{config: o.Config, client: t.client, account: o.Account, subjects: o.Subjects}
	default:
		t.client = newClient(u, o.Config.Issuer, o.TLS)
		t.source = &kept{how: o.LogIn, account: o.Account, store: o.Store, client: t.client}
	}
	return t, nil
}

// CloseIdleConnections closes those to the server and to authorization servers.
func (t *Transport) CloseIdleConnections() {
	t.client.CloseIdleConnections()
	if next, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		next.CloseIdleConnections()
	}
}

// Stuck returns what somebody has to do before the server takes a token again; nil
// where nobody has to, or did so since.
func (t *Transport) Stuck() *LoginError {
	t.last.Lock()
	defer t.last.Unlock()
	if t.last.stuck == nil || t.source.basis() != t.last.basis {
		return nil
	}
	return t.last.stuck
}

// Renewed reports whether the server has refused what it was shown, and there is
// something else to show it since.
func (t *Transport) Renewed() bool {
	t.last.Lock()
	defer t.last.Unlock()
	return t.last.refused && t.source.basis() != t.last.basis
}

// refused remembers that the server's refusal stands. Stuck may be nil.
func (t *Transport) refused(stuck *LoginError) {
	t.last.Lock()
	defer t.last.Unlock()
	t.last.refused, t.last.stuck, t.last.basis = true, stuck, t.source.basis()
}

// RoundTrip sends a request with the token. Where the server wants another one, and
// one can be had without a person, the request is sent once more with it. To other
// origins, where a redirect may lead, requests go as they are.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if (r.URL.Scheme != t.server.Scheme || r.URL.Host != t.server.Host) && origin(r.URL) != origin(t.server) {
		return t.next.RoundTrip(r)
	}
	token, err := t.Token(r.Context())
	if err != nil {
		return nil, fmt.Errorf("getting the token for the server: %w", err)
	}
	res, err := t.next.RoundTrip(with(r, token))
	if err != nil || !wanting(res) || r.Body != nil && r.Body != http.NoBody && r.GetBody == nil {
		return res, err
	}
	another, err := t.another(r, res, token)
	if err != nil {
		if stuck, ok := errors.AsType[*LoginError](err); ok {
			t.refused(stuck)
			res.Body = http.NoBody // what the server said stands: the request was refused
			return res, nil
		}
		return nil, &refusedError{fmt.Errorf("getting a token for the server: %w", err)}
	}
	again := with(r, another)
	if r.GetBody != nil {
		if again.Body, err = r.GetBody(); err != nil {
			return nil, err
		}
	}
	if res, err = t.next.RoundTrip(again); err == nil && wanting(res) {
		if stuck, err := t.useless(r.Context(), another, res); err == nil {
			t.refused(stuck)
		}
	}
	return res, err
}

// A refusedError is why no other token can be had for a request that the server refused for
// the one that it came with.
type refusedError struct{ error }

func (e *refusedError) Unwrap() error { return e.error }

// Unhandled says that the server did not act on the request.
func (*refusedError) Unhandled() bool { return true }

// take waits until it is one's turn to ask the source. done ends the turn.
func (t *Transport) take(ctx context.Context) (done func(), err error) {
	select {
	case t.turn <- struct{}{}:
		return func() { <-t.turn }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (t *Transport) useless(ctx context.Context, token string, res *http.Response) (*LoginError, error) {
	done, err := t.take(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	return t.source.useless(token, plainChallenge(res)), nil
}

func with(r *http.Request, token string) *http.Request {
	if token == "" {
		return r
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+token)
	return r
}

// wanting reports whether an answer asks for a token, or for a better one.
func wanting(res *http.Response) bool {
	return res.StatusCode == http.StatusUnauthorized ||
		res.StatusCode == http.StatusForbidden && strings.Contains(strings.Join(res.Header.Values("WWW-Authenticate"), " "), "insufficient_scope")
}

// Token returns the token that a request would be sent with; empty for none.
func (t *Transport) Token(ctx context.Context) (string, error) {
	done, err := t.take(ctx)
	if err != nil {
		return "", err
	}
	defer done()
	return t.source.token(ctx)
}

// another gets another token than the one that a server did not want.
func (t *Transport) another(r *http.Request, res *http.Response, shown string) (string, error) {
	defer res.Body.Close()
	done, err := t.take(r.Context())
	if err != nil {
		return "", err
	}
	defer done()
	if now, err := t.source.token(r.Context()); err != nil || now != shown {
		return now, err // somebody else got one meanwhile
	}
	return t.source.another(r.Context(), shown, r, plainChallenge(res))
}

// emptyParameter is a parameter of a challenge that says nothing, such as realm="".
var emptyParameter = regexp.MustCompile(`[\w-]+[ \t]*=[ \t]*""[ \t]*,?[ \t]*`)

// plainChallenge returns an answer without such parameters, which may be there (RFC 9110
// section 11.2), and for the SDK make a challenge that cannot be read.
func plainChallenge(res *http.Response) *http.Response {
	const name = "Www-Authenticate"
	plain := *res
	plain.Header = res.Header.Clone()
	for n, value := range plain.Header[name] {
		plain.Header[name][n] = emptyParameter.ReplaceAllString(value, "")
	}
	return &plain
}

// challenged are the scopes that an answer asks for.
func challenged(res *http.Response) []string {
	challenges, err := oauthex.ParseWWWAuthenticate(res.Header.Values("WWW-Authenticate"))
	if err != nil {
		return nil
	}
	for _, c := range challenges {
		if scope := c.Params["scope"]; c.Scheme == "bearer" && scope != "" {
			return strings.Fields(scope)
		}
	}
	return nil
}

// errUseless is why a token that has just been got is of no use.
var errUseless = errors.New("the server does not take what it was renewed to")

// A refusedToken is one that a server did not take though it had just been got.
type refusedToken struct {
	token secret.Text
	at    time.Time
}

// lately reports whether a token is that one, and for how long nobody asks for another.
func (t *refusedToken) lately(token string) bool {
	return token != "" && t.token.Reveal() == token && time.Since(t.at) < retryAfter
}

// maxScopes bounds the scopes that a server wants one challenge after another, in bytes:
// they are kept, and stand in an address.
const maxScopes = 8 << 10

// union returns a, and the scopes of b beside it as far as maxScopes lets them.
func union(a, b []string) []string {
	all := slices.Clone(a)
	size := len(strings.Join(all, " "))
	for _, scope := range b {
		if !slices.Contains(all, scope) && size+1+len(scope) <= maxScopes {
			all = append(all, scope)
			size += 1 + len(scope)
		}
	}
	return all
}

// maxToken bounds a token, in bytes: it goes with every request, and servers
// take headers of 8 KiB and more.
const maxToken = 16 << 10

// check says why a token that an authorization server gave is of no use.
func check(token *oauth2.Token) error {
	switch {
	case !strings.EqualFold(token.Type(), "Bearer"):
		return fmt.Errorf("the token is no bearer token, but %.40q", token.Type())
	case token.AccessToken == "" || len(token.AccessToken) > maxToken:
		return fmt.Errorf("the token has %d bytes, where 1 to %d are of use", len(token.AccessToken), maxToken)
	case len(token.RefreshToken) > maxToken:
		return fmt.Errorf("the refresh token has %d bytes, where %d are kept", len(token.RefreshToken), maxToken)
	case strings.ContainsFunc(token.AccessToken, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		return errors.New("the token has characters that no header carries")
	}
	return nil
}

// errorCodes are those that an authorization server may answer with (RFC 6749
// sections 4.1.2.1 and 5.2, RFC 8707). What it says beside them is not shown.
var errorCodes = []string{
	"access_denied", "invalid_client", "invalid_grant", "invalid_request", "invalid_scope", "invalid_target",
	"server_error", "temporarily_unavailable", "unauthorized_client", "unsupported_grant_type", "unsupported_response_type",
}

// away reports whether an authorization server did not refuse a request but cannot answer it
// now, so that nobody has to do anything but wait. Some say so with a code, where others have
// none, and with any status.
func away(r *oauth2.RetrieveError) bool {
	switch code := r.ErrorCode; {
	case code == "server_error" || code == "temporarily_unavailable":
		return true
	case slices.Contains(errorCodes, code):
		return false
	}
	return r.Response != nil && (r.Response.StatusCode >= http.StatusInternalServerError || r.Response.StatusCode == http.StatusTooManyRequests)
}

// errAway is why a login cannot be finished where its authorization server is away.
var errAway = errors.New("the authorization server cannot be asked for a token now")

// known is an error code, if it is one.
func known(code string) string {
	if slices.Contains(errorCodes, code) {
		return code
	}
	return "an unknown error"
}
