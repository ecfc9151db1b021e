package credential

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"golang.org/x/oauth2"

	"github.com/dragoman-mcp/dragoman/internal/text/secret"
	"github.com/dragoman-mcp/dragoman/internal/wire/safehttp"
)

// A Begun is a login whose person is at the authorization server. It is all that it takes
// to go on with it, in whichever process, and so a secret.
type Begun struct {
	AuthURL      string   `json:"auth_url"`
	TokenURL     string   `json:"token_url"`
	ClientID     string   `json:"client_id"`
	ClientSecret string   `json:"client_secret,omitempty"`
	AuthStyle    int      `json:"auth_style,omitempty"`
	Scopes       []string `json:"scopes,omitempty"`
	Resource     string   `json:"resource"`
	Redirect     string   `json:"redirect"`
	Verifier     string   `json:"verifier"`
	// Issuer is the authorization server; Says that its answer has to name it (RFC 9207).
	Issuer string `json:"issuer,omitempty"`
	Says   bool   `json:"says,omitempty"`
	// Before is how often the person was there before, in this login.
	Before int `json:"before,omitempty"`
}

// maxBefore is how often a person is sent to an authorization server once more, since the
// server wants more than what came of it.
const maxBefore = 4

// ErrUseless means that a server does not take what a login came to, and wants nothing that
// was not asked for. Where a browser is signed in it would come back at once, and for ever.
var ErrUseless = errors.New("the server does not take what the authorization server gave for all that was asked")

// goesOn reports whether a login that wants another one behind it may get anywhere by that.
func (b *Begun) goesOn(more *Begun) bool {
	added := func(scope string) bool { return !slices.Contains(b.Scopes, scope) }
	return more.Before <= maxBefore && (more.Issuer != b.Issuer || slices.ContainsFunc(more.Scopes, added))
}

// Begin begins a login, and returns the address that its person opens in a browser, with
// what it takes to go on. The address has no state yet: the caller adds one, by which it
// knows the answer. Visit of o is not used. It is [ErrNoLogin] where the server asks for
// none.
func Begin(ctx context.Context, a Account, next http.RoundTripper, o LoginOptions) (address *url.URL, b *Begun, err error) {
	return suspended(ctx, a, next, o, nil)
}

// Finish goes on with a login that has begun, and whose authorization server answered so:
// it keeps what comes of it, and sees whether the server takes it. Where the server wants
// more it returns another address, as Begin does; a nil one where all is done. It is
// [ErrUseless] where asking once more would come to the same.
func Finish(ctx context.Context, a Account, next http.RoundTripper, o LoginOptions, b *Begun, answer Answer) (address *url.URL, more *Begun, err error) {
	switch {
	case !answer.of(b.Issuer, b.Says): // a refusal, too, may be another one's
		return nil, nil, ErrOtherIssuer
	case answer.Error != "" || answer.Code == "":
		return nil, nil, refusedAnswer(o.Store, a, answer)
	}
	u, err := url.Parse(a.Server)
	if err != nil {
		return nil, nil, err
	}
	client := newClient(u, o.Config.Issuer, o.TLS)
	defer client.CloseIdleConnections()
	e := b.entry()
	config := e.config()
	config.RedirectURL = b.Redirect
	// The code is good once, so that this goes on where whoever brought it goes away.
	token, err := config.Exchange(context.WithValue(context.WithoutCancel(ctx), oauth2.HTTPClient, client), answer.Code,
		oauth2.VerifierOption(b.Verifier), oauth2.SetAuthURLParam("resource", b.Resource))
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok && away(refused) {
		return nil, nil, errAway
	} else if ok {
		return nil, nil, &Refused{refused.ErrorCode} // what it says beside that is not shown
	}
	if err == nil {
		err = check(token)
	}
	if err != nil {
		return nil, nil, err
	}
	e.Refresh = secret.New(token.RefreshToken)
	e.got(token)
	if err := o.Store.Put(a, e); err != nil {
		return nil, nil, err
	}
	address, more, err = suspended(ctx, a, next, o, token)
	if more == nil {
		return address, nil, err
	}
	if more.Before = b.Before + 1; !b.goesOn(more) {
		return nil, nil, ErrUseless
	}
	return address, more, nil
}

// entry is what is known of the entry that comes of it.
func (b *Begun) entry() Entry {
	return Entry{
		Resource: b.Resource, AuthURL: b.AuthURL, TokenURL: b.TokenURL,
		ClientID: b.ClientID, ClientSecret: secret.New(b.ClientSecret), AuthStyle: b.AuthStyle, Scopes: b.Scopes,
	}
}

// suspended uses the server with what was got so far, until a person is wanted.
func suspended(ctx context.Context, a Account, next http.RoundTripper, o LoginOptions, got *oauth2.Token) (*url.URL, *Begun, error) {
	stop := &suspender{}
	o.Visit = stop.visit
	l, err := newLogin(a, o)
	if err != nil {
		return nil, nil, err
	}
	stop.next, stop.judge = l.judge, l.judge
	l.client.Transport = stop
	l.given = got
	err = l.use(ctx, next)
	stop.mu.Lock()
	defer stop.mu.Unlock()
	switch {
	case stop.begun != nil:
		return stop.address, stop.begun, nil
	case err != nil:
		return nil, nil, err
	case got == nil:
		return nil, nil, ErrNoLogin
	}
	return nil, nil, nil
}

// stoppedCode stands for the code that an authorization server has not given yet.
const stoppedCode = "dragoman-not-yet"

// errStopped ends the use of a server, since a person is wanted.
var errStopped = errors.New("a person has to log in")

// A suspender ends a login where it would ask for a token: all that has to be known to ask
// stands in that request, and it is sent by whoever has the code.
type suspender struct {
	next  http.RoundTripper
	judge *metadataJudge

	mu      sync.Mutex
	address *url.URL
	pending Begun  // but for what the request for a token says
	begun   *Begun // nil until there is one
}

// visit is [LoginOptions.Visit].
func (s *suspender) visit(_ context.Context, address string) (Answer, error) {
	u, err := url.Parse(address)
	if err != nil {
		return Answer{}, err
	}
	issuer, says := s.judge.issuer()
	q := u.Query()
	answer := Answer{Code: stoppedCode, State: q.Get("state")}
	if says {
		answer.Issuer = issuer
	}
	page := *u
	page.RawQuery = ""
	q.Del("state")
	u.RawQuery = q.Encode()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.address, s.begun = u, nil
	s.pending = Begun{
		AuthURL: page.String(), ClientID: q.Get("client_id"), Scopes: strings.Fields(q.Get("scope")),
		Resource: q.Get("resource"), Redirect: q.Get("redirect_uri"), Issuer: issuer, Says: says,
	}
	return answer, nil
}

// RoundTrip implements [http.RoundTripper].
func (s *suspender) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodPost || !strings.HasPrefix(r.Header.Get("Content-Type"), formType) {
		return s.next.RoundTrip(r)
	}
	body, err := safehttp.ReadAll(r.Body, maxMetadata)
	_ = r.Body.Close()
	if err != nil {
		return nil, err
	}
	form, err := url.ParseQuery(string(body))
	if err != nil || form.Get("code") != stoppedCode {
		r = r.Clone(r.Context())
		r.Body = io.NopCloser(bytes.NewReader(body))
		return s.next.RoundTrip(r)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.pending
	b.TokenURL, b.Verifier, b.ClientSecret, b.AuthStyle = r.URL.String(), form.Get("code_verifier"), form.Get("client_secret"), int(oauth2.AuthStyleInParams)
	if _, secret, ok := r.BasicAuth(); ok {
		b.AuthStyle = int(oauth2.AuthStyleInHeader)
		b.ClientSecret, _ = url.QueryUnescape(secret)
	}
	if s.begun != nil { // in the first way that there is, and then in another: it is to be found out
		b.AuthStyle = int(oauth2.AuthStyleAutoDetect)
	}
	s.begun = &b
	return nil, errStopped
}
