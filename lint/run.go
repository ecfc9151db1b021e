package lint

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"slices"
	"time"

	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/pin"
)

// A Target is one server to audit. One of List, Command, URL and Pipe is set.
type Target struct {
	// Label names the server in findings; it should be the label of the
	// configuration, since pins are bound to it.
	Label string
	// List is a saved answer to tools/list, and File where it was read from.
	List json.RawMessage
	File string
	// Command starts the server on standard input and output. It is called for
	// each start; the three streams are set here.
	Command func() *exec.Cmd
	// URL is the address of a server over HTTP. Client makes the requests; nil
	// means one of our own that follows no redirects. Header goes with each.
	URL    string
	Client *http.Client
	Header http.Header
	// Pipe connects to a server by two streams, as a child process has them: what
	// it says and what it hears. It is called for each connection.
	Pipe func(context.Context) (io.ReadCloser, io.WriteCloser, error)

	// Legacy greets the server with initialize also where it speaks the modern era,
	// to audit the other half of a server of both.
	Legacy bool
	// ReadOnly reports what the operator says of a tool: that it only reads and
	// may be called by safe probes. Nil says nothing.
	ReadOnly func(tool string) bool
	// Config is how the server is configured; nil where nothing is known.
	Config *Config
}

func (t *Target) live() bool { return t.Command != nil || t.URL != "" || t.Pipe != nil }

// Options are the options of [Run]. The zero value uses the built-in rules and
// safe probes.
type Options struct {
	// Rules are the rules to check; nil means [Rules].
	Rules []Rule
	// Probe says which tools of running servers are called.
	Probe Probe
	// Dialects are the dialects into which tools are converted; nil means
	// [DefaultDialects].
	Dialects []string
	// Suppressions take findings out of the report.
	Suppressions []Suppression
	// Lock is the text of a dragoman.lock to compare with; nil for none.
	Lock []byte
	// Budget bounds what is done with each running server.
	Budget Budget
	// Progress is told what is being done; it may be nil.
	Progress func(server, doing string)
	// Now is the time; nil means [time.Now].
	Now func() time.Time
}

// Run audits servers. An error means that there is no report: a saved list that
// is none, a lock that cannot be read, a dialect that does not exist, the end of
// ctx. A server that does not start, hangs or answers nonsense is a finding.
func Run(ctx context.Context, targets []Target, o Options) (*Report, error) {
	return run(ctx, targets, o, func(*Server) {})
}

// run is Run with a hook for tests, which sees each server before it is judged.
func run(ctx context.Context, targets []Target, o Options, seen func(*Server)) (*Report, error) {
	if o.Rules == nil {
		o.Rules = Rules()
	}
	if o.Dialects == nil {
		o.Dialects = DefaultDialects
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Progress == nil {
		o.Progress = func(string, string) {}
	}
	dialects := make([]*dialect.Dialect, len(o.Dialects))
	for i, name := range o.Dialects {
		d, err := dialect.For(name)
		if err != nil {
			return nil, fmt.Errorf("reading the dialects: %w", err)
		}
		dialects[i] = d
	}
	var pins *pin.Lock
	if o.Lock != nil {
		var err error
		if pins, err = pin.ParseLock(o.Lock); err != nil {
			return nil, err
		}
	}
	r := &Report{rules: map[string]*Rule{}}
	for i := range o.Rules {
		r.rules[o.Rules[i].ID] = &o.Rules[i]
	}
	for _, t := range targets {
		s, err := subject(ctx, t, o)
		if err != nil {
			return nil, err
		}
		s.pins = pins
		seen(s)
		o.Progress(s.Label, "converting")
		if s.converted, err = convert(s, dialects); err != nil {
			return nil, fmt.Errorf("converting the tools of %s: %w", s.Label, err)
		}
		r.Servers = append(r.Servers, &Audited{Server: s})
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r.check(o.Rules)
	r.suppress(slices.Clone(o.Suppressions), o.Now())
	r.finish()
	return r, nil
}

// subject reads a saved list, or watches a running server.
func subject(ctx context.Context, t Target, o Options) (*Server, error) {
	s := &Server{Label: t.Label, File: t.File, Config: t.Config}
	if s.Label == "" {
		s.Label = "server"
	}
	if !t.live() {
		s.Source = t.List
		if err := readList(s, t.List); err != nil {
			return nil, err
		}
		return s, nil
	}
	observe(ctx, s, t, o)
	return s, ctx.Err()
}

// check runs all rules over all servers.
func (r *Report) check(rules []Rule) {
	servers := make([]*Server, len(r.Servers))
	for i, a := range r.Servers {
		servers[i] = a.Server
	}
	for i := range rules {
		rule := &rules[i]
		for _, s := range servers {
			r.judge(rule, s)
		}
		if rule.Set != nil && len(servers) > 0 {
			r.run(rule, At{}, nil, func(say Say) { rule.Set(servers, say) })
		}
	}
}

// judge runs a rule over one server.
func (r *Report) judge(rule *Rule, s *Server) {
	switch {
	case rule.Tool != nil:
		for _, t := range s.Tools {
			r.run(rule, At{Server: s.Label, Tool: t.Name}, t, func(say Say) { rule.Tool(t, say) })
		}
	case rule.Server != nil:
		r.run(rule, At{Server: s.Label}, nil, func(say Say) { rule.Server(s, say) })
	case rule.Live != nil && s.Live != nil:
		r.run(rule, At{Server: s.Label}, nil, func(say Say) { rule.Live(s, s.Live, say) })
	}
}

// most is how many findings of one rule about one subject are kept: a schema
// with a thousand bad patterns makes its point before that.
const most = 20

// run runs one rule over one subject. A rule that panics is a finding, and does
// not keep the others from running.
func (r *Report) run(rule *Rule, subject At, t *Tool, check func(Say)) {
	n := 0
	defer func() {
		if v := recover(); v != nil {
			f := r.own(ruleBroken, fmt.Sprintf("the rule %s failed: %v", rule.ID, v))
			f.Server, f.Tool = subject.Server, subject.Tool
			r.Findings = append(r.Findings, f)
		}
	}()
	check(func(at At, format string, args ...any) {
		if n++; n > most {
			return
		}
		f := Finding{
			Rule: rule.ID, Severity: rule.Severity, Title: rule.Title, Message: fmt.Sprintf(format, args...),
			Server: cmp.Or(at.Server, subject.Server), Tool: cmp.Or(at.Tool, subject.Tool), Pointer: at.Pointer, Gateway: rule.Gateway,
		}
		f.tool = t
		if t == nil && f.Tool != "" {
			f.tool = r.find(f.Server, f.Tool)
		}
		r.Findings = append(r.Findings, f)
	})
}

// find returns a tool by name.
func (r *Report) find(server, name string) *Tool {
	for _, a := range r.Servers {
		if a.Server.Label == server {
			for _, t := range a.Server.Tools {
				if t.Name == name {
					return t
				}
			}
		}
	}
	return nil
}
