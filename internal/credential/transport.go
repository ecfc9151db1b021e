package credential

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"
)

// early is how long before its end a token is renewed.
const early = 30 * time.Second

// A Transport shows a server the token that it wants. Make it with [NewTransport].
type Transport struct {
	next   http.RoundTripper
	server *url.URL
	label  string
	store  *Store       // nil: tokens are not kept
	client *http.Client // for authorization servers

	mu      sync.Mutex
	handler auth.OAuthHandler // nil: a person has to log in
	failed  time.Time         // when asking for a token failed last
	reason  error
	spent   string // the refresh token that failed
}

// NewTransport returns a transport for a server, around another one. The label is for
// people. Tokens of logins are those of the store.
func NewTransport(next http.RoundTripper, label, server string, c Config, store *Store) (*Transport, error) {
	u, err := url.Parse(server)
	if err != nil {
		return nil, err
	}
	t := &Transport{next: next, server: u, label: label, store: store, client: newClient(u)}
	if c.Grant == ClientCredentialsGrant {
		t.store = nil // what it takes to get another one is in the configuration
		t.handler = &machine{config: c, client: t.client, server: server}
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

// RoundTrip sends a request with the token. Where the server wants another one, and
// one can be had without a person, the request is sent once more with it. To other
// origins, where a redirect may lead, requests go as they are.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if origin(r.URL) != origin(t.server) {
		return t.next.RoundTrip(r)
	}
	token, err := t.token(r.Context())
	if err != nil {
		return nil, err
	}
	res, err := t.next.RoundTrip(with(r, token))
	if err != nil || !wanting(res) || r.Body != nil && r.Body != http.NoBody && r.GetBody == nil {
		return res, err
	}
	another, err := t.another(r, res, token)
	if err != nil {
		if _, ok := errors.AsType[*LoginError](err); ok {
			res.Body = http.NoBody // what the server said stands: the request was refused
			return res, nil
		}
		return nil, fmt.Errorf("getting a token for the server: %w", err)
	}
	again := with(r, another)
	if r.GetBody != nil {
		if again.Body, err = r.GetBody(); err != nil {
			return nil, err
		}
	}
	return t.next.RoundTrip(again)
}

func with(r *http.Request, token string) *http.Request {
	r = r.Clone(r.Context())
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return r
}

// wanting reports whether an answer asks for a token, or for a better one.
func wanting(res *http.Response) bool {
	return res.StatusCode == http.StatusUnauthorized ||
		res.StatusCode == http.StatusForbidden && strings.Contains(strings.Join(res.Header.Values("WWW-Authenticate"), " "), "insufficient_scope")
}

// token returns the token that there is, renewed where it is about to end; empty
// where there is none.
func (t *Transport) token(ctx context.Context) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.store != nil {
		return t.kept(ctx)
	}
	if t.handler == nil {
		return "", nil
	}
	source, err := t.handler.TokenSource(ctx)
	if err != nil || source == nil {
		return "", err
	}
	token, err := source.Token()
	if err != nil {
		return "", nil // the server will say what it wants, and then there is another one
	}
	return token.AccessToken, nil
}

// kept returns the token of a login. mu is held.
func (t *Transport) kept(ctx context.Context) (string, error) {
	e, err := t.store.Get(t.server.String())
	switch {
	case errors.Is(err, ErrNone):
		return "", nil
	case err != nil:
		return "", err
	case e.Refresh == "" || e.Expires.IsZero() || time.Until(e.Expires) > early:
		return e.Access, nil
	}
	if renewed, err := t.renew(ctx, e); err == nil {
		return renewed.Access, nil
	}
	return e.Access, nil // the server will say that it has ended, and then it is tried again
}

// retryAfter is how long nobody asks for a token again where that failed.
const retryAfter = 10 * time.Second

// another gets another token than the one that a server did not want.
func (t *Transport) another(r *http.Request, res *http.Response, shown string) (string, error) {
	defer res.Body.Close()
	ctx := r.Context()
	if now, err := t.token(ctx); err != nil || now != shown {
		return now, err // somebody else got one meanwhile
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.handler != nil && time.Since(t.failed) < retryAfter {
		return "", t.reason
	}
	if err := t.authorize(ctx, r, res); err != nil {
		if t.handler != nil && ctx.Err() == nil {
			t.failed, t.reason = time.Now(), err
		}
		return "", err
	}
	if t.store != nil {
		e, err := t.store.Get(t.server.String())
		return e.Access, err
	}
	source, err := t.handler.TokenSource(ctx)
	if err != nil {
		return "", err
	}
	token, err := source.Token()
	if err != nil {
		return "", err
	}
	return token.AccessToken, nil
}

// authorize gets a token without a person, where that can be. mu is held.
func (t *Transport) authorize(ctx context.Context, r *http.Request, res *http.Response) error {
	if t.handler != nil {
		return t.handler.Authorize(ctx, r, res)
	}
	e, err := t.store.Get(t.server.String())
	switch {
	case errors.Is(err, ErrNone):
		return &LoginError{Server: t.label}
	case err != nil:
		return err
	case res.StatusCode == http.StatusForbidden:
		// The next login asks for these, too.
		if e.Scopes = union(e.Scopes, challenged(res)); t.store.Put(t.server.String(), e) != nil {
			return &LoginError{Server: t.label}
		}
		return &LoginError{t.label, errors.New("it does not suffice for what was asked")}
	case e.Refresh == "":
		return &LoginError{t.label, errors.New("it has ended")}
	}
	_, err = t.renew(ctx, e)
	return err
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

func union(a, b []string) []string {
	all := slices.Clone(a)
	for _, scope := range b {
		if !slices.Contains(all, scope) {
			all = append(all, scope)
		}
	}
	return all
}

// renew gets a new access token with the refresh token, and keeps it. Where that
// failed it is not tried again for a while. mu is held.
func (t *Transport) renew(ctx context.Context, e Entry) (Entry, error) {
	if time.Since(t.failed) < retryAfter && t.spent == e.Refresh {
		return e, t.reason
	}
	renewed, err := t.exchange(ctx, e)
	if err != nil && ctx.Err() == nil {
		t.failed, t.reason, t.spent = time.Now(), err, e.Refresh
	}
	return renewed, err
}

func (t *Transport) exchange(ctx context.Context, e Entry) (Entry, error) {
	config := e.config()
	ctx = context.WithValue(ctx, oauth2.HTTPClient, t.client)
	// The library's own way to refresh cannot name the resource (RFC 8707 section
	// 2.2). A parameter without a value counts as left out (RFC 6749 section 3.2).
	token, err := config.Exchange(ctx, "", oauth2.SetAuthURLParam("grant_type", "refresh_token"),
		oauth2.SetAuthURLParam("refresh_token", e.Refresh), oauth2.SetAuthURLParam("resource", e.Resource))
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok && refused.ErrorCode != "" {
		return e, &LoginError{t.label, errors.New(known(refused.ErrorCode))}
	}
	if err != nil {
		return e, errors.New("the authorization server cannot be asked for a new token")
	}
	e.Access, e.Expires = token.AccessToken, token.Expiry
	if token.RefreshToken != "" {
		e.Refresh = token.RefreshToken // the old one is good no more
	}
	return e, t.store.Put(t.server.String(), e)
}

// config is the client that an entry was made by.
func (e *Entry) config() *oauth2.Config {
	return &oauth2.Config{
		ClientID: e.ClientID, ClientSecret: e.ClientSecret,
		Endpoint: oauth2.Endpoint{AuthURL: e.AuthURL, TokenURL: e.TokenURL, AuthStyle: oauth2.AuthStyle(e.AuthStyle)},
	}
}

// errorCodes are those that an authorization server may answer with (RFC 6749
// sections 4.1.2.1 and 5.2, RFC 8707). What it says beside them is not shown.
var errorCodes = []string{
	"access_denied", "invalid_client", "invalid_grant", "invalid_request", "invalid_scope", "invalid_target",
	"server_error", "temporarily_unavailable", "unauthorized_client", "unsupported_grant_type", "unsupported_response_type",
}

// known is an error code, if it is one.
func known(code string) string {
	if slices.Contains(errorCodes, code) {
		return code
	}
	return "an unknown error"
}
