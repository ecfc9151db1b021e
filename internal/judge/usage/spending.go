package usage

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// Spent is how much somebody spent: tokens in and out, and money in millionths.
type Spent struct{ Tokens, Cost int64 }

// Add adds to what was spent.
func (s *Spent) Add(more Spent) { s.Tokens, s.Cost = s.Tokens+more.Tokens, s.Cost+more.Cost }

func (s Sum) spent() Spent { return Spent{s.Input + s.Output, s.Cost} }

// Spending is what all callers have spent in the day and in the month that a moment is in,
// both in UTC. It does not change.
type Spending struct {
	// Day and Month are when they began.
	Day, Month time.Time
	// Today and ThisMonth are what callers spent, by their IDs.
	Today, ThisMonth map[string]Spent
	// Names are what rules call callers, of those who have a name.
	Names map[string]string
}

// beginnings returns when the day and the month of a moment began.
func beginnings(now time.Time) (day, month time.Time) {
	y, m, d := now.UTC().Date()
	return time.Date(y, m, d, 0, 0, 0, 0, time.UTC), time.Date(y, m, 1, 0, 0, 0, 0, time.UTC)
}

// ReadSpending returns what callers have spent by what a store says.
func ReadSpending(ctx context.Context, db *store.DB, now time.Time) (*Spending, error) {
	var r reading
	err := db.Read(ctx, func(tx *store.Tx) error { return r.read(tx, now, nil, true) })
	return r.spending(), err
}

// settledFor is how long hours that are over, but for the last one, are taken to be what
// they were. Only what could not be written in its time changes them.
const settledFor = time.Minute

// Hours that are older than by oldAfter before the day are taken to be what they were for
// oldFor: those of a month are many, and hardly anything is written so late.
const (
	oldAfter = 48 // hours
	oldFor   = time.Hour
)

// A reading is what the store said.
type reading struct {
	day, month time.Time
	// until is the first hour that is not settled, and at when the hours before were read.
	until   int64
	at      time.Time
	settled [2]map[string]Spent // of the day, and of the month
	// old is what was spent in the month before oldUntil, which is part of what is settled,
	// and was read at oldAt.
	old      map[string]Spent
	oldUntil int64
	oldAt    time.Time
	open     [2]map[string]Spent
	names    map[string]string
	there    []string // the batches that are in it, of those that were asked for
}

// read reads what was spent, all at one moment. Settled hours are read where all says so, or
// what is known of them is old.
func (r *reading) read(tx *store.Tx, now time.Time, batches []batch, all bool) error {
	day, month := beginnings(now)
	until := max(hour(now)-1, hour(month))
	r.open, r.there = [2]map[string]Spent{{}, {}}, nil
	if all || !day.Equal(r.day) || until != r.until || now.Sub(r.at) > settledFor || now.Before(r.at) {
		if err := r.readOld(tx, now, day, month, all); err != nil {
			return err
		}
		r.day, r.month, r.until, r.at = day, month, until, now
		r.settled = [2]map[string]Spent{{}, maps.Clone(r.old)}
		if err := sums(tx, r.oldUntil, until, hour(day), &r.settled); err != nil {
			return err
		}
		var err error
		if r.names, err = readNames(tx); err != nil {
			return err
		}
	}
	// Clocks of other processes may be ahead.
	if err := sums(tx, until, hour(now)+24, hour(day), &r.open); err != nil {
		return err
	}
	for _, b := range batches {
		var n int64
		if err := tx.Row("SELECT count(*) FROM usage_batches WHERE id = $1", []any{b.id}, &n); err != nil {
			return err
		}
		if n > 0 {
			r.there = append(r.there, b.id)
		}
	}
	return nil
}

// readOld reads what is old where all says so, or what is known of it is old itself.
func (r *reading) readOld(tx *store.Tx, now, day, month time.Time, all bool) error {
	until := max(hour(day)-oldAfter, hour(month))
	if !all && month.Equal(r.month) && until == r.oldUntil && now.Sub(r.oldAt) <= oldFor && !now.Before(r.oldAt) {
		return nil
	}
	read := [2]map[string]Spent{{}, {}} // of which nothing is the day's
	if err := sums(tx, hour(month), until, hour(day), &read); err != nil {
		return err
	}
	r.old, r.oldUntil, r.oldAt = read[1], until, now
	return nil
}

// sums adds up the periods from one hour to another: those from day on for the day, and all
// for the month.
func sums(tx *store.Tx, from, to, day int64, into *[2]map[string]Spent) error {
	return tx.Rows(`SELECT caller, CASE WHEN period >= $3 THEN 1 ELSE 0 END, CAST(sum(input + output) AS BIGINT), CAST(sum(cost) AS BIGINT)
FROM usage WHERE period >= $1 AND period < $2 GROUP BY 1, 2`, []any{from, to, day}, func(scan func(...any) error) error {
		var caller string
		var today int64
		var s Spent
		if err := scan(&caller, &today, &s.Tokens, &s.Cost); err != nil {
			return err
		}
		if today == 1 {
			plus(into[0], caller, s)
		}
		plus(into[1], caller, s)
		return nil
	})
}

func plus(all map[string]Spent, caller string, s Spent) {
	sum := all[caller]
	sum.Add(s)
	all[caller] = sum
}

func (r *reading) spending() *Spending {
	s := &Spending{Day: r.day, Month: r.month, Today: maps.Clone(r.settled[0]), ThisMonth: maps.Clone(r.settled[1]), Names: r.names}
	for caller, n := range r.open[0] {
		plus(s.Today, caller, n)
	}
	for caller, n := range r.open[1] {
		plus(s.ThisMonth, caller, n)
	}
	return s
}

// on returns what is known of another day and month where nothing can be read.
func (s *Spending) on(day, month time.Time) *Spending {
	next := &Spending{Day: day, Month: month, Today: map[string]Spent{}, ThisMonth: map[string]Spent{}}
	if s == nil {
		return next
	}
	next.Names = s.Names
	if s.Day.Equal(day) {
		next.Today = s.Today
	}
	if s.Month.Equal(month) {
		next.ThisMonth = s.ThisMonth
	}
	return next
}

// spending is what a book knows of what was spent beyond what a reading says.
type spending struct {
	// What follows is the book's, and only counted once somebody has asked.
	asked bool
	// missing is what was added and is in no reading yet, by caller and day.
	missing map[spender]Spent
	// flying are the batches that were sent to the store and are in no reading yet.
	flying []batch
	// called are names that are written or will be.
	called map[string]string
	groups []*Group

	one   sync.Mutex // is held by who reads
	last  reading
	now   *Spending
	tried time.Time // when it was read last, or was to be
	told  bool      // that it could not be read
}

// spender is a caller on a day, which is numbered since 1970.
type spender struct {
	caller string
	day    int64
}

// add counts what was added to the book; times is -1 to take it back. The book's lock is held
// for this and for all that follow.
func (s *spending) add(p place, sum Sum, times int64) {
	of := sum.spent()
	if !s.asked || of == (Spent{}) {
		return
	}
	key := spender{p.Caller, p.hour / 24}
	n := s.missing[key]
	n.Add(Spent{times * of.Tokens, times * of.Cost})
	if s.missing[key] = n; n == (Spent{}) {
		delete(s.missing, key)
	}
	for _, g := range s.groups {
		g.add(s, key, Spent{times * of.Tokens, times * of.Cost})
	}
}

// sent notes that a batch is on its way.
func (s *spending) sent(b batch) {
	if s.asked {
		s.flying = append(s.flying, b)
	}
}

// drop takes a batch from those that are on their way, and reports whether it was there.
func (s *spending) drop(id string) (b batch, ok bool) {
	for i := range s.flying {
		if s.flying[i].id == id {
			b = s.flying[i]
			s.flying = append(s.flying[:i:i], s.flying[i+1:]...)
			return b, true
		}
	}
	return b, false
}

// lost notes that a batch is given up.
func (s *spending) lost(b batch) {
	for p, sum := range b.sums {
		s.add(p, sum, -1)
	}
}

// named notes a name, and reports whether it is new.
func (s *spending) named(caller, name string) bool {
	if s.called[caller] == name {
		return false
	}
	if s.called == nil || len(s.called) >= maxPending {
		s.called = map[string]string{}
	}
	s.called[caller] = name
	for _, g := range s.groups {
		g.named(s, caller)
	}
	return true
}

// fresh is how old a reading may be.
const fresh = time.Second

// readWithin bounds a reading.
const readWithin = 2 * time.Second

// Spending returns what all callers have spent, as the store says, a second late at most.
// What this process has not written yet, [Book.Unwritten] says; together they are exact for
// what came through this process, and a few seconds late for what came through others. Where
// the store cannot be read, it is what was read last, and nothing where nothing ever was.
func (b *Book) Spending(ctx context.Context) *Spending { return b.read(ctx) }

// EachUnwritten calls each with those of whom this process knows more than the store, once
// or more.
func (b *Book) EachUnwritten(each func(caller string)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for key := range b.spending.missing {
		each(key.caller)
	}
}

// Unwritten returns what this process knows of one caller beyond a [Spending].
func (b *Book) Unwritten(s *Spending, caller string) (today, month Spent) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return s.missing(func(day int64) Spent { return b.spending.missing[spender{caller, day}] })
}

// CalledSo returns what rules call a caller, where the store or this process knows it.
func (b *Book) CalledSo(s *Spending, caller string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if name, ok := b.spending.called[caller]; ok {
		return name
	}
	return s.Names[caller]
}

// read returns what the store says, anew where that is old.
func (b *Book) read(ctx context.Context) *Spending {
	of := &b.spending
	of.one.Lock()
	defer of.one.Unlock()
	now := time.Now()
	day, month := beginnings(now)
	if of.now != nil && day.Equal(of.now.Day) && !now.Before(of.tried) && now.Sub(of.tried) < fresh {
		return of.now
	}
	of.tried = now
	b.mu.Lock()
	if !of.asked { // what was added before is in flight or pending: from now on it is counted
		of.asked, of.missing = true, map[spender]Spent{}
		for p, sum := range b.pending {
			of.add(p, sum, 1)
		}
	}
	batches := append([]batch{}, of.flying...)
	b.mu.Unlock()
	next := of.last
	late := false
	for _, each := range batches {
		for p := range each.sums {
			late = late || p.hour < next.until
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readWithin)
	defer cancel()
	err := b.db.Read(ctx, func(tx *store.Tx) error {
		next = of.last
		return next.read(tx, now, batches, late)
	})
	if err != nil {
		if !of.told {
			b.log.Warn("what was spent of budgets cannot be read; what is known counts", "error", err)
		}
		of.told, of.now = true, of.now.on(day, month)
		return of.now
	}
	of.told = false
	b.mu.Lock()
	for _, id := range next.there {
		if gone, ok := of.drop(id); ok {
			of.lost(gone)
		}
	}
	b.mu.Unlock()
	of.last, of.now = next, next.spending()
	return of.now
}
