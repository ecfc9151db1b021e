package credential

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/dragoman-mcp/dragoman/internal/identity/accesstoken"
	"github.com/dragoman-mcp/dragoman/internal/reach/tlsfiles"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
	"github.com/dragoman-mcp/dragoman/internal/wire/safehttp"
)

// The names of RFC 8693 (sections 2.1 and 3).
const (
	exchangeGrant   = "urn:ietf:params:oauth:grant-type:token-exchange"
	accessTokenType = "urn:ietf:params:oauth:token-type:access_token"
)

// exchange gets tokens for the access token that a caller showed the gateway (RFC
// 8693). That token goes to the token endpoint and nowhere else.
type exchange struct {
	config   Config
	client   *http.Client
	account  Account
	subjects *Subjects

	scopes []string  // of all challenges so far, where the configuration names none
	where  *endpoint // nil until it was found

	of     *subject    // what was exchanged last
	asked  time.Time   // when
	had    secret.Text // what came of it
	until  time.Time   // when that ends
	reason error       // or why nothing did
}

// An endpoint is where tokens are asked for, and how the client says there who it is.
type endpoint struct {
	url   string
	style oauth2.AuthStyle
}

// unknownLife is how long a token is used of which it is not said when it ends.
const unknownLife = 5 * time.Minute

// newExchangeClient returns the client for token endpoints of the configuration, which
// may be in a private network. It follows no redirect: what it sends is for them alone.
func newExchangeClient(files tlsfiles.Files) *http.Client {
	client := files.Client(safehttp.Options{MaxRedirects: -1, HeaderTimeout: 15 * time.Second}, nil)
	client.Transport = &discovery{&clientAuth{next: client.Transport}}
	client.Timeout = 20 * time.Second
	return client
}

// basis changes with the caller's token.
func (x *exchange) basis() string {
	if s := x.subjects.newest(x.account.Caller); s != nil {
		return s.token.Reveal()
	}
	return ""
}

func (x *exchange) token(ctx context.Context) (string, error) {
	if !x.had.IsZero() && time.Until(x.until) > 0 {
		return x.had.Reveal(), nil
	}
	err := x.ask(ctx)
	if _, ok := errors.AsType[*LoginError](err); ok {
		return "", nil // the server may want none; where it does, it will say so
	}
	return x.had.Reveal(), err
}

func (x *exchange) another(ctx context.Context, _ string, _ *http.Request, res *http.Response) (string, error) {
	before := len(x.scopes)
	if len(x.config.Scopes) == 0 {
		x.scopes = union(x.scopes, challenged(res))
	}
	same := !x.had.IsZero() && x.of == x.subjects.newest(x.account.Caller)
	switch {
	case len(x.scopes) > before:
		x.reason = nil // this is another question
	case same && res.StatusCode == http.StatusForbidden:
		return "", x.wanted(errInsufficient)
	case same && time.Since(x.asked) < retryAfter:
		return "", x.wanted(errors.New("the server does not take what the last one is exchanged for"))
	}
	err := x.ask(ctx)
	return x.had.Reveal(), err
}

func (x *exchange) useless(_ string, res *http.Response) *LoginError {
	if res.StatusCode == http.StatusForbidden {
		return x.wanted(errInsufficient)
	}
	return x.wanted(errors.New("the server does not take what the last one is exchanged for"))
}

var errInsufficient = errors.New("what the last one is exchanged for does not suffice for what was asked")

// wanted says what the caller has to show before there can be a token.
func (x *exchange) wanted(err error) *LoginError {
	return &LoginError{"call the gateway with an access token of " + x.config.Exchanges(), err}
}

// ask exchanges what the caller showed last. Where that failed it is not tried again
// with the same for a while.
func (x *exchange) ask(ctx context.Context) error {
	s := x.subjects.newest(x.account.Caller)
	if x.reason != nil && s == x.of && time.Since(x.asked) < retryAfter {
		return x.reason
	}
	x.of, x.asked, x.had = s, time.Now(), secret.Text{}
	var token *oauth2.Token
	switch {
	case s == nil:
		x.reason = x.wanted(nil)
	case s.issuer != x.config.Exchanges():
		x.reason = x.wanted(fmt.Errorf("the last one is of %s", s.issuer))
	default:
		token, x.reason = x.exchange(ctx, s)
		if ctx.Err() != nil {
			x.reason = nil // that is no answer
			return context.Cause(ctx)
		}
	}
	if x.reason != nil {
		return x.reason
	}
	x.had, x.until = secret.New(token.AccessToken), token.Expiry
	if x.until.IsZero() {
		x.until = time.Now().Add(unknownLife)
	}
	x.until = x.until.Add(-min(early, time.Until(x.until)/2))
	return nil
}

// exchange sends what a caller showed to the token endpoint, and to nobody else.
func (x *exchange) exchange(ctx context.Context, s *subject) (*oauth2.Token, error) {
	if err := x.find(ctx); err != nil {
		return nil, err
	}
	c := clientcredentials.Config{
		ClientID: x.config.ClientID, ClientSecret: x.config.ClientSecret.Reveal(),
		TokenURL: x.where.url, AuthStyle: x.where.style,
		Scopes: x.config.Scopes,
		EndpointParams: url.Values{
			"grant_type": {exchangeGrant}, "subject_token": {s.token.Reveal()}, "subject_token_type": {accessTokenType},
			"requested_token_type": {accessTokenType}, "resource": {cmp.Or(x.config.Resource, x.account.Server)},
		},
	}
	if len(c.Scopes) == 0 {
		c.Scopes = x.scopes
	}
	if x.config.Audience != "" {
		c.EndpointParams.Set("audience", x.config.Audience)
	}
	token, err := c.Token(context.WithValue(ctx, oauth2.HTTPClient, x.client))
	refused, ok := errors.AsType[*oauth2.RetrieveError](err)
	switch {
	case ok && refused.ErrorCode != "" && !away(refused):
		return nil, x.wanted(&Refused{refused.ErrorCode})
	case err != nil: // its text may have what was sent
		return nil, fmt.Errorf("%s cannot be asked to exchange a token", x.config.Issuer)
	}
	if kind, _ := token.Extra("issued_token_type").(string); kind != accessTokenType {
		return nil, fmt.Errorf("%s gives no access token in exchange, but %.60q", x.config.Issuer, kind)
	}
	return token, check(token)
}

// find finds the token endpoint: that of the configuration, or the one that the
// metadata of the issuer name.
func (x *exchange) find(ctx context.Context) error {
	switch {
	case x.where != nil:
		return nil
	case x.config.TokenURL != "":
		x.where = &endpoint{x.config.TokenURL, oauth2.AuthStyleInHeader}
		return nil
	}
	server, err := auth.GetAuthServerMetadata(ctx, x.config.Issuer, x.client)
	if err != nil || server == nil || server.Issuer != x.config.Issuer || accesstoken.CheckURL(server.TokenEndpoint) != nil {
		return fmt.Errorf("the metadata of %s name no token endpoint of its own", x.config.Issuer)
	}
	x.where = &endpoint{server.TokenEndpoint, authStyle(server.TokenEndpointAuthMethodsSupported)}
	return nil
}
