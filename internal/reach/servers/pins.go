package servers

import (
	"bytes"
	"cmp"
	"context"
	"log/slog"
	"net/url"
	"slices"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/judge/pin"
	"github.com/dragoman-mcp/dragoman/internal/state/snapshot"
	"github.com/dragoman-mcp/dragoman/internal/text/commandline"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// pin returns what of a list is held, since nobody has approved it as it is now. Tools
// are those that the configuration allows; partial are kinds of which not all has come
// yet.
func (c *connection) pin(ctx context.Context, tools []dragoman.Tool, list *dragoman.List, partial []pin.Kind) map[pin.Key]*pin.Hold {
	if !c.pinned() {
		return nil
	}
	said := make([]pin.Said, 0, len(tools)+1)
	for i := range tools {
		if tools[i].Quarantined == nil {
			said = append(said, pin.OfTool(&tools[i]))
		}
	}
	for i := range list.Entries {
		if s, ok := pin.OfEntry(&list.Entries[i]); ok {
			said = append(said, s)
		}
	}
	said = append(said, pin.OfInstructions(c.label, list.Servers[0].Instructions))
	return c.set.options.Pins.Judge(ctx, pin.Subject{
		Label: c.label, Identity: c.config.identity(), Mode: c.config.Pins, Own: c.principal != (Owner{}), Partial: partial,
	}, said)
}

func (c *connection) pinned() bool {
	pins := c.set.options.Pins
	return pins != nil && pins.Pins(c.config.Pins)
}

// approvals returns a channel that is closed when something else may be approved; nil
// where everything is trusted.
func (c *connection) approvals() <-chan struct{} {
	if c.set.options.Pins == nil {
		return nil
	}
	return c.set.options.Pins.Changed()
}

// partial returns the kinds of which not all has come yet. What is listed afterwards is
// no less.
func partial(client *mcp.Client) (kinds []pin.Kind) {
	for entry, kind := range pin.Entries {
		if !client.Listed(entry) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// sameSaid reports whether two lists say the same, as far as it is pinned.
func sameSaid(a, b *dragoman.List) bool {
	only := func(l *dragoman.List) []dragoman.Entry {
		return slices.DeleteFunc(slices.Clone(l.Entries), func(e dragoman.Entry) bool { return pin.Entries[e.Kind] == "" })
	}
	return a != nil && a.Tools == b.Tools && a.Servers[0].Instructions == b.Servers[0].Instructions && slices.EqualFunc(only(a), only(b), snapshot.SameEntry)
}

// approved returns the entries that are not held.
func approved(entries []dragoman.Entry, held map[pin.Key]*pin.Hold) []dragoman.Entry {
	return slices.DeleteFunc(slices.Clone(entries), func(e dragoman.Entry) bool {
		key, ok := pin.KeyOf(&e)
		return ok && held[key] != nil
	})
}

// words returns the instructions that may be passed on: the server's own, or, while
// those are held, the ones that somebody approved.
func words(own string, held map[pin.Key]*pin.Hold) string {
	hold := held[pin.Key{Kind: pin.Instructions}]
	switch {
	case hold == nil:
		return own
	case hold.Approved == nil:
		return ""
	}
	return pin.Text(hold.Approved)
}

// heldTexts returns what is held beside tools, sorted.
func heldTexts(held map[pin.Key]*pin.Hold) (texts []dragoman.HeldText) {
	for key, hold := range held {
		if key.Kind != pin.Tool {
			texts = append(texts, dragoman.HeldText{Name: key.String(), Problem: hold.Problem})
		}
	}
	slices.SortFunc(texts, func(a, b dragoman.HeldText) int { return cmp.Compare(a.Name, b.Name) })
	return texts
}

// sayHeld says in the log what is held and was not said before. All may wait at the
// start, while the lists come in, and is no news then.
func (c *connection) sayHeld(ctx context.Context, texts []dragoman.HeldText, first bool) {
	level := slog.LevelWarn
	if first {
		level = slog.LevelDebug
	}
	for _, t := range texts {
		if !slices.ContainsFunc(c.status.Held, func(was dragoman.HeldText) bool { return snapshot.SameText(was, t) }) {
			c.log.Log(ctx, level, "text held", "text", t.Name, "reason", t.Problem.Message)
		}
	}
}

// catchUp waits until all is judged that the server has said of its tools by now, so that
// a call is held to them as they are and not as they were. A server that says nothing
// costs nothing; one that says that its tools changed and does not list them within
// patience, or in vain, is called by its old list. Calls that go on are not kept: their
// server may wait for them before it lists anything.
func (c *connection) catchUp(ctx context.Context, client *mcp.Client, call *dragoman.Call) {
	if call.Tool == nil || call.Answers != nil || !c.pinned() {
		return
	}
	if now, _ := c.upToDate(client); now && !client.Stale() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	client.Current(ctx)
	for {
		now, moved := c.upToDate(client)
		if now {
			return
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return
		}
	}
}

// upToDate reports whether the tools that a client has are the ones that were judged
// last, or the client is no longer ours; moved is closed when that may have changed.
func (c *connection) upToDate(client *mcp.Client) (now bool, moved <-chan struct{}) {
	list, err := client.List(context.Background())
	c.mu.Lock()
	defer c.mu.Unlock()
	return err != nil || c.client != client || c.given != nil && c.given.Tools == list.Tools, c.moved
}

// withheld answers a call whose target is held by now, whoever learned of it when it was
// not; held is false where it is not. A server that waits for answers is told that there
// will be none.
func (c *connection) withheld(ctx context.Context, client *mcp.Client, call dragoman.Call) (res dragoman.Result, held bool) {
	var key pin.Key
	switch {
	case call.Tool != nil:
		key = pin.Key{Kind: pin.Tool, Name: call.Tool.Original}
	case call.Entry != nil:
		key, _ = pin.KeyOf(call.Entry)
	}
	c.mu.Lock()
	hold := c.held[key]
	c.mu.Unlock()
	if hold == nil {
		return res, false
	}
	if call.Answers != nil {
		answers := *call.Answers
		answers.Gone = true
		call.Answers = &answers
		_, _ = client.Call(ctx, call)
	}
	return dragoman.Result{Problem: hold.Problem, Ran: dragoman.RanNot.After(call.Answers)}, true
}

// judgeSkill takes the answer to skills/get away where the skill is another one than the
// server lists: what was approved is the one in the list.
func (c *connection) judgeSkill(call *dragoman.Call, res *dragoman.Result) {
	if call.Method != "skills/get" || call.Entry == nil || !c.pinned() {
		return
	}
	o, err := rawjson.ParseObject(res.Content)
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.others {
		e := &c.others[i]
		if e.Kind != dragoman.Skill || e.Original != call.Entry.Original {
			continue
		}
		if is := o.Get("skill"); !bytes.Equal(e.Definition, is) && pin.Changes(e.Definition, is) != nil {
			*res = dragoman.Result{Ran: res.Ran, Problem: &dragoman.Problem{
				Code:    dragoman.CodeNotApproved,
				Message: "Its server gives another skill than the one that it lists, which is the one that was approved.",
			}}
		}
		return
	}
}

// identity says which server it is, whatever its version and its options: where it is,
// or what its command starts in the end. Approvals of tools hold for it.
func (c *Config) identity() string {
	if c.URL != "" {
		u, err := url.Parse(c.URL)
		if err != nil {
			return c.URL
		}
		return u.Scheme + "://" + u.Host + u.Path
	}
	return commandline.Read(c.Command, c.Args).Name()
}
