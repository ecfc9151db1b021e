// Package credential gets and keeps the gateway's own access tokens for MCP servers.
// A caller's token is never among them: it was made for the gateway, and goes nowhere
// else.
//
// There are two ways to a token, by what the configuration says of the server. A
// person logs in once, with [Login], in a browser; what comes of it is kept in a
// [Store] and renewed without them. Or the gateway is itself a client, with an id and
// a secret, and gets its tokens when a server asks for them.
//
// A [Transport] shows the token to the server that it is for, and to no other origin.
// Finding out where to log in, registration, PKCE, the resource, the issuer in the
// answer and step-up are those of the official SDK (package auth).
package credential

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/safehttp"
)

// Config is how the gateway gets tokens for a server; the zero value is a login as a
// client that registers itself.
type Config struct {
	Grant        Grant  `yaml:"grant" enum:"login,client_credentials" doc:"login: a person logs in with dragoman login LABEL. client_credentials: the gateway is a client of its own, with client_id and client_secret."`
	ClientID     string `yaml:"client_id" doc:"Who the gateway is at the server's authorization server. Without it the gateway registers itself when somebody logs in."`
	ClientSecret string `yaml:"client_secret" secret:"always" doc:"Its secret there; none for a public client."`
	Issuer       string `yaml:"issuer" doc:"The authorization server that client_id is of. It gets the secret, and no other one does."`
	Metadata     string `yaml:"client_metadata_url" doc:"Address of a document that says who the gateway is, for authorization servers that take one in place of a registration."`
}

// Grant is a way to get a token.
type Grant string

// The grants; the empty Grant means LoginGrant.
const (
	LoginGrant             Grant = "login"
	ClientCredentialsGrant Grant = "client_credentials"
)

// A ConfigError says which key of a [Config] is wrong and why.
type ConfigError struct{ Field, Message string }

// Error returns the message, with the key in front of it.
func (e *ConfigError) Error() string { return e.Field + ": " + e.Message }

// Key returns Field; configuration reading finds the line with it.
func (e *ConfigError) Key() string { return e.Field }

// Reason returns Message, without the key.
func (e *ConfigError) Reason() string { return e.Message }

// Validate reports what cannot work, as a [*ConfigError].
func (c *Config) Validate() error {
	switch {
	case c.Grant == ClientCredentialsGrant && (c.ClientID == "" || c.ClientSecret == ""):
		return &ConfigError{"grant", "client_credentials takes a client_id and a client_secret"}
	case c.ClientSecret != "" && c.ClientID == "":
		return &ConfigError{"client_secret", "a secret is of a client_id"}
	case c.ClientSecret != "" && c.Issuer == "":
		return &ConfigError{"issuer", "say whose client this is: whatever server the metadata name would get the secret"}
	case c.Metadata != "" && c.ClientID != "":
		return &ConfigError{"client_metadata_url", "a client_id and a document, not both"}
	}
	if u, err := url.Parse(c.Metadata); c.Metadata != "" && (err != nil || u.Scheme != "https" || strings.Trim(u.Path, "/") == "") {
		return &ConfigError{"client_metadata_url", "this is an https address with a path"}
	}
	return nil
}

// newClient returns the client for what a server and its metadata name. Where the
// server itself is on this machine or in a private network by its very address, so
// may be its authorization server; else only public addresses are connected to.
func newClient(server *url.URL) *http.Client {
	o := safehttp.Options{Untrusted: true, MaxRedirects: -1, HeaderTimeout: 20 * time.Second}
	if nearby(server.Hostname()) {
		o.Untrusted = false
		o.Control = func(_, address string, _ syscall.RawConn) error {
			to, err := netip.ParseAddrPort(address)
			if err != nil {
				return err
			}
			return safehttp.CheckLocal(to.Addr()) // never where a cloud has its secrets
		}
	}
	client := safehttp.NewClient(o)
	client.Timeout = 30 * time.Second
	return client
}

func nearby(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && safehttp.CheckAddress(ip) != nil && safehttp.CheckLocal(ip) == nil
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

// A LoginError says that somebody has to log in.
type LoginError struct {
	// Server is the label of the server; it may be empty.
	Server string
	// Err is why what there was is of no use; nil where there was nothing.
	Err error
}

// Error says what to do.
func (e *LoginError) Error() string {
	text := "the server wants a login: run dragoman login " + e.Server
	if e.Err != nil {
		text += fmt.Sprintf(" (what was there is of no use any more: %v)", e.Err)
	}
	return text
}

// Unwrap returns Err.
func (e *LoginError) Unwrap() error { return e.Err }
