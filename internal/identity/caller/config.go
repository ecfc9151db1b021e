package caller

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/identity/accesstoken"
	"github.com/dragoman-mcp/dragoman/internal/identity/permission"
	"github.com/dragoman-mcp/dragoman/internal/text/invalid"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

// Config is the section auth of the configuration: who may call the gateway.
type Config struct {
	APIKeys   []secret.Text `yaml:"api_keys" doc:"Keys that programs present as Authorization: Bearer, in addition to the one in DRAGOMAN_API_KEY. Each has 16 characters or more, and is no word of an example."`
	KeysFile  string        `yaml:"keys_file" doc:"File of keys that dragoman keys makes and revokes; it is read again when it changes. Without this key it is keys.jsonl beside this file, where there is one."`
	PublicURL string        `yaml:"public_url" doc:"Address of the gateway as clients know it: scheme, host and maybe a port. Needed with oauth, since tokens are made for it."`
	OAuth     []Issuer      `yaml:"oauth" doc:"Authorization servers whose access tokens are accepted."`

	// Awaited is where a file of keys counts as soon as there is one; empty where KeysFile
	// names one, or none can be.
	Awaited string
}

// Issuer is an authorization server whose access tokens are accepted.
type Issuer struct {
	Issuer        string        `yaml:"issuer" need:"true" doc:"Its identifier, an https address, as its tokens and its metadata name it letter by letter."`
	Audience      string        `yaml:"audience" doc:"What its tokens name as their audience, letter by letter. Without this key it is the address that is asked, below public_url, or one above it."`
	JWKSURI       string        `yaml:"jwks_uri" doc:"Address of its keys. Without this key its metadata tell it."`
	Introspection Introspection `yaml:"introspection" doc:"How it is asked about each token (RFC 7662), for tokens that are not signed, or are revoked at once. One issuer at most."`
	Required      []string      `yaml:"required_scopes" doc:"Scopes that a token needs for anything at all."`
	Grants        []string      `yaml:"grants" doc:"What every token of it may do: rights such as tool:github__search, or patterns of them."`
	Scopes        []Scope       `yaml:"scopes" doc:"What scopes of a token add to that. A scope that is itself a right needs no entry."`
	Console       Client        `yaml:"console" doc:"How people sign in there at the console. Without this key they sign in with a key alone."`
}

// Client is who the gateway is at an issuer when people sign in at the console; the zero
// value lets nobody sign in there.
type Client struct {
	ID     string      `yaml:"client_id" doc:"Who the gateway is there. Its redirect address is public_url and /console/sign-in/back."`
	Secret secret.Text `yaml:"client_secret" doc:"Its secret there. Without this key it is a public client."`
	Scopes []string    `yaml:"scopes" doc:"Scopes to ask for. Without this key they are those that are required and those that scopes names."`
}

// Introspection is how an issuer is asked about tokens; the zero value does not ask.
type Introspection struct {
	URL          string      `yaml:"url" doc:"Address of its introspection endpoint."`
	ClientID     string      `yaml:"client_id" doc:"Who the gateway is there."`
	ClientSecret secret.Text `yaml:"client_secret" doc:"Its secret there."`
}

// Scope is what a scope of OAuth means here.
type Scope struct {
	Scope  string   `yaml:"scope" need:"true" doc:"The scope, as tokens have it."`
	Grants []string `yaml:"grants" need:"true" doc:"What it may do."`
}

// Validate reports what cannot work, as a [*invalid.Error].
func (c *Config) Validate() error {
	for _, key := range c.APIKeys {
		if err := CheckKey(key.Reveal()); err != nil {
			return invalid.Key("api_keys", err.Error())
		}
	}
	if len(c.OAuth) == 0 {
		return nil
	}
	u, err := url.Parse(c.PublicURL)
	switch {
	case c.PublicURL == "":
		return invalid.Key("public_url", "tokens are made for an address: say which clients know the gateway by, such as https://gateway.example")
	case err != nil || u.Host == "" || c.PublicURL != u.Scheme+"://"+u.Host || accesstoken.CheckURL(c.PublicURL) != nil:
		return invalid.Key("public_url", "this is https, a host and maybe a port, and nothing after it, such as https://gateway.example")
	}
	if _, err := accesstoken.New(nil, c.issuers()...); err != nil {
		return invalid.Key("oauth", err.Error())
	}
	return nil
}

// validateAll validates what is in the section, too, as reading a file does.
func (c *Config) validateAll() error {
	err := c.Validate()
	for n := range c.OAuth {
		err = cmp.Or(err, c.OAuth[n].Validate())
		for s := range c.OAuth[n].Scopes {
			err = cmp.Or(err, c.OAuth[n].Scopes[s].Validate())
		}
	}
	return err
}

// Validate reports what cannot work, as a [*invalid.Error].
func (i *Issuer) Validate() error {
	if i.JWKSURI != "" && i.Introspection != (Introspection{}) {
		return invalid.Key("jwks_uri", "tokens are verified with keys, or by introspection, not both")
	}
	if i.Introspection != (Introspection{}) && (i.Introspection.URL == "" || i.Introspection.ClientID == "") {
		return invalid.Key("introspection", "it takes a url and a client_id")
	}
	if len(i.Grants) == 0 && len(i.Scopes) == 0 {
		return invalid.Key("grants", "say what its tokens may do: grants for all, such as [\"tool:*\", \"model:*\"], or scopes")
	}
	for _, grant := range i.Grants {
		if err := permission.CheckUse(grant); err != nil {
			return invalid.Key("grants", err.Error())
		}
	}
	if i.Console.ID == "" && (!i.Console.Secret.IsZero() || i.Console.Scopes != nil) {
		return invalid.Key("console", "it takes a client_id: who the gateway is at its authorization server")
	}
	for _, scope := range i.Console.Scopes {
		if !isScope(scope) {
			return invalid.Key("console", fmt.Sprintf("%q is no scope", scope))
		}
	}
	for _, scope := range i.Required {
		if !isScope(scope) {
			return invalid.Key("required_scopes", fmt.Sprintf("%q is no scope", scope))
		}
	}
	return nil
}

// Validate reports what cannot work, as a [*invalid.Error].
func (s *Scope) Validate() error {
	if !isScope(s.Scope) {
		return invalid.Key("scope", fmt.Sprintf("%q is no scope", s.Scope))
	}
	for _, grant := range s.Grants {
		if err := permission.CheckUse(grant); err != nil {
			return invalid.Key("grants", err.Error())
		}
	}
	return nil
}

// isScope reports whether a text is a scope (RFC 6749 section 3.3).
func isScope(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '"' || r == '\\' })
}

// issuers are the issuers as they verify tokens.
func (c *Config) issuers() []accesstoken.Issuer {
	all := make([]accesstoken.Issuer, len(c.OAuth))
	for n, i := range c.OAuth {
		all[n] = accesstoken.Issuer{Name: i.Issuer, KeySet: i.JWKSURI}
		if i.Audience != "" {
			all[n].Audience = []string{i.Audience}
		}
		if i.Introspection.URL != "" {
			in := accesstoken.Introspection(i.Introspection)
			all[n].Introspection = &in
		}
	}
	return all
}

// placeholders are what people write where a key belongs and forget to replace.
var placeholders = []string{"changeme", "replaceme", "yourapikey", "yourkey", "yoursecret", "apikeyhere", "placeholder", "supersecret", "secretkey", "password", "0123456789", "1234567890"}

// CheckKey reports why a key must not be used: it can be guessed. A key has at
// least 16 characters, of which at least 8 are different ones, and holds none of the
// words of examples; 16 characters of base64 are 96 bits.
func CheckKey(key string) error {
	different := map[rune]bool{}
	for _, r := range key {
		different[r] = true
	}
	switch {
	case key == "":
		return errors.New("an empty key would let everybody in")
	case len(key) < 16:
		return errors.New("a key with fewer than 16 characters can be guessed")
	case len(different) < 8:
		return errors.New("a key with fewer than 8 different characters can be guessed")
	}
	plain := strings.ToLower(strings.NewReplacer("-", "", "_", "", " ", "").Replace(key))
	for _, word := range placeholders {
		if strings.Contains(plain, word) {
			return errors.New("a key that is copied from an example can be guessed; a good one: openssl rand -base64 32")
		}
	}
	return nil
}
