package audit

import (
	"context"
	"database/sql"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// defaultStep is how many records are removed in one transaction: others wait for
// the lock meanwhile.
const defaultStep = 5000

// Prune removes the records that are older than the configuration keeps them, from
// the beginning up to the first that is not, and returns how many. Each step
// writes down which was the last that it removed, in the transaction in which it
// removes it, so that the rest stays verifiable. A retention of zero keeps all.
func (l *Log) Prune(ctx context.Context) (removed uint64, err error) {
	if l.config.Load().Retention <= 0 {
		return 0, nil
	}
	before := l.now().Add(-l.config.Load().Retention)
	for {
		var n uint64
		if err := l.db.Write(ctx, func(tx *store.Tx) (err error) {
			n, err = prune(tx, before, l.now(), l.step)
			return err
		}); err != nil {
			return removed, err
		}
		if removed += n; n < uint64(l.step) {
			return removed, nil
		}
	}
}

func prune(tx *store.Tx, before, now time.Time, step int64) (removed uint64, err error) {
	if err := tx.Lock("audit", chainName); err != nil {
		return 0, err
	}
	var first, young sql.NullInt64
	if err := tx.Row("SELECT min(seq) FROM audit", nil, &first); err != nil || !first.Valid {
		return 0, err
	}
	if err := tx.Row("SELECT min(seq) FROM audit WHERE time >= $1", []any{store.Time(before)}, &young); err != nil {
		return 0, err
	}
	last, err := head(tx)
	if err != nil {
		return 0, err
	}
	through := int64(last.Seq) // all of them are old
	if young.Valid {
		through = young.Int64 - 1
	}
	if through = min(through, first.Int64+step-1); through < first.Int64 {
		return 0, nil
	}
	var hash []byte
	if err := tx.Row("SELECT hash FROM audit WHERE seq = $1", []any{through}, &hash); err != nil {
		return 0, err
	}
	changed, err := tx.Exec("DELETE FROM audit WHERE seq <= $1", through)
	if err != nil {
		return 0, err
	}
	r := Record{Kind: Pruned, Time: now.UTC().Truncate(time.Microsecond), Through: uint64(through), Count: uint64(changed)}
	copy(r.ThroughHash[:], hash)
	return uint64(changed), insert(tx, r)
}

// Keep prunes now and every hour, until ctx ends.
func (l *Log) Keep(ctx context.Context) {
	ticker := time.NewTicker(time.Hour)
	defer ticker.Stop()
	for {
		if n, err := l.Prune(ctx); err != nil && ctx.Err() == nil {
			l.log.Error("old records of the audit log cannot be removed", "error", err)
		} else if n > 0 {
			l.log.Info("old records of the audit log were removed", "records", n)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}
