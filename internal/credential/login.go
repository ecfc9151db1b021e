package credential

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"
)

// LoginOptions are what a login needs beside the server.
type LoginOptions struct {
	Config Config
	// Store keeps what comes of it.
	Store *Store
	// Show is called with the address that a person opens in a browser.
	Show func(ctx context.Context, address string)
	// Use makes requests of the server with a client, until one is answered that
	// needed a token: an MCP client that connects and lists.
	Use func(ctx context.Context, client *http.Client) error
}

// ErrNoLogin means that a server answered without asking for a token.
var ErrNoLogin = errors.New("the server asks for no login")

// Login lets a person log in for a server, and keeps what comes of it in place of
// what was there. next sends requests to the server; nothing else is sent through it.
func Login(ctx context.Context, server string, next http.RoundTripper, o LoginOptions) error {
	u, err := url.Parse(server)
	if err != nil {
		return err
	}
	back, err := listenForAnswer()
	if err != nil {
		return err
	}
	defer back.close()
	client := newClient(u)
	defer client.CloseIdleConnections()
	l := &login{server: server, o: o, back: back}
	if old, err := o.Store.Get(server); err == nil {
		l.scopes = old.Scopes
	}
	handler, err := auth.NewAuthorizationCodeHandler(l.config(client))
	if err != nil {
		return err
	}
	if err := o.Use(ctx, &http.Client{Transport: &Transport{next: next, server: u, client: client, handler: handler}}); err != nil {
		return err
	}
	if !l.kept {
		return ErrNoLogin
	}
	return nil
}

// A login is one that is going on.
type login struct {
	server   string
	o        LoginOptions
	back     *answers
	scopes   []string // asked for beside those of the challenge
	resource string   // as the SDK names it to the authorization server
	kept     bool
}

func (l *login) config(client *http.Client) *auth.AuthorizationCodeHandlerConfig {
	c := &auth.AuthorizationCodeHandlerConfig{
		RedirectURL: l.back.url, Client: client, RequestRefreshToken: true,
		ScopeFilter:              func(discovered []string) []string { return union(discovered, l.scopes) },
		AuthorizationCodeFetcher: l.fetch, NewTokenSource: l.keep,
	}
	// Pre-registered, then a document, then registering: the SDK would take the
	// document first.
	if id := l.o.Config.ClientID; id != "" {
		c.PreregisteredClient = &oauthex.ClientCredentials{ClientID: id, Issuer: l.o.Config.Issuer}
		if secret := l.o.Config.ClientSecret; secret != "" {
			c.PreregisteredClient.ClientSecretAuth = &oauthex.ClientSecretAuth{ClientSecret: secret}
		}
		return c
	}
	if document := l.o.Config.Metadata; document != "" {
		c.ClientIDMetadataDocumentConfig = &auth.ClientIDMetadataDocumentConfig{URL: document}
	}
	c.DynamicClientRegistrationConfig = &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
		ClientName: "Dragoman", RedirectURIs: []string{l.back.url}, TokenEndpointAuthMethod: "none",
		GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
	}}
	return c
}

// fetch sends the person to the authorization server, and waits for the answer.
func (l *login) fetch(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
	u, err := url.Parse(args.URL)
	if err != nil || u.Scheme != "https" && !nearby(u.Hostname()) {
		return nil, errors.New("the server's metadata name no https address to log in at")
	}
	l.resource = u.Query().Get("resource")
	answer := l.back.expect(u.Query().Get("state"))
	l.o.Show(ctx, args.URL)
	select {
	case got := <-answer:
		if got.failed != "" {
			return nil, fmt.Errorf("the authorization server refused: %s", got.failed)
		}
		return &got.result, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// keep puts a token into the store.
func (l *login) keep(_ context.Context, c *oauth2.Config, token *oauth2.Token) (oauth2.TokenSource, error) {
	if !strings.EqualFold(token.Type(), "Bearer") {
		return nil, fmt.Errorf("the token is no bearer token, but %.40q", token.Type())
	}
	l.kept = true
	// Renewed it would be without the store.
	return oauth2.StaticTokenSource(token), l.o.Store.Put(l.server, Entry{
		Resource: l.resource, AuthURL: c.Endpoint.AuthURL, TokenURL: c.Endpoint.TokenURL,
		ClientID: c.ClientID, ClientSecret: c.ClientSecret, AuthStyle: int(c.Endpoint.AuthStyle), Scopes: c.Scopes,
		Access: token.AccessToken, Refresh: token.RefreshToken, Expires: token.Expiry,
	})
}

// answers listens where an authorization server sends the browser back to.
type answers struct {
	url    string
	server *http.Server
	want   chan expected
}

type expected struct {
	state string
	got   chan answer
}

type answer struct {
	result auth.AuthorizationResult
	failed string
}

func listenForAnswer() (*answers, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening for the answer of the login: %w", err)
	}
	a := &answers{url: "http://" + listener.Addr().String() + "/callback", want: make(chan expected, 1)}
	a.server = &http.Server{Handler: a, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 32 << 10}
	go func() { _ = a.server.Serve(listener) }()
	return a, nil
}

func (a *answers) close() { a.server.Close() }

// expect returns where the answer with a state comes. A login has one at a time.
func (a *answers) expect(state string) <-chan answer {
	select {
	case <-a.want: // of a request before this one, that nobody waits for
	default:
	}
	e := expected{state, make(chan answer, 1)}
	a.want <- e
	return e.got
}

// ServeHTTP takes an answer, once. What does not have the state of the request does
// not come from where we sent the person.
func (a *answers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	var e expected
	select {
	case e = <-a.want:
	default:
	}
	if r.Method != http.MethodGet || r.URL.Path != "/callback" || e.state == "" || q.Get("state") != e.state {
		if e.got != nil {
			select {
			case a.want <- e:
			default: // there is a request after it
			}
		}
		http.Error(w, "Nobody waits for this.", http.StatusBadRequest)
		return
	}
	got := answer{result: auth.AuthorizationResult{Code: q.Get("code"), State: e.state, Iss: q.Get("iss")}}
	if code := q.Get("error"); code != "" || got.result.Code == "" {
		got.failed = known(code)
	}
	e.got <- got
	fmt.Fprintln(w, "Dragoman has the answer. You can close this page.")
}
