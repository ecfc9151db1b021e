package usage

import (
	"cmp"
	"context"
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

// Tidy adds up hours that are older than a week to days, and removes what is older than
// the retention; 0 removes nothing.
func (b *Book) Tidy(ctx context.Context, retention time.Duration) error {
	return b.db.Write(ctx, func(tx *store.Tx) error {
		if err := tx.Lock("usage", "tidy"); err != nil {
			return err
		}
		now, err := tx.Now()
		if err != nil {
			return err
		}
		if err := rollUp(tx, (hour(now)-hourly)/24*24); err != nil {
			return err
		}
		if retention > 0 {
			if _, err := tx.Exec("DELETE FROM usage WHERE period < $1", hour(now.Add(-retention))/24*24); err != nil {
				return err
			}
		}
		_, err = tx.Exec("DELETE FROM usage_batches WHERE at < $1", store.Time(now.Add(-time.Hour)))
		return err
	})
}

// rollUp makes days of the hours before one. A batch that comes later for such an hour is
// added up the next time.
func rollUp(tx *store.Tx, before int64) error {
	_, err := tx.Exec(addDays, before)
	if err != nil {
		return err
	}
	_, err = tx.Exec("DELETE FROM usage WHERE hours = 1 AND period < $1", before)
	return err
}
