package toolkit

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// minToken is the length below which a token can be guessed.
const minToken = 16

// HTTP says who may use a server over HTTP. The zero value: programs on this
// machine.
type HTTP struct {
	// Hosts are names, without port, under which the server may be reached
	// besides loopback.
	Hosts []string
	// Origins are those of web pages that may use the server, such as
	// "https://inspector.example", besides its own.
	Origins []string
	// Token is a bearer token that every request must carry, at least 16
	// characters. [Main] takes it from MCP_TOKEN.
	Token string
	// OAuth accepts the tokens of an authorization server instead.
	OAuth *OAuth
}

// OAuth makes the server a resource server of OAuth 2.1, as MCP wants it.
type OAuth struct {
	// Resource is the address of this server, as tokens name it in their
	// audience, such as "https://weather.example/mcp".
	Resource string
	// Issuers are the authorization servers whose tokens are accepted.
	Issuers []string
	// Scopes are needed for any request.
	Scopes []string
	// Verify checks a token: signature or introspection, expiry, and that its
	// audience is exactly Resource. It returns [auth.ErrInvalidToken] for tokens
	// that are no good; the text of other errors is logged, and not sent. The
	// UserID it returns ties legacy sessions to their user. Tokens must never be
	// passed on to other services.
	Verify auth.TokenVerifier
}

func (h HTTP) check() error {
	switch {
	case h.Token != "" && h.OAuth != nil:
		return errors.New("Options.HTTP: give a Token or OAuth, not both")
	case h.Token != "" && (len(h.Token) < minToken || strings.ContainsAny(h.Token, " \t\r\n")):
		return fmt.Errorf("Options.HTTP: the token must have at least %d characters and no spaces", minToken)
	}
	for _, origin := range h.Origins {
		if u, err := url.Parse(origin); err != nil || u.Scheme == "" || u.Host == "" || u.Path != "" {
			return fmt.Errorf("Options.HTTP: %q is not an origin such as https://inspector.example", origin)
		}
	}
	if h.OAuth == nil {
		return nil
	}
	u, err := url.Parse(h.OAuth.Resource)
	switch {
	case err != nil, !u.IsAbs(), u.Host == "", u.Fragment != "":
		return fmt.Errorf("Options.HTTP.OAuth: Resource %q is not the address of a server", h.OAuth.Resource)
	case len(h.OAuth.Issuers) == 0:
		return errors.New("Options.HTTP.OAuth: no Issuers")
	case h.OAuth.Verify == nil:
		return errors.New("Options.HTTP.OAuth: no Verify")
	}
	return nil
}

// guarded reports whether requests must carry a token.
func (h HTTP) guarded() bool { return h.Token != "" || h.OAuth != nil }

// authenticated asks for a token, where one is wanted.
func (h HTTP) authenticated(next http.Handler, log *slog.Logger) http.Handler {
	switch {
	case h.OAuth != nil:
		verify := h.OAuth.Verify
		hidden := func(ctx context.Context, token string, r *http.Request) (*auth.TokenInfo, error) {
			info, err := verify(ctx, token, r)
			if err == nil || errors.Is(err, auth.ErrInvalidToken) {
				if err != nil {
					err = auth.ErrInvalidToken
				}
				return info, err
			}
			log.ErrorContext(ctx, "a token could not be verified", "error", err)
			return nil, errors.New("the token could not be verified")
		}
		return auth.RequireBearerToken(hidden, &auth.RequireBearerTokenOptions{
			ResourceMetadataURL: h.OAuth.metadataURL(), Scopes: h.OAuth.Scopes,
		})(next)
	case h.Token != "":
		want := sha256.Sum256([]byte(h.Token))
		return auth.RequireBearerToken(func(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
			got := sha256.Sum256([]byte(token))
			if subtle.ConstantTimeCompare(got[:], want[:]) == 0 {
				return nil, auth.ErrInvalidToken
			}
			return &auth.TokenInfo{UserID: "token"}, nil
		}, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(next)
	}
	return next
}

// metadataPath is where RFC 9728 puts the metadata.
const metadataPath = "/.well-known/oauth-protected-resource"

// metadataURL inserts the well-known path before that of the resource, as RFC
// 9728 section 3.1 wants it.
func (o *OAuth) metadataURL() string {
	u, err := url.Parse(o.Resource)
	if err != nil {
		return ""
	}
	u.Path = metadataPath + strings.TrimSuffix(u.Path, "/")
	return u.String()
}

func (o *OAuth) metadataHandler() http.Handler {
	return auth.ProtectedResourceMetadataHandler(&oauthex.ProtectedResourceMetadata{
		Resource:               o.Resource,
		AuthorizationServers:   o.Issuers,
		ScopesSupported:        o.Scopes,
		BearerMethodsSupported: []string{"header"},
	})
}
