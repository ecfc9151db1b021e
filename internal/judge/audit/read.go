package audit

import (
	"fmt"
	"math"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// page is how many records are read at a time, so that nobody who looks through a
// long log holds up those who write.
const page = 250

// A row is a record as it is stored, with what is repeated beside it.
type row struct {
	log                                         string
	seq                                         int64
	time                                        int64
	kind, call, caller, server, target, verdict string
	hash                                        []byte
	body                                        []byte
}

const rowColumns = "seq, time, kind, call, caller, server, target, verdict, hash, body"

func (r *row) scan(scan func(...any) error) error {
	err := scan(&r.log, &r.seq, &r.time, &r.kind, &r.call, &r.caller, &r.server, &r.target, &r.verdict, &r.hash, &r.body)
	r.log = ofStore(r.log)
	return err
}

// rowsOf runs a query for rows.
func rowsOf(tx *store.Tx, query string, args []any, most int) ([]row, error) {
	rows := make([]row, 0, most)
	err := tx.Rows(query, args, func(scan func(...any) error) error {
		var r row
		err := r.scan(scan)
		rows = append(rows, r)
		return err
	})
	return rows, err
}

// conditions are what a query asks for, and the values that it does so with.
type conditions struct {
	all  []string
	args []any
}

// add adds a condition, in which %d stands for the number of a value, each in its turn.
func (c *conditions) add(condition string, values ...any) {
	numbers := make([]any, len(values))
	for i, value := range values {
		c.args = append(c.args, value)
		numbers[i] = len(c.args)
	}
	c.all = append(c.all, fmt.Sprintf(condition, numbers...))
}

func (c *conditions) String() string { return strings.Join(c.all, " AND ") }

// readLog calls each for every record of a log that f chooses, in order, a page at a time,
// and after, which may be nil, behind each page, in the snapshot that the page is from. A
// page is read by the number behind which it begins: those of a view of both tables would be
// sorted, each time all that are left.
func readLog(at snapshot, log string, f Filter, each func(*row) error, after func(tx *store.Tx, last bool) error) error {
	through, n := int64(math.MinInt64), page // whatever there is, also what should not be there
	for n == page {
		query, args := pageOf(log, f, through)
		if err := at(func(tx *store.Tx) error {
			rows, err := rowsOf(tx, query, args, page)
			if err != nil {
				return err
			}
			n = len(rows)
			for i := range rows {
				through = rows[i].seq
				if f.matches(&rows[i]) {
					if err := each(&rows[i]); err != nil {
						return err
					}
				}
			}
			if after != nil {
				return after(tx, n < page)
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// pageOf is the query for the records of a log behind one, and what it asks with.
func pageOf(log string, f Filter, behind int64) (query string, args []any) {
	c := f.where()
	table := "audit"
	if c.add("seq > $%d", behind); log != "" {
		table = "audit_records"
		c.add("log = $%d", log)
	}
	return fmt.Sprintf("SELECT %s, %s FROM %s WHERE %s ORDER BY seq LIMIT %d", logOf(table), rowColumns, table, &c, page), c.args
}

// logOf is the log of a record in a table: that of the log which all processes once shared
// has no column for it.
func logOf(table string) string {
	if table == "audit" {
		return "'" + sharedName + "'"
	}
	return "log"
}

// newest is the query for the records of all logs that the database chooses by f, the newest
// first: as many as a number, behind one that was found before or nil. Each table has an
// index by time, which a view of both could not be read by.
func newest(f Filter, behind *row, most int) (query string, args []any) {
	c := f.where()
	if f.Kind == "" && !f.Failed {
		c.add("kind <> $%d", string(Heads))
	}
	until := int64(math.MaxInt64) // SQLite reads by the index where something is said of it
	if behind != nil {
		until = behind.time
	}
	c.add("time <= $%d", until)
	parts := make([]string, 2)
	for i, table := range []string{"audit_records", "audit"} {
		of, log := c, logOf(table)
		of.all = of.all[:len(of.all):len(of.all)]
		if behind != nil {
			of.add("NOT (time = $%d AND ("+log+" < $%d OR "+log+" = $%d AND seq >= $%d))", behind.time, inStore(behind.log), inStore(behind.log), behind.seq)
			c.args = of.args
		}
		parts[i] = fmt.Sprintf("SELECT * FROM (SELECT %s AS log, %s FROM %s WHERE %s ORDER BY time DESC, log, seq DESC LIMIT %d) of_%s", log, rowColumns, table, &of, most, table)
	}
	return strings.Join(parts, " UNION ALL ") + fmt.Sprintf(" ORDER BY time DESC, log, seq DESC LIMIT %d", most), c.args
}
