package servers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/reach/credential"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// LoginPatience is how long a person has to log in.
const LoginPatience = 10 * time.Minute

// LogIn lets a person log in at the server with a URL, on behalf of a caller as
// [Config.Account] has it. Use of o is set here.
func (c *Config) LogIn(ctx context.Context, label, who, version string, o credential.LoginOptions) error {
	ctx, cancel := context.WithTimeoutCause(ctx, LoginPatience, errors.New("nobody logged in"))
	defer cancel()
	// As the gateway reaches the server, so that nothing else gets its requests.
	client := c.Client()
	defer client.CloseIdleConnections()
	o.Config = c.OAuth
	o.Use = func(ctx context.Context, client *http.Client) error {
		server, err := mcp.Connect(ctx, c.remote(client), &mcp.ClientOptions{
			Label: label, Name: "dragoman", Version: version, Passive: true, Timeout: LoginPatience, ProbeTimeout: LoginPatience,
		})
		if err != nil {
			return err
		}
		defer server.Close()
		return server.Refresh(ctx)
	}
	err := credential.Login(ctx, c.Account(who), client.Transport, o)
	if err != nil && context.Cause(ctx) != nil {
		return context.Cause(ctx)
	}
	return err
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

// The bounds of logins that callers have begun.
const (
	maxLogins     = 256
	loginEvery    = 2 * time.Second  // of one caller at one server
	loginResponse = 45 * time.Second // of the server and its authorization server
)

// A login goes on while its caller is at the authorization server.
type login struct {
	began   time.Time
	visit   chan string            // addresses for the person's browser
	answers chan credential.Answer // what the browser came back with
	done    chan struct{}
	err     error // when done is closed
	end     context.CancelCauseFunc
}

// BeginLogin begins to log in a caller at a server, in place of what the caller has
// begun there before. It returns the address that the caller's person opens in a
// browser, which is sent back to redirect, an address that [credential.CheckRedirect]
// allows. Where the server asks for no login it is [credential.ErrNoLogin].
//
// What the authorization server answers is for [Set.FinishLogin]: it is the same
// caller who has to bring it. A link to log in that is sent to somebody else so
// leads to nothing.
func (s *Set) BeginLogin(ctx context.Context, label, who, redirect string) (address string, err error) {
	config, err := s.loggingIn(label)
	if err != nil {
		return "", err
	}
	if err := credential.CheckRedirect(redirect); err != nil {
		return "", err
	}
	l, err := s.begin(config.Account(who), func(ctx context.Context, l *login) error {
		return config.LogIn(ctx, label, who, s.options.Version, credential.LoginOptions{
			Store: s.options.Tokens.Store, Redirect: redirect, Visit: l.ask,
		})
	})
	if err != nil {
		return "", err
	}
	address, err = l.next(ctx)
	if err == nil && address == "" {
		err = credential.ErrNoLogin
	}
	return address, err
}

// FinishLogin takes what the authorization server answered to the login that a caller
// has begun. An address that it returns is one more to open, as with BeginLogin;
// empty where the caller is logged in.
func (s *Set) FinishLogin(ctx context.Context, label, who string, answer credential.Answer) (address string, err error) {
	config, err := s.loggingIn(label)
	if err != nil {
		return "", err
	}
	l := s.begun(config.Account(who))
	if l == nil {
		return "", ErrNotBegun
	}
	select {
	case l.answers <- answer:
	case <-l.done:
		return "", ErrNotBegun
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	if address, err = l.next(ctx); err == nil && address == "" {
		s.anew(label, who)
	}
	return address, err
}

// ForgetLogin forgets what came of a caller's logins at a server.
func (s *Set) ForgetLogin(label, who string) error {
	config, err := s.loggingIn(label)
	if err != nil {
		return err
	}
	if l := s.begun(config.Account(who)); l != nil {
		l.end(ErrNotBegun)
		<-l.done
	}
	err = s.options.Tokens.Store.Delete(config.Account(who))
	s.anew(label, who)
	return err
}

// loggingIn returns the configuration of a server at which callers log in.
func (s *Set) loggingIn(label string) (*Config, error) {
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

// begin runs a login of an account's, within the bounds, and ends the one before it.
func (s *Set) begin(a credential.Account, run func(context.Context, *login) error) (*login, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped() {
		return nil, context.Cause(s.ctx)
	}
	maps.DeleteFunc(s.logins, func(_ credential.Account, l *login) bool { return l.over() && time.Since(l.began) >= loginEvery })
	before := s.logins[a]
	if before != nil && time.Since(before.began) < loginEvery || before == nil && len(s.logins) >= maxLogins {
		return nil, ErrTooManyLogins
	}
	if before != nil {
		before.end(ErrNotBegun)
	}
	ctx, end := context.WithCancelCause(s.ctx)
	l := &login{began: time.Now(), visit: make(chan string), answers: make(chan credential.Answer), done: make(chan struct{}), end: end}
	s.logins[a] = l
	s.wg.Go(func() {
		defer end(nil)
		l.err = run(ctx, l)
		close(l.done)
	})
	return l, nil
}

// begun returns the login that an account has begun; nil where it has not, or it is
// over.
func (s *Set) begun(a credential.Account) *login {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.logins[a]; l != nil && !l.over() {
		return l
	}
	return nil
}

func (l *login) over() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

// ask is [credential.LoginOptions.Visit].
func (l *login) ask(ctx context.Context, address string) (credential.Answer, error) {
	select {
	case l.visit <- address:
	case <-ctx.Done():
		return credential.Answer{}, context.Cause(ctx)
	}
	select {
	case answer := <-l.answers:
		return answer, nil
	case <-ctx.Done():
		return credential.Answer{}, context.Cause(ctx)
	}
}

// next returns the address that the login needs its person to visit; empty where it
// is over, and well. Who does not wait for it ends it.
func (l *login) next(ctx context.Context) (address string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, loginResponse, errors.New("the server, or its authorization server, does not answer"))
	defer cancel()
	select {
	case address = <-l.visit:
		return address, nil
	case <-l.done:
		return "", l.err
	case <-ctx.Done():
		l.end(context.Cause(ctx))
		return "", context.Cause(ctx)
	}
}
