package usage

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// The columns that usage can be told apart by.
const (
	ByCaller = "caller"
	ByModel  = "model"
	ByServer = "server"
	ByTool   = "tool"
	ByDay    = "day"
)

// Columns are all of them, in the order in which they are told.
var Columns = []string{ByDay, ByCaller, ByModel, ByServer, ByTool}

// A Query asks for usage.
type Query struct {
	// Since is when it begins, by the hour; the zero time is the beginning.
	Since time.Time
	// Caller is whose; empty for everybody's.
	Caller string
	// By are some of [Columns]; none sums all.
	By []string
}

// MaxRows is how many rows a query returns at most, those of the highest cost, tokens and
// calls first.
const MaxRows = 10_000

// A Row is the usage of one of those that are told apart. Members of what is not told
// apart are empty.
type Row struct {
	Day    string `json:"day,omitempty"` // such as 2026-11-22
	Caller string `json:"caller,omitempty"`
	Model  string `json:"model,omitempty"`
	Server string `json:"server,omitempty"`
	Tool   string `json:"tool,omitempty"`
	Sum
}

// ParseBy reads a list such as caller,model.
func ParseBy(list string) (by []string, err error) {
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		switch {
		case name == "":
		case !slices.Contains(Columns, name):
			return nil, fmt.Errorf("%q is none of %s", name, strings.Join(Columns, ", "))
		case !slices.Contains(by, name):
			by = append(by, name)
		}
	}
	return by, nil
}

// ParseSince reads how far back, such as 7d or 12h, from now.
func ParseSince(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		var n int
		if _, err := fmt.Sscanf(days, "%d", &n); err == nil && fmt.Sprint(n) == days && n > 0 && n < 100_000 {
			return now.AddDate(0, 0, -n), nil
		}
	} else if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return now.Add(-d), nil
	}
	return time.Time{}, fmt.Errorf("%q is no time back from now; write 7d or 12h", text)
}

// Read returns usage.
func Read(ctx context.Context, db *store.DB, q Query) (rows []Row, err error) {
	var columns, groups []string
	for _, name := range Columns {
		column := name
		switch {
		case !slices.Contains(q.By, name) && name == ByDay:
			columns = append(columns, "0")
			continue
		case !slices.Contains(q.By, name):
			columns = append(columns, "''")
			continue
		case name == ByDay:
			column = "period / 24"
		}
		columns, groups = append(columns, column), append(groups, column)
	}
	query := "SELECT " + strings.Join(columns, ", ") + `, CAST(sum(calls) AS BIGINT), CAST(sum(errors) AS BIGINT), CAST(sum(micros) AS BIGINT), CAST(sum(input) AS BIGINT), CAST(sum(output) AS BIGINT), CAST(sum(cached) AS BIGINT), CAST(sum(reasoning) AS BIGINT), CAST(sum(repairs) AS BIGINT), CAST(sum(cuts) AS BIGINT), CAST(sum(cost) AS BIGINT)
FROM usage WHERE period + hours > $1`
	since := int64(0)
	if !q.Since.IsZero() {
		since = hour(q.Since)
	}
	args := []any{since}
	if q.Caller != "" {
		query, args = query+" AND caller = $2", append(args, q.Caller)
	}
	if len(groups) > 0 {
		query += " GROUP BY " + strings.Join(groups, ", ")
	}
	query += fmt.Sprintf(" HAVING count(*) > 0 ORDER BY sum(cost) DESC, sum(input) + sum(output) DESC, sum(calls) DESC LIMIT %d", MaxRows)
	err = db.Read(ctx, func(tx *store.Tx) error {
		rows = nil
		return tx.Rows(query, args, func(scan func(...any) error) error {
			var r Row
			var day int64
			err := scan(&day, &r.Caller, &r.Model, &r.Server, &r.Tool, &r.Calls, &r.Errors, &r.Micros, &r.Input, &r.Output, &r.Cached, &r.Reasoning, &r.Repairs, &r.Cuts, &r.Cost)
			if slices.Contains(q.By, ByDay) {
				r.Day = time.Unix(day*86400, 0).UTC().Format(time.DateOnly)
			}
			rows = append(rows, r)
			return err
		})
	})
	return rows, err
}
