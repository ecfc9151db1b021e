package run

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/state/store"
	"github.com/dragoman-mcp/dragoman/internal/state/vault"
)

// Watch has the runs of this process seen to be alive, wakes those whose time has come, and
// takes those that nobody has and gives them to work, until ctx ends: then it gives back
// what this process has and waits until nothing works any more. It is called once. A look
// costs the same however many only wait.
func (s *Runs) Watch(ctx context.Context, work func(*Held)) {
	s.Work(work)
	look, beat := time.NewTicker(s.config.Look), time.NewTicker(s.config.Lease/3)
	defer look.Stop()
	defer beat.Stop()
	woken, over := s.db.Changed(ctx, topicReady), s.db.Changed(ctx, topicOver)
	said := false
	for {
		err := s.Look(ctx)
		if err != nil && ctx.Err() == nil && !said && !errors.Is(err, store.ErrClosed) {
			s.config.Log.Error("what runs in the background cannot be looked after", "error", err)
		}
		said = err != nil
		select {
		case <-look.C:
		case <-woken:
		case <-s.room:
		case <-beat.C:
			s.beat(ctx)
		case <-over:
			s.renew(ctx, s.ended(ctx))
		case <-ctx.Done():
			s.Stop()
			return
		}
	}
}

// Look wakes runs whose time has come, and takes those that nobody has, as far as there is
// room. One that cannot be taken keeps nobody from the others. Where the store could not be
// used a while ago, or answered late, others may not have been able to say that they live
// either: they are given the time of a lease.
func (s *Runs) Look(ctx context.Context) error {
	began := s.clock()
	if err := s.wake(ctx); err != nil {
		return s.missed(ctx, err)
	}
	s.unsure(began)
	for {
		all, err := s.free(ctx)
		if err != nil {
			return s.missed(ctx, err)
		}
		taken := 0
		var failed error
		for _, k := range all {
			h, err := s.take(ctx, k)
			if failed = errors.Join(failed, s.missed(ctx, err)); h != nil {
				taken++
				s.Go(h)
			}
		}
		if taken == 0 || failed != nil || ctx.Err() != nil {
			return failed
		}
	}
}

// missed notes that the store could not be used now, where err says so, and returns err. One
// in which the key of a run cannot be read can be used.
func (s *Runs) missed(ctx context.Context, err error) error {
	if err != nil && ctx.Err() == nil && !errors.Is(err, vault.ErrOtherKey) {
		s.mu.Lock()
		s.unseen = time.Now()
		s.mu.Unlock()
	}
	return err
}

// least is the shortest time that a store stands still for which is noted.
const least = time.Second

// unsure reports whether nobody can be told to be dead: the store could not be used a while
// ago, or what began then has waited for it for so long that leases may have ended meanwhile.
// That is noted: a database that stands still fails nothing.
func (s *Runs) unsure(began time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.clock().Sub(began) > max(s.config.Lease/2, least) {
		s.unseen = time.Now()
	}
	return time.Since(s.unseen) < s.config.Lease
}

// Stop gives back what this process has, and takes nothing more.
func (s *Runs) Stop() {
	s.mu.Lock()
	s.stopped = true
	var all []*Held
	for _, h := range s.held {
		all = append(all, h)
	}
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for _, h := range all {
		if !h.began.Load() {
			h.stop(ErrStopped) // it is being taken, and its lease ends by itself
		} else if err := h.Release(ctx); err != nil && h.ctx.Err() == nil {
			h.stop(ErrStopped) // its lease ends by itself
		}
	}
	s.working.Wait()
}

// Drain takes nothing more, and waits until what this process has is over, or waits, or ctx
// ends. What is left then, [Runs.Stop] gives back.
func (s *Runs) Drain(ctx context.Context) {
	s.mu.Lock()
	s.draining = true
	s.mu.Unlock()
	done := make(chan struct{})
	go func() { s.working.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// having returns the runs that this process has.
func (s *Runs) having() (all []*Held) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.held {
		if h.began.Load() {
			all = append(all, h)
		}
	}
	return all
}

// ended returns those of them that somebody has ended elsewhere; what cannot be looked for is found
// with the next beat.
func (s *Runs) ended(ctx context.Context) (over []*Held) {
	all := s.having()
	if len(all) == 0 {
		return nil
	}
	_ = s.missed(ctx, s.db.Read(ctx, func(tx *store.Tx) error {
		over = nil
		for _, h := range all {
			var epoch int64
			err := tx.Row("SELECT epoch FROM runs WHERE owner = $1 AND id = $2", []any{store.Owner(h.Owner), h.ID}, &epoch)
			if err != nil && !errors.Is(err, sql.ErrNoRows) {
				return err
			}
			if err != nil || epoch != h.epoch {
				over = append(over, h)
			}
		}
		return nil
	}))
	return over
}

// beat says of all runs that this process has that it lives.
func (s *Runs) beat(ctx context.Context) { s.renew(ctx, s.having()) }

// renew says of runs that this process has that it lives. One that it has no more is
// stopped; what cannot be said ends with the lease.
func (s *Runs) renew(ctx context.Context, all []*Held) {
	for _, h := range all {
		began := s.clock()
		if err := h.write(ctx, func(*store.Tx) error { return nil }); h.ctx.Err() == nil { // else it is not ours any more
			_ = s.missed(ctx, err)
		}
		s.unsure(began)
	}
}

// A key is what a run is called in the tables.
type key struct{ owner, id string }

// mostWoken is how many runs are woken in one transaction: others wait meanwhile.
const mostWoken = 500

// wake makes ready what has waited long enough.
func (s *Runs) wake(ctx context.Context) error {
	for {
		var due []key
		err := s.db.Read(ctx, func(tx *store.Tx) (err error) {
			now, err := tx.Now()
			if err == nil {
				due, err = keys(tx, "SELECT owner, id FROM runs WHERE state = 'waiting' AND due > 0 AND due <= $1 ORDER BY due LIMIT $2", store.Time(now), mostWoken)
			}
			return err
		})
		if err != nil || len(due) == 0 {
			return err
		}
		if err := s.db.Write(ctx, func(tx *store.Tx) error {
			now, err := tx.Now()
			if err != nil {
				return err
			}
			for _, k := range due {
				if _, err := tx.Exec("UPDATE runs SET state = 'ready', waits = '', due = 0 WHERE owner = $1 AND id = $2 AND state = 'waiting' AND due <= $3", k.owner, k.id, store.Time(now)); err != nil {
					return err
				}
			}
			return nil
		}); err != nil || len(due) < mostWoken {
			return err
		}
	}
}

func keys(tx *store.Tx, query string, args ...any) (all []key, err error) {
	err = tx.Rows(query, args, func(scan func(...any) error) error {
		var k key
		err := scan(&k.owner, &k.id)
		all = append(all, k)
		return err
	})
	return all, err
}

// topicReady is raised when a run is ready, and topicOver when one is ended that a process has:
// what it does, such as a call of a tool or what a model says, is to end with it.
const (
	topicReady = "runs ready"
	topicOver  = "runs over"
)

// Wake makes ready, as part of the transaction in which something comes, what waits for it
// ([Held.Wait]).
func Wake(tx *store.Tx, waits string) error {
	if err := tx.Lock(topicReady, waits); err != nil {
		return err
	}
	n, err := tx.Exec("UPDATE runs SET state = 'ready', waits = '', due = 0 WHERE waits = $1 AND waits <> '' AND state = 'waiting'", waits)
	if n > 0 {
		tx.Raise(topicReady)
	}
	return err
}

// nobodys is what nobody has: it is ready, or whoever had it is dead, where that can be told
// by what began then. $1 is the time, also where nothing but a number is beside it, of which
// PostgreSQL would take it for one of 32 bits.
func (s *Runs) nobodys(began time.Time) string {
	if s.unsure(began) {
		return "(state = 'ready' AND CAST($1 AS BIGINT) > 0)"
	}
	return "(state = 'ready' OR state = 'running' AND lease < $1)"
}

// free returns runs that nobody has, as many as there is room for and some: of each owner
// the oldest, then of each the second, so that nobody waits for all that another has begun.
func (s *Runs) free(ctx context.Context) (all []key, err error) {
	s.mu.Lock()
	most, have := s.config.Most, len(s.held)
	stopped := s.stopped || s.draining
	s.mu.Unlock()
	if stopped || have >= most {
		return nil, nil
	}
	began := s.clock()
	err = s.db.Read(ctx, func(tx *store.Tx) error {
		now, err := tx.Now()
		if err != nil {
			return err
		}
		which := s.nobodys(began)
		// Those that this process has itself, and has not seen to be alive, are among them.
		all, err = keys(tx, `SELECT owner, id FROM (
				SELECT owner, id, made, ROW_NUMBER() OVER (PARTITION BY owner ORDER BY made, id) AS place FROM runs WHERE `+which+` AND expires > $1
			) AS each_owners ORDER BY place, made, id LIMIT $2`, store.Time(now), most)
		return err
	})
	return all, err
}

// take takes a run that nobody has; nil where somebody was sooner, this process has it, or
// there is no room. One whose content nobody can read any more has failed.
func (s *Runs) take(ctx context.Context, k key) (*Held, error) {
	h := s.reserve(unescaped(k.owner), k.id)
	if h == nil {
		return nil, nil
	}
	var epoch, last int64
	var document []byte
	taken := false
	began := s.clock()
	err := s.db.Write(ctx, func(tx *store.Tx) error {
		taken = false
		now, err := tx.Now()
		if err != nil {
			return err
		}
		n, err := tx.Exec(`UPDATE runs SET attempt = attempt + CASE WHEN state = 'running' THEN 1 ELSE 0 END, state = 'running', node = $2, epoch = epoch + 1, lease = $3
			WHERE owner = $4 AND id = $5 AND `+s.nobodys(began), store.Time(now), h.node, store.Time(now.Add(s.config.Lease)), k.owner, k.id)
		if err != nil || n == 0 {
			return err
		}
		var closed []byte
		if err := tx.Row("SELECT epoch, attempt, last, content FROM runs WHERE owner = $1 AND id = $2", []any{k.owner, k.id}, &epoch, &h.Attempt, &last, &closed); err != nil {
			return err
		}
		document, err = s.vault.Open(tx, k.owner, "run "+k.id, closed)
		if errors.Is(err, vault.ErrErased) {
			s.config.Log.Warn("a run cannot be read any more, so it has failed", "run", k.id, "error", err)
			return s.end(tx, k.owner, k.id, Failed)
		}
		taken = err == nil
		return err
	})
	if err != nil || !taken {
		h.stop(ErrLost)
		return nil, err
	}
	h.begin(epoch, last+1, document)
	return h, nil
}

// unescaped returns the owner whose name [store.Owner] wrote.
func unescaped(stored string) string {
	return strings.Join(store.OwnerParts(stored), "\x00")
}
