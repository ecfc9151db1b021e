package console

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/judge/approval"
	"github.com/dragoman-mcp/dragoman/internal/judge/pin"
	"github.com/dragoman-mcp/dragoman/internal/judge/pinning"
	"github.com/dragoman-mcp/dragoman/internal/show"
	"github.com/dragoman-mcp/dragoman/internal/text/canonical"
	"github.com/dragoman-mcp/dragoman/internal/text/qualified"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// A question is a call that waits for a person.
type question struct {
	approval.Approval
	Lines []line
	// Last is the call of the same tool that was approved last, and Beside the arguments
	// of the two; nil for none that is known.
	Last   *approval.Approval
	Beside []pair
	May    bool // answer it
}

type inboxData struct {
	Asks      bool // there is an inbox
	Questions []question
	Answered  []approval.Approval
	Held      []heldDefinition
	Approver  bool
}

// A heldDefinition is what a server says otherwise than it was approved.
type heldDefinition struct {
	show.Definition
	Label, Name string // as they are, to answer with
}

func (c *Console) inbox(r *request) error {
	return c.inboxAfter(r, done(r), http.StatusOK)
}

func (c *Console) inboxAfter(r *request, said string, status int) error {
	d := inboxData{Asks: c.o.Inbox != nil, Approver: approval.Reviews(r.who)}
	recent, err := c.o.Inbox.List(r.Context(), approval.Filter{Limit: 200})
	if err != nil {
		return err
	}
	waiting, err := c.o.Inbox.Waiting(r.Context(), r.who)
	if err != nil {
		return err
	}
	for _, a := range waiting {
		d.Questions = append(d.Questions, questionOf(a, recent, r.who))
	}
	for _, a := range recent {
		if a.State != approval.Pending && a.Shows(r.who) && len(d.Answered) < 20 {
			d.Answered = append(d.Answered, a)
		}
	}
	if d.Held, err = c.held(r.Context(), r.who); err != nil {
		return err
	}
	v := view{Title: "Inbox", Here: Root + "inbox", Said: said, Data: d}
	v.Menu, v.Who = menu(r.who), r.who
	c.write(r.w, r.Request, status, "inbox.html", v)
	return nil
}

func questionOf(a approval.Approval, recent []approval.Approval, who caller.Caller) question {
	q := question{Approval: a, Lines: lines(a.Arguments), May: a.MayDecide(approval.PersonOf(who)) == nil}
	var last *approval.Approval
	for i := range recent {
		b := &recent[i]
		if b.Server == a.Server && b.Tool == a.Tool && (b.State == approval.Used || b.State == approval.Approved) && (last == nil || b.Decided.After(last.Decided)) {
			last = b
		}
	}
	if last != nil && string(last.Arguments) != "null" {
		q.Last, q.Beside = last, beside(last.Arguments, a.Arguments, nil)
	}
	return q
}

// answer gives the person's answer to the inbox, as every door does.
func (c *Console) answer(r *request) error {
	if err := c.recent(r); err != nil {
		return err
	}
	said, err := c.posted(r)
	if err != nil {
		return err
	}
	var digest canonical.Hash
	if err := digest.UnmarshalText([]byte(said.Get("digest"))); err != nil {
		return model.Invalid("digest", "The answer does not say for which arguments it is.")
	}
	decision := said.Get("decision")
	if decision != "approve" && decision != "deny" {
		return model.Invalid("decision", "An answer is approve or deny.")
	}
	a, err := c.o.Inbox.Answer(r.Context(), r.who, approval.Answer{ID: r.PathValue("id"), Digest: &digest, Approve: decision == "approve", Why: said.Get("why")})
	switch {
	case errors.Is(err, approval.ErrDecided):
		return c.inboxAfter(r, "Somebody has answered meanwhile, or it expired.", http.StatusConflict)
	case errors.Is(err, approval.ErrNotFound):
		return notFound("There is no such approval that you may answer.")
	case errors.Is(err, approval.ErrOwn), errors.Is(err, approval.ErrNotApprover):
		return forbidden("It is not for you to answer: " + err.Error() + ".")
	case err != nil:
		return err
	}
	came := "Denied."
	if a.State == approval.Approved {
		came = "Approved: the call may run once."
	}
	return back(r, Root+"inbox", came)
}

// done is what was done before the page was opened, in words of ours: an address that says
// something else says nothing.
func done(r *request) string {
	if text := r.URL.Query().Get("done"); chinese[text] != "" {
		return text
	}
	return ""
}

// back sends the browser to a page, which says what was done.
func back(r *request, to, came string) error {
	http.Redirect(r.w, r.Request, to+"?"+url.Values{"done": {came}}.Encode(), http.StatusSeeOther)
	return nil
}

// mayTrust reports whether somebody may say of a definition that it is to be trusted: who
// may approve calls of the tool, or, of other texts of a server, calls of that name.
func mayTrust(who caller.Caller, server string, key pin.Key) bool {
	name := key.Name
	if key.Kind != pin.Tool {
		name = key.String()
	}
	return who.May("approve:" + qualified.Name(server, name))
}

// held are the definitions that wait and that somebody may judge.
func (c *Console) held(ctx context.Context, who caller.Caller) (all []heldDefinition, err error) {
	if c.o.Book == nil || !approval.Reviews(who) {
		return nil, nil
	}
	pins, err := c.pins.read(ctx, c.o.Book)
	if err != nil {
		return nil, err
	}
	for i := range pins {
		p := &pins[i]
		if p.State == pinning.Waiting && mayTrust(who, p.Server, p.Key) {
			all = append(all, heldDefinition{show.DefinitionOf(p, pinning.StandingFor(pins, p)), p.Server, p.Key.String()})
		}
	}
	return all, nil
}

// A reading is the book of pins as it was read last: pages that stay open ask each second,
// and whole definitions are in it. The zero value is ready.
type reading struct {
	mu      sync.Mutex
	at      time.Time
	changed <-chan struct{}
	pins    []pinning.Pin
}

// readAgain is how old a reading may be where nobody here has changed the book since.
const readAgain = 3 * time.Second

func (x *reading) read(ctx context.Context, book *pinning.Book) ([]pinning.Pin, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	select {
	case <-x.changed:
		x.at = time.Time{}
	default:
	}
	if time.Since(x.at) < readAgain {
		return x.pins, nil
	}
	changed := book.Changed()
	pins, err := book.List(ctx, "")
	if err == nil {
		x.at, x.changed, x.pins = time.Now(), changed, pins
	}
	return pins, err
}

// approvePin trusts a definition as it was shown, and no other.
func (c *Console) approvePin(r *request) error {
	if err := c.recent(r); err != nil {
		return err
	}
	said, err := c.posted(r)
	if err != nil {
		return err
	}
	key := pin.ParseKey(said.Get("name"))
	var digest pin.Digest
	if err := digest.UnmarshalText([]byte(said.Get("pin"))); err != nil || said.Get("server") == "" {
		return model.Invalid("pin", "The answer does not say for which definition it is.")
	}
	if c.o.Book == nil || !mayTrust(r.who, said.Get("server"), key) {
		return notFound("There is no such definition that you may approve.")
	}
	err = c.o.Book.Approve(r.Context(), said.Get("server"), key, digest, r.who.ID)
	switch {
	case errors.Is(err, pinning.ErrNotWaiting), errors.Is(err, pinning.ErrChanged):
		return c.inboxAfter(r, "It has changed since it was shown, or somebody has approved it: look again.", http.StatusConflict)
	case err != nil:
		return err
	}
	c.o.Log.Info("a definition was approved at the console", append(r.who.Logged(), "server", said.Get("server"), "name", key.String())...)
	return back(r, Root+"inbox", "Trusted as it is now.")
}

// Until says until when a question waits, by the clock of this process: that of the store may
// be another one.
func (q question) Until() time.Time { return time.Now().Add(q.Left) }
