package credential

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"github.com/dragoman-mcp/dragoman/internal/reach/tlsfiles"
	"github.com/dragoman-mcp/dragoman/internal/text/clip"

	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

// LoginOptions are what a login needs beside the server.
type LoginOptions struct {
	Config Config
	// TLS is for the server and the issuer of Config.
	TLS tlsfiles.Files
	// Store keeps what comes of it.
	Store Store
	// Redirect is where the authorization server sends the browser back to.
	Redirect string
	// Visit sends a person to an address, and returns what the authorization server
	// sent back.
	Visit func(ctx context.Context, address string) (Answer, error)
	// Use makes requests of the server with a client, until one is answered that
	// needed a token: an MCP client that connects and lists.
	Use func(ctx context.Context, client *http.Client) error
}

// An Answer is what an authorization server sends back with the browser (RFC 6749
// section 4.1.2, RFC 9207).
type Answer struct {
	Code   string `json:"code"`
	State  string `json:"state"`
	Issuer string `json:"iss"`
	// Error is set where it refuses.
	Error string `json:"error"`
}

// of reports whether an answer is one of an issuer; says whether that names itself in its
// answers. Many leave the name out where they refuse.
func (a *Answer) of(issuer string, says bool) bool {
	return a.Issuer == issuer || a.Issuer == "" && (!says || a.Error != "")
}

// ErrOtherIssuer is why an answer counts for nothing: it is of another server, or of none.
var ErrOtherIssuer = errors.New("the answer does not name the authorization server that the person was sent to (iss)")

// ErrNoLogin means that a server answered without asking for a token.
var ErrNoLogin = errors.New("the server asks for no login")

// A Refused says that an authorization server refused. Its text is one of those that
// the standards have.
type Refused struct{ Code string }

// Error says so.
func (e *Refused) Error() string { return "the authorization server refuses: " + known(e.Code) }

// Login lets a person log in, and keeps what comes of it in place of what was there.
// next sends requests to the server; nothing else is sent through it.
func Login(ctx context.Context, a Account, next http.RoundTripper, o LoginOptions) error {
	l, err := newLogin(a, o)
	if err != nil {
		return err
	}
	err = l.use(ctx, next)
	refused, ok := errors.AsType[*oauth2.RetrieveError](err)
	switch {
	case ok && away(refused):
		return errAway
	case ok:
		return &Refused{refused.ErrorCode} // what it says beside that is not shown
	case err != nil:
		return err
	case !l.kept:
		return ErrNoLogin
	}
	return nil
}

// newLogin returns a login that has not begun.
func newLogin(a Account, o LoginOptions) (*login, error) {
	u, err := url.Parse(a.Server)
	if err != nil {
		return nil, err
	}
	l := &login{account: a, o: o, server: u, client: newClient(u, o.Config.Issuer, o.TLS)}
	l.judge = &metadataJudge{next: l.client.Transport, chosen: o.Config.Issuer, read: l.register}
	l.client.Transport = l.judge
	if l.before, err = o.Store.Get(a); err != nil {
		l.before = Entry{}
	}
	l.handler, err = auth.NewAuthorizationCodeHandler(l.config(l.client))
	return l, err
}

// use makes requests of the server, which is where somebody is sent to log in.
func (l *login) use(ctx context.Context, next http.RoundTripper) error {
	defer l.client.CloseIdleConnections()
	t := newTransport(next, l.server)
	t.client, t.source = l.client, l
	err := l.o.Use(ctx, &http.Client{Transport: t})
	if err != nil && l.failed != nil {
		err = l.failed // whatever came of it
	}
	return err
}

// A login is one that is going on; it is the [source] of what comes of it.
type login struct {
	account Account
	o       LoginOptions
	server  *url.URL
	client  *http.Client   // for authorization servers
	judge   *metadataJudge // of what it gets
	given   *oauth2.Token  // nil, or what a login before this one came to
	handler *auth.AuthorizationCodeHandler
	before  Entry    // what is kept, of a login before this one or of what this one came to so far
	wanted  []string // the scopes of the challenge
	// as is what the client says of itself where it registers; bare says that it does not
	// say for which scopes.
	as       *oauthex.ClientRegistrationMetadata
	bare     bool
	resource string // as the SDK names it to the authorization server
	kept     bool
	failed   error
}

func (l *login) basis() string { return "" }

func (l *login) token(ctx context.Context) (string, error) {
	tokens, err := l.handler.TokenSource(ctx)
	if err == nil && tokens == nil && l.given != nil {
		return l.given.AccessToken, nil
	}
	if err != nil || tokens == nil {
		return "", err
	}
	token, err := tokens.Token()
	if err != nil {
		return "", err
	}
	return token.AccessToken, nil
}

func (l *login) another(ctx context.Context, _ string, r *http.Request, res *http.Response) (string, error) {
	if l.failed != nil {
		return "", l.failed // a client may try in another way, and nobody is asked twice
	}
	l.wanted = challenged(res)
	l.failed = l.handler.Authorize(ctx, r, res)
	if l.failed != nil && l.judge.refusedClient() && l.as.Scope != "" {
		l.bare = true // some let no client name any
		l.failed = l.handler.Authorize(ctx, r, res)
	}
	if l.failed != nil {
		l.failed = &brief{l.failed}
		return "", l.failed
	}
	return l.token(ctx)
}

// A brief is an error that may hold what an authorization server wrote, such as a whole page:
// it is said on one line, and not at length.
type brief struct{ err error }

func (b *brief) Error() string {
	return clip.Text(strings.Join(strings.Fields(b.err.Error()), " "), 300)
}
func (b *brief) Unwrap() error { return b.err }

// register sets what the client says of itself where it registers, once the metadata are
// known. It names the scopes that the SDK will ask for: who names none may get others (RFC
// 7591 section 2), and is refused when it asks. Where there are no public clients it asks
// for a secret.
func (l *login) register(m *metadataFound) {
	if l.as == nil {
		return
	}
	scopes := l.wanted
	if len(scopes) == 0 {
		scopes = m.resource
	}
	if scopes = union(scopes, l.had(m.token)); slices.Contains(m.scopes, offline) {
		scopes = union(scopes, []string{offline})
	}
	l.as.Scope = strings.Join(scopes, " ")
	if l.bare {
		l.as.Scope = ""
	}
	l.as.TokenEndpointAuthMethod = "none"
	for _, method := range []string{"client_secret_post", "client_secret_basic", "none"} {
		if slices.Contains(m.methods, method) {
			l.as.TokenEndpointAuthMethod = method
		}
	}
}

// had are the scopes that are asked for beside those of the challenge: those of a login
// before this one, at the same authorization server; another one has others.
func (l *login) had(token string) []string {
	if token != "" && token != l.before.TokenURL {
		return nil
	}
	return l.before.Scopes
}

// refusedAnswer is what an answer without a code means.
func refusedAnswer(s Store, a Account, answer Answer) error {
	if answer.Error == "invalid_scope" {
		forgetScopes(s, a)
	}
	return &Refused{answer.Error}
}

// forgetScopes forgets those of a login before, of which the authorization server may have
// one no more: nobody could log in again.
func forgetScopes(s Store, a Account) {
	_, _ = s.Update(a, func(e *Entry, _ time.Time) error {
		e.Scopes = nil
		return nil
	})
}

// offline is the scope by which refresh tokens are asked for (OpenID Connect Core, section 11).
const offline = "offline_access"

func (l *login) useless(string, *http.Response) *LoginError { return nil }

func (l *login) config(client *http.Client) *auth.AuthorizationCodeHandlerConfig {
	c := &auth.AuthorizationCodeHandlerConfig{
		RedirectURL: l.o.Redirect, Client: client, RequestRefreshToken: true,
		ScopeFilter:              func(discovered []string) []string { return union(discovered, l.had(l.judge.tokenURL())) },
		AuthorizationCodeFetcher: l.fetch, NewTokenSource: l.keep,
		AcceptUnadvertisedIss: true, // an issuer that is named is compared, be that promised or not
	}
	// Pre-registered, then a document, then registering: the SDK would take the
	// document first.
	if id := l.o.Config.ClientID; id != "" {
		c.PreregisteredClient = &oauthex.ClientCredentials{ClientID: id, Issuer: l.o.Config.Issuer}
		if s := l.o.Config.ClientSecret; !s.IsZero() {
			c.PreregisteredClient.ClientSecretAuth = &oauthex.ClientSecretAuth{ClientSecret: s.Reveal()}
		}
		return c
	}
	if document := l.o.Config.Metadata; document != "" {
		c.ClientIDMetadataDocumentConfig = &auth.ClientIDMetadataDocumentConfig{URL: document}
	}
	l.as = &oauthex.ClientRegistrationMetadata{
		ClientName: "Dragoman", RedirectURIs: []string{l.o.Redirect}, TokenEndpointAuthMethod: "none",
		GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
	}
	c.DynamicClientRegistrationConfig = &auth.DynamicClientRegistrationConfig{Metadata: l.as}
	return c
}

// fetch sends the person to the authorization server, and waits for the answer.
func (l *login) fetch(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
	u, err := url.Parse(args.URL)
	if err != nil || u.Scheme != "https" && (u.Scheme != "http" || !nearby(u.Hostname())) {
		return nil, errors.New("the server's metadata name no https address to log in at")
	}
	l.resource = u.Query().Get("resource")
	answer, err := l.o.Visit(ctx, args.URL)
	issuer, says := l.judge.issuer()
	switch {
	case err != nil:
		return nil, err
	case issuer != "" && !answer.of(issuer, says): // a refusal, too, may be another one's
		return nil, ErrOtherIssuer
	case answer.Error != "" || answer.Code == "":
		return nil, refusedAnswer(l.o.Store, l.account, answer)
	}
	return &auth.AuthorizationResult{Code: answer.Code, State: answer.State, Iss: answer.Issuer}, nil
}

// keep puts a token into the store.
func (l *login) keep(_ context.Context, c *oauth2.Config, token *oauth2.Token) (oauth2.TokenSource, error) {
	if err := check(token); err != nil {
		return nil, err
	}
	l.kept = true
	l.before = Entry{
		Resource: l.resource, AuthURL: c.Endpoint.AuthURL, TokenURL: c.Endpoint.TokenURL,
		ClientID: c.ClientID, ClientSecret: secret.New(c.ClientSecret), AuthStyle: int(c.Endpoint.AuthStyle), Scopes: c.Scopes,
		Refresh: secret.New(token.RefreshToken),
	}
	l.before.got(token)
	// Renewed it would be without the store.
	return oauth2.StaticTokenSource(token), l.o.Store.Put(l.account, l.before)
}
