package audit

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// sharedName names the log that all processes of a store once shared, in audit_head. It is
// in a table of its own, and its records do not name it.
const sharedName = "audit"

// nameLength is how long the random names of other logs are.
const nameLength = 12

// A Head is a record of a log: its last one, or of what is known of it.
type Head struct {
	Log  string // empty for the one that all processes once shared
	Seq  uint64
	Hash Hash
}

// String returns LOG:SEQ:HASH, as [ParseHead] reads it, or SEQ:HASH without a log.
func (h Head) String() string {
	text := strconv.FormatUint(h.Seq, 10) + ":" + h.Hash.String()
	if h.Log != "" {
		text = h.Log + ":" + text
	}
	return text
}

// MarshalText returns what [Head.String] does.
func (h Head) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText reads it.
func (h *Head) UnmarshalText(text []byte) (err error) {
	*h, err = ParseHead(string(text))
	return err
}

// ParseHead reads what [Head.String] wrote.
func ParseHead(text string) (h Head, err error) {
	if strings.Count(text, ":") == 2 {
		h.Log, text, _ = strings.Cut(text, ":")
		if len(h.Log) != nameLength {
			return Head{}, errors.New("a head begins with the name of a log, or with a number")
		}
	}
	seq, hash, ok := strings.Cut(text, ":")
	if h.Seq, err = strconv.ParseUint(seq, 10, 63); err != nil || !ok {
		return Head{}, errors.New("a head is a log, a number and 64 hexadecimal digits, with colons between")
	}
	return h, h.Hash.UnmarshalText([]byte(hash))
}

// inStore is the name under which the store has a log, and ofStore the log that it has so.
func inStore(log string) string {
	if log == "" {
		return sharedName
	}
	return log
}

func ofStore(stored string) string {
	if stored == sharedName {
		return ""
	}
	return stored
}

// head returns the end of a log; the zero Head for an empty one.
func head(tx *store.Tx, log string) (Head, error) {
	if known, ok := tx.Known(headNote + log).(appended); ok {
		return known.last, nil
	}
	h := Head{Log: log}
	var hash []byte
	err := tx.Row("SELECT seq, hash FROM audit_head WHERE log = $1", []any{inStore(log)}, &h.Seq, &hash)
	if errors.Is(err, sql.ErrNoRows) {
		return Head{}, nil
	}
	if err == nil && copy(h.Hash[:], hash) != len(h.Hash) {
		err = errors.New("the head of the audit log is damaged; dragoman audit verify says more")
	}
	return h, err
}

// insert adds r to this process's log, which it begins where r is the first record.
func (l *Log) insert(tx *store.Tx, r Record) (Head, error) {
	last, err := head(tx, l.name)
	if err == nil && last.Seq == 0 {
		last, err = l.begin(tx, r)
	}
	if err != nil {
		return Head{}, fmt.Errorf("audit log: %w", err)
	}
	r.Log = l.name
	return appendTo(tx, last, r)
}

// begin writes down whose log it is and, where other logs have heads that none names yet,
// those as its first record, which it returns.
func (l *Log) begin(tx *store.Tx, first Record) (Head, error) {
	at := store.Time(first.Time)
	if _, err := tx.Exec(`INSERT INTO audit_logs (log, node, version, began, seen, named, removed, removed_hash)
		VALUES ($1, $2, $3, $4, $4, 0, 0, '') ON CONFLICT (log) DO NOTHING`, l.name, l.node, l.version, at); err != nil {
		return Head{}, err
	}
	open, err := openHeads(tx, l.name)
	if err != nil || len(open) == 0 {
		return Head{}, err
	}
	r := Record{Kind: Heads, Log: l.name, Time: first.Time, Node: l.node, Version: l.version, Seen: open}
	if err := named(tx, open); err != nil {
		return Head{}, err
	}
	return appendTo(tx, Head{}, r)
}

// appendTo puts r behind the last record of its log. Nobody else does in between: a log
// has one process, and the one that all shared has a lock. All records of a transaction are
// written as its last thing.
func appendTo(tx *store.Tx, last Head, r Record) (Head, error) {
	r.Seq, r.Prev = last.Seq+1, last.Hash
	body, err := r.body()
	if err != nil {
		return Head{}, err
	}
	hash := sha256.Sum256(body)
	at := Head{r.Log, r.Seq, hash}
	before, _ := tx.Known(headNote + r.Log).(appended)
	values := before.values // of which nothing is changed: what is behind them was undone
	if r.Log != "" {
		values = append(values, r.Log)
	}
	values = append(values, int64(r.Seq), store.Time(r.Time), string(r.Kind), r.Call, r.Caller, r.Server, r.Target, r.Verdict, hash[:], string(body))
	tx.Note(headNote+r.Log, appended{at, values}, func(tx *store.Tx) error { return write(tx, r.Log) })
	return at, nil
}

// headNote is what records of one transaction know those before them by.
const headNote = "audit head "

// appended are the records of a log in one transaction: the last one, and the values of the
// rows that are to be written.
type appended struct {
	last   Head
	values []any
}

// write writes down the records of a transaction, and which is the last.
func write(tx *store.Tx, log string) error {
	if err := writeRecords(tx, log); err != nil {
		return err
	}
	last, err := head(tx, log)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(`INSERT INTO audit_head (log, seq, hash) VALUES ($1, $2, $3)
		ON CONFLICT (log) DO UPDATE SET seq = excluded.seq, hash = excluded.hash`, inStore(log), int64(last.Seq), last.Hash[:]); err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	return nil
}

// writeRecords writes what was appended to a log so far, for who looks at its records in
// the same transaction.
func writeRecords(tx *store.Tx, log string) error {
	known, ok := tx.Known(headNote + log).(appended)
	if !ok || len(known.values) == 0 {
		return nil
	}
	columns := recordColumns
	if log == "" {
		columns--
	}
	rest := known.values
	for len(rest) > 0 {
		rows := 1
		for _, many := range []int{32, 8, 2} { // few statements, which stay prepared
			if len(rest) >= many*columns {
				rows = many
				break
			}
		}
		if _, err := tx.Exec(insertion(log, columns, rows), rest[:rows*columns]...); err != nil {
			return fmt.Errorf("audit log: %w", err)
		}
		rest = rest[rows*columns:]
	}
	tx.Note(headNote+log, appended{last: known.last}, func(tx *store.Tx) error { return write(tx, log) })
	return nil
}

// recordColumns is how many columns a record has, the name of its log included, which those
// of the log that all shared have not.
const recordColumns = 11

// insertions are the statements that write records, by table and number.
var insertions sync.Map

func insertion(log string, columns, rows int) string {
	type kind struct {
		shared bool
		rows   int
	}
	if query, ok := insertions.Load(kind{log == "", rows}); ok {
		return query.(string)
	}
	var b strings.Builder
	b.WriteString("INSERT INTO audit_records (log, ")
	if log == "" {
		b.Reset()
		b.WriteString("INSERT INTO audit (")
	}
	b.WriteString("seq, time, kind, call, caller, server, target, verdict, hash, body) VALUES ")
	for n := range rows * columns {
		switch {
		case n == 0:
			b.WriteString("(")
		case n%columns == 0:
			b.WriteString("), (")
		default:
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "$%d", n+1)
	}
	b.WriteString(")")
	query, _ := insertions.LoadOrStore(kind{log == "", rows}, b.String())
	return query.(string)
}

func sum(b []byte) Hash { return sha256.Sum256(b) }

// quoted makes a JSON string of what is no JSON.
func quoted(text []byte) json.RawMessage {
	b, _ := json.Marshal(string(bytes.ToValidUTF8(text, []byte("\uFFFD"))))
	return b
}

// Head returns the last record of this process's log. Whoever keeps it elsewhere can tell
// later that nothing before it was changed or removed, in this log and in those whose
// heads it names.
func (l *Log) Head(ctx context.Context) (h Head, err error) {
	err = l.db.Read(ctx, func(tx *store.Tx) error {
		h, err = head(tx, l.name)
		return err
	})
	return h, err
}

// Count returns how many records all logs have, by their numbers: that each is there is for
// [Log.Verify] to say, which reads them.
func (l *Log) Count(ctx context.Context) (n uint64, err error) {
	err = l.db.Read(ctx, func(tx *store.Tx) error {
		return tx.Row(`SELECT CAST(coalesce((SELECT max(seq) FROM audit) - (SELECT min(seq) FROM audit) + 1, 0)
			+ coalesce((SELECT sum(h.seq - coalesce(l.removed, 0)) FROM audit_head h LEFT JOIN audit_logs l ON l.log = h.log WHERE h.log <> $1), 0) AS BIGINT)`, []any{sharedName}, &n)
	})
	return n, err
}

// HeadsOf returns the last record of each log in the store that has one.
func HeadsOf(ctx context.Context, db *store.DB) (heads []Head, err error) {
	err = db.Read(ctx, func(tx *store.Tx) error {
		heads, err = headsWhere(tx, "")
		return err
	})
	return heads, err
}

// OpenHeads returns the last record of each log whose head no other log names: whoever keeps
// these elsewhere keeps all.
func OpenHeads(ctx context.Context, db *store.DB) (heads []Head, err error) {
	err = db.Read(ctx, func(tx *store.Tx) error {
		heads, err = openHeads(tx, "")
		return err
	})
	return heads, err
}

// openHeads are the heads of other logs that no log names yet.
func openHeads(tx *store.Tx, own string) ([]Head, error) {
	return headsWhere(tx, "AND h.seq > coalesce(l.named, 0) AND h.log <> $1", own)
}

// headsWhere returns heads of logs of which not all was removed, in the order of the logs.
func headsWhere(tx *store.Tx, condition string, args ...any) (heads []Head, err error) {
	err = tx.Rows(`SELECT h.log, h.seq, h.hash FROM audit_head h LEFT JOIN audit_logs l ON l.log = h.log
		WHERE h.seq > coalesce(l.removed, 0) `+condition+` ORDER BY h.log`, args, func(scan func(...any) error) error {
		var h Head
		var hash []byte
		err := scan(&h.Log, &h.Seq, &hash)
		copy(h.Hash[:], hash)
		h.Log = ofStore(h.Log)
		heads = append(heads, h)
		return err
	})
	return heads, err
}

// named writes down that a log names these heads. Whoever does so comes in one order.
func named(tx *store.Tx, heads []Head) error {
	if err := tx.Lock("audit", "logs"); err != nil {
		return err
	}
	for _, h := range slices.SortedFunc(slices.Values(heads), func(a, b Head) int { return strings.Compare(a.Log, b.Log) }) {
		if _, err := tx.Exec("UPDATE audit_logs SET named = $1 WHERE log = $2 AND named < $1", int64(h.Seq), inStore(h.Log)); err != nil {
			return err
		}
	}
	return nil
}
