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
	ByHour   = "hour" // of those of the last week, and the first of a day for days before
)

// Columns are all of them, in the order in which they are told.
var Columns = []string{ByDay, ByHour, ByCaller, ByModel, ByServer, ByTool}

// What is told of: messages of models, or calls of tools.
const (
	OfModels = "model"
	OfTools  = "tool"
)

// A Query asks for usage.
type Query struct {
	// Since is when it begins, by the hour; the zero time is the beginning.
	Since time.Time
	// Caller is whose; empty for everybody's.
	Caller string
	// By are some of [Columns]; none sums all.
	By []string
	// Of is [OfModels] or [OfTools]; empty is both.
	Of string
	// Only says which values a column may have, of [ByCaller], [ByModel], [ByServer] and
	// [ByTool]; one that is not named may have all.
	Only map[string][]string
	// Step is how many hours are told together where hours are told apart, counted from
	// midnight of a day in 1970; 0 is one.
	Step int64
}

// longest is how many hours a period has at most: what says so of where it begins is found
// by the index.
const longest = 24

// MaxRows is how many rows a query returns at most, those of the highest cost, tokens and
// calls first.
const MaxRows = 10_000

// A Row is the usage of one of those that are told apart. Members of what is not told
// apart are empty.
type Row struct {
	Day    string `json:"day,omitempty"`  // such as 2026-11-22
	Hour   string `json:"hour,omitempty"` // when it began, such as 2026-11-22T13:00:00Z
	Caller string `json:"caller,omitempty"`
	Model  string `json:"model,omitempty"`
	Server string `json:"server,omitempty"`
	Tool   string `json:"tool,omitempty"`
	Sum
	// P50 and P95 are how long half of the calls took at most, and 95 of a hundred, as far
	// as [Times] say.
	P50 int64 `json:"p50_microseconds"`
	P95 int64 `json:"p95_microseconds"`
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
	query, args := q.statement()
	err = db.Read(ctx, func(tx *store.Tx) error {
		rows = nil
		return tx.Rows(query, args, func(scan func(...any) error) error {
			var r Row
			var day, hour int64
			to := []any{&day, &hour, &r.Caller, &r.Model, &r.Server, &r.Tool}
			for _, n := range r.numbers() {
				to = append(to, n)
			}
			err := scan(to...)
			if slices.Contains(q.By, ByDay) {
				r.Day = time.Unix(day*86400, 0).UTC().Format(time.DateOnly)
			}
			if slices.Contains(q.By, ByHour) {
				r.Hour = time.Unix(hour*3600, 0).UTC().Format(time.RFC3339)
			}
			r.P50, r.P95 = r.Times.Within(0.5).Microseconds(), r.Times.Within(0.95).Microseconds()
			rows = append(rows, r)
			return err
		})
	})
	return rows, err
}

// statement is a query as the store reads it.
func (q *Query) statement() (text string, args []any) {
	var columns, groups []string
	for _, name := range Columns {
		column, none := name, "''"
		switch name {
		case ByDay:
			column, none = "period / 24", "0"
		case ByHour:
			step := max(q.Step, 1)
			column, none = fmt.Sprintf("period / %d * %d", step, step), "0"
		}
		if !slices.Contains(q.By, name) {
			columns = append(columns, none)
			continue
		}
		columns, groups = append(columns, column), append(groups, column)
	}
	arg := func(value any) string {
		args = append(args, value)
		return fmt.Sprint("$", len(args))
	}
	since := int64(0)
	if !q.Since.IsZero() {
		since = hour(q.Since)
	}
	text = "SELECT " + strings.Join(columns, ", ") + ", " + sumOfRows + "\nFROM usage WHERE period > " + arg(since-longest) + " AND period + hours > " + arg(since)
	if q.Caller != "" {
		text += " AND caller = " + arg(q.Caller)
	}
	if q.Of == OfModels || q.Of == OfTools {
		text += " AND " + q.Of + " <> ''"
	}
	for _, name := range []string{ByCaller, ByModel, ByServer, ByTool} {
		values, ok := q.Only[name]
		switch {
		case !ok:
			continue
		case len(values) == 0:
			text += " AND 1 = 0"
			continue
		}
		marks := make([]string, len(values))
		for i, value := range values {
			marks[i] = arg(value)
		}
		text += " AND " + name + " IN (" + strings.Join(marks, ", ") + ")"
	}
	if len(groups) > 0 {
		text += " GROUP BY " + strings.Join(groups, ", ")
	}
	return text + fmt.Sprintf(" HAVING count(*) > 0 ORDER BY sum(cost) DESC, sum(input) + sum(output) DESC, sum(calls) DESC LIMIT %d", MaxRows), args
}

// Names returns what rules call callers, of those who have a name.
func Names(ctx context.Context, db *store.DB) (names map[string]string, err error) {
	err = db.Read(ctx, func(tx *store.Tx) error {
		names, err = readNames(tx)
		return err
	})
	return names, err
}

func readNames(tx *store.Tx) (map[string]string, error) {
	names := map[string]string{}
	return names, tx.Rows("SELECT caller, name FROM usage_callers", nil, func(scan func(...any) error) error {
		var caller, name string
		err := scan(&caller, &name)
		names[caller] = name
		return err
	})
}
