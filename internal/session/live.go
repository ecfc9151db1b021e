package session

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/text/clip"
	"github.com/dragoman-mcp/dragoman/result"
)

// Live keeps what runs, for people who watch: conversations and single calls, with their
// calls. It is built only while somebody watches ([Live.Watch]), from clipped copies, in
// memory, bounded in number and bytes, the oldest going first; no figure comes from it. A
// nil Live keeps nothing. The zero value is ready.
type Live struct {
	until atomic.Int64 // somebody watches until then, in nanoseconds of Unix time
	next  atomic.Uint64

	mu    sync.Mutex
	runs  []*Run // the newest last
	bytes int
	seq   uint64 // raised when something is new
}

// Bounds of what is kept of what runs.
const (
	maxRuns      = 200
	maxRunBytes  = 256 << 10 // of one run
	maxLiveBytes = 8 << 20   // of all
	maxLiveText  = 8 << 10   // of one text
)

// Watched is how long what runs is kept after somebody looked last.
const Watched = 10 * time.Minute

// A Run is a conversation, or a call of its own.
type Run struct {
	ID     uint64
	Caller string
	Name   string // of the caller
	Door   string
	Model  string // as the client spells it; empty for a call of its own
	Began  time.Time
	Ended  time.Time // zero: it runs
	Failed string    // why it ended, where it failed
	Steps  []Step
	Cut    bool // there is more than is kept

	bytes int
}

// A Step is one thing that happened in a run.
type Step struct {
	At    time.Time
	Phase string // decide, execute, summarise
	Round int
	Took  time.Duration
	// Calls are the tools that the model called; Tool and Server name the one that runs.
	Calls        []string
	Tool, Server string
	ID           string
	// Running says that the call has begun; its result is another step.
	Running bool
	// Arguments are as the server gets them, Came is the result as it came, and Shown as a
	// model reads it.
	Arguments, Came, Shown string
	Tokens                 int // of what is shown, estimated
	Ran                    string
	Problem                string
	Asks                   int
}

// Watch says that somebody watches, for [Watched] from now.
func (l *Live) Watch() {
	if l != nil {
		l.until.Store(time.Now().Add(Watched).UnixNano())
	}
}

// On reports whether somebody watches.
func (l *Live) On() bool { return l != nil && time.Now().UnixNano() < l.until.Load() }

// Seq is raised whenever something is new.
func (l *Live) Seq() uint64 {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seq
}

// List returns copies of the runs that a caller's ID is shown by, the newest first; without
// their steps.
func (l *Live) List(shown func(caller string) bool) (all []Run) {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range slices.Backward(l.runs) {
		if shown(r.Caller) {
			all = append(all, *r)
			all[len(all)-1].Steps = slices.Clone(r.Steps)
		}
	}
	return all
}

// Get returns a copy of a run, where it is shown.
func (l *Live) Get(id uint64, shown func(caller string) bool) (Run, bool) {
	if l == nil {
		return Run{}, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.runs {
		if r.ID == id && shown(r.Caller) {
			c := *r
			c.Steps = slices.Clone(r.Steps)
			return c, true
		}
	}
	return Run{}, false
}

// Running counts what runs and is shown.
func (l *Live) Running(shown func(caller string) bool) (n int) {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.runs {
		if r.Ended.IsZero() && shown(r.Caller) {
			n++
		}
	}
	return n
}

// begin begins a run; nil where nobody watches.
func (l *Live) begin(s *Session) *Run {
	if !l.On() {
		return nil
	}
	r := &Run{ID: l.next.Add(1), Caller: s.Caller.ID, Name: s.Caller.Name, Door: s.door, Model: clip.Text(s.asked, 200), Began: time.Now()}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.runs = append(l.runs, r)
	for len(l.runs) > maxRuns {
		l.drop()
	}
	l.seq++
	return r
}

// drop forgets the oldest run. mu is held.
func (l *Live) drop() {
	l.bytes -= l.runs[0].bytes
	l.runs = slices.Delete(l.runs, 0, 1)
}

// add adds a step to a run. What has no room is left out, and the run says so.
func (l *Live) add(r *Run, s Step) {
	size := 200 + len(s.Arguments) + len(s.Came) + len(s.Shown) + len(s.Problem)
	for _, name := range s.Calls {
		size += len(name)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seq++
	if r.bytes+size > maxRunBytes {
		r.Cut = true
		return
	}
	if !slices.Contains(l.runs, r) {
		return // it was forgotten meanwhile
	}
	r.Steps = append(r.Steps, s)
	r.bytes += size
	l.bytes += size
	for l.bytes > maxLiveBytes && l.runs[0] != r {
		l.drop()
	}
}

// end ends a run.
func (l *Live) end(r *Run, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.Ended = time.Now()
	if err != nil {
		r.Failed = clip.Text(err.Error(), 400)
	}
	l.seq++
}

// step is what people see of an event. shape renders results as the model reads them.
func step(e dragoman.Event, shape func(*dragoman.Tool) *result.Shape) Step {
	s := Step{At: time.Now(), Phase: string(e.Phase), Round: e.Round, Took: e.Duration}
	for i := range e.Calls {
		s.Calls = append(s.Calls, clip.Text(nameOf(&e.Calls[i]), 100))
	}
	if e.Call == nil {
		return s
	}
	s.ID, s.Running = clip.Text(e.Call.ID, 100), e.Result == nil
	s.Tool, s.Arguments = clip.Text(nameOf(e.Call), 200), text(e.Call.Arguments)
	if e.Call.Tool != nil {
		s.Server = e.Call.Tool.Server
	}
	if e.Result == nil {
		return s
	}
	s.came(e.Call, e.Result, shape)
	return s
}

func (s *Step) came(call *dragoman.Call, res *dragoman.Result, shape func(*dragoman.Tool) *result.Shape) {
	s.Took, s.Ran, s.Came = res.Info.Duration, res.Ran.String(), text(res.Content)
	switch {
	case res.Problem != nil:
		s.Problem = res.Problem.Code + ": " + clip.Text(res.Problem.Message, 400)
	case res.Failed:
		s.Problem = "tool_error"
	}
	if res.Asks != nil {
		s.Asks = len(res.Asks.Questions)
		return
	}
	look := *shape(call.Tool)
	look.Shelf = nil // nothing is kept for it
	message := look.Message(*call, *res).Text
	s.Shown, s.Tokens = clip.Text(message, maxLiveText), result.EstimateTokens(message)
}

func nameOf(c *dragoman.Call) string {
	if c.Tool != nil {
		return c.Tool.Name
	}
	return c.Name
}

// text returns a clipped copy, which keeps nothing of the original alive.
func text(raw []byte) string {
	return clip.Text(string(raw[:min(len(raw), maxLiveText+1)]), maxLiveText)
}
