package credential

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

// A machine gets tokens by client credentials (RFC 6749 section 4.4; MCP extension
// oauth-client-credentials). The SDK's own does not name the resource.
type machine struct {
	config Config
	client *http.Client
	server string
	scopes []string // of all challenges so far, since a token for more is for less, too

	grant     *clientcredentials.Config // nil until the server has wanted a token
	had       *oauth2.Token             // of it, the last one
	unrenewed time.Time                 // when renewing that failed last

	failed time.Time // when asking for a token failed last
	reason error

	last refusedToken
}

// basis: what it takes to get a token is in the configuration.
func (m *machine) basis() string { return "" }

func (m *machine) token(ctx context.Context) (string, error) {
	if m.grant == nil {
		return "", nil
	}
	if !m.had.Valid() && time.Since(m.unrenewed) >= retryAfter {
		err := m.ask(ctx, m.grant)
		switch {
		case err != nil && ctx.Err() != nil:
			return "", context.Cause(ctx)
		case err != nil:
			m.unrenewed = time.Now()
		}
	}
	if !m.had.Expiry.IsZero() && time.Until(m.had.Expiry) <= 0 {
		return "", nil // the server will say what it wants, and then there is another one
	}
	return m.had.AccessToken, nil // which is good still, where there is no other
}

func (m *machine) another(ctx context.Context, shown string, _ *http.Request, res *http.Response) (string, error) {
	switch {
	case time.Since(m.failed) < retryAfter:
		return "", m.reason
	case m.last.lately(shown) && len(union(m.scopes, challenged(res))) == len(m.scopes): // else it is another question
		return "", m.wanted()
	}
	if err := m.authorize(ctx, res); err != nil {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		m.failed, m.reason = time.Now(), err
		return "", err
	}
	return m.had.AccessToken, nil
}

func (m *machine) useless(token string, _ *http.Response) *LoginError {
	m.last = refusedToken{secret.New(token), time.Now()}
	return m.wanted()
}

// wanted says who can do something where the server takes no token of ours.
func (m *machine) wanted() *LoginError {
	return &LoginError{"see what " + m.config.Issuer + " lets the client " + m.config.ClientID + " do", errUseless}
}

// authorize asks for tokens that an answer of the server wants.
func (m *machine) authorize(ctx context.Context, res *http.Response) error {
	challenges, err := oauthex.ParseWWWAuthenticate(res.Header.Values("WWW-Authenticate"))
	if err != nil {
		return fmt.Errorf("the server's challenge cannot be read: %w", err)
	}
	resource, err := m.resource(ctx, challenges)
	if err != nil {
		return err
	}
	// The secret is of one issuer, and goes to no other that the server names.
	if !slices.Contains(resource.AuthorizationServers, m.config.Issuer) {
		return fmt.Errorf("the server wants tokens of %s, and the client is one of %s", strings.Join(resource.AuthorizationServers, ", "), m.config.Issuer)
	}
	server, err := auth.GetAuthServerMetadata(ctx, m.config.Issuer, m.client)
	if err != nil {
		return fmt.Errorf("the metadata of %s: %w", m.config.Issuer, err)
	}
	if server == nil || server.TokenEndpoint == "" || server.Issuer != m.config.Issuer {
		return fmt.Errorf("%s has no metadata", m.config.Issuer)
	}
	m.scopes = union(m.scopes, challenged(res))
	return m.ask(ctx, &clientcredentials.Config{
		ClientID: m.config.ClientID, ClientSecret: m.config.ClientSecret.Reveal(), TokenURL: server.TokenEndpoint, Scopes: m.scopes,
		EndpointParams: url.Values{"resource": {resource.Resource}}, AuthStyle: authStyle(server.TokenEndpointAuthMethodsSupported),
	})
}

// ask asks for a token, and keeps it and how it was asked for.
func (m *machine) ask(ctx context.Context, grant *clientcredentials.Config) error {
	token, err := grant.Token(context.WithValue(ctx, oauth2.HTTPClient, m.client))
	if err != nil {
		if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok && refused.ErrorCode != "" && !away(refused) {
			return fmt.Errorf("%s refuses: %s", m.config.Issuer, known(refused.ErrorCode))
		}
		return fmt.Errorf("%s cannot be asked for a token", m.config.Issuer)
	}
	if err := check(token); err != nil {
		return err
	}
	m.grant, m.had = grant, token
	return nil
}

// resource finds the metadata of the server: where its challenge says, or where they
// are by rule (RFC 9728 section 3.1).
func (m *machine) resource(ctx context.Context, challenges []oauthex.Challenge) (*oauthex.ProtectedResourceMetadata, error) {
	u, err := url.Parse(m.server)
	if err != nil {
		return nil, err
	}
	const wellKnown = "/.well-known/oauth-protected-resource"
	root := u.Scheme + "://" + u.Host
	var places [][2]string // metadata, and the resource that they have to be of
	for _, c := range challenges {
		if at := c.Params["resource_metadata"]; at != "" {
			places = append(places, [2]string{at, m.server})
		}
	}
	places = append(places, [2]string{root + wellKnown + strings.TrimSuffix(u.EscapedPath(), "/"), m.server}, [2]string{root + wellKnown, root})
	for _, place := range places {
		var found *oauthex.ProtectedResourceMetadata
		if found, err = oauthex.GetProtectedResourceMetadata(ctx, place[0], place[1], m.client); err == nil && found != nil {
			return found, nil
		}
	}
	return nil, fmt.Errorf("the server does not say whose tokens it takes: %w", err)
}

// authStyle is how the secret is sent, by what an authorization server takes; basic
// is what it takes where it does not say (RFC 8414 section 2).
func authStyle(methods []string) oauth2.AuthStyle {
	if len(methods) > 0 && !slices.Contains(methods, "client_secret_basic") && slices.Contains(methods, "client_secret_post") {
		return oauth2.AuthStyleInParams
	}
	return oauth2.AuthStyleInHeader
}
