// Package session gives each request what it works with: the stack of toolsets
// for who asks and what is wanted, how results look to its reader, and which
// dialect its model speaks. It is all that a door ever gets, so that nothing can
// hold at one door and not at another.
//
// The stack, from the outside in:
//
//	seal      what is asked leaves us sealed, and comes back whole or not at all
//	tasks     tasks that servers make of calls belong to their callers
//	review    review_approvals, for MCP clients of those who approve
//	search    find_tools, for models that are not offered all tools
//	hosted    web_search, for clients that declare it, by a tool of a server
//	skills    read_skill, for models, where servers have skills
//	gate      policy, limits, approvals and the audit log
//	cache     results of tools that only read
//	read_more the rest of results that were cut
//	selection the servers and tools that the request names
//	catalog   names
//	servers   every MCP server
package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/judge/approval"
	"github.com/dragoman-mcp/dragoman/internal/judge/gate"
	"github.com/dragoman-mcp/dragoman/internal/reach/catalog"
	"github.com/dragoman-mcp/dragoman/internal/reach/find"
	"github.com/dragoman-mcp/dragoman/internal/reach/servers"
	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
	"github.com/dragoman-mcp/dragoman/internal/state/cache"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
	"github.com/dragoman-mcp/dragoman/internal/state/weakcache"
	"github.com/dragoman-mcp/dragoman/openai/hosted"
	"github.com/dragoman-mcp/dragoman/openai/model"
	"github.com/dragoman-mcp/dragoman/result"
)

// Options are what an [Opener] makes sessions of.
type Options struct {
	// Tools returns the tools of all servers under their public names, as one
	// session of a caller has them.
	Tools func(servers.Owner) dragoman.Toolset
	// Settle waits until the owner's servers of these labels, or all, have listed
	// their tools or failed, or the context ends; nil where there is nothing to wait
	// for.
	Settle func(context.Context, servers.Owner, []string)
	// Owner returns what of an owner makes a difference to servers; nil where
	// nothing does.
	Owner func(servers.Owner) servers.Owner
	// Wait is how long a request waits for servers that are still starting; 15 s if
	// zero.
	Wait time.Duration
	// Servers are the labels of all configured servers.
	Servers map[string]bool
	// Sets are what the configuration calls sets, by name. A [catalog.Choice] of the
	// server "set:NAME" stands for one.
	Sets map[string]catalog.Selection
	// SetSearch says of some of the sets when tools are searched for, by a request
	// for that set alone.
	SetSearch map[string]model.SearchWhen
	// Cache remembers results of all callers; nil remembers nothing.
	Cache *cache.Cache
	// Upstreams serve the models, in the dialects of Dialects.
	Upstreams *upstream.Set
	Dialects  *dialect.Table
	// Results says how results look to a model.
	Results Results
	// KeepFormatChoice offers models a tool's own parameter response_format also
	// where they get the tool's structured content whatever it says.
	KeepFormatChoice bool
	// Search says when models search for tools in place of being offered all, and
	// Clients when clients of MCP do; empty is never.
	Search  model.Search
	Clients model.SearchWhen
	// Hosted says which tools do what clients know as the API's own.
	Hosted Hosted
	// Sampling says whether models answer servers that ask for one.
	Sampling Sampling
	// State is what outlasts the opener; nil makes one.
	State *State
	// Gate decides what callers may see and do; nil lets everybody do everything.
	Gate *gate.Gate
	// Stopping is closed when the process is about to end: calls then wait no longer
	// for operators, and their callers are told that they are pending. Nil never is.
	Stopping <-chan struct{}
	// Loop has the limits of conversations; its Tools and hooks are set here.
	Loop dragoman.Loop
	// Live is told what runs, for people who watch; nil is told nothing.
	Live *Live
	// Log gets a line for each call, without arguments and results; nil discards
	// it.
	Log *slog.Logger
}

// Opener opens sessions. Make it with [New]; it is safe for concurrent use.
type Opener struct {
	o        Options
	state    *State
	outputs  outputs
	searches find.Searches
	chosen   catalog.Selections
	skills   skills
	models   catalog.ForModels
	hosted   weakcache.Map[dragoman.List, *dragoman.List]

	dialects sync.Map // of upstreams: *upstream.Upstream to *dialect.Dialect

	over    chan struct{} // closed when another opener is in the place of this one
	retired sync.Once
}

// New returns an Opener.
func New(o Options) *Opener {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Cache == nil {
		o.Cache = cache.New(cache.Config{})
	}
	if o.Gate == nil {
		o.Gate = gate.New(gate.Options{})
	}
	if o.Owner == nil {
		o.Owner = func(servers.Owner) servers.Owner { return servers.Owner{} }
	}
	if o.Wait <= 0 {
		o.Wait = DefaultWait
	}
	if o.State == nil {
		o.State = NewState(nil, nil, false)
	}
	return &Opener{o: o, state: o.State, over: make(chan struct{})}
}

// Retire tells those who follow what there is that another opener is in the place of
// this one. Sessions that are open go on.
func (o *Opener) Retire() { o.retired.Do(func() { close(o.over) }) }

// Over is closed once the opener is retired.
func (o *Opener) Over() <-chan struct{} { return o.over }

// HasServers reports whether any MCP server is configured, be it one that callers have no
// right to.
func (o *Opener) HasServers() bool { return len(o.o.Servers) > 0 }

// DefaultWait is how long requests wait for servers that are still starting:
// npx takes 3 to 13 seconds for most.
const DefaultWait = 15 * time.Second

// Want is what a request wants of its session. The zero Want is all tools, for a
// reader of whom nothing is known.
type Want struct {
	// Model is the name of the model that will read, as the client spells it, and
	// Dialect the name of a dialect. A Dialect wins over that of the Model; with
	// neither, the dialect is the conservative one.
	Model, Dialect string
	// Servers chooses among the tools; empty means all.
	Servers catalog.Selection
	// Session is which of the caller's sessions this is, for servers that keep them
	// apart; empty where the client does not say.
	Session string
	// Begun are the names of those that this one goes on from, as its door keeps them: for
	// what was read there.
	Begun []string
	// Door is where the request came in, for the audit log.
	Door string
	// Patience is how long a call waits for an operator who has to approve it;
	// [DefaultPatience] if zero.
	Patience time.Duration
	// Operator is who answers questions for an operator through the door's own
	// asking, such as the person at the terminal where the gateway was started; the
	// zero Person is nobody, and must be wherever callers ask themselves.
	Operator approval.Person
	// Profile is the form of results that the request asks for; empty leaves it to
	// the configuration.
	Profile result.Profile
	// Client is for clients of MCP, which show views and ask for skills themselves:
	// tools for views alone are there, and read_skill is not.
	Client bool
	// Search says when tools are searched for; empty leaves it to the set and to the
	// configuration.
	Search model.SearchWhen
	// WebSearch adds web_search, by the tool that [Options.Hosted] maps, where the client
	// declares it; nil where it does not.
	WebSearch *hosted.Wanted
	// OwnNames says that the client knows tools by the names that their server gave
	// them, so that this is how searches name them.
	OwnNames bool
	// Reviews adds review_approvals, for a caller who may answer what calls of others
	// ask.
	Reviews bool
	// Reads leaves out tools of servers that do not say they change nothing, or of which
	// the operator did not say so.
	Reads bool
	// SearchOnly leaves out all tools but web_search: the request is a search of the web, of
	// a client that does nothing else with it.
	SearchOnly bool
	// NoTools is for a request that is not to be offered any tools: it does not
	// wait for servers.
	NoTools bool
	// Claim is part of each transaction that writes down what a call is about to change;
	// see [gate.Client].
	Claim func(*store.Tx) error
}

// The errors of [Opener.Open], which wrap them.
var (
	// ErrNobody: the zero caller asks.
	ErrNobody = errors.New("nobody is asking")
	// ErrUnknownServer: the request names a server that is not configured.
	ErrUnknownServer = errors.New("no such server")
	// ErrUnknownDialect: there is no dialect of that name.
	ErrUnknownDialect = errors.New("no such dialect")
)

// A Session is what a request works with.
type Session struct {
	// Caller is who asks.
	Caller caller.Caller
	// Tools is the caller's stack.
	Tools dragoman.Toolset
	// Upstream serves the model, which it knows by the name Model. Nil where no
	// model was wanted.
	Upstream *upstream.Upstream
	Model    string
	// Dialect is the dialect of the upstream, or the one that was asked for.
	Dialect *dialect.Dialect
	// Shape says how results of a tool look to the reader; the tool may be nil.
	Shape func(*dragoman.Tool) *result.Shape
	// Guide is the system text about reading results; empty for none.
	Guide string
	// Search says when the model, or the client, searches for tools in place of being
	// offered all.
	Search model.Search
	// Chosen are the servers and tools that the session is narrowed to, sets written
	// out; empty means all.
	Chosen catalog.Selection
	// Request is the id of the request that the session is for, which people find its
	// conversation by; whoever knows it sets it.
	Request string
	// Missing are the servers that have nothing to offer now: they are still
	// starting, or failed.
	Missing []dragoman.Server

	gate       *gate.Gate
	client     gate.Client
	asked      string // the model, as the client spells it
	patience   time.Duration
	stopping   <-chan struct{}
	operator   approval.Person
	loop       dragoman.Loop
	maxMessage int64
	tasks      *tasks
	sampling   Sampling
	live       *Live
	run        *Run // what people see of the conversation; nil where nobody watches
	decided    bool // whether anybody is to see it, and
	admitted   bool // that somebody is
	door       string
	log        *slog.Logger // of all callers; see logger
}

// Open returns a session for a caller. It waits a while for servers that are
// still starting. Besides the errors above it returns those of
// [upstream.Set.For], [ErrUnknownTool] and [ServerError].
func (o *Opener) Open(ctx context.Context, who caller.Caller, want Want) (*Session, error) {
	if !who.Valid() {
		return nil, ErrNobody
	}
	client := gate.Client{Caller: who, Conversation: want.Session, Begun: want.Begun, Door: want.Door, StepsUp: want.Client, Claim: want.Claim}
	o.o.Gate.GoOn(ctx, client)
	chosen, err := o.choose(client, want.Servers)
	if err != nil {
		return nil, err
	}
	search := o.search(want)
	want.Servers = chosen
	s := &Session{Caller: who, Chosen: chosen, Guide: o.o.Results.Guide.text(), Search: search, loop: o.o.Loop, maxMessage: o.o.Results.MaxMessage, tasks: o.state.tasks, sampling: o.o.Sampling, live: o.o.Live, door: want.Door, log: o.o.Log,
		gate: o.o.Gate, client: client, patience: cmp.Or(want.Patience, DefaultPatience), stopping: o.o.Stopping, operator: want.Operator, asked: want.Model}
	if err := o.read(s, want); err != nil {
		return nil, err
	}
	form := o.form(s)
	s.Shape = o.shapes(s, form, want.Profile)
	s.Dialect = o.offered(s.Dialect, form, want.Profile)
	owner := o.o.Owner(servers.Owner{Caller: who.ID, Session: want.Session})
	all := o.o.Tools(owner)
	s.Tools = o.stack(client, owner, all, want, s.Dialect)
	if want.NoTools {
		return s, nil
	}
	judged := o.o.Gate.Around(client, all)
	if label := o.o.Hosted.WebSearch.Server(); len(want.Servers) > 0 && o.hosts(client, want) {
		o.settle(ctx, owner, judged, []string{label})
	}
	s.Missing, err = o.await(ctx, owner, judged, want.Servers)
	return s, err
}

// Denies reports whether a call is denied by the rules, whoever says yes to it: its client
// is not to be asked.
func (s *Session) Denies(ctx context.Context, call *dragoman.Call) bool {
	return s.gate.Denies(ctx, s.client, call)
}

// Refuse is [Session.Denies] for a call that is then not made: what it is denied for, which
// is written down; nil for a call that can be made.
func (s *Session) Refuse(ctx context.Context, call *dragoman.Call) *dragoman.Problem {
	return s.gate.Refuse(ctx, s.client, call)
}

// choose checks a selection, and writes sets out. To whom a server has nothing to offer,
// there is no such server.
func (o *Opener) choose(who gate.Client, wanted catalog.Selection) (chosen catalog.Selection, err error) {
	for _, c := range wanted {
		name, isSet := strings.CutPrefix(c.Server, SetPrefix)
		set, known := o.o.Sets[name]
		switch {
		case isSet && known:
			for _, each := range set {
				each.ReadOnly = each.ReadOnly || c.ReadOnly
				chosen = append(chosen, each)
			}
		case isSet:
			return nil, fmt.Errorf("%w: there is no set %q", ErrUnknownServer, name)
		case !o.o.Servers[c.Server], !o.o.Gate.Reaches(who, c.Server):
			return nil, fmt.Errorf("%w: no MCP server is labelled %q", ErrUnknownServer, c.Server)
		default:
			chosen = append(chosen, c)
		}
	}
	return chosen, nil
}

// SetPrefix stands in front of the name of a set where a server's label is wanted.
const SetPrefix = "set:"

// stack returns the toolsets for a caller, around all tools. Their order is fixed
// here.
func (o *Opener) stack(client gate.Client, owner servers.Owner, all dragoman.Toolset, want Want, d *dialect.Dialect) dragoman.Toolset {
	who := client.Caller
	tools := o.chosen.Of(all, o.reached(client, want))
	if want.Reads {
		tools = o.chosen.Of(tools, o.reading())
	}
	tools = o.state.shelf.Around(who.ID, tools)
	tools = o.o.Cache.For(who.ID+"\x00"+owner.Session, tools)
	tools = o.o.Gate.Around(client, tools)
	if !want.Client && !want.SearchOnly {
		tools = o.skills.around(o.models.Of(tools), want.Servers)
	}
	tools = o.hosting(client, tools, want)
	search := &find.Tools{Toolset: tools, All: all, Searches: &o.searches, Dialect: d, Client: want.Client, OwnNames: want.OwnNames}
	if want.Client {
		search.Hides = func(t *dragoman.Tool) bool { return catalog.AppOnly(*t) }
	}
	tools = search
	if want.Reviews {
		tools = reviewable{tools, o.o.Gate.Inbox(), who}
	}
	tools = &tasked{tools, all, o.state.tasks, who.ID}
	return o.state.seals.around(who.ID, tools)
}

// reading is the selection of all tools that change nothing.
func (o *Opener) reading() (all catalog.Selection) {
	for _, label := range slices.Sorted(maps.Keys(o.o.Servers)) {
		all = append(all, catalog.Choice{Server: label, ReadOnly: true})
	}
	return all
}

// read finds out who will read the results: which model, in which dialect.
func (o *Opener) read(s *Session, want Want) (err error) {
	if want.Model != "" {
		if s.Upstream, err = o.o.Upstreams.For(want.Model); err != nil {
			return err
		}
		s.Model, s.Dialect = s.Upstream.ModelName(want.Model), o.spoken(s.Upstream)
		if s.Upstream.Rehearsal && s.Search.When == model.Auto {
			s.Search = model.Search{} // it reads tools for nothing, and searches only when it is told to
		}
	}
	name := want.Dialect
	if name == "" && s.Dialect == nil {
		name = dialect.Conservative
	}
	if name != "" {
		if s.Dialect, err = o.o.Dialects.For(name); err != nil {
			return fmt.Errorf("%w: %w", ErrUnknownDialect, err)
		}
	}
	return nil
}

// Dialect returns the dialect in which tools are offered to an upstream.
func (o *Opener) Dialect(up *upstream.Upstream) *dialect.Dialect {
	d := o.spoken(up)
	return o.offered(d, o.form(&Session{Upstream: up, Dialect: d}), "")
}

// spoken returns the dialect that an upstream speaks: the one that the
// configuration names, or the one that its address tells.
func (o *Opener) spoken(up *upstream.Upstream) *dialect.Dialect {
	if d, ok := o.dialects.Load(up); ok {
		return d.(*dialect.Dialect)
	}
	name := up.Dialect
	if name == "" && up.Rehearsal {
		name = "openai" // what the rehearsal model checks
	}
	d := o.o.Dialects.ForHost(up.BaseURL.String())
	if named, err := o.o.Dialects.For(name); name != "" && err == nil {
		d = named
	}
	o.dialects.Store(up, d)
	return d
}

// Shared is [Options.Tools] for tools that all callers share.
func Shared(tools dragoman.Toolset) func(servers.Owner) dragoman.Toolset {
	return func(servers.Owner) dragoman.Toolset { return tools }
}

// Gate returns what judges requests that are for no tools: models, and routes that
// are passed on.
func (o *Opener) Gate() *gate.Gate { return o.o.Gate }
