package accesstoken

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// ask asks an issuer about a token, once for all who wait for the same.
func (v *Verifier) ask(ctx context.Context, from *issuer, token, key string) (verdict, error) {
	answered := v.asking.DoChan(key, func() (any, error) {
		// On its own time: whoever asked first may be gone, and others wait.
		ctx, cancel := context.WithTimeout(context.Background(), fetchTimeout)
		defer cancel()
		select {
		case v.places <- struct{}{}:
			defer func() { <-v.places }()
		case <-ctx.Done():
			return verdict{}, errors.New("too many tokens are being looked up")
		}
		found, err := v.introspect(ctx, from, token)
		if err == nil {
			v.remember(key, found)
		}
		return found, err
	})
	select {
	case result := <-answered:
		if result.Err != nil {
			return verdict{}, &Unavailable{Issuer: from.Name, Err: result.Err, RetryAfter: time.Second}
		}
		return result.Val.(verdict), nil
	case <-ctx.Done():
		return verdict{}, &Unavailable{Issuer: from.Name, Err: context.Cause(ctx), RetryAfter: time.Second}
	}
}

// introspect asks about one token (RFC 7662 section 2.1).
func (v *Verifier) introspect(ctx context.Context, from *issuer, token string) (verdict, error) {
	at := from.Introspection
	form := url.Values{"token": {token}, "token_type_hint": {"access_token"}}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, at.URL, strings.NewReader(form.Encode()))
	if err != nil {
		return verdict{}, err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	// RFC 6749 section 2.3.1 wants both parts encoded as in a form.
	r.SetBasicAuth(url.QueryEscape(at.ClientID), url.QueryEscape(at.ClientSecret.Reveal()))
	answer, err := v.do(r)
	now := time.Now()
	if refused, ok := errors.AsType[*statusError](err); ok && refused.aboutToken() {
		return verdict{bad: &Invalid{"is none that its issuer can read"}, until: now.Add(inactiveFor)}, nil
	}
	if err != nil {
		return verdict{}, err
	}
	good, bad := judgeActive(from, answer)
	if bad != nil {
		return verdict{bad: bad, until: now.Add(inactiveFor)}, nil
	}
	return verdict{token: good, until: now.Add(activeFor)}, nil
}

// judgeActive judges what an issuer said about a token, but for its audience.
func judgeActive(from *issuer, answer *rawjson.Object) (*Token, *Invalid) {
	c, bad := readClaims(answer.Bytes())
	if bad != nil {
		return nil, bad
	}
	now := time.Now()
	switch {
	case !c.active:
		return nil, &Invalid{"is not active"}
	case c.otherKind:
		return nil, &Invalid{"is no access token"}
	case c.issuer != "" && c.issuer != from.Name:
		return nil, &Invalid{"is of another issuer"}
	case !c.expires.IsZero() && !now.Before(c.expires.Add(Leeway)):
		return nil, &Invalid{"has expired"}
	case c.notBefore.After(now.Add(Leeway)):
		return nil, &Invalid{"is not good yet"}
	case c.bound || c.tokenType != "" && !strings.EqualFold(c.tokenType, "Bearer"):
		return nil, &Invalid{"is bound to a key, whose proof is not asked for here"}
	}
	if c.subject == "" && c.client != "" {
		c.subject = "client:" + c.client
	}
	if c.subject == "" {
		return nil, &Invalid{"names nobody"}
	}
	return &Token{
		Issuer: from.Name, Subject: c.subject, Client: c.client, Username: c.username,
		Audience: c.audience, Scopes: c.scopes, Expires: c.expires,
	}, nil
}
