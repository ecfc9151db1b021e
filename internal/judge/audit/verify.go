package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// page is how many records are read at a time, so that nobody who looks through a
// long log holds up those who write.
const page = 250

// A Bad record is the first one that does not fit into the chain.
type Bad struct {
	// Seq is its number, or the number that should be there.
	Seq uint64
	// Why says what is wrong with it.
	Why string
}

func (b *Bad) Error() string { return fmt.Sprintf("record %d: %s", b.Seq, b.Why) }

// A Check is what [Log.Verify] found in order.
type Check struct {
	// Records is how many there are; First and Head are the first and the last.
	Records uint64
	First   uint64
	Head    Head
}

// A row is a record as it is stored, with what is repeated beside it.
type row struct {
	seq                                         int64
	time                                        int64
	kind, call, caller, server, target, verdict string
	hash                                        []byte
	body                                        []byte
}

const rowColumns = "seq, time, kind, call, caller, server, target, verdict, hash, body"

func (r *row) scan(scan func(...any) error) error {
	return scan(&r.seq, &r.time, &r.kind, &r.call, &r.caller, &r.server, &r.target, &r.verdict, &r.hash, &r.body)
}

// Verify reads the whole log, from the first record that was not pruned, and
// checks that each is what its hash says, that each names the one before, that
// none is missing, and that the last is the one that was written last. Heads that
// somebody kept have to be among them, but for those that were pruned.
//
// What does not fit is returned as a *[Bad]; any other error is one of reading.
func (l *Log) Verify(ctx context.Context, kept ...Head) (Check, error) {
	for tries := 0; ; tries++ {
		v := verifier{kept: kept}
		err := l.read(ctx, Filter{}, v.next, v.end)
		if _, bad := errors.AsType[*Bad](err); !bad || tries == 3 {
			return v.check, err
		}
		// Where records were pruned meanwhile, what is left has to be read anew.
		if first, readErr := l.first(ctx); readErr != nil || first == v.check.First {
			return v.check, err
		}
	}
}

// VerifyTx is [Log.Verify] of the log that a transaction sees.
func VerifyTx(tx *store.Tx, kept ...Head) (Check, error) {
	v := verifier{kept: kept}
	err := read(func(fn func(*store.Tx) error) error { return fn(tx) }, Filter{}, v.next, v.end)
	return v.check, err
}

// read calls each for every record that f chooses, in order, and end in the
// snapshot of the last of them; end may be nil.
func (l *Log) read(ctx context.Context, f Filter, each func(*row) error, end func(*store.Tx) error) error {
	return read(func(fn func(*store.Tx) error) error { return l.db.Read(ctx, fn) }, f, each, end)
}

// read is [Log.read], with snapshots of whoever gives them, one for each page.
func read(snapshot func(func(*store.Tx) error) error, f Filter, each func(*row) error, end func(*store.Tx) error) error {
	after, n := int64(math.MinInt64), page // whatever there is, also what should not be there
	for n == page {
		n = 0
		conditions, args := f.where()
		conditions, args = append(conditions, fmt.Sprintf("seq > $%d", len(args)+1)), append(args, after)
		query := fmt.Sprintf("SELECT %s FROM audit WHERE %s ORDER BY seq LIMIT %d", rowColumns, strings.Join(conditions, " AND "), page)
		err := snapshot(func(tx *store.Tx) error {
			err := tx.Rows(query, args, func(scan func(...any) error) error {
				var r row
				if err := r.scan(scan); err != nil {
					return err
				}
				n++
				after = r.seq
				if !f.matches(&r) {
					return nil
				}
				return each(&r)
			})
			if err == nil && n < page && end != nil {
				return end(tx)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// first returns the number of the first record; 0 for an empty log.
func (l *Log) first(ctx context.Context) (seq uint64, err error) {
	err = l.db.Read(ctx, func(tx *store.Tx) error {
		return tx.Row("SELECT coalesce(min(seq), 0) FROM audit", nil, &seq)
	})
	return seq, err
}

// A verifier follows the chain.
type verifier struct {
	check  Check
	start  Record // the first record that is there
	pruned Record // the one of kind Pruned that says what was before start
	kept   []Head
}

func (v *verifier) next(r *row) error {
	record, err := parse(r.body)
	if err != nil {
		return v.bad(r, "it is not a record: %v", err)
	}
	if why := r.differs(&record); why != "" {
		return v.bad(r, "%s", why)
	}
	switch {
	case v.check.Records == 0:
		v.start, v.check.First = record, record.Seq
	case record.Seq != v.check.Head.Seq+1:
		return &Bad{v.check.Head.Seq + 1, "it is missing"}
	case record.Prev != v.check.Head.Hash:
		return v.bad(r, "it does not follow the record before it: that one, or this one, was changed")
	}
	for _, head := range v.kept {
		if head.Seq == record.Seq && head.Hash != record.Hash {
			return v.bad(r, "it is not the one that was there when its hash %s was noted: the log was written anew", head.Hash)
		}
	}
	if record.Kind == Pruned && record.Through == v.start.Seq-1 {
		v.pruned = record
	}
	v.check.Records++
	v.check.Head = Head{record.Seq, record.Hash}
	return nil
}

func (v *verifier) bad(r *row, format string, args ...any) error {
	return &Bad{uint64(max(r.seq, 0)), fmt.Sprintf(format, args...)}
}

// differs compares what is stored beside the body with the body.
func (r *row) differs(record *Record) string {
	again, err := record.body()
	switch {
	case err != nil || !bytes.Equal(again, r.body):
		return "it holds more than a record has, or says it in another way"
	case record.Seq != uint64(r.seq) || r.seq < 1:
		return fmt.Sprintf("it is stored under a number that is not its own, %d", record.Seq)
	case !bytes.Equal(record.Hash[:], r.hash):
		return "it was changed: its content does not have its hash"
	case store.Time(record.Time) != r.time || string(record.Kind) != r.kind || record.Call != r.call || record.Caller != r.caller ||
		record.Server != r.server || record.Target != r.target || record.Verdict != r.verdict:
		return "what it is found by is not what it says"
	}
	return ""
}

// end checks both ends of the chain: what was pruned before it is known, and
// nothing behind it is missing.
func (v *verifier) end(tx *store.Tx) error {
	last, err := head(tx)
	if err != nil {
		return err
	}
	return v.ends(last)
}

func (v *verifier) ends(last Head) error {
	switch {
	case last != v.check.Head && last.Seq > v.check.Head.Seq:
		return &Bad{v.check.Head.Seq + 1, fmt.Sprintf("it is missing, and so is everything behind it: the last record was %d", last.Seq)}
	case last != v.check.Head:
		return &Bad{v.check.Head.Seq, "it is not the one that was written last"}
	case v.check.Records == 0:
	case v.start.Seq == 1 && v.start.Prev != Hash{}:
		return &Bad{1, "it is the first one, and names one before it"}
	case v.start.Seq > 1 && (v.pruned.Seq == 0 || v.pruned.ThroughHash != v.start.Prev):
		return &Bad{v.start.Seq - 1, "it is missing, and no record says that it was removed"}
	}
	for _, head := range v.kept {
		if head.Seq > last.Seq {
			return &Bad{head.Seq, "it was there when its hash was noted, and is missing"}
		}
		if head.Seq == v.pruned.Through && head.Seq > 0 && head.Hash != v.pruned.ThroughHash {
			return &Bad{head.Seq, "it was removed, and is not the one that was there when its hash was noted"}
		}
	}
	return nil
}
