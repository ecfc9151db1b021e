package caller

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"golang.org/x/oauth2"

	"github.com/dragoman-mcp/dragoman/internal/identity/accesstoken"
)

// An Attempt is a sign-in that a browser has begun at an authorization server. The browser
// keeps it, and nobody else: whoever has it and what the authorization server sends back
// is signed in.
type Attempt struct {
	Issuer   string `json:"issuer"`
	State    string `json:"state"`
	Verifier string `json:"verifier"`
	Next     string `json:"next"`
}

// A SignInError says why nobody was signed in at an authorization server. Its text is for
// the person at the browser.
type SignInError struct {
	Message string
	Err     error
}

// Error says so.
func (e *SignInError) Error() string { return e.Message }

// Unwrap returns what is behind it.
func (e *SignInError) Unwrap() error { return e.Err }

// signInTime bounds what is asked of an authorization server for one sign-in.
const signInTime = 15 * time.Second

// SignsIn returns the issuers at which people sign in with a browser.
func (f *Authenticator) SignsIn() (names []string) {
	o := f.now.Load().oauth
	if o == nil {
		return nil
	}
	for _, i := range o.issuers {
		if i.Console.ID != "" {
			names = append(names, i.Issuer)
		}
	}
	return names
}

// SignIn begins a sign-in at an issuer: by the address that the browser is sent to, and
// the attempt that it keeps. back is the path, below public_url, that it comes back to, and
// next is for who asks. again wants the person to show who they are, signed in there or
// not. The error is a [*SignInError].
func (f *Authenticator) SignIn(ctx context.Context, issuer, back, next string, again bool) (address string, a Attempt, err error) {
	o := f.now.Load().oauth
	from := o.issuer(issuer)
	if from == nil || from.Console.ID == "" {
		return "", a, &SignInError{Message: "There is no such authorization server to sign in at."}
	}
	ctx, cancel := context.WithTimeout(ctx, signInTime)
	defer cancel()
	ends, err := o.verifier.Endpoints(ctx, from.Issuer)
	if err != nil {
		return "", a, away(err)
	}
	client := o.console(ends, from, back)
	a = Attempt{Issuer: issuer, State: oauth2.GenerateVerifier(), Verifier: oauth2.GenerateVerifier(), Next: next}
	options := []oauth2.AuthCodeOption{oauth2.S256ChallengeOption(a.Verifier)}
	options = append(options, o.meant(from)...)
	if again {
		options = append(options, oauth2.SetAuthURLParam("prompt", "login"))
		if slices.Contains(client.Scopes, "openid") { // without it some refuse the parameter
			options = append(options, oauth2.SetAuthURLParam("max_age", "0"))
		}
	}
	return client.AuthCodeURL(a.State, options...), a, nil
}

// SignedIn returns who comes back from an authorization server, with what it sent back. The
// error is a [*SignInError], or that of the token that it gave.
func (f *Authenticator) SignedIn(r *http.Request, a Attempt, back string) (Caller, error) {
	o, said := f.now.Load().oauth, r.URL.Query()
	from := o.issuer(a.Issuer)
	if from == nil || from.Console.ID == "" || a.State == "" || subtle.ConstantTimeCompare([]byte(said.Get("state")), []byte(a.State)) != 1 {
		return Caller{}, &SignInError{Message: "This is not the answer to a sign-in that this browser began. Begin again."}
	}
	ctx, cancel := context.WithTimeout(r.Context(), signInTime)
	defer cancel()
	ends, err := o.verifier.Endpoints(ctx, from.Issuer)
	if err != nil {
		return Caller{}, away(err)
	}
	// An answer of another issuer could bring its code to this one (RFC 9207).
	if iss := said.Get("iss"); iss != from.Issuer && (iss != "" || ends.SaysIssuer) {
		return Caller{}, &SignInError{Message: "The answer is not of the authorization server at which you began. Begin again."}
	}
	if said.Get("error") != "" || said.Get("code") == "" {
		return Caller{}, &SignInError{Message: "The authorization server did not let you in.", Err: fmt.Errorf("it says %.100q", said.Get("error"))}
	}
	client := o.console(ends, from, back)
	token, err := client.Exchange(context.WithValue(ctx, oauth2.HTTPClient, o.client), said.Get("code"), append(o.meant(from), oauth2.VerifierOption(a.Verifier))...)
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok && refused.Response.StatusCode < http.StatusInternalServerError {
		return Caller{}, &SignInError{Message: "The authorization server did not let you in.", Err: fmt.Errorf("it says %.100q", refused.ErrorCode)}
	}
	if err != nil {
		return Caller{}, away(err)
	}
	asked := (&http.Request{URL: &url.URL{Path: "/"}, Header: http.Header{}}).WithContext(ctx)
	who, err := o.recognise(asked, token.AccessToken)
	if err == nil && f.isRevoked(who.ID) {
		return Caller{}, &SignInError{Message: "The authorization server did not let you in."}
	}
	return who, err
}

func away(err error) error {
	return &SignInError{Message: "The authorization server cannot be asked now. Try again.", Err: err}
}

// console is the client of the console at an issuer.
func (o *oauth) console(ends accesstoken.Endpoints, i *Issuer, back string) *oauth2.Config {
	style := oauth2.AuthStyleInHeader
	if i.Console.Secret.IsZero() || ends.InBody {
		style = oauth2.AuthStyleInParams
	}
	return &oauth2.Config{
		ClientID: i.Console.ID, ClientSecret: i.Console.Secret.Reveal(), RedirectURL: o.base + back, Scopes: i.asked(),
		Endpoint: oauth2.Endpoint{AuthURL: ends.Authorize, TokenURL: ends.Token, AuthStyle: style},
	}
}

// meant says whom a token is for (RFC 8707), where its issuer can make one for an address.
func (o *oauth) meant(i *Issuer) []oauth2.AuthCodeOption {
	if i.Audience != "" {
		return nil
	}
	return []oauth2.AuthCodeOption{oauth2.SetAuthURLParam("resource", o.base)}
}

// asked are the scopes that the console asks for.
func (i *Issuer) asked() []string {
	if i.Console.Scopes != nil {
		return i.Console.Scopes
	}
	scopes := slices.Clone(i.Required)
	for _, s := range i.Scopes {
		if !slices.Contains(scopes, s.Scope) {
			scopes = append(scopes, s.Scope)
		}
	}
	return scopes
}
