package gateway

import (
	"context"
	"net"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/door/console"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/identity/signin"
	"github.com/dragoman-mcp/dragoman/internal/judge/usage"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// openConsole makes the door for browsers, and the secret of the operator, which other
// routes ask for as well.
func (g *Gateway) openConsole() {
	var db *store.DB
	if g.ledger != nil {
		db = g.ledger.DB
	}
	if !g.callers.Required() {
		g.secret = signin.NewSecret()
	}
	o := console.Options{
		Now:       func() *console.Setup { return g.now.Load().shown() },
		On:        func() bool { return g.now.Load().file.Console != config.ConsoleOff },
		Sessions:  signin.NewSessions(db, g.standing),
		Secret:    g.secret,
		Recognise: g.callers.Recognise, Required: g.callers.Required, At: g.callers,
		Secure: g.file.TLS.Cert != "" || strings.HasPrefix(g.file.Auth.PublicURL, "https:"),
		Gate:   g.gate, Inbox: g.inbox(), Book: g.book(), Audit: g.audit(),
		Servers: g.servers, Said: g.Said, Live: g.live,
		Reload: func(ctx context.Context, check bool) (now, restart []string, err error) {
			changes, err := g.Reload(ctx, check)
			return changes.Now, changes.Restart, err
		},
		Refused: func() string {
			if why := g.refused.Load(); why != nil {
				return *why
			}
			return ""
		},
		MaxBody: g.maxBody, Version: g.o.Version, Node: func() string { return g.node.ID() }, Log: g.log,
	}
	if g.usage != nil {
		o.Usage, o.Budgets = g.readUsage, g.budgets.States
		o.Named = func(ctx context.Context) (map[string]string, error) { return usage.Names(ctx, db) }
	}
	if g.captures != nil {
		o.Captures = g.captures
	}
	g.console = console.New(o)
}

// shown is a setup as the console shows it.
func (s *setup) shown() *console.Setup {
	warnings := make([]string, 0, len(s.file.Warnings))
	for _, w := range s.file.Warnings {
		warnings = append(warnings, w.Error())
	}
	return &console.Setup{
		Sessions: s.sessions, Policy: s.rules, Upstreams: s.upstreams, Dialects: s.dialects,
		File: func() []byte { return config.Effective(s.file) }, Path: s.file.Path, Warnings: warnings, Chat: s.chat,
	}
}

// standing says whether whoever is signed in still may be: the operator while nobody is
// asked for a key, others while theirs is good.
func (g *Gateway) standing(who caller.Caller) (now caller.Caller, mark string, ok bool) {
	if who.ID == signin.Operator.ID {
		return signin.Operator, "", !g.callers.Required()
	}
	return g.callers.Standing(who)
}

// operator finds out who asks on the routes by which a gateway is operated: those whose key
// or token says so, and, where nobody is asked for one, who has the secret of the console.
// Every program on this machine can reach us, the servers that we run among them: there
// nobody is an operator by being here.
func (g *Gateway) operator(r *http.Request) (caller.Caller, error) {
	who, err := g.callers.Recognise(r)
	if err != nil || !who.IsLocal() {
		return who, err
	}
	if scheme, shown, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "Bearer") && g.secret.Is(strings.TrimSpace(shown)) {
		return signin.Operator, nil
	}
	return caller.Caller{}, &caller.Refusal{
		Status: http.StatusUnauthorized, Code: "operator_only", Challenge: "Bearer",
		Message: "This gateway asks nobody for a key, so only its operator may do this: send the secret of the console as \"Authorization: Bearer …\". \"dragoman console --secret\" prints it to the person who started the gateway; \"dragoman reload\" and \"dragoman approve\" find it, or do without it.",
	}
}

// publish writes the secret where only the person who started the gateway reads it.
func (g *Gateway) publish(at net.Addr) {
	if g.secret == nil || g.o.StateFolder == "" {
		return
	}
	if err := g.secret.Publish(signin.PathFor(g.o.StateFolder, at.String()), g.address(at)); err != nil {
		g.log.Warn("the secret of the console could not be written down, so that dragoman console does not find it", "error", err, "folder", filepath.Clean(g.o.StateFolder))
	}
}

// address is where the console is.
func (g *Gateway) address(at net.Addr) string {
	scheme := "http"
	if g.file.TLS.Cert != "" {
		scheme = "https"
	}
	return scheme + "://" + at.String() + console.Root
}

// Console returns the address that signs a person in: of the console, with the secret where
// nobody is asked for a key. It is empty where there is no console.
func (g *Gateway) Console(at net.Addr) string {
	base := g.address(at)
	switch {
	case g.now.Load().file.Console == config.ConsoleOff:
		return ""
	case g.secret == nil:
		return base
	}
	return signin.Key{Console: base, Secret: g.secret.Key().Secret}.Address()
}
