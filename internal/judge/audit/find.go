package audit

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/state/store"
	"github.com/dragoman-mcp/dragoman/internal/text/glob"
)

// A Filter chooses records. Empty fields choose all; Caller, Server and Tool are
// patterns with * and ?. That of Caller is for its ID or the name that it had.
type Filter struct {
	Since, Until time.Time // Until is not included
	Kind         Kind
	Call         string // the call's ID
	Caller       string
	Server       string
	Tool         string // the target's name at its server
	Verdict      string
	Limit        int // at most so many, the newest; 0 for all
}

var errEnough = errors.New("enough")

// Find returns the records that f chooses, the newest first. Those that were
// appended within the last few milliseconds may not be there yet.
func (l *Log) Find(ctx context.Context, f Filter) (found []Record, err error) {
	query := "SELECT " + rowColumns + " FROM audit"
	conditions, args := f.where()
	if conditions != nil {
		query += " WHERE " + strings.Join(conditions, " AND ")
	}
	err = l.db.Read(ctx, func(tx *store.Tx) error {
		return tx.Rows(query+" ORDER BY seq DESC", args, func(scan func(...any) error) error {
			var r row
			if err := r.scan(scan); err != nil {
				return err
			}
			if !f.matches(&r) {
				return nil
			}
			record, err := parse(r.body)
			if err != nil {
				return fmt.Errorf("record %d: %w; dragoman audit verify says more", r.seq, err)
			}
			if found = append(found, record); len(found) == f.Limit {
				return errEnough
			}
			return nil
		})
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return found, err
}

// Callers returns the IDs of the callers whose ID is, or who were called, exactly so.
func (l *Log) Callers(ctx context.Context, name string) ([]string, error) {
	ids := map[string]bool{}
	err := l.read(ctx, Filter{}, func(r *row) error {
		record, err := parse(r.body)
		if err == nil && (record.Caller == name || record.CallerName == name) {
			ids[record.Caller] = true
		}
		return err
	}, nil)
	return slices.Sorted(maps.Keys(ids)), err
}

// where returns the part of f that the database can decide.
func (f Filter) where() (conditions []string, args []any) {
	add := func(condition string, value any) {
		args = append(args, value)
		conditions = append(conditions, fmt.Sprintf(condition, len(args)))
	}
	if !f.Since.IsZero() {
		add("time >= $%d", store.Time(f.Since))
	}
	if !f.Until.IsZero() {
		add("time < $%d", store.Time(f.Until))
	}
	for _, exact := range []struct{ column, value string }{{"kind", string(f.Kind)}, {"call", f.Call}, {"verdict", f.Verdict}} {
		if exact.value != "" {
			add(exact.column+" = $%d", exact.value)
		}
	}
	return conditions, args
}

// matches decides the part of f that the database does not.
func (f Filter) matches(r *row) bool {
	fits := func(pattern, name string) bool { return pattern == "" || glob.Match(pattern, name) }
	return fits(f.Server, r.server) && fits(f.Tool, r.target) && (fits(f.Caller, r.caller) || fits(f.Caller, r.callerName()))
}

// callerName returns what the caller was called; empty where the record does not say.
func (r *row) callerName() string {
	var named struct {
		CallerName string `json:"caller_name"`
	}
	_ = json.Unmarshal(r.body, &named) // a damaged record names nobody
	return named.CallerName
}

// Export writes the records that f chooses, the oldest first, as JSON Lines: each
// is its record with its hash as the last member. The hash is the SHA-256 of the
// line without that member, so that anybody can check the chain without us. Limit
// is not looked at.
func (l *Log) Export(ctx context.Context, w io.Writer, f Filter) error {
	out := bufio.NewWriter(w)
	err := l.read(ctx, f, func(r *row) error {
		if len(r.body) == 0 || len(r.hash) != len(Hash{}) {
			return &Bad{uint64(max(r.seq, 0)), "it is damaged"}
		}
		_, err := out.Write(line(r.body, Hash(r.hash)))
		return err
	}, nil)
	return errors.Join(err, out.Flush())
}

// Line returns r as a line of an export, with its line feed.
func (r *Record) Line() ([]byte, error) {
	body, err := r.body()
	if err != nil {
		return nil, err
	}
	return line(body, r.Hash), nil
}

// hashMember stands before the hash at the end of an exported line.
const hashMember = `,"hash":"`

// VerifyExport checks a whole export: that each record is what its hash says and
// names the one before. It says nothing about what was before the first and
// behind the last but what kept heads say.
func VerifyExport(r io.Reader, kept ...Head) (Check, error) {
	v := verifier{kept: kept}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 4*maxArguments)
	for n := 1; lines.Scan(); n++ {
		text := lines.Bytes()
		at := bytes.LastIndex(text, []byte(hashMember))
		var stated struct {
			Hash Hash `json:"hash"`
		}
		if at < 0 || json.Unmarshal(append([]byte("{"), text[at+1:]...), &stated) != nil {
			return v.check, &Bad{v.check.Head.Seq + 1, fmt.Sprintf("line %d has no hash at its end", n)}
		}
		body := append(append([]byte(nil), text[:at]...), '}')
		record, err := parse(body)
		if err != nil {
			return v.check, &Bad{v.check.Head.Seq + 1, fmt.Sprintf("line %d is not a record: %v", n, err)}
		}
		if err := v.next(record.row(body, stated.Hash)); err != nil {
			return v.check, err
		}
	}
	if err := lines.Err(); err != nil {
		return v.check, err
	}
	for _, head := range kept {
		if head.Seq > v.check.Head.Seq {
			return v.check, &Bad{head.Seq, "it was there when its hash was noted, and is missing"}
		}
	}
	return v.check, nil
}

// row returns r as it is stored.
func (r *Record) row(body []byte, hash Hash) *row {
	return &row{
		seq: int64(r.Seq), time: store.Time(r.Time), kind: string(r.Kind), call: r.Call, caller: r.Caller,
		server: r.Server, target: r.Target, verdict: r.Verdict, hash: hash[:], body: body,
	}
}
