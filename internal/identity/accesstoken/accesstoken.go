// Package accesstoken finds out what the access token of an authorization server
// is worth, for the gateway and for servers written with the toolkit: whose it is,
// for whom it is meant, what it may do.
//
// A token that is a signed JWT (RFC 9068 and what most servers issued before it) is
// verified here, with keys of its issuer that are fetched and kept. An opaque token,
// or any token of an issuer that is asked about each, is looked up with the issuer
// (RFC 7662).
//
// There are two ways to fail: the token is no good, [Invalid], or it cannot be found
// out whether it is, [Unavailable]. Nothing else, and never a Token, comes of a
// token that was not understood whole.
package accesstoken

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/dragoman-mcp/dragoman/internal/state/bounded"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

// maxToken is the longest token that is looked at, in bytes.
const maxToken = 16 << 10

// Leeway is how far the clocks of an issuer and of this machine may be apart: a token
// is good for so much longer than it says.
const Leeway = 30 * time.Second

// An Issuer is an authorization server whose tokens are accepted.
type Issuer struct {
	// Name is its identifier, an http or https URL, as tokens name it letter by
	// letter.
	Name string
	// Audience is what its tokens must name, letter by letter, one of them. Empty:
	// the resource that is asked; see [Verifier.Verify].
	Audience []string
	// KeySet is the address of its keys (JWKS); empty finds it in the issuer's
	// metadata (RFC 8414, or OpenID Connect Discovery).
	KeySet string
	// Introspection says how the issuer is asked about each token; nil where its
	// tokens are signed.
	Introspection *Introspection
}

// Introspection is an endpoint of RFC 7662, and who we are there.
type Introspection struct {
	URL, ClientID string
	ClientSecret  secret.Text
}

// A Token is a token that is good now, and for whoever verified it.
type Token struct {
	// Issuer is whose token it is, and Subject whom it was issued for there; a token
	// of a client's own, which names no subject, has "client:" and the client's id.
	Issuer, Subject string
	// Client is the id of the client that it was issued to; empty where that is not
	// said. Username is for people, and may be empty.
	Client, Username string
	// Audience are those that it is meant for.
	Audience []string
	// Scopes are what it may do.
	Scopes []string
	// Expires is when it ends to be good; zero only where the issuer is asked about
	// each token and does not say.
	Expires time.Time
}

// Invalid means that a token is no good. Its bearer may be told the reason, which
// has nothing of the token in it.
type Invalid struct{ Reason string }

// Error returns the reason.
func (e *Invalid) Error() string { return "the token " + e.Reason }

// Unavailable means that it cannot be found out now whether a token is good. It is
// no fault of its bearer.
type Unavailable struct {
	// Issuer is who was asked in vain, and Err why.
	Issuer string
	Err    error
	// RetryAfter is when it makes sense to try again.
	RetryAfter time.Duration
}

// Error names the issuer and the reason.
func (e *Unavailable) Error() string { return fmt.Sprintf("asking %s: %v", e.Issuer, e.Err) }

// Unwrap returns Err.
func (e *Unavailable) Unwrap() error { return e.Err }

// A Verifier verifies tokens. Make it with [New]; it is safe for concurrent use.
type Verifier struct {
	client  *http.Client
	issuers map[string]*issuer
	opaque  *issuer // who is asked about tokens that do not say whose they are
	seen    bounded.Map[verdict]
	asking  singleflight.Group
	places  chan struct{} // one for each introspection at a time
}

type issuer struct {
	Issuer
	keys *keySet
}

// A verdict is what was found out about a token, which holds for a while.
type verdict struct {
	token *Token // nil for one that is no good
	bad   *Invalid
	until time.Time
}

const (
	// seenBytes bounds what is remembered of tokens.
	seenBytes = 16 << 20
	// signedFor is how long a signature need not be verified again, and activeFor and
	// inactiveFor how long an issuer need not be asked again about a token. So long a
	// token that was revoked may still be good.
	signedFor   = time.Minute
	activeFor   = 30 * time.Second
	inactiveFor = 10 * time.Second
	// maxAsking is how many introspections run at a time.
	maxAsking = 16
)

// New returns a Verifier. Issuers and keys are fetched with the client, when the
// first token of each comes; nil is one with limits, which follows no redirects.
// At most one issuer that is asked about each token can be there: a token that is
// opaque does not say whose it is, and must not be shown to another one.
func New(client *http.Client, issuers ...Issuer) (*Verifier, error) {
	if client == nil {
		client = defaultClient()
	}
	v := &Verifier{client: client, issuers: map[string]*issuer{}, places: make(chan struct{}, maxAsking)}
	v.seen.Bytes, v.seen.Age = seenBytes, signedFor
	for _, i := range issuers {
		if err := i.check(); err != nil {
			return nil, err
		}
		if v.issuers[i.Name] != nil {
			return nil, fmt.Errorf("the issuer %s is there twice", i.Name)
		}
		own := &issuer{Issuer: i}
		own.keys = newKeySet(func(ctx context.Context) (keys, error) { return v.fetchKeys(ctx, own) })
		v.issuers[i.Name] = own
		if i.Introspection == nil {
			continue
		}
		if v.opaque != nil {
			return nil, fmt.Errorf("both %s and %s are to be asked about tokens: an opaque token does not say whose it is, and must not be shown to the other one", v.opaque.Name, i.Name)
		}
		v.opaque = own
	}
	return v, nil
}

func (i Issuer) check() error {
	addresses := []string{i.Name}
	if i.KeySet != "" {
		addresses = append(addresses, i.KeySet)
	}
	if i.Introspection != nil {
		addresses = append(addresses, i.Introspection.URL)
	}
	for _, address := range addresses {
		if err := CheckURL(address); err != nil {
			return err
		}
	}
	return nil
}

// CheckURL says why an address cannot be that of an authorization server: it is
// neither https nor, on this machine, http, or has user name, query or fragment.
func CheckURL(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return fmt.Errorf("%q is no https address", address)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
		return fmt.Errorf("%q has more than host and path", u.Redacted())
	case u.Scheme == "http" && !loopback(u.Hostname()):
		return fmt.Errorf("%q is not https: whoever is on the way could make tokens", address)
	}
	return nil
}

func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && ip.IsLoopback()
}

// Verify returns a token if it is good: signed by its issuer, or active there, not
// expired, and meant for one of the resources, letter by letter, or one of the
// audiences that its issuer's configuration names in their place. The error is
// [*Invalid] or [*Unavailable].
func (v *Verifier) Verify(ctx context.Context, token string, resources ...string) (*Token, error) {
	if len(token) > maxToken {
		return nil, &Invalid{"is too long"}
	}
	if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return nil, &Invalid{"has characters that no token has"} // RFC 6750 section 2.1
	}
	sum := sha256.Sum256([]byte(token))
	key := string(sum[:])
	known, ok := v.seen.Get("", key)
	if !ok || !time.Now().Before(known.until) {
		var err error
		if known, err = v.find(ctx, token, key); err != nil {
			return nil, err
		}
	}
	if known.bad != nil {
		return nil, known.bad
	}
	good := known.token
	if !good.Expires.IsZero() && !time.Now().Before(good.Expires.Add(Leeway)) {
		return nil, &Invalid{"has expired"}
	}
	accepted := resources
	if from := v.issuers[good.Issuer]; len(from.Audience) > 0 {
		accepted = from.Audience
	}
	if !slices.ContainsFunc(accepted, func(a string) bool { return a != "" && slices.Contains(good.Audience, a) }) {
		return nil, &Invalid{"is meant for somebody else: its audience is not this resource"}
	}
	return good, nil
}

// find finds out about a token that is not known, and remembers it.
func (v *Verifier) find(ctx context.Context, token, key string) (verdict, error) {
	name, signed := claimedIssuer(token)
	from := v.opaque
	if signed {
		from = v.issuers[name]
	}
	if from == nil {
		return verdict{}, &Invalid{"is of an issuer that is not known here"}
	}
	if from.Introspection != nil {
		return v.ask(ctx, from, token, key)
	}
	good, err := verifySigned(ctx, from, token)
	if err != nil { // not remembered: nobody keeps much by sending nonsense
		return verdict{}, err
	}
	found := verdict{token: good, until: time.Now().Add(signedFor)}
	v.remember(key, found)
	return found, nil
}

func (v *Verifier) remember(key string, found verdict) {
	size := int64(len(key))
	if found.token != nil {
		size += maxToken / 8 // about what its texts take, at most
	}
	v.seen.Put("", key, found, size)
}
