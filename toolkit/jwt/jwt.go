// Package jwt verifies the access tokens of authorization servers that sign them
// as JSON Web Tokens, which most do, for [toolkit.OAuth]:
//
//	HTTP: toolkit.HTTP{OAuth: &toolkit.OAuth{
//		Resource: "https://weather.example/mcp",
//		Issuers:  []string{"https://login.example"},
//		Verify:   jwt.Verifier(jwt.Options{Resource: "https://weather.example/mcp", Issuers: []string{"https://login.example"}}),
//	}}
//
// Opaque tokens, which are looked up with the authorization server
// (introspection, RFC 7662), need a Verify of one's own.
package jwt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/modelcontextprotocol/go-sdk/auth"
)

// Options say which tokens are good.
type Options struct {
	// Resource must be among the audience of a token, letter by letter.
	Resource string
	// Issuers are the authorization servers. Their keys are found by OpenID
	// Connect discovery, when the first token of each comes.
	Issuers []string
	// Keys are the addresses of key sets (JWKS) of issuers without discovery, by
	// issuer.
	Keys map[string]string
	// Client fetches discovery documents and keys. Nil: one with limits.
	Client *http.Client
}

// algorithms are those with public keys. A token never chooses: "none" and the
// shared secrets of HS256 are not among them.
var algorithms = []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.EdDSA}

// Verifier checks signature, issuer, expiry, not-before and audience of a token.
// The user is issuer and subject, since a subject means something to its issuer
// alone; with one issuer it is the subject. Scopes are the claim "scope" or "scp".
//
// Keys are fetched again for a token with an unknown one, at most five at a time
// and then one in ten seconds, so that forged tokens cannot make this server
// attack its issuer. Where keys cannot be fetched the error is not
// [auth.ErrInvalidToken], so the client is not sent to log in again.
func Verifier(o Options) auth.TokenVerifier {
	client := o.Client
	if client == nil {
		client = newClient()
	}
	v := &verifier{resource: o.Resource, keys: o.Keys, client: client, byIssuer: map[string]*issuer{}}
	for _, name := range o.Issuers {
		v.byIssuer[name] = &issuer{name: name}
	}
	return v.verify
}

type verifier struct {
	resource string
	keys     map[string]string
	client   *http.Client
	byIssuer map[string]*issuer
}

// An issuer is found when its first token comes.
type issuer struct {
	name string
	mu   sync.Mutex
	ids  *oidc.IDTokenVerifier
}

func (v *verifier) verify(ctx context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
	name, err := claimed(token)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", auth.ErrInvalidToken, err)
	}
	from := v.byIssuer[name]
	if from == nil {
		return nil, fmt.Errorf("%w: unknown issuer", auth.ErrInvalidToken)
	}
	ids, err := v.find(from)
	if err != nil {
		return nil, err
	}
	var fetch error
	good, err := ids.Verify(context.WithValue(ctx, fetchKey{}, &fetch), token)
	if fetch != nil {
		return nil, fmt.Errorf("keys of %s: %w", name, fetch)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", auth.ErrInvalidToken, err)
	}
	var claims struct {
		Scope string          `json:"scope"`
		Scp   json.RawMessage `json:"scp"`
	}
	if err := good.Claims(&claims); err != nil || good.Subject == "" {
		return nil, fmt.Errorf("%w: claims", auth.ErrInvalidToken)
	}
	user := good.Subject
	if len(v.byIssuer) > 1 {
		user = name + "#" + user
	}
	return &auth.TokenInfo{UserID: user, Scopes: scopes(claims.Scope, claims.Scp), Expiration: good.Expiry}, nil
}

// claimed is the issuer that a token names, unproved: it only chooses whose keys
// are to prove it.
func claimed(token string) (string, error) {
	if len(token) > 16<<10 {
		return "", errors.New("too long")
	}
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return "", errors.New("not a JWT")
	}
	body, err := rawURL.DecodeString(parts[1])
	if err != nil {
		return "", errors.New("not a JWT")
	}
	var c struct {
		Issuer string `json:"iss"`
	}
	if err := json.Unmarshal(body, &c); err != nil {
		return "", errors.New("not a JWT")
	}
	return c.Issuer, nil
}

// find discovers an issuer once. A failure is tried again with the next token.
func (v *verifier) find(from *issuer) (*oidc.IDTokenVerifier, error) {
	from.mu.Lock()
	defer from.mu.Unlock()
	if from.ids != nil {
		return from.ids, nil
	}
	// Not the request's context: the keys outlive it.
	ctx := oidc.ClientContext(context.Background(), v.client)
	config := &oidc.Config{ClientID: v.resource, SupportedSigningAlgs: algorithms}
	at := v.keys[from.name]
	if at == "" {
		var found struct {
			Keys string `json:"jwks_uri"`
		}
		provider, err := oidc.NewProvider(ctx, from.name)
		if err == nil {
			err = provider.Claims(&found)
		}
		if err != nil {
			return nil, fmt.Errorf("discover %s: %w", from.name, err)
		}
		at = found.Keys
	}
	from.ids = oidc.NewVerifier(from.name, keys{oidc.NewRemoteKeySet(ctx, at)}, config)
	return from.ids, nil
}

// keys tells a token that is no good from keys that cannot be fetched, which the
// library puts into one text.
type keys struct{ oidc.KeySet }

type fetchKey struct{}

// VerifySignature notes in the context that it could not fetch keys.
func (k keys) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	payload, err := k.KeySet.VerifySignature(ctx, token)
	if failed, ok := errors.AsType[*fetchError](err); ok {
		if note, ok := ctx.Value(fetchKey{}).(*error); ok {
			*note = failed
		}
	}
	return payload, err
}

// scopes reads both forms: words in one text, and a list.
func scopes(words string, scp json.RawMessage) []string {
	list := strings.Fields(words)
	var more []string
	if json.Unmarshal(scp, &more) == nil {
		return append(list, more...)
	}
	var text string
	if json.Unmarshal(scp, &text) == nil {
		list = append(list, strings.Fields(text)...)
	}
	return list
}
