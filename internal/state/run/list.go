package run

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// A Run is what everybody may know of a run who may know that there is one.
type Run struct {
	Owner string `json:"owner"`
	ID    string `json:"id"`
	Label string `json:"label"`
	State string `json:"state"`
	// Outcome is that of a run that is done.
	Outcome string `json:"outcome,omitempty"`
	// Attempt counts the processes that died with it.
	Attempt int `json:"attempt"`
	// Waits is what it waits for; empty for nothing.
	Waits string `json:"waits,omitempty"`
	// Last is the number of its last event; -1 for none.
	Last int64 `json:"last"`
	// Ended is zero while it is not done.
	Made  time.Time `json:"made"`
	Ended time.Time `json:"ended,omitzero"`
}

const columns = "owner, id, label, state, outcome, attempt, waits, last, made, ended"

func scanned(scan func(...any) error) (r Run, err error) {
	var made, ended int64
	err = scan(&r.Owner, &r.ID, &r.Label, &r.State, &r.Outcome, &r.Attempt, &r.Waits, &r.Last, &made, &ended)
	r.Owner, r.Made = unescaped(r.Owner), store.FromTime(made)
	if ended > 0 {
		r.Ended = store.FromTime(ended)
	}
	return r, err
}

// Get returns a run of an owner, or [ErrNone].
func (s *Runs) Get(ctx context.Context, owner, id string) (r Run, err error) {
	err = s.db.Read(ctx, func(tx *store.Tx) error {
		r, err = get(tx, owner, id)
		return err
	})
	return r, err
}

func get(tx *store.Tx, owner, id string) (r Run, err error) {
	now, err := tx.Now()
	if err != nil {
		return r, err
	}
	r, err = scanned(func(dest ...any) error {
		return tx.Row("SELECT "+columns+" FROM runs WHERE owner = $1 AND id = $2 AND expires > $3", []any{store.Owner(owner), id, store.Time(now)}, dest...)
	})
	if errors.Is(err, sql.ErrNoRows) {
		err = ErrNone
	}
	return r, err
}

// A Filter says which runs are meant.
type Filter struct {
	// Owner is whose they are; empty for everybody's.
	Owner string
	// State is that of a run; empty for any.
	State string
	// Most is how many at most, the newest; 100 if zero.
	Most int
}

// List returns runs, the newest first.
func (s *Runs) List(ctx context.Context, f Filter) (all []Run, err error) {
	if f.Most <= 0 {
		f.Most = 100
	}
	query, args := "SELECT "+columns+" FROM runs WHERE expires > $1", []any{int64(0), f.Most}
	if f.Owner != "" {
		args = append(args, store.Owner(f.Owner))
		query += " AND owner = $3"
	}
	if f.State != "" {
		args = append(args, f.State)
		query += " AND state = " + []string{"", "$3", "$4"}[len(args)-2]
	}
	err = s.db.Read(ctx, func(tx *store.Tx) error {
		all = nil
		now, err := tx.Now()
		if err != nil {
			return err
		}
		args[0] = store.Time(now)
		return tx.Rows(query+" ORDER BY made DESC, id LIMIT $2", args, func(scan func(...any) error) error {
			r, err := scanned(scan)
			all = append(all, r)
			return err
		})
	})
	return all, err
}

// Find returns the one run of an owner, or of everybody where that is empty, whose id
// begins so. It returns [ErrNone] where there is none, and [ErrSeveral] where there are
// more and none is called so.
func (s *Runs) Find(ctx context.Context, owner, id string) (Run, error) {
	var all []Run
	err := s.db.Read(ctx, func(tx *store.Tx) error {
		now, err := tx.Now()
		if err != nil {
			return err
		}
		for _, named := range []string{"id = $1", "substr(id, 1, length($1)) = $1"} { // the whole id is found by its index
			query, args := "SELECT "+columns+" FROM runs WHERE "+named+" AND expires > $2", []any{id, store.Time(now)}
			if owner != "" {
				query, args = query+" AND owner = $3", append(args, store.Owner(owner))
			}
			all = nil
			if err := tx.Rows(query+" ORDER BY id LIMIT 2", args, func(scan func(...any) error) error {
				r, err := scanned(scan)
				all = append(all, r)
				return err
			}); err != nil || len(all) > 0 {
				return err
			}
		}
		return nil
	})
	switch {
	case err != nil:
		return Run{}, err
	case len(all) == 0 || id == "":
		return Run{}, ErrNone
	case len(all) > 1:
		return Run{}, ErrSeveral
	}
	return all[0], nil
}

// Counts returns how many runs there are in each state, of all owners and processes, but for
// those that are done.
func (s *Runs) Counts(ctx context.Context) (counts map[string]int64, err error) {
	err = s.db.Read(ctx, func(tx *store.Tx) error {
		counts = map[string]int64{Ready: 0, Running: 0, Waiting: 0}
		return tx.Rows("SELECT state, count(*) FROM runs WHERE state IN ($1, $2, $3) GROUP BY state", []any{Ready, Running, Waiting}, func(scan func(...any) error) error {
			var state string
			var n int64
			err := scan(&state, &n)
			counts[state] = n
			return err
		})
	})
	return counts, err
}
