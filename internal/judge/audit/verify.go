package audit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// A Bad record is the first one that does not fit into its log.
type Bad struct {
	// Log is its log; empty for the one that all processes once shared.
	Log string
	// Seq is its number, or the number that should be there.
	Seq uint64
	// Why says what is wrong with it.
	Why string
}

func (b *Bad) Error() string {
	if b.Log != "" {
		return fmt.Sprintf("record %d of log %s: %s", b.Seq, b.Log, b.Why)
	}
	return fmt.Sprintf("record %d: %s", b.Seq, b.Why)
}

// A Check is what [Log.Verify] found in order.
type Check struct {
	// Records is how many there are, in all logs.
	Records uint64
	// Logs are those that have records, in the order in which they began.
	Logs []Checked
	// Unseen are the heads that somebody kept whose records were removed so long ago that
	// nothing here says what they were.
	Unseen []Head
}

// A Checked log is one that is in order.
type Checked struct {
	// Node and Version are of the process that writes it, as far as they are known.
	Node, Version string
	// Records is how many there are; First and Head are the first and the last.
	Records uint64
	First   uint64
	Head    Head
	// Named says that another log names its head: whoever keeps a head of that one has
	// this one, too.
	Named bool
	// Untold says that what was before the first record is not there, and that no record of
	// any log says that it was removed, nor a head that was kept what it was: it was taken
	// away, or that record was removed later.
	Untold bool

	before Hash // what the first record says of the one before it
}

// Heads returns the heads that are worth keeping elsewhere: those that no other log names.
func (c Check) Heads() (heads []Head) {
	for _, log := range c.Logs {
		if !log.Named {
			heads = append(heads, log.Head)
		}
	}
	return heads
}

// A snapshot lets a function read what the store has at one moment.
type snapshot func(func(*store.Tx) error) error

func (l *Log) snapshot(ctx context.Context) snapshot {
	return func(fn func(*store.Tx) error) error { return l.db.Read(ctx, fn) }
}

// Verify reads all logs, from the first record of each that was not pruned, and checks
// that each record is what its hash says and names the one before, that none is missing,
// that the last is the one that was written last, and that what records of other logs say
// of it is so. Heads that somebody kept have to be among them, but for those that were
// pruned.
//
// What does not fit is returned as a *[Bad]; any other error is one of reading.
func (l *Log) Verify(ctx context.Context, kept ...Head) (Check, error) {
	return verify(l.snapshot(ctx), kept)
}

// VerifyTx is [Log.Verify] of the logs that a transaction sees.
func VerifyTx(tx *store.Tx, kept ...Head) (Check, error) {
	return verify(func(fn func(*store.Tx) error) error { return fn(tx) }, kept)
}

func verify(at snapshot, kept []Head) (check Check, err error) {
	var logs []string
	if err := at(func(tx *store.Tx) (err error) { logs, err = logsOf(tx); return err }); err != nil {
		return check, err
	}
	for _, head := range kept {
		if !slices.Contains(logs, head.Log) {
			return check, &Bad{head.Log, head.Seq, "it was there when its hash was noted, and its log is missing"}
		}
	}
	named, pruned := mentions{}, removals{}
	for _, log := range logs {
		v, err := verifyLog(at, log, kept)
		if check.Records += v.checked.Records; v.checked.Records > 0 {
			check.Logs = append(check.Logs, v.checked)
		}
		if err != nil {
			return check, err
		}
		named.add(v.named)
		maps.Copy(pruned, v.pruned)
	}
	named.mark(check.Logs)
	if pruned.mark(&check, kept) {
		return check, nil
	}
	// A log that was read before another may say by now what was removed of that.
	if err := at(pruned.read); err != nil {
		return check, err
	}
	pruned.mark(&check, kept)
	return check, nil
}

// removals are the last records of what was removed at a time, as records say.
type removals map[Head]bool

func (r removals) add(record *Record) { r[Head{record.Of, record.Through, record.ThroughHash}] = true }

// read adds those that any log tells of.
func (r removals) read(tx *store.Tx) error {
	return tx.Rows("SELECT body FROM audit_all WHERE kind = $1", []any{string(Pruned)}, func(scan func(...any) error) error {
		var body []byte
		if err := scan(&body); err != nil {
			return err
		}
		record, err := parse(body)
		if err == nil { // what is none tells of nothing
			r.add(&record)
		}
		return nil
	})
}

// mark marks the logs of whose beginning nothing says that it was removed, and the kept heads
// of which nothing is known any more. It reports whether there are none.
func (r removals) mark(check *Check, kept []Head) bool {
	all := true
	for i := range check.Logs {
		log := &check.Logs[i]
		before := Head{log.Head.Log, log.First - 1, log.before}
		log.Untold = log.First > 1 && !r[before] && !slices.Contains(kept, before)
		all = all && !log.Untold
	}
	check.Unseen = r.unseen(check.Logs, kept)
	return all && check.Unseen == nil
}

// unseen returns the kept heads of which nothing is known any more.
func (r removals) unseen(logs []Checked, kept []Head) (unseen []Head) {
	first := map[string]uint64{}
	for _, log := range logs {
		first[log.Head.Log] = log.First
	}
	for _, head := range kept {
		if begins := first[head.Log]; (begins == 0 || head.Seq+1 < begins) && !r[head] {
			unseen = append(unseen, head)
		}
	}
	return unseen
}

// mentions are through which record logs are named by others, by log.
type mentions map[string]uint64

func (n mentions) add(other mentions) {
	for log, seq := range other {
		n[log] = max(n[log], seq)
	}
}

func (n mentions) mark(logs []Checked) {
	for i := range logs {
		logs[i].Named = n[logs[i].Head.Log] >= logs[i].Head.Seq
	}
}

// verifyLog checks one log.
func verifyLog(at snapshot, log string, kept []Head) (v *verifier, err error) {
	for tries := 0; ; tries++ {
		v = &verifier{log: log, kept: kept}
		err = readLog(at, log, Filter{}, v.next, v.end)
		if bad, ok := errors.AsType[*Bad](err); !ok || bad.Log != log || tries == 3 {
			return v, err
		}
		// Where records were pruned meanwhile, what is left has to be read anew.
		if first, readErr := firstOf(at, log); readErr != nil || first == v.checked.First {
			return v, err
		}
	}
}

// logs returns the logs that there are, in the order in which they began.
func (l *Log) logs(ctx context.Context) (logs []string, err error) {
	err = l.db.Read(ctx, func(tx *store.Tx) error {
		logs, err = logsOf(tx)
		return err
	})
	return logs, err
}

// distinctLogs are the logs that have records, each found behind the one before: nobody reads
// all records for them.
const distinctLogs = `WITH RECURSIVE next (log) AS (
	SELECT min(log) FROM audit_records
	UNION ALL SELECT (SELECT min(r.log) FROM audit_records r WHERE r.log > next.log) FROM next WHERE next.log IS NOT NULL
) SELECT log FROM next`

// logsOf returns all logs of which anything is there: a head, a record, or who wrote it.
func logsOf(tx *store.Tx) (logs []string, err error) {
	err = tx.Rows(`SELECT a.log, coalesce(l.began, 0) AS began FROM (
			SELECT log FROM audit_logs UNION SELECT log FROM audit_head
			UNION SELECT log FROM (`+distinctLogs+`) r WHERE log IS NOT NULL
			UNION SELECT 'audit' WHERE EXISTS (SELECT 1 FROM audit)
		) a LEFT JOIN audit_logs l ON l.log = a.log ORDER BY began, a.log`, nil, func(scan func(...any) error) error {
		var log string
		var began int64
		err := scan(&log, &began)
		logs = append(logs, ofStore(log))
		return err
	})
	return logs, err
}

// firstOf returns the number of the first record of a log; 0 for an empty one.
func firstOf(at snapshot, log string) (seq uint64, err error) {
	err = at(func(tx *store.Tx) error {
		return tx.Row("SELECT coalesce(min(seq), 0) FROM audit_all WHERE log = $1", []any{inStore(log)}, &seq)
	})
	return seq, err
}
