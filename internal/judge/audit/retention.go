package audit

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// defaultStep is how many records are removed in one transaction: others wait for
// the lock meanwhile.
const defaultStep = 5000

// forgetAfter is how much longer than its last record it is known of a log that there was
// one: by then nothing names it any more.
const forgetAfter = 24 * time.Hour

// Prune removes the records of all logs that are older than the configuration keeps them,
// from the beginning of each up to the first that is not, and returns how many. Each step
// writes down which was the last that it removed, in the transaction in which it
// removes it, so that the rest stays verifiable. A retention of zero keeps all.
func (l *Log) Prune(ctx context.Context) (removed uint64, err error) {
	if l.config.Load().Retention <= 0 {
		return 0, nil
	}
	before := l.now().Add(-l.config.Load().Retention)
	logs, err := l.logs(ctx)
	if err != nil {
		return 0, err
	}
	for _, log := range logs {
		for n := uint64(l.step); n == uint64(l.step); removed += n {
			if err := l.db.Write(ctx, func(tx *store.Tx) (err error) {
				n, err = l.prune(tx, log, before)
				return err
			}); err != nil {
				return removed, err
			}
		}
	}
	return removed, l.db.Write(ctx, func(tx *store.Tx) error { return l.forget(tx, before.Add(-forgetAfter)) })
}

// table is where the records of a log are, and which of them are its, whose name is $1.
func table(log string) (from, its string) {
	if log == "" {
		return "audit", "CAST($1 AS TEXT) = ''"
	}
	return "audit_records", "log = $1"
}

// firstYoung is the query for the first record, before a number, that is not older than a time.
func firstYoung(from, its string) string {
	return fmt.Sprintf("SELECT min(seq) FROM %s WHERE %s AND seq < $2 AND time >= $3", from, its)
}

func (l *Log) prune(tx *store.Tx, log string, before time.Time) (removed uint64, err error) {
	if err := tx.Lock("audit", "logs", sharedName); err != nil {
		return 0, err
	}
	if err := writeRecords(tx, log); err != nil { // of those before, which are records, too
		return 0, err
	}
	from, its := table(log)
	var first, young sql.NullInt64
	if err := tx.Row(fmt.Sprintf("SELECT min(seq) FROM %s WHERE %s", from, its), []any{log}, &first); err != nil || !first.Valid {
		return 0, err
	}
	next := first.Int64 + l.step
	if err := tx.Row(firstYoung(from, its), []any{log, next, store.Time(before)}, &young); err != nil {
		return 0, err
	}
	last, err := head(tx, log)
	if err != nil {
		return 0, err
	}
	through := min(int64(last.Seq), next-1) // all of them are old
	if young.Valid {
		through = young.Int64 - 1
	}
	if through < first.Int64 {
		return 0, nil
	}
	var hash []byte
	if err := tx.Row(fmt.Sprintf("SELECT hash FROM %s WHERE %s AND seq = $2", from, its), []any{log, through}, &hash); err != nil {
		return 0, err
	}
	changed, err := tx.Exec(fmt.Sprintf("DELETE FROM %s WHERE %s AND seq <= $2", from, its), log, through)
	if err != nil {
		return 0, err
	}
	now := l.now().UTC().Truncate(time.Microsecond)
	r := Record{Kind: Pruned, Time: now, Of: log, Through: uint64(through), Count: uint64(changed)}
	copy(r.ThroughHash[:], hash)
	if log == "" { // programs that have no other log look for it there
		_, err = appendTo(tx, last, r)
		return uint64(changed), err
	}
	if _, err := tx.Exec("UPDATE audit_logs SET removed = $1, removed_hash = $2, seen = $3 WHERE log = $4", through, r.ThroughHash.String(), store.Time(now), log); err != nil {
		return 0, err
	}
	_, err = l.insert(tx, r)
	return uint64(changed), err
}

// forget removes what is known of logs that have no record any more, and whose process has
// not come by for so long that it is gone; this process comes by.
func (l *Log) forget(tx *store.Tx, before time.Time) error {
	if err := tx.Lock("audit", "logs"); err != nil {
		return err
	}
	if _, err := tx.Exec("UPDATE audit_logs SET seen = $1 WHERE log = $2", store.Time(l.now()), l.name); err != nil {
		return err
	}
	if _, err := tx.Exec("DELETE FROM audit_head WHERE log IN (SELECT l.log FROM audit_logs l WHERE l.seen < $1 AND l.removed = audit_head.seq)", store.Time(before)); err != nil {
		return err
	}
	_, err := tx.Exec("DELETE FROM audit_logs WHERE seen < $1 AND removed > 0 AND NOT EXISTS (SELECT 1 FROM audit_head h WHERE h.log = audit_logs.log)", store.Time(before))
	return err
}
