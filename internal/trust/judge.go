package trust

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/pin"
	"github.com/dragoman-mcp/dragoman/internal/store"
	"github.com/dragoman-mcp/dragoman/lint"
)

// A Server is what has to be known of a server whose tools are judged.
type Server struct {
	Label string
	// Identity tells the server from others that the label may come to mean. It is
	// kept as a digest alone.
	Identity string
	// Mode is its own; empty for that of all.
	Mode Mode
	// Own says that the list is that of one caller's connection: others may have
	// another one.
	Own bool
}

// Reasons why a definition waits.
const (
	changed    = "changed"    // another one is approved
	joined     = "joined"     // the server had no such tool when it was trusted
	unapproved = "unapproved" // nobody has approved it
	elsewhere  = "elsewhere"  // the label meant another server
	full       = "full"       // more is kept of the server already than is good
	unsure     = "unsure"     // the book cannot be read, or written
	poisoned   = "poisoned"   // by the look of it; the rule's title comes behind ": "
)

// Judge returns why tools of a server are held, by their names there; none for tools
// that are trusted, and for those that are in quarantine already. What is seen for the
// first time is written down: approved, or waiting. Where that cannot be done, or the
// book not be read, only what was found to be approved before is trusted.
func (b *Book) Judge(ctx context.Context, s Server, tools []dragoman.Tool) map[string]*dragoman.Problem {
	if !b.Pins(s.Mode) {
		return nil
	}
	s.Mode = s.Mode.Or(b.mode)
	sum := sha256.Sum256([]byte(s.Identity))
	s.Identity = hex.EncodeToString(sum[:])
	j := &judgement{Server: s, now: b.now(), suspect: map[[32]byte]string{}}
	j.locked, j.inLock = b.lock.tools(s.Label)
	for i := range tools {
		if tools[i].Quarantined == nil {
			j.tools = append(j.tools, &tools[i])
		}
	}
	known, all := b.known(j)
	if all {
		return nil
	}
	err := b.db.Read(ctx, j.decide)
	switch {
	case err != nil:
		j.doubt(func(pin [32]byte) bool { return b.trusts(known, pin) })
	case j.writes():
		if err = b.db.Write(ctx, func(tx *store.Tx) error { return j.write(tx, b.record) }); err != nil {
			j.unwritten()
		}
	}
	b.settle(ctx, s.Label, err)
	return b.learn(j, known)
}

// verdicts are what was found about the tools of a server since the book moved: while
// it lists nothing but what is trusted, nothing has to be looked up.
type verdicts struct {
	trusted map[[32]byte]bool // by their pins
	held    bool              // something was, and maybe is no longer listed
}

// known returns what is known of a server, and reports whether that is all that there
// is to say about what it lists.
func (b *Book) known(j *judgement) (known *verdicts, all bool) {
	key := j.Label + "\x00" + j.Identity + "\x00" + string(j.Mode)
	b.mu.Lock()
	defer b.mu.Unlock()
	if known = b.judged[key]; known == nil {
		known = &verdicts{trusted: map[[32]byte]bool{}}
		b.judged[key] = known
	}
	return known, !known.held && !slices.ContainsFunc(j.tools, func(t *dragoman.Tool) bool { return !known.trusted[t.Pin] })
}

func (b *Book) trusts(known *verdicts, pin [32]byte) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return known.trusted[pin]
}

// learn notes what is trusted, and returns why the others are held.
func (b *Book) learn(j *judgement, known *verdicts) map[string]*dragoman.Problem {
	held := map[string]*dragoman.Problem{}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(known.trusted) > 2*MaxApproved { // of a server that spells them in another way each time
		clear(known.trusted)
	}
	for i, t := range j.tools {
		if v := &j.verdicts[i]; v.waits != "" {
			held[t.Original] = v.problem(j.Label)
		} else {
			known.trusted[t.Pin] = true
		}
	}
	known.held = len(held) > 0
	return held
}

// settle says in the log that the store fails, once for each time that it does.
func (b *Book) settle(ctx context.Context, label string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case err == nil:
		b.unsure = time.Time{}
	case ctx.Err() == nil:
		if b.unsure.IsZero() {
			b.log.Error("the book of approved tools fails, so tools that are new or changed are held", "server", label, "error", err)
		}
		b.unsure = b.now()
	}
}

// A judgement is about the tools that a server lists.
type judgement struct {
	Server
	tools   []*dragoman.Tool
	now     time.Time
	locked  map[string]pin.Tool
	inLock  bool
	suspect map[[32]byte]string // what is poisonous about definitions that were looked at

	verdicts []verdict
	over     []string // tools that do not wait any longer

	standing, waiting           map[string]*Pin // waiting: or passed
	standingTools               int
	standingBytes, waitingBytes int
	learned                     time.Time // when the server was first used; zero: not
	other                       bool      // all that is approved is another server's
}

// A verdict is about one tool. Waits is empty for one that is trusted.
type verdict struct {
	waits string
	parts []string // that changed
	put   State    // what has to be written; empty for nothing
	how   string   // it came to be approved
	event bool     // which is to be said in the audit log
}

// decide judges all tools by what the book has.
func (j *judgement) decide(tx *store.Tx) (err error) {
	if j.standing, j.waiting, err = sizes(tx, j.Label); err != nil {
		return err
	}
	j.verdicts, j.over = make([]verdict, len(j.tools)), nil
	j.standingTools, j.standingBytes, j.waitingBytes = len(j.standing), 0, 0
	j.learned, j.other = time.Time{}, len(j.standing) > 0
	for _, p := range j.standing {
		j.standingBytes += p.size
		if p.identity != j.Identity {
			continue
		}
		j.other = false
		if p.Reason == ByFirst && (j.learned.IsZero() || p.At.Before(j.learned)) {
			j.learned = p.At
		}
	}
	for _, p := range j.waiting {
		j.waitingBytes += p.size
	}
	still := map[string]bool{}
	for i, t := range j.tools {
		v, err := j.judge(tx, t)
		if err != nil {
			return err
		}
		if v.waits != "" {
			still[t.Original] = true
			j.hold(t, &v)
		}
		j.verdicts[i] = v
	}
	for name, p := range j.waiting {
		if p.State == Waiting && !still[name] && !j.Own {
			j.over = append(j.over, name)
		}
	}
	return nil
}

// judge judges one tool. This is the order in which its approvals are looked for.
func (j *judgement) judge(tx *store.Tx, t *dragoman.Tool) (verdict, error) {
	name, digest := t.Original, pin.Digest(t.Pin)
	if locked, ok := j.locked[name]; ok && locked.Pin == digest {
		if p := j.standing[name]; p != nil && (p.Reason == ByPerson || p.Pin == digest) && p.identity == j.Identity {
			return verdict{}, nil
		}
		return verdict{put: Standing, how: ByLock, event: true}, nil
	}
	p := j.standing[name]
	if p == nil {
		return j.judgeNew(t), nil
	}
	var changes []pin.Change
	if p.Pin != digest {
		was, err := get(tx, j.Label, name, Standing)
		if err != nil {
			return verdict{}, err
		}
		changes = pin.Changes(was.Definition, t.Definition)
	}
	switch {
	case p.identity != j.Identity:
		return verdict{waits: elsewhere}, nil
	case changes != nil:
		return verdict{waits: changed, parts: pin.Changed(changes)}, nil
	case !j.counts(p):
		return verdict{waits: unapproved}, nil
	}
	return verdict{}, nil
}

// counts reports whether what was approved is still, by the mode and the lock.
func (j *judgement) counts(p *Pin) bool {
	switch p.Reason {
	case ByPerson:
		return true
	case ByLock:
		locked, ok := j.locked[p.Tool]
		return ok && locked.Pin == p.Pin
	}
	return j.Mode == First && !j.inLock
}

// judgeNew judges a tool of which nothing is approved.
func (j *judgement) judgeNew(t *dragoman.Tool) verdict {
	switch {
	case j.other:
		return verdict{waits: elsewhere}
	case j.Mode != First || j.inLock:
		return verdict{waits: unapproved}
	case len(j.standing) > 0 && (j.learned.IsZero() || j.now.Sub(j.learned) > Learning):
		return verdict{waits: joined}
	}
	if what := j.poison(t); what != "" {
		return verdict{waits: poisoned + ": " + what}
	}
	if j.standingTools >= MaxApproved || j.standingBytes+len(t.Definition) > MaxApprovedBytes {
		return verdict{waits: full}
	}
	j.standingTools++
	j.standingBytes += len(t.Definition)
	return verdict{put: Standing, how: ByFirst, event: true}
}

// poisonRules are the rules that nothing harmless breaks.
var poisonRules = sync.OnceValue(func() []lint.Rule { return lint.Only("X001", "X002") })

// poison says what is poisonous about a definition, in words of ours; empty for
// nothing.
func (j *judgement) poison(t *dragoman.Tool) string {
	what, looked := j.suspect[t.Pin]
	if !looked {
		for _, f := range lint.Judge(&lint.Server{Label: j.Label}, []json.RawMessage{t.Definition}, poisonRules()) {
			what = f.Title + " (" + f.Rule + ")"
			break
		}
		j.suspect[t.Pin] = what
	}
	return what
}

// hold says what has to be written of a tool that waits, as far as there is room. The
// audit log is told once, until somebody has approved or forgotten the tool, however
// often its server goes back and forth.
func (j *judgement) hold(t *dragoman.Tool, v *verdict) {
	p := j.waiting[t.Original]
	kept := 0
	if p != nil {
		if p.State == Waiting && p.Pin == t.Pin && p.Reason == v.waits && p.identity == j.Identity {
			return
		}
		kept = p.size
	}
	if p == nil && len(j.waiting) >= MaxWaiting || j.waitingBytes-kept+len(t.Definition) > MaxWaitingBytes {
		v.waits = full
		return
	}
	j.waitingBytes += len(t.Definition) - kept
	v.put, v.event = Waiting, p == nil
	j.waiting[t.Original] = &Pin{State: Waiting, size: len(t.Definition)}
}

func (j *judgement) writes() bool {
	for i := range j.verdicts {
		if j.verdicts[i].put != "" {
			return true
		}
	}
	return len(j.over) > 0
}

// write decides again, since another process may have written meanwhile, and writes
// what is new.
func (j *judgement) write(tx *store.Tx, record func(*store.Tx, Event) error) error {
	if err := j.decide(tx); err != nil {
		return err
	}
	for _, name := range j.over {
		if err := pass(tx, j.Label, name); err != nil {
			return err
		}
	}
	for i, t := range j.tools {
		v := &j.verdicts[i]
		if v.put == "" {
			continue
		}
		p := Pin{Server: j.Label, Tool: t.Original, State: v.put, Pin: t.Pin, Definition: t.Definition, At: j.now, Reason: v.how, identity: j.Identity}
		e := Event{Server: p.Server, Tool: p.Tool, Pin: p.Pin, What: FirstUse}
		switch {
		case v.put == Waiting:
			p.Reason, e.What, e.Why = v.waits, Held, v.waits
		case v.how == ByLock:
			e.What = Locked
		}
		if err := put(tx, &p); err != nil {
			return err
		}
		if !v.event {
			continue
		}
		if err := record(tx, e); err != nil {
			return err
		}
	}
	return nil
}

// doubt is the judgement without the book: what was trusted before still is.
func (j *judgement) doubt(before func(pin [32]byte) bool) {
	j.verdicts = make([]verdict, len(j.tools))
	for i, t := range j.tools {
		locked, ok := j.locked[t.Original]
		if !before(t.Pin) && !(ok && locked.Pin == t.Pin) {
			j.verdicts[i].waits = unsure
		}
	}
}

// unwritten is the judgement where nothing can be written: what was to be trusted on
// first use is not.
func (j *judgement) unwritten() {
	for i := range j.verdicts {
		if v := &j.verdicts[i]; v.how == ByFirst {
			v.waits = unsure
		}
	}
}

// problem says why a tool is held, to people and to a model that knew it before. It
// has no words of the server, which may be meant for the model.
func (v *verdict) problem(label string) *dragoman.Problem {
	why := Why(v.waits)
	if len(v.parts) > 0 {
		why = fmt.Sprintf("Its server changed this tool since it was approved: another %s.", strings.Join(v.parts, ", "))
	}
	way := fmt.Sprintf("It is not offered and not called until somebody approves it: dragoman pins approve %s", label)
	switch v.waits {
	case full:
		way = "It is not offered and not called. Make room for it: dragoman pins forget " + label
	case unsure:
		way = "It is not offered and not called meanwhile. Try again later."
	}
	return &dragoman.Problem{Code: dragoman.CodeNotApproved, Message: why + " " + way}
}

// Why says in a sentence why a definition with that reason waits.
func Why(reason string) string {
	what, title, _ := strings.Cut(reason, ": ")
	switch what {
	case changed:
		return "Its server changed this tool since it was approved."
	case joined:
		return "Its server had no such tool when the server was first trusted."
	case elsewhere:
		return "Its server's label means another server now than the one that was approved."
	case poisoned:
		return "Its definition looks poisoned: " + title + "."
	case full:
		return "More definitions of its server are kept than are good."
	case unsure:
		return "Whether this tool is approved cannot be looked up or written down now."
	}
	return "Nobody has approved this tool."
}
