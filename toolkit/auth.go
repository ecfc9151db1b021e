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
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/dragoman-mcp/dragoman/internal/identity/apikey"
)

// minToken is the length below which a token can be guessed.
const minToken = 16

// HTTP says who may use a server over HTTP. The zero value: programs on this
// machine, as nobody in particular, see [Caller].
//
// A Token is for one owner, APIKeys for a handful of users without an
// authorization server, OAuth for everybody who has one, Authenticate for what
// already knows them. APIKeys and OAuth go together; the others stand alone.
type HTTP struct {
	// Hosts are names, without port, under which the server may be reached
	// besides loopback.
	Hosts []string
	// Origins are those of web pages that may use the server, such as
	// "https://inspector.example", besides its own.
	Origins []string
	// Token is a bearer token that every request must carry, at least 16
	// characters. [Main] takes it from MCP_TOKEN. Who has it is the user "token"
	// and may do everything.
	Token string
	// APIKeys maps bearer tokens that begin with "dgm_" to users. [Main] takes it
	// from the file of --keys.
	APIKeys APIKeys
	// OAuth accepts the tokens of an authorization server.
	OAuth *OAuth
	// Authenticate recognises callers by anything else in a request: the
	// certificate of a client, a cookie, the header that a trusted proxy sets. It
	// returns [ErrUnauthenticated] for nobody. Any other error, and a Caller
	// without User, is a refusal too; its text is logged, and not sent. It is
	// called for every request, from many goroutines.
	Authenticate func(r *http.Request) (Caller, error)
}

// ErrUnauthenticated is what [HTTP.Authenticate] returns for a request that does
// not prove whose it is.
var ErrUnauthenticated = errors.New("unauthenticated")

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
	// UserID it returns is the [Caller.User], ties legacy sessions to their user,
	// and must not be empty. Tokens must never be passed on to other services.
	Verify auth.TokenVerifier
}

func (h HTTP) check() error {
	alone := 0
	for _, given := range []bool{h.Token != "", h.Authenticate != nil, h.APIKeys != nil || h.OAuth != nil} {
		if given {
			alone++
		}
	}
	switch {
	case alone > 1:
		return errors.New("Options.HTTP: give a Token, or Authenticate, or APIKeys and OAuth")
	case h.Token != "" && (len(h.Token) < minToken || strings.ContainsAny(h.Token, " \t\r\n")):
		return fmt.Errorf("Options.HTTP: the token, which is that of MCP_TOKEN where the options have none, must have at least %d characters and no spaces", minToken)
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

// guarded reports whether requests must say whose they are.
func (h HTTP) guarded() bool {
	return h.Token != "" || h.OAuth != nil || h.APIKeys != nil || h.Authenticate != nil
}

// authenticated finds out who asks, where that is wanted.
func (h HTTP) authenticated(next http.Handler, log *slog.Logger) http.Handler {
	switch {
	case h.Authenticate != nil:
		return h.recognised(next, log)
	case !h.guarded():
		return next
	}
	// Tokens of an authorization server must expire, which h.oauth checks; keys
	// need not.
	o := &auth.RequireBearerTokenOptions{AllowMissingExpiration: true}
	if h.OAuth != nil {
		o.ResourceMetadataURL, o.Scopes = h.OAuth.metadataURL(), h.OAuth.Scopes
	}
	want := sha256.Sum256([]byte(h.Token))
	return auth.RequireBearerToken(func(ctx context.Context, token string, r *http.Request) (*auth.TokenInfo, error) {
		switch got := sha256.Sum256([]byte(token)); {
		case h.Token != "" && subtle.ConstantTimeCompare(got[:], want[:]) == 1:
			return carried(Caller{User: "token", Rights: []string{"*"}}, nil), nil
		case h.APIKeys != nil && apikey.Is(token):
			return h.byKey(ctx, token, log)
		case h.OAuth != nil:
			return h.OAuth.check(ctx, token, r, log)
		}
		return nil, auth.ErrInvalidToken
	}, o)(next)
}

// check is Verify, with its errors hidden from the caller.
func (o *OAuth) check(ctx context.Context, token string, r *http.Request, log *slog.Logger) (*auth.TokenInfo, error) {
	info, err := o.Verify(ctx, token, r)
	if err == nil && (info == nil || info.UserID == "") {
		err = errors.New("the token has no UserID")
	}
	switch {
	case errors.Is(err, auth.ErrInvalidToken):
		return nil, auth.ErrInvalidToken
	case err != nil:
		log.ErrorContext(ctx, "a token could not be verified", "error", err)
		return nil, errors.New("the token could not be verified")
	case info.Expiration.IsZero():
		return nil, auth.ErrInvalidToken
	}
	return carried(Caller{User: info.UserID, Rights: info.Scopes, Token: info}, info), nil
}

// carried is a TokenInfo that brings a caller to where a request is answered. The
// SDK ties legacy sessions to its UserID.
func carried(c Caller, from *auth.TokenInfo) *auth.TokenInfo {
	info := &auth.TokenInfo{UserID: c.User}
	if from != nil {
		*info = *from
	}
	info.Extra = map[string]any{tokenCaller: c}
	return info
}

// recognised asks the author who asks. The SDK knows callers by bearer tokens
// alone, so the request goes on with one that stands for the caller, and without
// whatever it came with.
func (h HTTP) recognised(next http.Handler, log *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := h.Authenticate(r)
		switch {
		case errors.Is(err, ErrUnauthenticated):
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "unauthenticated", http.StatusUnauthorized)
			return
		case err != nil || !c.Authenticated():
			log.ErrorContext(r.Context(), "it could not be found out who asks", "error", err)
			http.Error(w, "it could not be found out who asks", http.StatusInternalServerError)
			return
		}
		c.owner = false // whoever came over the network did not start the server
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer recognised")
		auth.RequireBearerToken(func(context.Context, string, *http.Request) (*auth.TokenInfo, error) {
			return carried(c, nil), nil
		}, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(next).ServeHTTP(w, r)
	})
}

// stepUp answers a call that needs a right which its token's scopes have not: with
// status 403 and the scopes that it takes, so that the client can ask its user for
// them (MCP 2025-11-25, "Scope Challenge Handling"). Only those who came with an
// OAuth token can do that; everybody else is told in the result.
func (s *Server) stepUp(w http.ResponseWriter, r *http.Request, m envelope) bool {
	kind, ok := map[string]string{"tools/call": "tool", "prompts/get": "prompt", "resources/read": "resource"}[m.method]
	info := auth.TokenInfoFromContext(r.Context())
	if !ok || info == nil || s.opts.HTTP.OAuth == nil {
		return false
	}
	request := newRequest(r.Context(), kind, m.name, nil, nil, &sdk.RequestExtra{TokenInfo: info})
	needed := s.demands.get(kind + " " + m.name)
	if request.Token == nil || request.lacks(needed) == "" {
		return false
	}
	s.trail.write(s.name, entry{request: request, name: m.name, outcome: codeDenied})
	w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer error="insufficient_scope", scope=%q, resource_metadata=%q`,
		strings.Join(needed, " "), s.opts.HTTP.OAuth.metadataURL()))
	http.Error(w, "insufficient scope", http.StatusForbidden)
	return true
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
