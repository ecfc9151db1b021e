package audit

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
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
	// Failed chooses outcomes of calls that failed: the tool said so, or there was a problem.
	// Find looks at the newest 20,000 outcomes alone.
	Failed bool
	Limit  int // at most so many, the newest; 0 for all
}

// sought is how many records are read at a time where some are looked for.
const sought = 1000

// maxLooked is how many outcomes are looked at for those that failed.
const maxLooked = 20_000

// Find returns the records of all logs that f chooses, the newest first; those of kind
// [Heads] where f names it. Those that were appended within the last few milliseconds may
// not be there yet.
func (l *Log) Find(ctx context.Context, f Filter) (found []Record, err error) {
	err = l.db.Read(ctx, func(tx *store.Tx) error {
		found = nil
		looked, most := 0, sought
		if f.Limit > 0 {
			most = min(f.Limit, most)
		}
		for behind := (*row)(nil); ; most = sought {
			if f.Failed {
				most = min(most, maxLooked-looked)
			}
			query, args := newest(f, behind, most)
			rows, err := rowsOf(tx, query, args, most)
			if err != nil {
				return err
			}
			for i := range rows {
				if !f.matches(&rows[i]) {
					continue
				}
				record, err := parse(rows[i].body)
				if err != nil {
					return fmt.Errorf("record %d of log %s: %w; dragoman audit verify says more", rows[i].seq, inStore(rows[i].log), err)
				}
				if found = append(found, record); len(found) == f.Limit {
					return nil
				}
			}
			if looked += len(rows); len(rows) < most || f.Failed && looked >= maxLooked {
				return nil
			}
			behind = &rows[len(rows)-1]
		}
	})
	return found, err
}

// Callers returns the IDs of the callers whose ID is, or who were called, exactly so.
func (l *Log) Callers(ctx context.Context, name string) ([]string, error) {
	ids := map[string]bool{}
	err := l.each(ctx, Filter{}, func(r *row) error {
		record, err := parse(r.body)
		if err == nil && (record.Caller == name || record.CallerName == name) {
			ids[record.Caller] = true
		}
		return err
	})
	return slices.Sorted(maps.Keys(ids)), err
}

// each calls a function for every record that f chooses, log by log.
func (l *Log) each(ctx context.Context, f Filter, each func(*row) error) error {
	logs, err := l.logs(ctx)
	for _, log := range logs {
		if err := readLog(l.snapshot(ctx), log, f, each, nil); err != nil {
			return err
		}
	}
	return err
}

// where returns the part of f that the database can decide.
func (f Filter) where() (c conditions) {
	if !f.Since.IsZero() {
		c.add("time >= $%d", store.Time(f.Since))
	}
	if !f.Until.IsZero() {
		c.add("time < $%d", store.Time(f.Until))
	}
	kind := f.Kind
	if f.Failed {
		kind = Outcome
	}
	for _, exact := range []struct{ column, value string }{{"kind", string(kind)}, {"call", f.Call}, {"verdict", f.Verdict}} {
		if exact.value != "" {
			c.add(exact.column+" = $%d", exact.value)
		}
	}
	return c
}

// matches decides the part of f that the database does not.
func (f Filter) matches(r *row) bool {
	fits := func(pattern, name string) bool { return pattern == "" || glob.Match(pattern, name) }
	return fits(f.Server, r.server) && fits(f.Tool, r.target) && (fits(f.Caller, r.caller) || fits(f.Caller, r.callerName())) && (!f.Failed || r.failed())
}

// failed reports whether a call failed, by its outcome.
func (r *row) failed() bool {
	var came struct {
		Code   string `json:"code"`
		Failed bool   `json:"failed"`
	}
	_ = json.Unmarshal(r.body, &came) // a damaged record says nothing
	return came.Failed || came.Code != "" && came.Code != asks
}

// callerName returns what the caller was called; empty where the record does not say.
func (r *row) callerName() string {
	var named struct {
		CallerName string `json:"caller_name"`
	}
	_ = json.Unmarshal(r.body, &named) // a damaged record names nobody
	return named.CallerName
}

// Export writes the records that f chooses as JSON Lines, log by log in the order in which
// they began, the oldest of each first: each is its record with its hash as the last
// member. The hash is the SHA-256 of the line without that member, so that anybody can
// check the chains without us. Limit is not looked at.
func (l *Log) Export(ctx context.Context, w io.Writer, f Filter) error {
	out := bufio.NewWriter(w)
	err := l.each(ctx, f, func(r *row) error {
		if len(r.body) == 0 || len(r.hash) != len(Hash{}) {
			return &Bad{r.log, uint64(max(r.seq, 0)), "it is damaged"}
		}
		_, err := out.Write(line(r.body, Hash(r.hash)))
		return err
	})
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

// row returns r as it is stored.
func (r *Record) row(body []byte, hash Hash) *row {
	return &row{
		log: r.Log, seq: int64(r.Seq), time: store.Time(r.Time), kind: string(r.Kind), call: r.Call, caller: r.Caller,
		server: r.Server, target: r.Target, verdict: r.Verdict, hash: hash[:], body: body,
	}
}
