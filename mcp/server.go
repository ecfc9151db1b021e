package mcp

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dragoman-mcp/dragoman"
)

// A Host is what a [Server] serves, on behalf of one caller.
type Host interface {
	// Owner names the caller. A legacy session belongs to the owner of the request
	// that began it, and nobody else finds it.
	Owner() string
	// Describe says what clients are told about the server.
	Describe(context.Context) Description
	// Call answers a request: every one but those of the connection itself, which
	// are initialize, ping, server/discover, logging/setLevel, and the
	// subscriptions of legacy clients. Method is set, tools/call too. Arguments are
	// the params as the client sent them, without _meta, which is Meta, and without
	// task, which is Task; Tool and Entry are for the Host to find. Can and TakesTask
	// say what the client declared.
	//
	// A result that asks is put to the client in the way of its era, and the call
	// is made again with the answers, or with [dragoman.Answers.Gone]. A Problem
	// becomes an error of JSON-RPC, and an error that is an *[RPCError] is sent as
	// it is. Content is sent as it is, but for members that the modern era wants
	// and that it lacks.
	//
	// "subscriptions/listen" lasts until its context ends: what it hears goes to
	// Notify. Clients of both eras are served by it; those of the legacy era hear
	// of all their tasks, which "taskStatus": true among the notifications means.
	// Notify is given [Acknowledged] as soon as nothing is missed any more; a client
	// that is told so a moment too early never hears of what changes in between.
	Call(context.Context, dragoman.Call) (dragoman.Result, error)
}

// A Describer of tools is a Host that knows the input schemas of its tools. The
// Mcp-Param headers of its clients are checked (MCP 2026-07-28, "Custom Headers
// from Tool Parameters").
type Describer interface {
	// InputSchema returns the schema of a tool; nil where there is no such tool.
	InputSchema(ctx context.Context, tool string) json.RawMessage
}

// A Gatekeeper is a Host that refuses requests over HTTP before they are answered,
// with a status, so that a client gets itself a better token (MCP 2025-11-25, "Scope
// Challenge Handling").
type Gatekeeper interface {
	// Admit returns nil for a request that is to be answered. The name is that of a
	// tool or a prompt, or the URI of a resource; empty for other methods.
	Admit(ctx context.Context, method, name string) *Refused
}

// A Deputy is a [Gatekeeper] some of whose tools call others, which their arguments
// name.
type Deputy interface {
	// Meant returns the name of the tool that a call is really of; that of the call
	// where it is of no other.
	Meant(ctx context.Context, name string, arguments json.RawMessage) string
}

// An Interpreter is a [Host] that speaks to each era in its own way. It is asked where a
// connection carries both: lines, and HTTP+SSE.
type Interpreter interface {
	// In returns who answers a message of an era.
	In(Era) Host
}

// Refused is an answer of HTTP to a request that is not answered.
type Refused struct {
	// Status is that of HTTP, such as 403.
	Status int
	// Challenge is the value of WWW-Authenticate; empty for none.
	Challenge string
	// Message is for the client.
	Message string
}

// A Description is what clients are told about a server.
type Description struct {
	// Info is the raw object that names the server and its version.
	Info json.RawMessage
	// Meta is a raw object whose members go into _meta beside it; nil for none.
	Meta json.RawMessage
	// Capabilities is the raw object of what it can do, for clients of both eras:
	// tasks is told to those of the legacy era, and the extension [TasksExtension]
	// to those of the modern one.
	Capabilities json.RawMessage
	// Instructions say how to use it; empty for none.
	Instructions string
	// TTL is how long lists are fresh, and Public that they hold nothing of a
	// single user. Both are told where a result does not say itself.
	TTL    time.Duration
	Public bool
}

// A Server speaks MCP to clients, both eras at one address: as an [http.Handler]
// over Streamable HTTP, with [Server.SSE] over HTTP+SSE, and with
// [Server.ServeLines] over lines, such as stdio. Host must be set before the first
// use of ServeHTTP, and fields must not change after it.
type Server struct {
	// Host returns who answers a request over HTTP. Its error, an *[RPCError] or
	// any other, is the answer to a request that nobody answers. It is not asked by
	// [Server.ServeAs].
	Host func(*http.Request) (Host, error)
	// SessionLife is how long a legacy session lasts of which nothing is heard;
	// 30 minutes if zero. MaxSessions is how many there are at most; 10,000 if
	// zero. Where there is no room, the owner of most gives up one that is not in use.
	SessionLife time.Duration
	MaxSessions int
	// Fleet is what this server shares with those of other processes that serve the same
	// clients; nil where it is alone.
	Fleet Fleet
	// Limits.Message bounds what a client sends, and Limits.Requests, 1,000 if zero,
	// how many requests of one legacy client, or of one over lines, run at a time: a
	// client may stand for many people.
	Limits Limits
	// SessionEnded is told when a legacy session or connection that began here ends, and
	// how long it lasted, with the version that it spoke and by what: tcp, or pipe for
	// lines. It is called once for each and does not block; nil is nobody.
	SessionEnded func(version, network string, lasted time.Duration)
	// Logger gets what is odd about clients; nil discards it.
	Logger *slog.Logger

	message  atomic.Int64 // bounds what a client sends
	once     sync.Once
	log      *slog.Logger
	mu       sync.Mutex
	sessions map[string]*httpSession
	crowd    crowd // of the sessions
	closed   bool

	ids        atomic.Int64           // of requests to clients; of a fleet
	leaveFleet func()                 // nil where the server is alone
	lent       map[string]*time.Timer // streams that other processes read, by their keys; each ends one

	listening context.Context // ends when the server drains
	drain     context.CancelFunc
}

func (s *Server) init() {
	s.once.Do(func() {
		s.SessionLife = or(s.SessionLife, 30*time.Minute)
		s.MaxSessions = or(s.MaxSessions, 10_000)
		s.Limits.Requests = or(s.Limits.Requests, 1000)
		s.Limits = s.Limits.filled()
		s.message.CompareAndSwap(0, s.Limits.Message)
		if s.log = s.Logger; s.log == nil {
			s.log = slog.New(slog.DiscardHandler)
		}
		s.sessions, s.lent = map[string]*httpSession{}, map[string]*time.Timer{}
		s.listening, s.drain = context.WithCancel(context.Background())
		s.joinFleet()
	})
}

// LimitMessages sets Limits.Message while the server is in use, for messages that come
// from now on; zero is 16 MiB. A client over lines keeps the limit that it began with.
func (s *Server) LimitMessages(bytes int64) {
	s.message.Store(Limits{Message: bytes}.filled().Message)
}

// Drain ends what would never end by itself: the streams on which clients listen,
// and subscriptions. What was asked for goes on.
func (s *Server) Drain() {
	s.init()
	s.drain()
}

// End ends the legacy sessions of an owner, and what runs for them, without waiting for
// it. Requests of the modern era, and streams of [Server.SSE], end with their contexts.
func (s *Server) End(owner string) {
	s.mu.Lock()
	var theirs []*httpSession
	for _, session := range s.sessions {
		if session.owner == owner {
			theirs = append(theirs, session)
		}
	}
	s.mu.Unlock()
	for _, session := range theirs {
		session.leave()
	}
}

// Close ends all legacy sessions, and with them what runs for them.
func (s *Server) Close() {
	s.Drain()
	s.mu.Lock()
	s.closed = true
	var all []*httpSession
	for _, session := range s.sessions {
		all = append(all, session)
	}
	s.mu.Unlock()
	for _, session := range all {
		session.end()
	}
	if s.leaveFleet != nil {
		s.leaveFleet()
	}
}

// Sessions returns how many legacy sessions there are.
func (s *Server) Sessions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sessions)
}
