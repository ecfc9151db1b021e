package pinning

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/judge/pin"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// Judge returns what of a server is held, with why; nothing for what is trusted. What
// is seen for the first time is written down: approved, or waiting. Where that cannot be
// done, or the book not be read, only what was found to be approved before is trusted.
func (b *Book) Judge(ctx context.Context, s pin.Subject, said []pin.Said) map[pin.Key]*pin.Hold {
	if !b.Pins(s.Mode) {
		return nil
	}
	s.Mode = s.Mode.Or(b.mode)
	sum := sha256.Sum256([]byte(s.Identity))
	s.Identity = hex.EncodeToString(sum[:])
	j := &judgement{Subject: s, said: said, now: b.now(), suspect: map[pin.Digest]string{}, locked: b.lock.server(s.Label)}
	known, all := b.known(j)
	if all {
		return nil
	}
	err := b.db.Read(ctx, j.decide)
	switch {
	case err != nil:
		j.doubt(func(pin pin.Digest) bool { return b.trusts(known, pin) })
	case j.writes():
		if err = b.db.Write(ctx, func(tx *store.Tx) error { return j.write(tx, b.record) }); err != nil {
			j.unwritten()
		}
	}
	b.settle(ctx, s.Label, err)
	return b.learn(j, known)
}

// verdicts are what was found about a server since the book moved: while it lists
// nothing but what is trusted, nothing has to be looked up.
type verdicts struct {
	trusted map[pin.Digest]bool
	held    bool // something was, and maybe is no longer listed
}

// known returns what is known of a server, and reports whether that is all that there
// is to say about what it lists.
func (b *Book) known(j *judgement) (known *verdicts, all bool) {
	key := j.Label + "\x00" + j.Identity + "\x00" + string(j.Mode)
	b.mu.Lock()
	defer b.mu.Unlock()
	if known = b.judged[key]; known == nil {
		known = &verdicts{trusted: map[pin.Digest]bool{}}
		b.judged[key] = known
	}
	if known.held {
		return known, false
	}
	for i := range j.said {
		if !known.trusted[j.said[i].Pin] {
			return known, false
		}
	}
	return known, true
}

func (b *Book) trusts(known *verdicts, pin pin.Digest) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return known.trusted[pin]
}

// learn notes what is trusted, and returns why the rest is held.
func (b *Book) learn(j *judgement, known *verdicts) map[pin.Key]*pin.Hold {
	held := map[pin.Key]*pin.Hold{}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(known.trusted) > 2*MaxApproved { // of a server that spells them in another way each time
		clear(known.trusted)
	}
	for i := range j.said {
		if v := &j.verdicts[i]; v.waits != "" {
			held[j.said[i].Key] = &pin.Hold{Problem: v.problem(j.Label, j.said[i].Kind), Approved: v.approved}
		} else {
			known.trusted[j.said[i].Pin] = true
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
			b.log.Error("the book of what is approved of servers fails, so what is new or changed is held", "server", label, "error", err)
		}
		b.unsure = b.now()
	}
}

// A judgement is about what a server lists.
type judgement struct {
	pin.Subject
	said    []pin.Said
	now     time.Time
	locked  *pin.Server           // what the lock has of it; nil: it does not name it
	suspect map[pin.Digest]string // what is poisonous about definitions that were looked at

	verdicts []verdict
	over     []pin.Key // what does not wait any longer

	standing, waiting           map[pin.Key]*Pin // waiting: or passed
	approvals                   int
	standingBytes, waitingBytes int
	first                       map[use]time.Time // when it was first used; zero: it was, and not on first use
	other                       bool              // all that is approved is another server's
}

// A use is one of the two ways in which a server is first used: for its tools, and for
// its texts.
type use bool

func useOf(k pin.Kind) use { return k == pin.Tool }

// A verdict is about one definition. Waits is empty for one that is trusted.
type verdict struct {
	waits    string
	parts    []string        // that changed
	approved json.RawMessage // in its place
	put      State           // what has to be written; empty for nothing
	how      string          // it came to be approved
	event    bool            // which is to be said in the audit log
}

// decide judges everything by what the book has.
func (j *judgement) decide(tx *store.Tx) (err error) {
	if j.standing, j.waiting, err = sizes(tx, j.Label); err != nil {
		return err
	}
	j.verdicts, j.over = make([]verdict, len(j.said)), nil
	j.approvals, j.standingBytes, j.waitingBytes = len(j.standing), 0, 0
	j.first, j.other = map[use]time.Time{}, len(j.standing) > 0
	for _, p := range j.standing {
		j.standingBytes += p.size
		if p.identity != j.Identity {
			continue
		}
		j.other = false
		first := j.first[useOf(p.Kind)]
		if p.Reason == ByFirst && (first.IsZero() || p.At.Before(first)) {
			first = p.At
		}
		j.first[useOf(p.Kind)] = first
	}
	for _, p := range j.waiting {
		j.waitingBytes += p.size
	}
	still := map[pin.Key]bool{}
	for i := range j.said {
		s := &j.said[i]
		v, err := j.judge(tx, s)
		if err != nil {
			return err
		}
		if v.waits != "" {
			still[s.Key] = true
			j.hold(s, &v)
		}
		j.verdicts[i] = v
	}
	for key, p := range j.waiting {
		if p.State == Waiting && !still[key] && !j.Own && !slices.Contains(j.Partial, key.Kind) {
			j.over = append(j.over, key)
		}
	}
	return nil
}

// judge judges one definition. This is the order in which its approvals are looked for.
func (j *judgement) judge(tx *store.Tx, s *pin.Said) (verdict, error) {
	p := j.standing[s.Key]
	if locked, ok := j.lock(s.Key); ok && locked.Pin == s.Pin {
		if p != nil && (p.Reason == ByPerson || p.Pin == s.Pin) && p.identity == j.Identity {
			return verdict{}, nil
		}
		return verdict{put: Standing, how: ByLock, event: !s.Empty()}, nil
	}
	if p == nil {
		return j.judgeNew(s), nil
	}
	var changes []pin.Change
	var was Pin
	if p.Pin != s.Pin {
		var err error
		if was, err = get(tx, j.Label, s.Key, Standing); err != nil {
			return verdict{}, err
		}
		changes = pin.Changes(was.Definition, s.Definition)
	}
	switch {
	case s.Empty():
		return verdict{}, nil
	case p.identity != j.Identity:
		return verdict{waits: elsewhere}, nil
	case changes != nil:
		v := verdict{waits: changed, parts: pin.Changed(changes)}
		if j.counts(p) && !j.Own {
			v.approved = was.Definition
		}
		return v, nil
	case !j.counts(p):
		return verdict{waits: unapproved}, nil
	}
	return verdict{}, nil
}

// lock returns what the lock has under a key.
func (j *judgement) lock(k pin.Key) (p pin.Pinned, ok bool) {
	if j.locked == nil {
		return p, false
	}
	return j.locked.Get(k)
}

// byLock reports whether the lock says which definitions of a kind are approved.
func (j *judgement) byLock(k pin.Kind) bool { return j.locked != nil && j.locked.Names(k) }

// counts reports whether what was approved is still, by the mode and the lock.
func (j *judgement) counts(p *Pin) bool {
	switch p.Reason {
	case ByPerson:
		return true
	case ByLock:
		locked, ok := j.lock(p.Key)
		return ok && locked.Pin == p.Pin
	}
	return j.Mode == pin.First && !j.byLock(p.Kind)
}

// judgeNew judges a definition in whose place nothing is approved.
func (j *judgement) judgeNew(s *pin.Said) verdict {
	first, used := j.first[useOf(s.Kind)]
	byFirst := j.Mode == pin.First && !j.byLock(s.Kind) && !j.other
	switch {
	case s.Empty() && !byFirst:
		return verdict{}
	case j.other:
		return verdict{waits: elsewhere}
	case !byFirst:
		return verdict{waits: unapproved}
	case s.Empty():
	case used && (first.IsZero() || j.now.Sub(first) > Learning):
		return verdict{waits: joined}
	}
	if what := j.poison(s); what != "" {
		return verdict{waits: poisoned + ": " + what}
	}
	switch over := j.approvals >= MaxApproved || j.standingBytes+len(s.Definition) > MaxApprovedBytes; {
	case over && s.Empty():
		return verdict{}
	case over:
		return verdict{waits: full}
	}
	j.approvals++
	j.standingBytes += len(s.Definition)
	return verdict{put: Standing, how: ByFirst, event: !s.Empty()}
}

// hold says what has to be written of a definition that waits, as far as there is room.
// The audit log is told once, until somebody has approved or forgotten it, however often
// its server goes back and forth.
func (j *judgement) hold(s *pin.Said, v *verdict) {
	p := j.waiting[s.Key]
	kept := 0
	if p != nil {
		if p.State == Waiting && p.Pin == s.Pin && p.Reason == v.waits && p.identity == j.Identity {
			return
		}
		kept = p.size
	}
	if p == nil && len(j.waiting) >= MaxWaiting || j.waitingBytes-kept+len(s.Definition) > MaxWaitingBytes {
		v.waits = full
		return
	}
	j.waitingBytes += len(s.Definition) - kept
	v.put, v.event = Waiting, p == nil
	j.waiting[s.Key] = &Pin{State: Waiting, size: len(s.Definition)}
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
	if err := tx.Lock(topic, j.Label); err != nil {
		return err
	}
	if err := j.decide(tx); err != nil {
		return err
	}
	for _, key := range j.over {
		if err := pass(tx, j.Label, key); err != nil {
			return err
		}
	}
	for i := range j.said {
		s, v := &j.said[i], &j.verdicts[i]
		if v.put == "" {
			continue
		}
		p := Pin{Server: j.Label, Key: s.Key, State: v.put, Pin: s.Pin, Definition: s.Definition, At: j.now, Reason: v.how, identity: j.Identity}
		e := Event{Server: p.Server, Key: p.Key, Pin: p.Pin, What: FirstUse}
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
func (j *judgement) doubt(before func(pin.Digest) bool) {
	j.verdicts = make([]verdict, len(j.said))
	for i := range j.said {
		s := &j.said[i]
		locked, ok := j.lock(s.Key)
		if !before(s.Pin) && !(ok && locked.Pin == s.Pin) && !s.Empty() {
			j.verdicts[i].waits = unsure
		}
	}
}

// unwritten is the judgement where nothing can be written: what was to be trusted on
// first use is not.
func (j *judgement) unwritten() {
	for i := range j.verdicts {
		if v := &j.verdicts[i]; v.how == ByFirst && !j.said[i].Empty() {
			v.waits = unsure
		}
	}
}
