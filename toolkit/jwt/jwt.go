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
	"errors"
	"fmt"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/auth"

	"github.com/dragoman-mcp/dragoman/internal/identity/accesstoken"
)

// Options say which tokens are good.
type Options struct {
	// Resource must be among the audience of a token, letter by letter.
	Resource string
	// Issuers are the authorization servers, at https, or at http on this machine.
	// Their keys are found by their metadata (RFC 8414, OpenID Connect Discovery),
	// when the first token of each comes.
	Issuers []string
	// Keys are the addresses of key sets (JWKS) of issuers without metadata, by
	// issuer.
	Keys map[string]string
	// Client fetches metadata and keys. Nil: one with limits.
	Client *http.Client
}

// Verifier checks signature, issuer, type, times and audience of a token, with a
// tolerance of half a minute. The user is issuer and subject, since a subject means
// something to its issuer alone; with one issuer it is the subject. Scopes are the
// claim "scope" or "scp". A token that is bound to a key of its client is refused,
// since nobody asks for the proof here.
//
// Keys are fetched again every five minutes and for a token with an unknown one, at
// most five at a time and then one in ten seconds, so that forged tokens cannot
// make this server attack its issuer. Where the issuer cannot be reached the keys
// that are there are good for an hour, and then, or where there are none, the error
// is not [auth.ErrInvalidToken], so the client is not sent to log in again.
//
// Options that cannot work make a verifier that refuses every token with the
// reason.
func Verifier(o Options) auth.TokenVerifier {
	issuers := make([]accesstoken.Issuer, len(o.Issuers))
	for n, name := range o.Issuers {
		issuers[n] = accesstoken.Issuer{Name: name, KeySet: o.Keys[name]}
	}
	verifier, wrong := accesstoken.New(o.Client, issuers...)
	return func(ctx context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
		if wrong != nil {
			return nil, fmt.Errorf("jwt.Options: %w", wrong)
		}
		good, err := verifier.Verify(ctx, token, o.Resource)
		if _, ok := errors.AsType[*accesstoken.Invalid](err); ok {
			return nil, fmt.Errorf("%w: %w", auth.ErrInvalidToken, err)
		}
		if err != nil {
			return nil, err
		}
		user := good.Subject
		if len(issuers) > 1 {
			user = good.Issuer + "#" + user
		}
		return &auth.TokenInfo{UserID: user, Scopes: good.Scopes, Expiration: good.Expires}, nil
	}
}
