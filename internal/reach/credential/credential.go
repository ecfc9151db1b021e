// Package credential gets and keeps access tokens for MCP servers. The token that a
// caller showed the gateway is never one of them: it was made for the gateway, and
// goes nowhere but, where the configuration says so, to the authorization server that
// exchanges it.
//
// There are three ways to a token, by what the configuration says of the server. A
// person logs in once, with [Login], in a browser; what comes of it is kept in a
// [Store], for the gateway or for one caller, and renewed without them. Or the gateway
// is itself a client, with an id and a secret, and gets its tokens when a server asks
// for them. Or it exchanges what a caller showed ([Subjects]) for a token of the
// server's.
//
// A [Transport] shows the token to the server that it is for, and to no other origin.
// Finding out where to log in, registration, PKCE, the resource, the issuer in the
// answer and step-up are those of the official SDK (package auth).
package credential

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"reflect"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/identity/accesstoken"
	"github.com/dragoman-mcp/dragoman/internal/text/invalid"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

// Config is how the gateway gets tokens for a server; the zero value is a login as a
// client that registers itself.
type Config struct {
	Grant         Grant       `yaml:"grant" enum:"login,client_credentials,token_exchange" doc:"login: a person logs in with dragoman login LABEL. client_credentials: the gateway is a client of its own, with client_id and client_secret. token_exchange: the access token that a caller shows the gateway is exchanged at issuer for one of the server (RFC 8693)."`
	Whose         Whose       `yaml:"whose" enum:"gateway,caller" doc:"Who logs in. gateway: somebody does for all callers. caller: each caller does, and its calls are made with its own token; the server is one of share: caller or session. token_exchange is always caller."`
	ClientID      string      `yaml:"client_id" doc:"Who the gateway is at the server's authorization server. Without it the gateway registers itself when somebody logs in."`
	ClientSecret  secret.Text `yaml:"client_secret" doc:"Its secret there; none for a public client."`
	Issuer        string      `yaml:"issuer" doc:"The authorization server that client_id is of; of several that the server names people log in at this one. It gets the secret, and no other one does. One in a private network has to be named here: what only the server names is reached at public addresses alone."`
	Metadata      string      `yaml:"client_metadata_url" doc:"Address of a document that says who the gateway is, for authorization servers that take one in place of a registration."`
	TokenURL      string      `yaml:"token_url" doc:"With token_exchange: the token endpoint of issuer. Without this key its metadata tell it."`
	SubjectIssuer string      `yaml:"subject_issuer" doc:"With token_exchange: whose access tokens are exchanged, one of auth.oauth; those of others never go to issuer. Default: issuer."`
	Audience      string      `yaml:"audience" doc:"With token_exchange: what the authorization server calls the server, where that is not its address."`
	Resource      string      `yaml:"resource" doc:"With token_exchange: the address that the token is asked for. Default: url."`
	Scopes        []string    `yaml:"scopes" doc:"With token_exchange: the scopes that are asked for. Without this key those that the server wants."`
}

// Grant is a way to get a token.
type Grant string

// The grants; the empty Grant means LoginGrant.
const (
	LoginGrant             Grant = "login"
	ClientCredentialsGrant Grant = "client_credentials"
	TokenExchangeGrant     Grant = "token_exchange"
)

// Whose says for whom tokens are.
type Whose string

// Whose tokens there are; the empty Whose means WhoseGateway.
const (
	WhoseGateway Whose = "gateway"
	WhoseCaller  Whose = "caller"
)

// IsZero reports whether nothing is said.
func (c *Config) IsZero() bool { return reflect.ValueOf(c).Elem().IsZero() }

// PerCaller reports whether each caller has tokens of its own.
func (c *Config) PerCaller() bool { return c.Whose == WhoseCaller || c.Grant == TokenExchangeGrant }

// LogsIn reports whether tokens come of a person's login.
func (c *Config) LogsIn() bool { return c.Grant == "" || c.Grant == LoginGrant }

// Exchanges is the issuer whose access tokens are exchanged; empty where none are.
func (c *Config) Exchanges() string {
	if c.Grant != TokenExchangeGrant {
		return ""
	}
	return cmp.Or(c.SubjectIssuer, c.Issuer)
}

// Validate reports what cannot work, as a [*invalid.Error].
func (c *Config) Validate() error {
	switch {
	case !c.LogsIn() && (c.ClientID == "" || c.ClientSecret.IsZero()):
		return invalid.Key("grant", string(c.Grant)+" takes a client_id and a client_secret")
	case !c.ClientSecret.IsZero() && c.ClientID == "":
		return invalid.Key("client_secret", "a secret is of a client_id")
	case !c.ClientSecret.IsZero() && c.Issuer == "":
		return invalid.Key("issuer", "say whose client this is: whatever server the metadata name would get the secret")
	case c.Metadata != "" && c.ClientID != "":
		return invalid.Key("client_metadata_url", "a client_id and a document, not both")
	case c.Grant == ClientCredentialsGrant && c.Whose == WhoseCaller:
		return invalid.Key("whose", "with client_credentials the tokens are the gateway's")
	case c.Grant == TokenExchangeGrant && c.Whose == WhoseGateway:
		return invalid.Key("whose", "with token_exchange the tokens are the caller's")
	}
	if err := c.validateExchange(); err != nil {
		return err
	}
	if u, err := url.Parse(c.Metadata); c.Metadata != "" && (err != nil || u.Scheme != "https" || strings.Trim(u.Path, "/") == "") {
		return invalid.Key("client_metadata_url", "this is an https address with a path")
	}
	return nil
}

// validateExchange is the part of Validate about exchanging tokens.
func (c *Config) validateExchange() error {
	if c.Grant == TokenExchangeGrant {
		if err := accesstoken.CheckURL(c.Issuer); err != nil {
			return invalid.Key("issuer", err.Error())
		}
		if err := accesstoken.CheckURL(c.TokenURL); c.TokenURL != "" && err != nil {
			return invalid.Key("token_url", err.Error())
		}
		return nil
	}
	for _, k := range []struct {
		key string
		set bool
	}{{"token_url", c.TokenURL != ""}, {"subject_issuer", c.SubjectIssuer != ""}, {"audience", c.Audience != ""}, {"resource", c.Resource != ""}, {"scopes", len(c.Scopes) > 0}} {
		if k.set {
			return invalid.Key(k.key, "this is for grant: token_exchange")
		}
	}
	return nil
}

// origin is the scheme, host and port of an address.
func origin(u *url.URL) string {
	port := u.Port()
	switch {
	case port != "":
	case u.Scheme == "https":
		port = "443"
	default:
		port = "80"
	}
	return u.Scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// A LoginError says that somebody has to log in, or to show a token.
type LoginError struct {
	// Do is what they have to do, such as "run dragoman login tickets".
	Do string
	// Err is why what there was is of no use; nil where there was nothing.
	Err error
}

// Error says what to do.
func (e *LoginError) Error() string { return "the server wants a login: " + e.Advice() }

// Advice says what to do, and why, where something else says what is wrong.
func (e *LoginError) Advice() string {
	if e.Err == nil {
		return e.Do
	}
	return fmt.Sprintf("%s (what was there is of no use any more: %v)", e.Do, e.Err)
}

// Unwrap returns Err.
func (e *LoginError) Unwrap() error { return e.Err }
