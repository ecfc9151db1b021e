package caller

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/identity/accesstoken"
	"github.com/dragoman-mcp/dragoman/internal/identity/permission"
	"github.com/dragoman-mcp/dragoman/internal/wire/safehttp"
)

// oauth recognises callers by access tokens: the gateway is a resource server of
// OAuth 2.1, as MCP 2026-07-28 ("Authorization") wants it.
type oauth struct {
	client   *http.Client
	verifier *accesstoken.Verifier
	base     string // public_url
	issuers  []Issuer
}

// newOAuth returns nil where no authorization server is named.
func newOAuth(c Config) (*oauth, error) {
	if len(c.OAuth) == 0 {
		return nil, nil
	}
	if err := c.validateAll(); err != nil {
		return nil, err
	}
	// Issuers are the operator's choice, and may be in a private network.
	o := &oauth{
		client: safehttp.NewClient(safehttp.Options{MaxRedirects: -1, HeaderTimeout: 10 * time.Second, MaxConnsPerHost: 16}),
		base:   c.PublicURL, issuers: c.OAuth,
	}
	var err error
	o.verifier, err = accesstoken.New(o.client, c.issuers()...)
	return o, err
}

// close ends connections that are idle.
func (o *oauth) close() {
	if o != nil {
		o.client.CloseIdleConnections()
	}
}

// recognise returns whose an access token is.
func (o *oauth) recognise(r *http.Request, token string) (Caller, error) {
	good, err := o.verifier.Verify(r.Context(), token, o.resources(r.URL.EscapedPath())...)
	if bad, ok := errors.AsType[*accesstoken.Invalid](err); ok {
		return Caller{}, &Refusal{
			Status: http.StatusUnauthorized, Code: "invalid_token", Err: err,
			Challenge: o.challenge(r.URL.EscapedPath(), "invalid_token", bad.Error(), o.issuers[0].Required).String(),
			Message:   "The access token is not accepted: " + bad.Error() + ".",
		}
	}
	if failed, ok := errors.AsType[*accesstoken.Unavailable](err); ok {
		return Caller{}, unavailable(err, failed.RetryAfter)
	}
	if err != nil {
		return Caller{}, unavailable(err, time.Second)
	}
	from := o.issuer(good.Issuer)
	if from == nil {
		return Caller{}, unavailable(errors.New("a token of an issuer that is not configured"), time.Second)
	}
	for _, scope := range from.Required {
		if !slices.Contains(good.Scopes, scope) {
			return Caller{}, o.insufficient(r.URL.EscapedPath(), from.Required)
		}
	}
	return from.caller(good), nil
}

// issuer returns the issuer of a name; nil where there is none.
func (o *oauth) issuer(name string) *Issuer {
	if o == nil {
		return nil
	}
	for n := range o.issuers {
		if o.issuers[n].Issuer == name {
			return &o.issuers[n]
		}
	}
	return nil
}

// caller is who shows a token. A subject means something to its issuer alone, which
// has no # in its name.
func (i *Issuer) caller(t *accesstoken.Token) Caller {
	return Caller{
		ID: t.Issuer + "#" + t.Subject, Name: cmp.Or(t.Username, t.Subject),
		Grants: i.grants(t.Scopes), Scopes: t.Scopes, Issuer: t.Issuer, Client: t.Client, Expires: t.Expires,
		Reach: i.reach(),
	}
}

// grants are those of a token with these scopes.
func (i *Issuer) grants(scopes []string) []string {
	grants := slices.Clip(i.Grants)
	for _, s := range i.Scopes {
		if slices.Contains(scopes, s.Scope) {
			grants = append(grants, s.Grants...)
		}
	}
	return grants
}

// stands reports whether a caller with a token of this issuer is what they would be if
// they came now.
func (i *Issuer) stands(who Caller) bool {
	missing := func(scope string) bool { return !slices.Contains(who.Scopes, scope) }
	return !slices.ContainsFunc(i.Required, missing) && slices.Equal(i.grants(who.Scopes), who.Grants)
}

// reach are the grants of all scopes.
func (i *Issuer) reach() (grants []string) {
	for _, s := range i.Scopes {
		for _, g := range s.Grants {
			if !slices.Contains(grants, g) {
				grants = append(grants, g)
			}
		}
	}
	return grants
}

// resources are what a token that is good at a path may be made for: the address
// that is asked, or one above it. A token for one server is good for that one.
func (o *oauth) resources(path string) []string {
	all := []string{o.base, o.base + "/"}
	path = strings.TrimRight(path, "/")
	for at := 1; at < len(path) && len(all) < 10; {
		next := strings.IndexByte(path[at:], '/')
		if next < 0 {
			return append(all, o.base+path)
		}
		at += next
		all = append(all, o.base+path[:at])
		at++
	}
	return all
}

// unknown refuses a request that shows nothing (RFC 6750 section 3.1: without an
// error code).
func (o *oauth) unknown(r *http.Request) *Refusal {
	return &Refusal{
		Status: http.StatusUnauthorized, Code: "invalid_api_key", Err: errNothing,
		Challenge: o.challenge(r.URL.EscapedPath(), "", "", o.issuers[0].Required).String(),
		Message:   "This gateway needs to know who asks: send an access token, or an API key, as \"Authorization: Bearer …\". " + o.metadataURL(r.URL.EscapedPath()) + " says whose tokens.",
	}
}

// insufficient refuses a token whose scopes do not suffice.
func (o *oauth) insufficient(path string, needed []string) *Refusal {
	return &Refusal{
		Status: http.StatusForbidden, Code: "insufficient_scope",
		Challenge: o.challenge(path, "insufficient_scope", "", needed).String(),
		Message:   "The access token is good, but not for this. It takes the scopes: " + strings.Join(needed, " ") + ".",
	}
}

// challenge says what a client has to do to get a token that is good at a path.
func (o *oauth) challenge(path, code, description string, scopes []string) challenge {
	return challenge{}.with("error", code).with("error_description", description).
		with("scope", strings.Join(scopes, " ")).with("resource_metadata", o.metadataURL(path))
}

// StepUp returns the refusal for a caller whose access token lacks a right that other
// scopes would give (MCP 2025-11-25, "Scope Challenge Handling"): its client can ask
// the user for them. It is nil for everybody who has the right, or cannot get it that
// way.
func (f *Authenticator) StepUp(who Caller, path, needed string) *Refusal {
	o := f.now.Load().oauth
	if o == nil || who.Issuer == "" || who.May(needed) {
		return nil
	}
	from := o.issuer(who.Issuer)
	if from == nil {
		return nil
	}
	for _, s := range from.Scopes {
		if permission.Granted(s.Grants, needed) {
			scopes := from.Required[:len(from.Required):len(from.Required)]
			for _, had := range append(who.Scopes[:len(who.Scopes):len(who.Scopes)], s.Scope) {
				if !slices.Contains(scopes, had) {
					scopes = append(scopes, had)
				}
			}
			return o.insufficient(path, scopes)
		}
	}
	return nil
}
