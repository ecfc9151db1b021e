package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"slices"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/door"
	"github.com/dragoman-mcp/dragoman/internal/door/api"
	"github.com/dragoman-mcp/dragoman/internal/door/mcpserve"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/judge/approval"
	"github.com/dragoman-mcp/dragoman/internal/judge/budget"
	"github.com/dragoman-mcp/dragoman/internal/judge/limit"
	"github.com/dragoman-mcp/dragoman/internal/judge/policy"
	"github.com/dragoman-mcp/dragoman/internal/reach/catalog"
	"github.com/dragoman-mcp/dragoman/internal/reach/servers"
	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
	"github.com/dragoman-mcp/dragoman/internal/session"
	"github.com/dragoman-mcp/dragoman/internal/wire/origin"
	"github.com/dragoman-mcp/dragoman/openai/model"
	"github.com/dragoman-mcp/dragoman/rehearsal"
)

// A setup is what the file says: policy, model APIs, dialects, names, shapes of results,
// routes. It is built and judged whole, never changed, and replaced by another one.
// Requests keep the one that they began with; what they may do, the newest says, too.
type setup struct {
	file      *config.File
	read      map[string]config.Sum // the files that it is made of, as they were
	accepted  *caller.Accepted      // who may come; nil for the first setup, whom the process knows
	rules     *policy.Policy
	dialects  *dialect.Table
	upstreams *upstream.Set
	labels    map[string]bool // of the servers
	bare      string          // the label whose tools have nothing in front of their names; empty for none
	names     catalog.Catalog
	sessions  *session.Opener
	ours      *origin.Guard
	models    *api.API
	chat      door.Handler // asks a model, for the console
	routes    *door.Mux
}

// judge builds what needs nothing of the process, and so finds what is wrong with a file.
func judge(file *config.File, o *Options) (s *setup, err error) {
	s = &setup{file: file, read: file.Read(), labels: map[string]bool{}, ours: ours(file)}
	if path := file.PolicyFile; path != "" {
		s.read[path] = sumOf(path) // before it is read, so that what changes then is read again
	}
	if s.rules, err = policy.New(policy.Config{Rules: file.Policy, File: file.PolicyFile}); err != nil {
		return nil, err
	}
	if s.dialects, err = file.Table(); err != nil {
		return nil, err
	}
	if err := cmp.Or(exchanged(file), limit.Check(file.Limits), budget.Check(file.Budgets, file.Usage)); err != nil {
		return nil, err
	}
	for label := range file.MCPServers {
		s.labels[label] = true
	}
	if !file.NamesServers() {
		s.labels[DemoLabel] = true
	}
	s.upstreams, err = upstream.New(file.Models, upstream.Options{Rehearsal: &rehearsal.Model{}, Getenv: o.Lookup, Log: o.Log})
	return s, err
}

// keepsRecords reports whether what the file says cannot be done without the store.
func (s *setup) keepsRecords() bool {
	return !s.rules.Zero() || s.file.Store.Path != "" || !s.file.Store.URL.IsZero() || s.file.NamesPins() || len(s.file.Budgets) > 0
}

// named returns the label whose tools have no label in front of their names: that of a
// single server, with which nothing can clash. Names stay when servers come and go: one
// that was named so stays it, and none becomes it that was not.
func (s *setup) named(before *setup) string {
	switch {
	case cmp.Or(catalog.Strategy(s.file.Names.Strategy), catalog.Label) != catalog.Label:
		return ""
	case before != nil && s.labels[before.bare]:
		return before.bare
	case len(s.labels) == 1:
		for label := range s.labels {
			if before == nil || !before.labels[label] {
				return label
			}
		}
	}
	return ""
}

// catalog names the tools: as before, with what is kept of it, where nothing changed that
// names are made of.
func (s *setup) catalog(g *Gateway, before *setup) catalog.Catalog {
	config := catalog.Config{
		Strategy: catalog.Strategy(s.file.Names.Strategy),
		Bare:     s.bare,
		Identity: func(label string) string {
			c := s.file.MCPServers[label]
			return c.Identity()
		},
	}
	if before != nil && before.bare == s.bare && before.file.Names == s.file.Names && reflect.DeepEqual(before.file.MCPServers, s.file.MCPServers) {
		return before.names
	}
	return catalog.New(g.servers, config)
}

// exchanged reports a server whose tokens are exchanged for ones that nobody can show.
func exchanged(file *config.File) error {
	for _, label := range slices.Sorted(maps.Keys(file.MCPServers)) {
		c := file.MCPServers[label]
		issuer := c.OAuth.Exchanges()
		if issuer == "" || c.Disabled {
			continue
		}
		if !slices.ContainsFunc(file.Auth.OAuth, func(i caller.Issuer) bool { return i.Issuer == issuer }) {
			return fmt.Errorf("mcpServers.%s.oauth exchanges access tokens of %s, which auth.oauth does not accept", label, issuer)
		}
	}
	return nil
}

// complete wires a setup that was judged to the process, in the place of another one, or
// of none.
func (s *setup) complete(g *Gateway, before *setup) {
	s.bare = s.named(before)
	s.names = s.catalog(g, before)
	sets, setSearch := map[string]catalog.Selection{}, map[string]model.SearchWhen{}
	for name, set := range s.file.Sets {
		sets[name], setSearch[name] = set.Selection(), model.SearchWhen(set.Search)
	}
	s.sessions = session.New(session.Options{
		Tools: func(o servers.Owner) dragoman.Toolset { return s.names.Of(g.relay.Of(o)) },
		Owner: g.servers.Owner,
		Settle: func(ctx context.Context, o servers.Owner, labels []string) {
			_ = g.servers.For(o).Settle(ctx, labels...)
		},
		Wait:      s.file.WaitForServers,
		Servers:   s.labels,
		Sets:      sets,
		SetSearch: setSearch,
		Gate:      g.gate,
		Cache:     g.cache,
		State:     g.state,
		Upstreams: s.upstreams,
		Dialects:  s.dialects,
		Results:   s.file.Results,

		KeepFormatChoice: s.file.Tools.KeepFormatChoice,
		Search:           model.Search{When: model.SearchWhen(s.file.Tools.Search), Tokens: s.file.Tools.Tokens, Always: model.Keep(s.file.Tools.Always...)},
		Clients:          model.SearchWhen(s.file.MCP.Search),
		Sampling:         s.file.Sampling,
		Hosted:           s.file.Hosted,
		Stopping:         g.stopping,
		Live:             g.live,
		Loop: dragoman.Loop{
			Rounds: s.file.Loop.Rounds, Calls: s.file.Loop.Calls, Parallel: s.file.Loop.Parallel, Bytes: s.file.Loop.Bytes,
			Timeout: s.file.Loop.Timeout,
		},
		Log: g.log,
	})
	models := api.New(api.Options{
		Sessions:          s.sessions,
		Upstreams:         s.upstreams,
		State:             g.apiState,
		MaxBody:           s.file.HTTP.MaxBody,
		ClientCredentials: func() bool { return !g.callers.Required() },
		Forgets:           !s.file.Memory.Restore,
		Patience:          s.file.Approvals.Expires + approval.Grace,
		Detached:          g.detached,
		Overloaded:        func() error { return g.overloaded(door.ShedFirst) },
		Log:               g.log,
	})
	s.models, s.chat, s.routes = models, models.Chat(), g.routes(s, models)
}

// forget gives up what can be made again. Offers and plans of a server that changes its tools
// again and again may be all that fills the memory, and nobody would ever ask for others.
func (s *setup) forget() {
	s.models.Forget()
	s.dialects.Forget()
}

// routes are those of all doors.
func (g *Gateway) routes(s *setup, a *api.API) *door.Mux {
	mux := door.NewMux(g.enter)
	mux.Handle(a.Routes()...)
	mux.Handle(g.ops.Routes()...)
	mux.Handle(g.metricsRoute())
	mux.Handle(g.console.Routes()...)
	there := "The API begins at /v1."
	if !s.file.MCP.Off {
		there = "The API begins at /v1, and MCP is at /mcp."
		mux.Handle(g.mcp.Routes()...)
	}
	mux.Handle(door.Route{Pattern: "/", Serve: func(w http.ResponseWriter, r *http.Request, _ caller.Caller) {
		g.refuse(w, r, door.OpenAI, door.NotFound("There is nothing at "+r.URL.Path+". "+there))
	}})
	return mux
}

// ours returns the hosts and origins that are served.
func ours(file *config.File) *origin.Guard {
	guard := &origin.Guard{
		Hosts: file.AllowedHosts, Arrival: true, Origins: file.AllowedOrigins,
		Methods: "GET, POST, DELETE", Expose: "X-Request-Id, Request-Id, " + RequestHeader + ", " + BudgetHeader + ", X-Dragoman-Tools, X-Dragoman-Missing, Idempotent-Replayed, Retry-After, Mcp-Session-Id, Mcp-Protocol-Version, WWW-Authenticate",
	}
	for _, address := range []string{file.Telemetry.Metrics.Listen, file.Listen} {
		if listen, _, _ := net.SplitHostPort(address); listen != "" {
			guard.Hosts = append([]string{listen}, guard.Hosts...)
		}
	}
	if public, err := url.Parse(file.Auth.PublicURL); err == nil && public.Hostname() != "" {
		guard.Hosts = append([]string{public.Hostname()}, guard.Hosts...)
	}
	return guard
}

// mcp are the settings of the MCP endpoint.
func (s *setup) mcp() mcpserve.Settings {
	return mcpserve.Settings{Config: s.file.MCP, Reviews: s.file.Approvals.Elicit, MaxMessage: s.file.HTTP.MaxBody}
}

// bounds are those of all servers.
func (s *setup) bounds() servers.Bounds {
	return servers.Bounds{CallTimeout: s.file.Loop.CallTimeout, MaxMessage: s.file.Results.MaxMessage, Own: s.file.Connections}
}

// errNoStore: the process began without a store, which new rules need.
var errNoStore = errors.New("policy and pins need a store, which this process has not opened: start again")
