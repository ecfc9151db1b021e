package toolkit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Defaults of [Options] and of [AddList].
const (
	DefaultTimeout   = 30 * time.Second
	DefaultCharacter = 25_000
	DefaultPage      = 20
	MaxPage          = 50

	minCharacters = 1000
)

// Options describe a server. Service or Name must be given; everything else has
// a default.
type Options struct {
	// Service is what the server gives access to, such as "github". The server is
	// then called github-mcp-server and its tools github_{action}_{resource}.
	// Empty: tools have no prefix, and Name must be given.
	Service string
	// Name of the server where there is no Service, such as "weather-mcp-server".
	Name string
	// Title is the name that people see.
	Title string
	// Version of the server. Empty: "dev".
	Version string
	// Instructions tell a model how the tools belong together, in a few
	// sentences.
	Instructions string

	// Verbs are actions that tool names may begin with besides the usual ones. Others
	// give a warning: see [Server.Warnings].
	Verbs []string
	// Keys are secrets from the environment that must be there before anything
	// is served.
	Keys []*Key

	// Timeout is the time limit of a call. Zero: 30 seconds.
	Timeout time.Duration
	// Characters is the length limit of one result's text, all blocks together,
	// and of its structured data, at least 1,000. Zero: 25,000. Longer results are
	// cut by structure and say so.
	Characters int
	// Total is the length limit of text and structured data together, at least
	// 2,000, for clients that hand both to a model. Zero: twice Characters, since
	// most hand over one of the two.
	Total int
	// Rate limits all calls together, and UserRate those of any one caller. Zero:
	// no limit.
	Rate, UserRate Rate
	// Around stands around every call, the first outermost.
	Around []Middleware

	// Logger receives the errors that callers do not see, under their ids; never
	// arguments or results. Nil: nothing is logged, except by [Main], which logs
	// to standard error.
	Logger *slog.Logger
	// Audit receives one JSON line for each call: time, server, tool, outcome,
	// caller, user, key, client, session, a digest of the arguments, duration. Nil:
	// none, except by [Main], which writes to standard error or to the file of
	// --audit.
	Audit io.Writer

	// ClientLog announces that clients may receive log messages, see [Log]. MCP
	// 2026-07-28 deprecates it.
	ClientLog bool

	// HTTP says who may use the server over HTTP.
	HTTP HTTP
}

// A Server is an MCP server in the making, and then in use. Add tools,
// resources and prompts, then hand it to [Main], or serve it with [Server.Routes],
// [Server.ServeStdio] or [Server.Pipe]. Nothing panics: what is wrong with a
// registration is reported by [Server.Validate], all at once, and every way of
// serving refuses until it is right.
//
// It is safe for concurrent use; tools added while it runs are announced to
// clients.
type Server struct {
	opts   Options
	name   string
	trail  *trail
	budget *budget

	mu        sync.Mutex
	problems  []error
	warnings  []error
	taken     map[string]bool // "tool x", "prompt y", "resource z"
	waiting   []registration  // what the SDK's server gets once it exists
	built     *sdk.Server
	completed map[string]completion // by reference and argument
	watched   bool                  // a resource tells its subscribers of changes
	closed    bool
	host      *Server   // what this server is a part of
	parts     []*Server // in the order of Include
	atStop    []func(context.Context) error

	demands demands

	ctx   context.Context // ends with Close, and with it every connection
	stop  context.CancelFunc
	pipes sync.WaitGroup
	calls census
}

// A registration is a tool, a prompt or a resource on its way to the SDK's
// server.
type registration struct {
	kind, name string
	requires   []string
	put        func(*sdk.Server)
}

// errClosed is what every way in answers after [Server.Close].
var errClosed = errors.New("toolkit: server closed")

// NewServer makes a server. It does no I/O and starts nothing.
func NewServer(o Options) *Server {
	s := &Server{opts: o, taken: map[string]bool{}, completed: map[string]completion{}}
	s.name = o.Name
	if s.name == "" && o.Service != "" {
		s.name = serverName(o.Service)
	}
	s.trail = &trail{out: o.Audit}
	s.budget = newBudget(o.Rate, o.UserRate)
	s.opts.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	s.opts.Characters = cmp.Or(o.Characters, DefaultCharacter)
	s.opts.Version = cmp.Or(o.Version, "dev")
	if err := s.checkServerName(); err != nil {
		s.problems = append(s.problems, err)
	}
	if s.opts.Characters < minCharacters {
		s.problems = append(s.problems, fmt.Errorf("Options.Characters is %d; results need at least %d", s.opts.Characters, minCharacters))
	}
	if o.Total != 0 && o.Total < 2*minCharacters {
		s.problems = append(s.problems, fmt.Errorf("Options.Total is %d; text and data together need at least %d", o.Total, 2*minCharacters))
	}
	for i, around := range o.Around {
		if around == nil {
			s.problems = append(s.problems, fmt.Errorf("Options.Around[%d] is nil", i))
		}
	}
	if err := o.Rate.check(); err != nil {
		s.problems = append(s.problems, fmt.Errorf("Options.Rate: %w", err))
	}
	if err := o.UserRate.check(); err != nil {
		s.problems = append(s.problems, fmt.Errorf("Options.UserRate: %w", err))
	}
	if s.opts.Timeout < 0 {
		s.problems = append(s.problems, errors.New("Options.Timeout is negative"))
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	return s
}

// Validate reports everything that is wrong with the server, or nil: options,
// names, descriptions, hints, types that have no schema, examples that do not
// fit, keys that are not in the environment.
func (s *Server) Validate() error {
	s.mu.Lock()
	problems := slices.Clone(s.problems)
	if s.host != nil {
		problems = append(problems, errPart)
	}
	s.mu.Unlock()
	for _, k := range s.keys() {
		if err := k.present(); err != nil {
			problems = append(problems, err)
		}
	}
	if err := s.opts.HTTP.check(); err != nil {
		problems = append(problems, err)
	}
	if len(problems) == 0 {
		return nil
	}
	return &Problems{s.name, problems}
}

// Problems is everything that [Server.Validate] found.
type Problems struct {
	server string
	list   []error
}

// Error lists the problems, each on a line of its own.
func (p *Problems) Error() string {
	name := cmp.Or(p.server, "the server")
	text := fmt.Sprintf("%s cannot start:", name)
	if len(p.list) > 1 {
		text = fmt.Sprintf("%s cannot start, %d problems:", name, len(p.list))
	}
	for _, err := range p.list {
		text += "\n  " + strings.ReplaceAll(err.Error(), "\n", "\n    ")
	}
	return text
}

// Unwrap returns the problems one by one.
func (p *Problems) Unwrap() []error { return p.list }

// register notes what is wrong with one registration, or puts it in force, with
// the server that is served in the end.
func (s *Server) register(r registration, problem error) {
	s = s.root()
	what := r.kind + " " + r.name
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken[what] && s.built == nil {
		problem = errors.Join(problem, errors.New("registered twice"))
	}
	s.taken[what] = true
	if problem != nil {
		s.problems = append(s.problems, each(fmt.Sprintf("%s %q", r.kind, r.name), problem)...)
		return
	}
	s.demands.set(r)
	if s.built != nil {
		s.put(r)
		return
	}
	s.waiting = append(s.waiting, r)
}

// put hands a registration to the SDK, which panics on what it does not like.
func (s *Server) put(r registration) {
	defer func() {
		if p := recover(); p != nil {
			s.problems = append(s.problems, fmt.Errorf("%s %q: %v", r.kind, r.name, p))
		}
	}()
	r.put(s.built)
}

// each takes joined errors apart and says of each what it is about.
func each(about string, err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{fmt.Errorf("%s: %w", about, err)}
	}
	var list []error
	for _, one := range joined.Unwrap() {
		list = append(list, each(about, one)...)
	}
	return list
}

// SDK returns the official SDK's server that carries this one, for what the
// toolkit has no word for. What is added to it directly has none of the
// toolkit's care. Whoever connects to it directly is nobody in particular, unless
// the context says otherwise, see [As]. The error is that of [Server.Validate].
func (s *Server) SDK() (*sdk.Server, error) {
	s.mu.Lock()
	first := s.built == nil && len(s.problems) == 0 && s.host == nil
	if first {
		s.build()
	}
	s.mu.Unlock()
	if first {
		s.logWarnings(s.Warnings())
	}
	if err := s.Validate(); err != nil {
		return nil, err
	}
	return s.built, nil
}

func (s *Server) build() {
	// The SDK announces logging unless told otherwise; the toolkit never logs to
	// clients of its own accord.
	o := &sdk.ServerOptions{
		Instructions: s.opts.Instructions, Logger: s.opts.Logger, Capabilities: &sdk.ServerCapabilities{}, SetCacheable: s.cacheable,
	}
	if s.opts.ClientLog {
		//lint:ignore SA1019 legacy clients know no other way, and it was asked for
		o.Capabilities.Logging = &sdk.LoggingCapabilities{}
	}
	// Both may be added later, and until then these are no methods.
	o.SubscribeHandler = func(context.Context, *sdk.SubscribeRequest) error { return s.subscribing("resources/subscribe") }
	o.UnsubscribeHandler = func(context.Context, *sdk.UnsubscribeRequest) error { return s.subscribing("resources/unsubscribe") }
	o.CompletionHandler = s.complete
	s.built = sdk.NewServer(&sdk.Implementation{Name: s.name, Title: s.opts.Title, Version: s.opts.Version}, o)
	s.built.AddReceivingMiddleware(s.listed, s.announced)
	for _, r := range s.waiting {
		s.put(r)
	}
	s.waiting = nil
}

// Name returns the server's name.
func (s *Server) Name() string { return s.name }

// Close ends every connection and waits for those made by [Server.Pipe] to wind
// up. Later connections are refused. It may be called more than once.
func (s *Server) Close() error {
	s.mu.Lock()
	already := s.closed
	s.closed = true
	built := s.built
	s.mu.Unlock()
	if already {
		return nil
	}
	s.stop()
	if built != nil {
		closeSessions(built)
	}
	s.pipes.Wait()
	return nil
}

// closeLimit is how long Close waits for sessions to end. The SDK waits in each
// for what runs there, and a tool that has asked its client a question may wait
// for an answer that nobody gives.
const closeLimit = 5 * time.Second

// closeSessions ends the sessions that have an id. Those without one live on a
// stream and end with the server's context: closing them here would wait for a
// peer that may have stopped reading.
func closeSessions(server *sdk.Server) {
	var closing sync.WaitGroup
	for session := range server.Sessions() {
		if session.ID() != "" {
			closing.Go(func() { session.Close() })
		}
	}
	closed := make(chan struct{})
	go func() {
		closing.Wait()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(closeLimit):
	}
}

// bound is ctx, ended by Close too.
func (s *Server) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.ctx, func() { cancel(errClosed) })
	return ctx, func() { stop(); cancel(nil) }
}

// Client connects the official SDK's client to the server inside this process,
// over the very wire of standard input and output: for tests of tools. The
// session ends with Close, with ctx, or with the server.
func (s *Server) Client(ctx context.Context) (*sdk.ClientSession, error) {
	return s.ClientWith(ctx, nil)
}

// ClientWith is [Server.Client] for a client with options, such as an
// ElicitationHandler that answers what a tool asks; nil for none.
func (s *Server) ClientWith(ctx context.Context, o *sdk.ClientOptions) (*sdk.ClientSession, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	r, w := s.Pipe(ctx)
	client := sdk.NewClient(&sdk.Implementation{Name: "toolkit-client", Version: "1"}, o)
	session, err := client.Connect(ctx, &sdk.IOTransport{Reader: r, Writer: w}, nil)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", s.name, err)
	}
	return session, nil
}
