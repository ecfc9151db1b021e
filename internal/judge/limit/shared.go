package limit

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"time"

	"golang.org/x/time/rate"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// Where several replicas serve on one store, they have each limit together: what a replica
// may admit it takes from the store before, by the database's clock. Of a rate it takes a
// portion, worth 100 ms of its share, and so one call at a time below 10 a second for each
// replica; a slot for each call that runs; and of a day's budget it reads what all have
// used, at most a second ago, and anew for each call once little is left, when it also
// writes at once what it used: what goes beyond is what was in flight then.
//
// While the store is away each replica admits its share, as many of them as lived when it
// heard last. A replica that dies loses its portions, and its slots come back when the
// calls in them must have ended.
const (
	portion    = 100 * time.Millisecond
	portionEnd = time.Second            // when what is not spent of a portion is dropped
	patience   = time.Second            // how long an admission waits for the store
	awayFor    = time.Second            // how long the store is not asked again that did not answer
	askAgain   = 200 * time.Millisecond // for a slot, while others have all
	fresh      = time.Second            // how old a sum of a day may be
	nearly     = 100                    // calls that are left of a day when each admission reads the sum
)

// A lease is what a counter has here of what all replicas have together. The limiter's lock
// is held for all of it.
type lease struct {
	name   string
	tokens int       // of the rate, to be spent
	end    time.Time // when they are dropped
	empty  time.Time // until when there are none
	slots  int       // that are ours, used or not
	full   time.Time // until when nobody asks for more
	away   time.Time // until when the store is taken to be away

	asking int           // admissions that wait for the store
	done   chan struct{} // closed when the store has answered; nil while it is not asked
}

// shared reports whether other replicas have the limits as well.
func (l *Limiter) shared() bool { return l.node != nil }

// share is this replica's part of a rate, for while the store is away.
func (l *Limiter) share(each *limit) (rate.Limit, int) {
	n := l.node.Count()
	if n == 1 || each.Rate == "" {
		return each.rate, each.burst
	}
	return each.rate / rate.Limit(n), max(1, each.burst/n)
}

// places is how many may run here of a limit now.
func (l *Limiter) places(h *held, now time.Time) int {
	switch {
	case !l.shared():
		return h.limit.Concurrent
	case now.Before(h.counter.lease.away):
		return max(1, h.limit.Concurrent/l.node.Count())
	}
	return h.counter.lease.slots
}

// lacks reports whether the store has to be asked before anything can be said of a count.
func (a *admission) lacks(h *held, now time.Time) bool {
	c := &h.counter.lease
	if !a.of.shared() || now.Before(c.away) {
		return false
	}
	if h.used != nil {
		if now.Sub(h.used.read) > fresh || h.near() && h.used.read.Before(a.began) {
			return true
		}
	}
	if h.limit.Rate != "" && !a.use.Again && (c.tokens == 0 || now.After(c.end)) && !now.Before(c.empty) {
		return true
	}
	return h.limit.Concurrent > 0 && h.counter.running >= c.slots && !now.Before(c.full)
}

// near reports whether little is left of a day's calls.
func (h *held) near() bool { return h.limit.Calls > 0 && h.used.calls+nearly > h.limit.Calls }

// missing is how long a use has to wait for a limit's rate; 0 for not at all.
func (a *admission) missing(h *held, now time.Time) time.Duration {
	c := h.counter
	if a.of.shared() && !now.Before(c.lease.away) {
		if c.lease.tokens > 0 && !now.After(c.lease.end) {
			return 0
		}
		return max(time.Millisecond, c.lease.empty.Sub(now))
	}
	if missing := 1 - c.pace.TokensAt(now); missing > 0 {
		return time.Duration(missing / float64(c.pace.Limit()) * float64(time.Second))
	}
	return 0
}

// spend takes one of a rate.
func (l *Limiter) spend(h *held, now time.Time) {
	if c := &h.counter.lease; l.shared() && !now.Before(c.away) {
		c.tokens = max(0, c.tokens-1)
		return
	}
	h.counter.pace.AllowN(now, 1)
}

// fetch has the store asked for what an admission lacks, and waits for that. l.mu is held
// when it is called, and when it returns.
func (a *admission) fetch(ctx context.Context, h *held) *dragoman.Problem {
	c := &h.counter.lease
	a.fetched = append(a.fetched, *h)
	c.asking++
	done := a.of.exchange(h)
	a.of.mu.Unlock()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	var late bool
	select {
	case <-done:
	case <-timer.C:
		late = true
	case <-ctx.Done():
	}
	a.of.mu.Lock()
	c.asking--
	if late {
		a.of.isAway(c)
	}
	if err := context.Cause(ctx); err != nil {
		return &dragoman.Problem{Code: dragoman.CodeCanceled, Message: "The call was cancelled while it waited for its turn.", Err: err}
	}
	return nil
}

// isAway takes the store to be away for a while. l.mu is held.
func (l *Limiter) isAway(c *lease) { c.away = time.Now().Add(awayFor) }

// tidy gives back what was taken for a use that was refused. l.mu is held.
func (a *admission) tidy() {
	for i := range a.fetched {
		a.of.giveBack(&a.fetched[i])
	}
}

// giveBack hands back slots that nobody here needs, be it that who ran there began under
// another limit than that of the slots. l.mu is held.
func (l *Limiter) giveBack(h *held) {
	c := &h.counter.lease
	if leased, ok := l.leased[h.counter]; ok {
		h = &leased
	}
	if l.shared() && !l.closed && h.limit.Concurrent > 0 && c.done == nil && c.slots > h.counter.running+c.asking && len(h.counter.waiting) == 0 {
		l.exchange(h)
	}
}

// An order is what the store is asked for.
type order struct {
	limit *limit
	name  string
	ask   int  // calls of the rate, at the least one of which is wanted; 0 for none
	slots int  // that are wanted
	used  *row // what was used here of a day's budget; nil where none is counted
}

// A grant is what it answered.
type grant struct {
	tokens        int
	after         time.Duration // when there is one of the rate, where there is none
	slots         int
	calls, tally  int64 // of the day: calls and tokens
	counted, held bool
}

// exchange has the store asked for what a counter needs now, and told what it does not need
// any more, unless it is being asked already. The channel is closed when it has answered.
// l.mu is held.
func (l *Limiter) exchange(h *held) <-chan struct{} {
	c := &h.counter.lease
	if c.done != nil {
		return c.done
	}
	c.done = make(chan struct{})
	now := time.Now()
	o := order{limit: h.limit, name: c.name}
	if h.limit.Rate != "" && c.asking > 0 && (c.tokens == 0 || now.After(c.end)) && !now.Before(c.empty) {
		part := float64(h.limit.rate) * portion.Seconds() / float64(l.node.Count())
		o.ask = max(1, int(part), c.asking)
	}
	if h.limit.Concurrent > 0 {
		o.slots = h.counter.running + c.asking
		c.slots = min(c.slots, o.slots) // what is handed back is not used meanwhile
	}
	if u := h.used; u != nil && c.asking > 0 {
		o.used = &row{u, u.newCalls, u.newTokens}
		u.newCalls, u.newTokens = 0, 0
	}
	running := h.counter.running
	copied := *h
	go func() {
		var got grant
		err := l.store.Write(context.Background(), func(tx *store.Tx) (err error) { got, err = o.take(tx, l.node.ID(), running, l.callTime); return err })
		l.answered(&copied, &o, got, err)
	}()
	return c.done
}

// answered notes what the store answered.
func (l *Limiter) answered(h *held, o *order, got grant, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c, now := &h.counter.lease, time.Now()
	close(c.done)
	c.done = nil
	if err != nil {
		l.isAway(c)
		c.slots = max(c.slots, h.counter.running)
		if o.used != nil {
			l.days.giveBack([]row{*o.used})
			l.keepSoon()
		}
		return
	}
	c.away = time.Time{}
	switch {
	case got.tokens > 0:
		c.tokens, c.end = got.tokens, now.Add(portionEnd)
	case o.ask > 0 && h.counter.paced(l.share(o.limit)): // else the limit was replaced meanwhile
		c.tokens, c.empty = 0, now.Add(got.after)
	}
	if got.counted {
		u := o.used.usage
		u.calls, u.tokens, u.read = got.calls+u.newCalls, got.tally+u.newTokens, now
	}
	if !got.held {
		return
	}
	if c.slots = got.slots; c.slots < o.slots {
		c.full = now.Add(askAgain)
	}
	for free := c.slots - h.counter.running - c.asking; free > 0 && len(h.counter.waiting) > 0; free-- {
		h.counter.wake()
	}
	if c.slots == 0 {
		delete(l.leased, h.counter)
	} else {
		l.leased[h.counter] = *h
		l.renewSoon()
	}
	l.giveBack(h)
}

// take takes of the store what there is of an order.
func (o *order) take(tx *store.Tx, node string, running int, callTime time.Duration) (got grant, err error) {
	if err := tx.Lock("limits", o.name); err != nil {
		return got, err
	}
	now, err := tx.Now()
	if err != nil {
		return got, err
	}
	if o.ask > 0 {
		if got.tokens, got.after, err = o.ofRate(tx, now); err != nil {
			return got, err
		}
	}
	if o.limit.Concurrent > 0 {
		if got.slots, err = o.ofSlots(tx, now, node, running, callTime); err != nil {
			return got, err
		}
		got.held = true
	}
	if o.used != nil {
		if err := write([]row{*o.used})(tx); err != nil {
			return got, err
		}
		got.counted = true
		err = tx.Row("SELECT calls, tokens FROM limit_days WHERE day = $1 AND counter = $2", []any{o.used.usage.day, o.used.usage.name}, &got.calls, &got.tally)
	}
	return got, err
}

// ofRate takes calls of a rate: a bucket of as many as the burst, which fills by one every
// so often, as the moment at which all of it was there or will be (the generic cell rate
// algorithm of ITU-T I.371). Each rate has a bucket of its own: replicas with other ones, as
// while a configuration is rolled out, would fill or empty it by theirs. A bucket is never
// emptier than empty: where the database's clock was ahead until now, it fills from now on.
func (o *order) ofRate(tx *store.Tx, now time.Time) (n int, after time.Duration, err error) {
	each := float64(time.Second/time.Microsecond) / float64(o.limit.rate) // for one call, in microseconds
	at := float64(store.Time(now))
	bucket := fmt.Sprintf("%s\n%g %d", o.name, float64(o.limit.rate), o.limit.burst)
	var spent int64
	err = tx.Row("SELECT spent FROM limit_rates WHERE counter = $1", []any{bucket}, &spent)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return 0, 0, err
	}
	empty := at + float64(o.limit.burst)*each
	from := min(max(at, float64(spent)), empty)
	if n = min(o.ask, int(math.Floor((empty-from)/each+1e-6))); n <= 0 {
		n, after = 0, time.Duration(math.Ceil(each-(empty-from)))*time.Microsecond
		if float64(spent) <= empty {
			return 0, after, nil
		}
	}
	_, err = tx.Exec("INSERT INTO limit_rates (counter, spent) VALUES ($1, $2) ON CONFLICT (counter) DO UPDATE SET spent = excluded.spent",
		bucket, int64(math.Round(from+float64(n)*each)))
	return n, after, err
}

// ofSlots writes down how many slots this replica has from now on: as many as it wants and
// others leave, and never fewer than run here already.
func (o *order) ofSlots(tx *store.Tx, now time.Time, node string, running int, callTime time.Duration) (int, error) {
	var others int
	if err := tx.Row("SELECT CAST(coalesce(sum(held), 0) AS BIGINT) FROM limit_slots WHERE counter = $1 AND node <> $2 AND lease > $3", []any{o.name, node, store.Time(now)}, &others); err != nil {
		return 0, err
	}
	n := max(running, min(o.slots, o.limit.Concurrent-others))
	if n == 0 {
		_, err := tx.Exec("DELETE FROM limit_slots WHERE counter = $1 AND node = $2", o.name, node)
		return 0, err
	}
	_, err := tx.Exec("INSERT INTO limit_slots (counter, node, held, lease) VALUES ($1, $2, $3, $4) ON CONFLICT (counter, node) DO UPDATE SET held = excluded.held, lease = excluded.lease",
		o.name, node, n, store.Time(now.Add(callTime)))
	return n, err
}

// renewSoon has the slots that are used said to be. l.mu is held.
func (l *Limiter) renewSoon() {
	if l.renewing == nil && !l.closed {
		l.renewing = time.AfterFunc(l.callTime/3, l.renew)
	}
}

// renew says of all slots that they are used.
func (l *Limiter) renew() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.renewing = nil
	if l.closed {
		return
	}
	for _, h := range l.leased {
		l.exchange(&h)
	}
	if len(l.leased) > 0 {
		l.renewSoon()
	}
}
