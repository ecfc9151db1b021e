package limit

import (
	"context"
	"fmt"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

const (
	secondsOfDay = 24 * 60 * 60
	// maxUsages is how many counts of a day there are at most; who would be one more
	// is refused, since a count that is dropped would be a budget anew.
	maxUsages = 200_000
	// maxBegun is how many of them one caller may begin in a day, so that nobody who makes up
	// names of models or routes uses up those of others.
	maxBegun = maxUsages / 20
	// keepAfter is how long what was used waits to be written together with more.
	keepAfter = time.Second
)

// day numbers the days since 1970, in UTC.
func day(t time.Time) int64 { return t.Unix() / secondsOfDay }

func untilMidnight(now time.Time) time.Duration {
	return time.Unix((day(now)+1)*secondsOfDay, 0).Sub(now)
}

// usage is what was used of a day's budget.
type usage struct {
	name          string
	day           int64
	calls, tokens int64
	// What is not written yet; several processes add to one count.
	newCalls, newTokens int64
	dirty               bool
	read                time.Time // when what all replicas used was read; zero for never
}

// days are the budgets of today. The limiter's lock is held for all of it.
type days struct {
	today int64
	used  map[string]*usage
	begun map[string]int // how many counts each caller began today, by ID

	db    *store.DB // nil where memory is enough
	dirty []*usage
	timer *time.Timer // runs while something is dirty
}

func (d *days) init() { d.begin(day(time.Now())) }

// begin begins a day. What is dirty of the one before is written all the same.
func (d *days) begin(today int64) {
	d.today, d.used, d.begun = today, map[string]*usage{}, map[string]int{}
}

// of returns what was used today of a count, by a caller and maybe others; nil where there
// are too many, of all or of this caller's.
func (d *days) of(now time.Time, caller, owner, key string) *usage {
	if today := day(now); today != d.today {
		d.begin(today)
	}
	name := countName(owner, key)
	u := d.used[name]
	if u == nil && len(d.used) < maxUsages && d.begun[caller] < maxBegun {
		u = &usage{name: name, day: d.today}
		d.used[name] = u
		d.begun[caller]++
	}
	return u
}

// countName names what a count is of, for all processes.
func countName(owner, key string) string { return owner + "\n" + key }

// add counts.
func (d *days) add(u *usage, calls, tokens int64) {
	u.calls, u.tokens = u.calls+calls, u.tokens+tokens
	if d.db == nil {
		return
	}
	u.newCalls, u.newTokens = u.newCalls+calls, u.newTokens+tokens
	if !u.dirty {
		u.dirty = true
		d.dirty = append(d.dirty, u)
	}
}

// load reads what was used of today, and forgets the days before.
func (d *days) load(ctx context.Context, db *store.DB) error {
	d.db = db
	err := db.Read(ctx, func(tx *store.Tx) error {
		return tx.Rows("SELECT counter, calls, tokens FROM limit_days WHERE day = $1", []any{d.today}, func(scan func(...any) error) error {
			u := &usage{day: d.today}
			if err := scan(&u.name, &u.calls, &u.tokens); err != nil {
				return err
			}
			if len(d.used) < maxUsages {
				d.used[u.name] = u
			}
			return nil
		})
	})
	if err != nil {
		return err
	}
	before := d.today - 1 // clocks of other processes differ a little
	db.Append(func(tx *store.Tx) error {
		_, err := tx.Exec("DELETE FROM limit_days WHERE day < $1", before)
		return err
	}, nil)
	return nil
}

// A row is what is added to one in the store.
type row struct {
	usage         *usage
	calls, tokens int64
}

// take returns what is not written yet, and takes it for written.
func (d *days) take() (rows []row) {
	for _, u := range d.dirty {
		if u.newCalls != 0 || u.newTokens != 0 {
			rows = append(rows, row{u, u.newCalls, u.newTokens})
		}
		u.newCalls, u.newTokens, u.dirty = 0, 0, false
	}
	d.dirty = nil
	return rows
}

// giveBack takes for unwritten what could not be written.
func (d *days) giveBack(rows []row) {
	for _, r := range rows {
		if r.usage.day != d.today {
			continue // nobody asks for it any more
		}
		r.usage.calls, r.usage.tokens = r.usage.calls-r.calls, r.usage.tokens-r.tokens
		d.add(r.usage, r.calls, r.tokens)
	}
}

// write adds rows to those of the store.
func write(rows []row) func(*store.Tx) error {
	return func(tx *store.Tx) error {
		for _, r := range rows {
			_, err := tx.Exec(`INSERT INTO limit_days (day, counter, calls, tokens) VALUES ($1, $2, $3, $4)
ON CONFLICT (day, counter) DO UPDATE SET calls = limit_days.calls + excluded.calls, tokens = limit_days.tokens + excluded.tokens`,
				r.usage.day, r.usage.name, r.calls, r.tokens)
			if err != nil {
				return err
			}
		}
		return nil
	}
}

// keepSoon has what was used written within a second. l.mu is held.
func (l *Limiter) keepSoon() {
	if l.days.timer == nil && len(l.days.dirty) > 0 {
		l.days.timer = time.AfterFunc(keepAfter, l.keep)
	}
}

// keepNow has it written at once, because other replicas have little left. l.mu is held.
func (l *Limiter) keepNow() {
	if l.days.timer != nil {
		l.days.timer.Stop()
	}
	l.days.timer = time.AfterFunc(0, l.keep)
}

// keep appends to the store what was used since the last time.
func (l *Limiter) keep() {
	l.mu.Lock()
	l.days.timer = nil
	rows := l.days.take()
	l.mu.Unlock()
	if len(rows) == 0 {
		return
	}
	l.days.db.Append(write(rows), func(err error) {
		if err != nil {
			go l.unwritten(rows, err) // the store must not wait for us
		}
	})
}

// unwritten tries again what could not be written. Until then memory knows.
func (l *Limiter) unwritten(rows []row, err error) {
	l.log.Warn("what was used of daily limits cannot be kept; a restart would forget it", "error", err)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	l.days.giveBack(rows)
	l.keepSoon()
}

// Close keeps what was used of today, and hands back what other replicas may have. ctx bounds the writing. Nothing more should be
// admitted after it.
func (l *Limiter) Close(ctx context.Context) error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	l.closed = true
	for _, timer := range []*time.Timer{l.days.timer, l.renewing} {
		if timer != nil {
			timer.Stop()
		}
	}
	rows, slots := l.days.take(), len(l.leased) > 0
	l.mu.Unlock()
	if len(rows) == 0 && !slots {
		return nil
	}
	if err := l.store.Write(ctx, func(tx *store.Tx) error {
		if slots {
			if _, err := tx.Exec("DELETE FROM limit_slots WHERE node = $1", l.node.ID()); err != nil {
				return err
			}
		}
		return write(rows)(tx)
	}); err != nil {
		return fmt.Errorf("keeping what was used of daily limits: %w", err)
	}
	return nil
}
