// Package mcpserve is the door for MCP clients: IDEs, agents, scripts. They see
// all servers as one, whatever era either side speaks.
//
//	/mcp              all servers of the caller; tools and prompts as label__name
//	/mcp/{server}     one server, with its own names
//	/mcp/set/{name}   a set of the configuration
//
//	/sse              all servers over HTTP+SSE, for clients of 2024-11-05
//
// With ?search in the address, a client is listed find_tools and call_tool in place
// of most tools; ?search=auto is where there are many, ?search=never never.
//
// Streamable HTTP of both eras is served at each of the first three. Package mcp has the
// protocol; here is what is said in it: lists are made of the snapshot that every
// door has, and every request takes the same stack as a model's call.
//
// Results are given in both forms, as structuredContent and as text: what no text and
// no picture says is added, and texts are cut where they are longer than results may
// be, ours first; read_more gives the rest. Where the configuration says raw, what a server sent is passed on byte for byte.
package mcpserve

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/dragoman-mcp/dragoman/internal/door"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/observe"
	"github.com/dragoman-mcp/dragoman/internal/session"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// Config is the section mcp of the configuration.
type Config struct {
	Off    bool   `yaml:"off" doc:"Closes the MCP endpoint."`
	Search string `yaml:"search" enum:"never,auto,always" doc:"Whether a client is listed find_tools and call_tool in place of all tools: never, where those cost more than tools.tokens, or always. ?search in the address, or a set, says it for some clients."`
	Page   int64  `yaml:"page" unit:"bytes" min:"4096" doc:"Size beyond which a list is given in pages."`
	Raw    bool   `yaml:"raw" doc:"Passes results on as servers sent them: neither given in both forms nor cut."`
}

// Settings are what may be others later; see [Door.Use].
type Settings struct {
	Config
	// Reviews offers review_approvals to those who may answer what waits.
	Reviews bool
	// MaxMessage bounds one message of a client, in bytes; zero means 16 MiB.
	MaxMessage int64
}

// Options are what the door needs.
type Options struct {
	Settings
	// Sessions returns what opens a session, for each request anew.
	Sessions func() *session.Opener
	// StepUp returns the refusal for a caller at a path who lacks a right that they
	// can ask their authorization server for; nil for all others. Nil is nobody.
	StepUp func(who caller.Caller, path, right string) *caller.Refusal
	// Observer watches what a caller does; nil, and what it returns, may be nobody.
	Observer func(caller.Caller) observe.Observer
	// Name and Version are what we call ourselves to clients.
	Name, Version string
	// Log gets what is odd about clients; nil discards it.
	Log *slog.Logger
	// Fleet is what this door shares with those of other replicas; nil where there are none.
	Fleet mcp.Fleet
}

// Door serves MCP. Make it with [New] and end it with Close.
type Door struct {
	o      Options
	log    *slog.Logger
	server mcp.Server
	sse    *mcp.SSE
	now    atomic.Pointer[settings]
}

// settings are Settings with what is made of lists under them.
type settings struct {
	Settings
	views *views
}

// New returns a door.
func New(o Options) *Door {
	d := &Door{o: o, log: o.Log}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	d.server = mcp.Server{Limits: mcp.Limits{Message: o.MaxMessage}, Logger: d.log, Fleet: o.Fleet, SessionEnded: d.ended}
	d.sse = d.server.SSE(ssePath)
	d.Use(o.Settings)
	return d
}

// Use makes these the settings, for requests that come from now on.
func (d *Door) Use(s Settings) {
	now := &settings{Settings: s}
	if before := d.now.Load(); before != nil && before.Page == s.Page {
		now.views = before.views
	} else {
		now.views = &views{page: cmp.Or(int(s.Page), DefaultPage)}
	}
	d.now.Store(now)
	d.server.LimitMessages(s.MaxMessage)
}

// ssePath is where clients of 2024-11-05 connect.
const ssePath = "/sse"

// Routes returns the door's paths. They are closed late when memory is short: a message
// may belong to something that has begun. A stream on which a client listens lasts.
func (d *Door) Routes() []door.Route {
	var routes []door.Route
	for _, pattern := range []string{"/mcp", "/mcp/", ssePath} {
		routes = append(routes, door.Route{
			Pattern: pattern, Serve: d.Serve, Shed: door.ShedLast,
			Lasts: func(r *http.Request) bool { return r.Method == http.MethodGet },
		})
	}
	return routes
}

// Drain ends the streams on which clients listen, which would never end by
// themselves. What was asked for goes on.
func (d *Door) Drain() { d.server.Drain() }

// End ends the sessions of a caller's clients, who may not come any more.
func (d *Door) End(caller string) { d.server.End(caller) }

// Noted tells the door what another replica has written down about a session.
func (d *Door) Noted(session string, note []byte) { d.server.Noted(session, note) }

// Close ends all sessions of clients.
func (d *Door) Close() { d.server.Close() }

// Serve answers a request of a caller to one of the door's paths.
func (d *Door) Serve(w http.ResponseWriter, r *http.Request, who caller.Caller) {
	host := func(r *http.Request) (mcp.Host, error) { return d.host(r, who) }
	if r.URL.Path == ssePath {
		d.sse.ServeAs(w, r, host)
		return
	}
	d.server.ServeAs(w, r, host)
}

// ServeLines serves one client over lines, such as a program that started us, with
// all servers, until its input ends.
func (d *Door) ServeLines(ctx context.Context, who caller.Caller, in io.Reader, out io.Writer) error {
	return d.server.ServeLines(ctx, &host{door: d, who: who, legacy: true}, in, out)
}

// host returns who answers a request over HTTP: what is at its path, for its
// caller.
func (d *Door) host(r *http.Request, who caller.Caller) (mcp.Host, error) {
	h := &host{door: d, who: who, path: r.URL.EscapedPath(), legacy: r.Header.Get("Mcp-Protocol-Version") < firstModern}
	if h.legacy {
		h.session = r.Header.Get("Mcp-Session-Id")
	}
	var err error
	if h.search, err = searchOf(r.URL); err != nil {
		return nil, err
	}
	path := strings.Trim(strings.TrimPrefix(r.URL.Path, "/mcp"), "/")
	name, isSet := strings.CutPrefix(path, "set/")
	switch {
	case path == "", r.URL.Path == ssePath:
	case isSet:
		h.at.set = name
	default:
		h.at.server = path
	}
	return h, nil
}

// firstModern is the first version of the protocol of the modern era; versions are
// dates.
const firstModern = "2026-07-28"

// Codes of JSON-RPC and MCP.
const (
	invalidRequest   = -32600
	methodNotFound   = -32601
	invalidParams    = -32602
	internalError    = -32603
	resourceNotFound = -32002 // MCP 2025-11-25, "Resources", Error Handling
	urlRequired      = -32042 // MCP 2025-11-25, "Elicitation"

	// MCP 2026-07-28 has kept these for itself, and uses some.
	firstReserved, lastReserved = -32020, -32099
	missingCapability           = -32021
)
