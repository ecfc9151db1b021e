package session

import (
	"context"
	"crypto/rand"
	"errors"
	chance "math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/text/clip"
	"github.com/dragoman-mcp/dragoman/result"
)

// Live keeps what runs, for people who watch: conversations and single calls, with their
// calls. It is built only while somebody watches ([Live.Watch]) or for callers whose runs
// are kept, from clipped copies, in memory, bounded in number and bytes, the oldest that is
// over going first; no figure comes from it. A nil Live keeps nothing. The zero value is
// ready.
type Live struct {
	// Book keeps runs once they are over; nil keeps none. It is set before the first use.
	Book Book

	until atomic.Int64 // somebody watches until then, in nanoseconds of Unix time
	first sync.Once
	next  atomic.Uint64 // from a number by chance on
	lost  atomic.Int64  // runs that had to go for newer ones, or that there was no time for
	pace  pace

	mu      sync.Mutex
	runs    []*Run // the newest last
	bytes   int
	seq     uint64   // raised when something is new
	awaited []string // ids of requests
}

// Bounds of what is kept of what runs.
const (
	maxRuns = 200
	// maxRunsPerSecond is how many are told, of those that are not kept anyway: some thousand
	// steps.
	maxRunsPerSecond = 200
	maxAwaited       = 64
	maxRunBytes      = 256 << 10 // of one run
	maxLiveBytes     = 8 << 20   // of all
	maxLiveText      = 8 << 10   // of one text
)

// Watched is how long what runs is kept after somebody looked last.
const Watched = 10 * time.Minute

// A Run is a conversation, or a call of its own.
type Run struct {
	ID      uint64
	Key     string // of its row; empty for one that is not kept
	Person  string // who of those behind the caller, as [store.Owner] has it; empty for nobody
	Request string // the id of the request that it answers; empty where that has none
	Caller  string
	Name    string // of the caller
	Door    string
	Model   string // as the client spells it; empty for a call of its own
	Began   time.Time
	Ended   time.Time // zero: it runs
	Failed  string    // why it ended, where it failed
	Steps   []Step
	Cut     bool // there is more than is kept

	bytes  int
	called []string // of one that was kept, without its steps
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
	// Asked is the request to the model and Said its message, as they went; In and Out are
	// the tokens that its API counted; where that counts none, a third of the bytes, Guessed.
	Asked, Said string
	In, Out     int
	Guessed     bool
	// Written are the arguments of the calls of a message, and Wrote those of the call.
	Written []Written
	Wrote   *Written
	// Arguments are as the server gets them, Came is the result as it came, and Shown as a
	// model reads it.
	Arguments, Came, Shown string
	Tokens                 int // of what is shown, estimated
	Ran                    string
	Problem                string
	Asks                   int
	// Passed says that the message went on to the model's API, and back, as it was.
	Passed bool
}

// Watch says that somebody watches, for [Watched] from now.
func (l *Live) Watch() {
	if l != nil {
		l.until.Store(time.Now().Add(Watched).UnixNano())
	}
}

// On reports whether somebody watches.
func (l *Live) On() bool { return l != nil && time.Now().UnixNano() < l.until.Load() }

// wants reports whether what a caller does is told: somebody watches, or it is kept.
func (l *Live) wants(who caller.Caller) bool {
	return l != nil && (l.On() || l.Book != nil && l.Book.Wants(who))
}

// Forget drops what is over: somebody was erased.
func (l *Live) Forget() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.runs = slices.DeleteFunc(l.runs, func(r *Run) bool {
		if !r.Ended.IsZero() {
			l.bytes -= r.bytes
		}
		return !r.Ended.IsZero()
	})
	l.seq++
}

// Seq is raised whenever something is new.
func (l *Live) Seq() uint64 {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seq
}

// List returns copies of the runs that a caller's ID is shown by, the newest first.
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

// Lost counts the runs that are not shown since the process began: those that had to go for
// newer ones, and those that began in a second in which there were too many.
func (l *Live) Lost() int {
	if l == nil {
		return 0
	}
	return int(l.lost.Load())
}

// Of returns the newest run that answers a request, where it is shown.
func (l *Live) Of(request string, shown func(caller string) bool) (Run, bool) {
	for _, r := range l.List(shown) {
		if r.Request == request && request != "" {
			return r, true
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

// begin begins a run; nil for one that is not told.
func (l *Live) begin(s *Session) *Run {
	if !l.admits(s) {
		return nil
	}
	return l.start(s)
}

// id is that of the next run. It is this process's alone, as the run is: at another replica,
// and after a restart, the address of a run leads to no other one.
func (l *Live) id() uint64 {
	l.first.Do(func() { l.next.Store(chance.Uint64() >> 16) })
	return l.next.Add(1)
}

func (l *Live) start(s *Session) *Run {
	r := &Run{ID: l.id(), Request: s.Request, Caller: s.Caller.ID, Name: s.Caller.Name, Door: s.door, Model: clip.Text(s.asked, 200), Began: time.Now()}
	if l.Book != nil && l.Book.Wants(s.Caller) {
		r.Key, r.Person = rand.Text(), person(s.door, s.client.Conversation)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.runs = append(l.runs, r)
	for len(l.runs) > maxRuns && l.drop(r) {
	}
	l.seq++
	return r
}

// drop forgets the oldest run that is over, or else the oldest, of which nothing more is
// kept: never the one that needs the room. mu is held.
func (l *Live) drop(not *Run) bool {
	at := slices.IndexFunc(l.runs, func(r *Run) bool { return r != not && !r.Ended.IsZero() })
	if at < 0 {
		at = slices.IndexFunc(l.runs, func(r *Run) bool { return r != not })
	}
	if at < 0 {
		return false
	}
	r := l.runs[at]
	if r.Ended.IsZero() {
		r.Steps, r.Cut = nil, true
	}
	l.bytes -= r.bytes
	l.lost.Add(1)
	l.runs = slices.Delete(l.runs, at, at+1)
	return true
}

// add adds a step to a run. What has no room is left out, and the run says so.
func (l *Live) add(r *Run, s Step) {
	size := 300 + len(s.Arguments) + len(s.Came) + len(s.Shown) + len(s.Problem) + len(s.Asked) + len(s.Said)
	for _, w := range s.Written {
		size += 100 + len(w.Raw) + 40*len(w.Repairs)
	}
	for _, name := range s.Calls {
		size += len(name)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seq++
	switch {
	case !slices.Contains(l.runs, r):
		return // it was forgotten meanwhile
	case r.joins(&s):
		return
	case r.bytes+size > maxRunBytes:
		r.Cut = true
		return
	}
	if s.Tool != "" {
		s.Wrote = r.wrote(s.ID)
	}
	r.Steps = append(r.Steps, s)
	r.bytes += size
	l.bytes += size
	for l.bytes > maxLiveBytes && l.drop(r) {
	}
}

// end ends a run, which is kept from then on where it is to be.
func (l *Live) end(r *Run, err error) {
	l.mu.Lock()
	r.Ended = time.Now()
	switch {
	case errors.Is(err, context.Canceled):
		r.Failed = "cancelled" // by who asked, who has left
	case err != nil:
		r.Failed = clip.Text(err.Error(), 400)
	}
	l.seq++
	whole := *r
	whole.Steps = slices.Clone(r.Steps)
	l.mu.Unlock()
	if r.Key != "" {
		l.Book.Keep(whole)
	}
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
