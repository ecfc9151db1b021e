package usage

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

func ordered(sums map[place]Sum) []place {
	return slices.SortedFunc(maps.Keys(sums), func(a, b place) int {
		return cmp.Or(cmp.Compare(a.hour, b.hour), cmp.Compare(a.Caller, b.Caller), cmp.Compare(a.Model, b.Model), cmp.Compare(a.Server, b.Server), cmp.Compare(a.Tool, b.Tool))
	})
}

// Keep adds up hours to days, and removes what is older than the retention, now and every
// hour, until ctx ends. Each of several processes may.
func (b *Book) Keep(ctx context.Context, retention time.Duration) {
	if b == nil {
		return
	}
	ticker := time.NewTicker(time.Hour)
	defer ticker.Stop()
	for {
		if err := b.Tidy(ctx, retention); err != nil && ctx.Err() == nil {
			b.log.Warn("usage could not be added up", "error", err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// tidied is how many rows are added up, or removed, in one transaction, or those of one
// caller in an hour: others wait meanwhile.
const tidied = 1000

// Tidy adds up hours that are older than a week to days, and removes what is older than
// the retention, and the names of who used nothing since; 0 removes nothing. It does so a
// little at a time.
func (b *Book) Tidy(ctx context.Context, retention time.Duration) error {
	for more := true; more; {
		if err := b.db.Write(ctx, func(tx *store.Tx) error {
			more = false
			if err := tx.Lock("usage", "tidy"); err != nil {
				return err
			}
			now, err := tx.Now()
			if err != nil {
				return err
			}
			if more, err = rollUp(tx, (hour(now)-hourly)/24*24); err != nil || more {
				return err
			}
			if retention > 0 {
				if more, err = remove(tx, hour(now.Add(-retention))/24*24); err != nil || more {
					return err
				}
				if _, err := tx.Exec("DELETE FROM usage_callers WHERE NOT EXISTS (SELECT 1 FROM usage WHERE usage.caller = usage_callers.caller)"); err != nil {
					return err
				}
			}
			_, err = tx.Exec("DELETE FROM usage_batches WHERE at < $1", store.Time(now.Add(-time.Hour)))
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// rollUp adds rows of the first hour that is before another to those of its day, and reports
// whether there was one. A batch that comes later for such an hour is added up the next time.
func rollUp(tx *store.Tx, before int64) (more bool, err error) {
	through, err := some(tx, "hours = 1 AND period < $1", before)
	if err != nil || through == nil {
		return false, err
	}
	if _, err := tx.Exec(addDays, through...); err != nil {
		return false, err
	}
	return true, drop(tx, through)
}

// remove removes rows of the first period that begins before an hour, and reports whether
// there was one.
func remove(tx *store.Tx, before int64) (more bool, err error) {
	through, err := some(tx, "period < $1", before)
	if err != nil || through == nil {
		return false, err
	}
	return true, drop(tx, through)
}

// some returns a period, its length, and the caller through which some of its rows are: of the
// first period of those that are chosen; nil where there is none.
func some(tx *store.Tx, chosen string, before int64) ([]any, error) {
	var period, hours int64
	err := tx.Row("SELECT period, hours FROM usage WHERE "+chosen+" ORDER BY period, hours LIMIT 1", []any{before}, &period, &hours)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var caller string
	err = tx.Row("SELECT caller FROM usage WHERE period = $1 AND hours = $2 ORDER BY caller LIMIT 1 OFFSET $3", []any{period, hours, tidied - 1}, &caller)
	if errors.Is(err, sql.ErrNoRows) { // they are not so many
		err = tx.Row("SELECT max(caller) FROM usage WHERE period = $1 AND hours = $2", []any{period, hours}, &caller)
	}
	return []any{period, hours, caller}, err
}

// drop removes the rows that [some] said.
func drop(tx *store.Tx, through []any) error {
	_, err := tx.Exec("DELETE FROM usage WHERE period = $1 AND hours = $2 AND caller <= $3", through...)
	return err
}
