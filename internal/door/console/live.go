package console

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/identity/permission"
	"github.com/dragoman-mcp/dragoman/internal/judge/audit"
	"github.com/dragoman-mcp/dragoman/internal/judge/policy"
	"github.com/dragoman-mcp/dragoman/internal/session"
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
}

// live is the page of what runs. Looking at it has what runs kept for a while.
func (c *Console) live(r *request) error {
	d := liveData{First: !c.o.Live.On(), Seq: c.o.Live.Seq(), All: r.who.May(permission.Live)}
	c.o.Live.Watch()
	d.Runs = c.o.Live.List(c.watches(r))
	return c.show(r, "live.html", view{Title: "Live", Here: Root + "live", Data: d})
}

type runData struct {
	session.Run
	Whole time.Duration
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
		b := bar{Phase: s.Phase, Label: s.Phase, Y: len(all)*rowHeight + 4}
		if s.Tool != "" {
			b.Label = s.Tool
		}
		b.Label += " " + s.Took.Round(100*time.Microsecond).String()
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
	id, err := strconv.ParseUint(r.PathValue("id"), 10, 64)
	if err != nil {
		return notFound("There is no such conversation.")
	}
	run, ok := c.o.Live.Get(id, c.watches(r))
	if !ok {
		return notFound("This conversation is not kept any more, or not yours to see.")
	}
	c.o.Live.Watch()
	if run.Caller != r.who.ID {
		c.looked(r, run)
	}
	d := runData{Run: run, Whole: time.Since(run.Began)}
	if !run.Ended.IsZero() {
		d.Whole = run.Ended.Sub(run.Began)
	}
	return c.show(r, "run.html", view{Title: "Conversation", Here: Root + "live", Data: d})
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
		now := fmt.Sprintf(`{"calls":%d,"held":%d,"live":%d}`, calls, held, c.o.Live.Seq())
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
