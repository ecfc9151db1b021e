package audit

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"

	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// A verifier follows the chain of one log.
type verifier struct {
	log     string
	checked Checked
	start   Record // the first record that is there
	removed Head   // what was pruned before it, as far as that is written down
	kept    []Head
	pruned  removals // what its records say was removed
	named   mentions // the other logs that its records name
	names   []Head   // those that were not looked for yet
	by      uint64   // the record that names the first of them
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
	case v.checked.Records == 0:
		v.start, v.checked.First, v.checked.before = record, record.Seq, record.Prev
	case record.Seq != v.checked.Head.Seq+1:
		return &Bad{v.log, v.checked.Head.Seq + 1, "it is missing"}
	case record.Prev != v.checked.Head.Hash:
		return v.bad(r, "it does not follow the record before it: that one, or this one, was changed")
	}
	at := Head{v.log, record.Seq, record.Hash}
	for _, head := range v.kept {
		if head.Log == v.log && head.Seq == record.Seq && head != at {
			return v.bad(r, "it is not the one that was there when its hash %s was noted: the log was written anew", head.Hash)
		}
	}
	if record.Kind == Pruned {
		if v.pruned == nil {
			v.pruned = removals{}
		}
		v.pruned.add(&record)
	}
	if v.log == "" && record.Kind == Pruned && record.Through == v.start.Seq-1 {
		v.removed = Head{"", record.Through, record.ThroughHash}
	}
	v.name(&record)
	v.checked.Records++
	v.checked.Head = at
	return nil
}

// name notes the records of other logs that a record names.
func (v *verifier) name(r *Record) {
	for _, head := range r.names() {
		if head.Log == v.log {
			continue
		}
		if v.named == nil {
			v.named = mentions{}
		}
		v.named[head.Log] = max(v.named[head.Log], head.Seq)
		if len(v.names) == 0 {
			v.by = r.Seq
		}
		v.names = append(v.names, head)
	}
}

func (v *verifier) bad(r *row, format string, args ...any) error {
	return &Bad{v.log, uint64(max(r.seq, 0)), fmt.Sprintf(format, args...)}
}

// differs compares what is stored beside the body with the body.
func (r *row) differs(record *Record) string {
	again, err := record.body()
	switch {
	case err != nil || !bytes.Equal(again, r.body):
		return "it holds more than a record has, or says it in another way"
	case record.Seq != uint64(r.seq) || r.seq < 1:
		return fmt.Sprintf("it is stored under a number that is not its own, %d", record.Seq)
	case record.Log != r.log:
		return "it is stored in a log that is not its own, " + inStore(record.Log)
	case !bytes.Equal(record.Hash[:], r.hash):
		return "it was changed: its content does not have its hash"
	case store.Time(record.Time) != r.time || string(record.Kind) != r.kind || record.Call != r.call || record.Caller != r.caller ||
		record.Server != r.server || record.Target != r.target || record.Verdict != r.verdict:
		return "what it is found by is not what it says"
	}
	return ""
}

// end looks, behind each page, whether the records that it names are there, and, behind the
// last one, at both ends of the chain: what was pruned before it is known, and nothing
// behind it is missing.
func (v *verifier) end(tx *store.Tx, last bool) error {
	for _, head := range v.names {
		if why, err := missing(tx, head); err != nil {
			return err
		} else if why != "" {
			return &Bad{head.Log, head.Seq, fmt.Sprintf("%s, and record %d of log %s, or one soon after, names it", why, v.by, inStore(v.log))}
		}
	}
	v.names = nil
	if !last {
		return nil
	}
	if v.log != "" {
		var hash string
		err := tx.Row("SELECT node, version, removed, removed_hash FROM audit_logs WHERE log = $1", []any{v.log}, &v.checked.Node, &v.checked.Version, &v.removed.Seq, &hash)
		switch {
		case errors.Is(err, sql.ErrNoRows):
		case err != nil:
			return err
		case v.removed.Seq > 0:
			if err := v.removed.Hash.UnmarshalText([]byte(hash)); err != nil {
				return &Bad{v.log, v.removed.Seq, "it was removed, and its hash is damaged"}
			}
		}
	}
	if v.log == "" { // what is read as its records, and is in the other table
		var odd sql.NullInt64
		if err := tx.Row("SELECT min(seq) FROM audit_records WHERE log IN ($1, '')", []any{sharedName}, &odd); err != nil {
			return err
		}
		if odd.Valid {
			return &Bad{"", uint64(max(odd.Int64, 0)), "it is stored among the records of other logs"}
		}
	}
	end, err := head(tx, v.log)
	if err != nil {
		return err
	}
	return v.ends(end)
}

// missing says why a record that another log names is not there; empty where it is, or was
// pruned.
func missing(tx *store.Tx, named Head) (string, error) {
	var hash []byte
	err := tx.Row("SELECT hash FROM audit_all WHERE log = $1 AND seq = $2", []any{inStore(named.Log), int64(named.Seq)}, &hash)
	switch {
	case err == nil && !bytes.Equal(hash, named.Hash[:]):
		return "it is another one", nil
	case !errors.Is(err, sql.ErrNoRows):
		return "", err
	}
	var removed uint64
	if named.Log == "" {
		err = tx.Row("SELECT coalesce(min(seq), 1) - 1 FROM audit", nil, &removed)
	} else {
		err = tx.Row("SELECT removed FROM audit_logs WHERE log = $1", []any{named.Log}, &removed)
	}
	if err != nil && !errors.Is(err, sql.ErrNoRows) || named.Seq <= removed {
		return "", err
	}
	return "it is missing", nil
}

func (v *verifier) ends(last Head) error {
	at := v.checked.Head
	switch {
	case last != at && last.Seq > at.Seq && (v.checked.Records > 0 || v.removed.Seq != last.Seq):
		return &Bad{v.log, at.Seq + 1, fmt.Sprintf("it is missing, and so is everything behind it: the last record was %d", last.Seq)}
	case last != at && v.checked.Records > 0:
		return &Bad{v.log, at.Seq, "it is not the one that was written last"}
	case v.checked.Records == 0:
	case v.start.Seq == 1 && v.start.Prev != Hash{}:
		return &Bad{v.log, 1, "it is the first one, and names one before it"}
	case v.start.Seq > 1 && (v.removed.Seq != v.start.Seq-1 || v.removed.Hash != v.start.Prev):
		return &Bad{v.log, v.start.Seq - 1, "it is missing, and no record says that it was removed"}
	}
	for _, head := range v.kept {
		if head.Log != v.log {
			continue
		}
		if head.Seq > last.Seq {
			return &Bad{v.log, head.Seq, "it was there when its hash was noted, and is missing"}
		}
		if head.Seq == v.removed.Seq && head.Seq > 0 && head.Hash != v.removed.Hash {
			return &Bad{v.log, head.Seq, "it was removed, and is not the one that was there when its hash was noted"}
		}
	}
	return nil
}
