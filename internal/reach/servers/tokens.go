package servers

import (
	"log/slog"
	"net/http"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/reach/credential"
)

// Tokens are where those that servers are shown come from.
type Tokens struct {
	// Store has those of logins; nil for none.
	Store credential.Store
	// Subjects has what callers showed the gateway; nil for nothing.
	Subjects *credential.Subjects
	// Gateway is the address at which callers log in, for people; empty where it is
	// not known.
	Gateway string
	// Log is that of [Config.Client].
	Log *slog.Logger
}

// Account is whose tokens the server at URL is shown on behalf of a caller, by ID;
// the empty caller is the gateway.
func (c *Config) Account(who string) credential.Account {
	if !c.OAuth.PerCaller() {
		who = ""
	}
	return credential.Account{Server: c.URL, Caller: who}
}

// Authorized returns [Config.Client] with the tokens of a caller's, which are shown
// where they are wanted; without any, and a nil Transport, where the configuration
// says what the server is shown.
func (c *Config) Authorized(label, who string, tokens Tokens) (*http.Client, *credential.Transport) {
	client, account := c.Client(tokens.Log), c.Account(who)
	if c.authorized() {
		return client, nil
	}
	logIn := "run dragoman login " + label
	if tokens.Store == nil { // nobody can: there is nowhere to keep what comes of it
		logIn = "put an Authorization header among those that are sent to it"
	} else if account.Caller != "" && account.Caller != caller.Local.ID {
		if logIn += " --gateway "; tokens.Gateway != "" {
			logIn += tokens.Gateway
		} else {
			logIn += "with the address of this gateway"
		}
	}
	transport, err := credential.NewTransport(client.Transport, credential.TransportOptions{
		Account: account, LogIn: logIn, Config: c.OAuth, TLS: c.TLS, Store: tokens.Store, Subjects: tokens.Subjects,
	})
	if err != nil {
		return client, nil // the URL is no URL, as the first request will say
	}
	client.Transport = transport
	return client, transport
}

// stuck returns what somebody has to do before the server takes a token again; nil
// where nobody has to, or did so since.
func (c *connection) stuck() *credential.LoginError {
	if c.tokens == nil {
		return nil
	}
	return c.tokens.Stuck()
}

// worded says what to do about a server that wants a token, in place of a client that
// knows of none.
func (c *connection) worded(p *dragoman.Problem) *dragoman.Problem {
	stuck := c.stuck()
	if p.Code != dragoman.CodeNeedsAuthorization || stuck == nil {
		return p
	}
	said := *p
	said.Message = stuck.Error()
	return &said
}

// renewed connects anew, in all views, to those servers of a view that wanted a token
// where there is one now: somebody has logged in, or shown another one.
func (s *Set) renewed(v *view) {
	list := v.snapshot.Now()
	if list == nil {
		return
	}
	for _, state := range list.Servers {
		if state.Problem == nil || state.Problem.Code != dragoman.CodeNeedsAuthorization {
			continue
		}
		if c := v.connection(state.Label); c != nil && c.tokens != nil && c.tokens.Renewed() && c.state().State == dragoman.Failed {
			s.replace(c)
		}
	}
}

// anew connects anew to a server for a caller whose login there has become another
// one, or none: what the server listed, and a session with it, were of the one before.
func (s *Set) anew(label, who string) {
	s.mu.Lock()
	var theirs []*connection
	for k, c := range s.connections {
		if k.label == label && k.principal.Caller == who {
			theirs = append(theirs, c)
		}
	}
	s.mu.Unlock()
	for _, c := range theirs {
		s.replace(c)
	}
}

// replace puts a new connection in the place of another one.
func (s *Set) replace(old *connection) {
	s.mu.Lock()
	if s.connections[old.key] != old || s.stopped() {
		s.mu.Unlock()
		return
	}
	old.end()
	now := s.connect(old.key)
	for _, v := range s.views {
		if v.has(old) {
			v.connections[old.label] = now
		}
	}
	if s.shared.has(old) {
		s.shared.connections[old.label] = now
	}
	s.mu.Unlock()
	s.publish(now)
}
