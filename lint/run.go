package lint

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/judge/pin"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

// A Target is one server to audit. One of List, Command, URL and Pipe is set; none of them
// where only its Config is to be judged.
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
	// Secrets are what the server is given and no report may show, though the server
	// says it: keys and tokens of 8 bytes or more.
	Secrets []string
}

func (t *Target) mask() secret.Mask {
	texts := make([]secret.Text, len(t.Secrets))
	for i, s := range t.Secrets {
		texts[i] = secret.New(s)
	}
	return secret.NewMask(texts...)
}

func (t *Target) live() bool { return t.Command != nil || t.URL != "" || t.Pipe != nil }

// Options are the options of [Run]. The zero value uses the built-in rules and
// safe probes.
type Options struct {
	// Rules are the rules to check; nil means [Rules].
	Rules []Rule
	// Probe says which tools of running servers are called, and Attack which are attacked
	// by [ProbeAttack]: names as servers spell them, no patterns.
	Probe  Probe
	Attack []string
	// ConfigOnly judges how servers are configured, by the rules of group K, and starts
	// and asks none.
	ConfigOnly bool
	// Dialects are the dialects into which tools are converted; nil means
	// [DefaultDialects].
	Dialects []string
	// Suppressions take findings out of the report.
	Suppressions []Suppression
	// LeftOut are rules that are not run this time: nobody knows what a suppression of one
	// would have hidden.
	LeftOut []Rule
	// Partial says that there are further servers, at which nobody looks this time: nor is
	// it known what a suppression would have hidden there.
	Partial bool
	// Baseline are findings that were there before, and are reported as known; nil for
	// none.
	Baseline Baseline
	// Lock is the text of a dragoman.lock to compare with; nil for none.
	Lock []byte
	// Budget bounds what is done with each running server.
	Budget Budget
	// Progress is told what is being done, one thing at a time; it may be nil.
	Progress func(server, doing string)
	// Found is told of each finding of the report as soon as it is certain: of definitions
	// once they are listed, of behaviour once the server was watched, of the rest at the
	// end; each once, one at a time. So much of the report as there is answers
	// [Report.Place] and [Report.Rule]. It may be nil.
	Found func(sofar *Report, f *Finding)
	// Now is the time; nil means [time.Now].
	Now func() time.Time

	temp string // folder for temporary files of servers that are no processes
	long int    // length of the longest argument that is tried; 1 MiB if zero
}

// Run audits servers. An error means that there is no report: a saved list that
// is none, a lock that cannot be read, a dialect that does not exist, a rule without
// an id, a severity or exactly one check, the end of ctx. A server that does not
// start, hangs or answers nonsense is a finding.
func Run(ctx context.Context, targets []Target, o Options) (*Report, error) {
	return run(ctx, targets, o, func(*Server) {})
}

// run is Run with a hook for tests, which sees each server before it is judged.
func run(ctx context.Context, targets []Target, o Options, seen func(*Server)) (*Report, error) {
	if o.Rules == nil {
		o.Rules = Rules()
	}
	for i := range o.Rules {
		if err := o.Rules[i].check(); err != nil {
			return nil, fmt.Errorf("reading the rules: %w", err)
		}
	}
	if o.Dialects == nil {
		o.Dialects = DefaultDialects
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.ConfigOnly {
		o.LeftOut = slices.Concat(o.LeftOut, o.Rules)
		o.Rules = slices.DeleteFunc(slices.Clone(o.Rules), func(r Rule) bool { return r.group() != 'K' && r.group() != 'L' })
	}
	o.Progress = oneAtATime(o.Progress)
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
	servers, err := subjects(targets)
	if err != nil {
		return nil, err
	}
	for _, s := range servers {
		s.pins = pins
		r.Servers = append(r.Servers, &Audited{Server: s})
	}
	j := &judging{r: r, o: &o, dialects: dialects, parts: make([]Report, len(servers)), early: make([]*Report, len(servers)), teller: newTeller(&o, o.Now())}
	if err := j.all(ctx, targets, seen); err != nil {
		return nil, err
	}
	j.collect()
	r.suppress(o)
	r.compare(o.Baseline)
	r.finish()
	j.teller.rest(r)
	return r, nil
}

// oneAtATime lets nobody wait who does not want to be told.
func oneAtATime(told func(server, doing string)) func(string, string) {
	if told == nil {
		return func(string, string) {}
	}
	var mu sync.Mutex
	return func(server, doing string) {
		mu.Lock()
		defer mu.Unlock()
		told(server, doing)
	}
}

// subjects makes a server of each target, and reads the saved lists, side by side.
func subjects(targets []Target) ([]*Server, error) {
	servers := make([]*Server, len(targets))
	errs := make([]error, len(targets))
	sideBySide(len(targets), func(i int) {
		t := &targets[i]
		servers[i] = &Server{Label: cmp.Or(t.Label, "server"), File: t.File, Config: t.Config, mask: t.mask()}
		switch {
		case t.live():
		case t.List == nil && t.Config != nil:
			servers[i].refused = knownMalicious(t.Config) != ""
			servers[i].unseen = true
		default:
			servers[i].Source = t.List
			if errs[i] = readList(servers[i], t.List); errs[i] != nil {
				errs[i] = fmt.Errorf("%s: %w", cmp.Or(t.File, servers[i].Label), errs[i])
			}
		}
	})
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return servers, nil
}

// mayStart reports whether a running server may be watched: nothing that is known to be
// malicious is started, or asked.
func (s *Server) mayStart(t Target) bool {
	if t.Command != nil {
		if cmd := t.Command(); cmd != nil && len(cmd.Args) > 0 {
			s.command = cmd
			s.starts = &Config{Command: cmd.Args[0], Args: cmd.Args[1:]}
		}
	}
	for _, c := range []*Config{s.Config, s.starts} {
		s.refused = s.refused || c != nil && knownMalicious(c) != ""
	}
	return t.live() && !s.refused
}

// sideBySide calls do for 0 to n-1, on as many goroutines as there are processors.
func sideBySide(n int, do func(int)) {
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	all.Wait()
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
			Rule: rule.ID, Severity: rule.Severity, Title: rule.Title, Message: r.hide(fmt.Sprintf(format, args...)),
			Server: cmp.Or(at.Server, subject.Server), Tool: cmp.Or(at.Tool, subject.Tool), Pointer: at.Pointer, Gateway: rule.Gateway,
		}
		f.tool = t
		if t == nil && f.Tool != "" {
			f.tool = r.find(f.Server, f.Tool)
		}
		r.Findings = append(r.Findings, f)
	})
}

// hide hides what the servers were given: findings quote what they say.
func (r *Report) hide(message string) string {
	for _, a := range r.Servers {
		message = a.Server.mask.Hide(message)
	}
	return message
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
