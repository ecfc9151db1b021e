package servers

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/reach/credential"
	"github.com/dragoman-mcp/dragoman/internal/state/seal"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// LoginPatience is how long a person has to log in.
const LoginPatience = 10 * time.Minute

// LogIn lets a person log in at the server with a URL, on behalf of a caller as
// [Config.Account] has it. Use of o is set here.
func (c *Config) LogIn(ctx context.Context, label, who, version string, o credential.LoginOptions) error {
	ctx, cancel := context.WithTimeoutCause(ctx, LoginPatience, errors.New("nobody logged in"))
	defer cancel()
	err := c.loggingIn(label, version, LoginPatience, &o, func(next http.RoundTripper) error {
		return credential.Login(ctx, c.Account(who), next, o)
	})
	if err != nil && context.Cause(ctx) != nil {
		return context.Cause(ctx)
	}
	return err
}

// loggingIn sets what a login needs of the server, and calls do with what sends requests
// to it: as the gateway reaches it, so that nothing else gets them.
func (c *Config) loggingIn(label, version string, patience time.Duration, o *credential.LoginOptions, do func(next http.RoundTripper) error) error {
	client := c.Client(nil)
	defer client.CloseIdleConnections()
	o.Config, o.TLS = c.OAuth, c.TLS
	o.Use = func(ctx context.Context, client *http.Client) error {
		server, err := mcp.Connect(ctx, c.remote(client), &mcp.ClientOptions{
			Label: label, Name: "dragoman", Version: version, Passive: true, Timeout: patience, ProbeTimeout: patience,
		})
		if err != nil {
			return err
		}
		defer server.Close()
		return server.Refresh(ctx)
	}
	return do(client.Transport)
}

// What comes of a caller's wish to log in.
var (
	// ErrUnknownServer: there is no server of that label.
	ErrUnknownServer = errors.New("no such server")
	// ErrNotTheirs: the server has no tokens of callers' own that come of a login.
	ErrNotTheirs = errors.New("callers do not log in at this server")
	// ErrNotBegun: the caller has not begun to log in, or too long ago.
	ErrNotBegun = errors.New("no login was begun, or it has ended")
	// ErrTooManyLogins: many have begun a login, or this caller has a moment ago.
	ErrTooManyLogins = errors.New("too many logins have begun")
)

// The bounds of logins that callers begin.
const (
	maxLogins     = 256              // within loginEvery
	loginEvery    = 2 * time.Second  // of one caller at one server
	loginResponse = 45 * time.Second // of the server and its authorization server
)

// BeginLogin begins to log in a caller at a server. It returns the address that the
// caller's person opens in a browser, which is sent back to redirect, an address that
// [credential.CheckRedirect] allows. Where the server asks for no login it is
// [credential.ErrNoLogin].
//
// What the authorization server answers is for [Set.FinishLogin], here or at another
// gateway that shares our store: all that has to be known stands, sealed to the caller, in
// the state that the browser brings back. It is the same caller who has to bring it. A link
// to log in that is sent to somebody else so leads to nothing.
func (s *Set) BeginLogin(ctx context.Context, label, who, redirect string) (address string, err error) {
	config, err := s.loginAt(label)
	if err != nil {
		return "", err
	}
	if err := credential.CheckRedirect(redirect); err != nil {
		return "", err
	}
	if err := s.mayBegin(config.Account(who)); err != nil {
		return "", err
	}
	return s.step(ctx, label, who, config, redirect, func(ctx context.Context, next http.RoundTripper, o credential.LoginOptions) (*url.URL, *credential.Begun, error) {
		return credential.Begin(ctx, config.Account(who), next, o)
	})
}

// FinishLogin takes what the authorization server answered to a login that a caller has
// begun. An address that it returns is one more to open, as with BeginLogin; empty where
// the caller is logged in.
func (s *Set) FinishLogin(ctx context.Context, label, who string, answer credential.Answer) (address string, err error) {
	config, err := s.loginAt(label)
	if err != nil {
		return "", err
	}
	begun := s.begun(config.Account(who), answer.State)
	if begun == nil {
		return "", ErrNotBegun
	}
	address, err = s.step(ctx, label, who, config, begun.Redirect, func(ctx context.Context, next http.RoundTripper, o credential.LoginOptions) (*url.URL, *credential.Begun, error) {
		return credential.Finish(ctx, config.Account(who), next, o, begun, answer)
	})
	if err == nil && address == "" {
		s.anew(label, who)
	}
	return address, err
}

// step does a step of a login, and seals what it takes for the next one.
func (s *Set) step(ctx context.Context, label, who string, config *Config, redirect string, do func(context.Context, http.RoundTripper, credential.LoginOptions) (*url.URL, *credential.Begun, error)) (address string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, loginResponse, errors.New("the server, or its authorization server, does not answer"))
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	o := credential.LoginOptions{Store: s.options.Tokens.Store, Redirect: redirect}
	var visit *url.URL
	var begun *credential.Begun
	err = config.loggingIn(label, s.options.Version, loginResponse, &o, func(next http.RoundTripper) (err error) {
		visit, begun, err = do(ctx, next, o)
		return err
	})
	switch {
	case err != nil && context.Cause(ctx) != nil:
		return "", context.Cause(ctx)
	case err != nil:
		return "", err
	case visit == nil:
		return "", nil
	}
	text, err := json.Marshal(begun)
	if err != nil {
		return "", err
	}
	sealed := s.options.Seals.Close(seal.Login, boundTo(config.Account(who)), text, time.Now().Add(LoginPatience))
	q := visit.Query()
	q.Set("state", base64.RawURLEncoding.EncodeToString(sealed))
	visit.RawQuery = q.Encode()
	return visit.String(), nil
}

// begun returns the login that a state is of; nil where an account has begun no such one,
// or too long ago.
func (s *Set) begun(a credential.Account, state string) *credential.Begun {
	sealed, err := base64.RawURLEncoding.DecodeString(state)
	if err != nil {
		return nil
	}
	text, err := s.options.Seals.Open(seal.Login, boundTo(a), sealed)
	var b credential.Begun
	if err != nil || json.Unmarshal(text, &b) != nil {
		return nil
	}
	return &b
}

// boundTo is what a begun login is sealed to.
func boundTo(a credential.Account) []byte { return seal.Bind([]byte(a.Server), []byte(a.Caller)) }

// ForgetLogin forgets what came of a caller's logins at a server.
func (s *Set) ForgetLogin(label, who string) error {
	config, err := s.loginAt(label)
	if err != nil {
		return err
	}
	err = s.options.Tokens.Store.Delete(config.Account(who))
	s.anew(label, who)
	return err
}

// loginAt returns the configuration of a server at which callers log in.
func (s *Set) loginAt(label string) (*Config, error) {
	def, ok := s.defined.Load().servers[label]
	switch {
	case !ok:
		return nil, fmt.Errorf("%w: %.60q", ErrUnknownServer, label)
	case !def.config.OAuth.PerCaller() || !def.config.OAuth.LogsIn():
		return nil, ErrNotTheirs
	case s.options.Tokens.Store == nil:
		return nil, errors.New("there is no place to keep tokens: no home directory, and no XDG_STATE_HOME")
	}
	return &def.config, nil
}

// mayBegin bounds how often logins are begun: each asks the server and its authorization
// server, and may register a client there.
func (s *Set) mayBegin(a credential.Account) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped() {
		return context.Cause(s.ctx)
	}
	now := time.Now()
	maps.DeleteFunc(s.logins, func(_ credential.Account, began time.Time) bool { return now.Sub(began) >= loginEvery })
	if _, recently := s.logins[a]; recently || len(s.logins) >= maxLogins {
		return ErrTooManyLogins
	}
	s.logins[a] = now
	return nil
}
