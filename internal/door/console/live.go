package console

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/identity/permission"
	"github.com/dragoman-mcp/dragoman/internal/judge/audit"
	"github.com/dragoman-mcp/dragoman/internal/judge/policy"
	"github.com/dragoman-mcp/dragoman/internal/session"
	"github.com/dragoman-mcp/dragoman/internal/text/invisible"
)

// watches says whose conversations a person sees: their own, and with a right everybody's.
func (c *Console) watches(r *request) func(string) bool {
	all, own := r.who.May(permission.Live), r.who.ID
	return func(caller string) bool { return all || caller == own }
}

type liveData struct {
	Runs  []session.Run
	First bool // nobody watched until now
	Seq   uint64
	All   bool // everybody's are shown
	Lost  int  // how many had to go for newer ones
	Node  string

	Store  bool // there is a store
	Keeps  bool // what is over is kept
	Kept   []session.Run
	Older  string // the address of those before; empty for none
	Newer  bool   // these are not the newest
	Missed int    // how many could not be kept
}

// maxKept is how many of those that are kept a page lists.
const maxKept = 50

// live is the page of what runs. Looking at it has what runs kept for a while.
func (c *Console) live(r *request) error {
	d := liveData{First: !c.o.Live.On(), Seq: c.o.Live.Seq(), All: r.who.May(permission.Live), Lost: c.o.Live.Lost(), Node: c.node()}
	c.o.Live.Watch()
	d.Runs = c.o.Live.List(c.watches(r))
	if err := c.kept(r, &d); err != nil {
		return err
	}
	return c.show(r, "live.html", view{Title: "Live", Here: Root + "live", Data: d})
}

// whose is whose conversations that are kept a person may see; empty for everybody's.
func (r *request) whose() string {
	if r.who.May(permission.Live) {
		return ""
	}
	return r.who.ID
}

// kept reads what is kept beside what this process has in memory.
func (c *Console) kept(r *request, d *liveData) error {
	if c.o.Captures == nil {
		return nil
	}
	d.Store, d.Keeps = true, c.o.Captures.On()
	if d.All {
		d.Missed = c.o.Captures.Lost()
	}
	before := time.Now().Add(time.Minute) // another replica's clock may be ahead
	if at, err := strconv.ParseInt(r.URL.Query().Get("before"), 10, 64); err == nil {
		before, d.Newer, d.Runs = time.UnixMicro(at), true, nil
	}
	all, err := c.o.Captures.List(r.Context(), r.whose(), before, maxKept+1)
	if err != nil {
		return err
	}
	if len(all) > maxKept {
		all = all[:maxKept]
		d.Older = Root + "live?before=" + strconv.FormatInt(all[maxKept-1].Began.UnixMicro(), 10)
	}
	for _, run := range all {
		if !slices.ContainsFunc(d.Runs, func(here session.Run) bool { return here.Key == run.Key }) {
			d.Kept = append(d.Kept, run)
		}
	}
	return nil
}

type runData struct {
	session.Run
	Whole time.Duration
	Node  string
}

// Seen says what the client saw of a model's message, and what of a call.
func (d runData) Seen(call bool) string {
	switch {
	case d.Door == "responses" && call:
		return "The client saw the arguments and what the model read, as an item mcp_call."
	case d.Door == "responses":
		return "The client saw the text, and each call of ours as an item mcp_call."
	case d.Door == "messages":
		return "A client that names its MCP servers saw the calls as blocks mcp_tool_use and mcp_tool_result; others saw the text alone."
	case d.Door == "mcp":
		return "The client wrote the arguments, and saw the result as a model reads it."
	case d.Door == "chat" && call:
		return "The client saw none of this; only the model did."
	case d.Door == "chat":
		return "The client saw the text of the message, unless it wanted JSON and this was not the last; of calls of ours it saw nothing."
	}
	return ""
}

// Listed are the steps that are over, and below them the calls that still run.
func (d runData) Listed() (all []session.Step) {
	over := map[string]bool{}
	key := func(s session.Step) string { return fmt.Sprint(s.Round, " ", s.ID) }
	for _, s := range d.Steps {
		if !s.Running {
			all = append(all, s)
			over[key(s)] = s.Tool != "" || over[key(s)]
		}
	}
	for _, s := range d.Steps {
		if s.Running && !over[key(s)] && d.Ended.IsZero() {
			all = append(all, s)
		}
	}
	return all
}

// Laid lays a document of a step out, or the text that is left of it.
func (runData) Laid(text string) []line { return lines(json.RawMessage(text)) }

// about marks tokens that are guessed.
func about(s session.Step) string {
	if s.Guessed {
		return "≈ "
	}
	return ""
}

// Tokens are those of all messages, in and out, as the model's API counted them or as they
// were guessed.
func (d runData) Tokens() (all struct {
	In, Out int
	Guessed bool
}) {
	for _, s := range d.Steps {
		all.In, all.Out, all.Guessed = all.In+s.In, all.Out+s.Out, all.Guessed || s.Guessed
	}
	return all
}

// A bar is a step on the time line.
type bar struct {
	Phase, Label             string
	X, Y, Wide, TextX, TextY int
	End                      bool // the text ends before the bar
}

// rowHeight is that of a bar and the space below it.
const rowHeight = 22

// Bars are the steps on the time line, in parts of a thousand of the whole.
func (d runData) Bars() (all []bar) {
	for _, s := range d.Steps {
		if s.Running {
			continue
		}
		part := func(t time.Duration) int { return int(1000 * min(max(t, 0), d.Whole) / max(d.Whole, 1)) }
		b := bar{Phase: s.Phase, Label: cmp.Or(s.Phase, "model"), Y: len(all)*rowHeight + 4}
		if s.Tool != "" {
			b.Label = invisible.Line(s.Tool, 100) // a picture has no mark for what shows nothing
		}
		b.Label += " · " + s.Took.Round(100*time.Microsecond).String()
		switch {
		case s.In+s.Out > 0:
			b.Label += fmt.Sprintf(" · %s%d → %d tokens", about(s), s.In, s.Out)
		case s.Tokens > 0:
			b.Label += fmt.Sprintf(" · %d tokens", s.Tokens)
		}
		b.X = min(997, part(s.At.Add(-s.Took).Sub(d.Began)))
		b.Wide = max(3, min(1000-b.X, part(s.Took)))
		b.TextX, b.TextY = b.X+b.Wide+4, b.Y+11
		if b.TextX > 700 {
			b.TextX, b.End = b.X-4, true
		}
		all = append(all, b)
	}
	return all
}

// Height is that of the time line.
func (d runData) Height() int { return len(d.Bars())*rowHeight + 8 }

// conversation is the page of one run.
func (c *Console) conversation(r *request) error {
	run, ok, err := c.found(r)
	if err != nil {
		return err
	}
	if !ok {
		return notFound("This conversation is not kept any more, not yours to see, or another replica's.")
	}
	if run.Caller != r.who.ID {
		c.looked(r, run)
	}
	return c.show(r, "run.html", view{Title: "Conversation", Here: Root + "live", Data: c.runOf(run)})
}

// found finds a run: by its number in this process, or by the key under which it is kept.
func (c *Console) found(r *request) (run session.Run, ok bool, err error) {
	id, err := strconv.ParseUint(r.PathValue("id"), 10, 64)
	switch {
	case err == nil:
		c.o.Live.Watch()
		run, ok = c.o.Live.Get(id, c.watches(r))
		return run, ok, nil
	case c.o.Captures == nil:
		return run, false, nil
	}
	return c.o.Captures.Get(r.Context(), r.whose(), r.PathValue("id"))
}

func (c *Console) runOf(run session.Run) runData {
	d := runData{Run: run, Whole: time.Since(run.Began)}
	if run.ID != 0 {
		d.Node = c.node()
	}
	if !run.Ended.IsZero() {
		d.Whole = run.Ended.Sub(run.Began)
	}
	return d
}

// trace is the page of the conversation that answers a request of the person's own, for
// the playground, which shows it beside what the client sees.
func (c *Console) trace(r *request) error {
	run, ok := c.o.Live.Of(r.PathValue("request"), func(caller string) bool { return caller == r.who.ID })
	if !ok {
		return notFound("This conversation is not kept any more, not yours to see, or another replica's.")
	}
	c.o.Live.Watch()
	return c.show(r, "run.html", view{Title: "Conversation", Here: Root + "live", Data: c.runOf(run)})
}

// node is what this process is called among its replicas; empty where it is alone.
func (c *Console) node() string {
	if c.o.Node == nil {
		return ""
	}
	return c.o.Node()
}

// looked writes down that somebody looked at what another caller did.
func (c *Console) looked(r *request, run session.Run) {
	c.o.Log.Info("somebody looks at another caller's conversation", append(r.who.Logged(), "of", run.Caller)...)
	if c.o.Audit != nil {
		c.o.Audit.Append(audit.Record{
			Kind: audit.Decision, Caller: r.who.ID, CallerName: r.who.Name, Door: "console", Method: "console/live", Target: run.Caller,
			Verdict: audit.Allow, Rule: policy.RuleGrants,
		})
	}
}

// everySecond is how often a page that is open is told what is new.
const everySecond = time.Second

// events tells a page that is open what is new, while its person is signed in: how much
// waits for them, and how far what runs has come. Pages show the numbers, and what is new
// after a key is pressed: nothing moves while somebody reads.
func (c *Console) events(r *request) error {
	control := http.NewResponseController(r.w)
	r.w.Header().Set("Content-Type", "text/event-stream")
	tick := time.NewTicker(everySecond)
	defer tick.Stop()
	id, last := c.sessionID(r.Request), ""
	quiet := 0
	who, err := json.Marshal(r.who.ID)
	if err != nil {
		return err
	}
	for {
		if !c.o.Sessions.Still(r.Context(), id) || !c.o.On() {
			_, _ = fmt.Fprint(r.w, "event: over\ndata: {}\n\n")
			return nil
		}
		calls, held, err := c.waiting(r.Context(), r)
		if err != nil {
			return nil // the store is away: the browser comes again
		}
		if r.URL.Query().Get("live") != "" {
			c.o.Live.Watch()
		}
		now := fmt.Sprintf(`{"who":%s,"calls":%d,"held":%d,"live":%d}`, who, calls, held, c.o.Live.Seq())
		quiet++
		if now != last || quiet >= 15 {
			if _, err := fmt.Fprintf(r.w, "data: %s\n\n", now); err != nil {
				return nil
			}
			if control.Flush() != nil {
				return nil
			}
			last, quiet = now, 0
		}
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return nil
		}
	}
}
