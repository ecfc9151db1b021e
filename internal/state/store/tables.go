package store

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Table is a table of ours, as the database has it. What it means stands in the names of
// its columns, so that one that is made later is looked after from its first day:
//
//	owner    whose a row is ([Owner]). Erasing an owner removes it.
//	expires  when a row that has an owner is gone, in microseconds: the sweep removes it.
//	size     the bytes that count against its owner; without it, its BYTEA columns do.
//
// What is otherwise stands in known.
type Table struct {
	Name    string
	Columns []Column
	// Owner is the column that says whose a row is; empty for what is nobody's.
	Owner string
	// Stays says why rows stay when their owner is erased; empty where they go.
	Stays string
	// Expires is the column that says when a row may go; empty where this table's own
	// package removes its rows, or nothing does.
	Expires string
	// Time is a column that says when a row was made; empty for none.
	Time string
}

// A Column of a table.
type Column struct {
	Name string
	// Type is TEXT, BIGINT or BYTEA.
	Type string
	// Key says that it is part of the primary key, Null that it may be empty.
	Key, Null bool
}

// OwnerColumn is the column in which owners stand as [Owner] writes them.
const OwnerColumn = "owner"

// The names of other columns that say what a table means.
const (
	expiresColumn = "expires"
	sizeColumn    = "size"
)

// timeColumns say when a row was made.
var timeColumns = []string{"time", "made", "asked", "created", "at", "applied"}

// known are tables whose columns do not say what they mean. Each that has no column owner
// stands here: the test says so.
var known = map[string]Table{
	"approvals":        {Owner: "caller"}, // package approval expires them, with a record of each
	"audit":            {Owner: "caller", Stays: "the record of what was done, which only its retention ends"},
	"audit_head":       {},
	"audit_logs":       {},
	"audit_records":    {Owner: "caller", Stays: "the record of what was done, which only its retention ends"},
	"console_sessions": {Owner: "caller"},
	"limit_rates":      {Expires: "spent"}, // full again, which is what no row is
	"limit_slots":      {Expires: "lease"},
	"login_imports":    {}, // of a file, which says whose they are
	"limit_days":       {Stays: "what was used of the limits of a day: else erasing would be a way to begin anew"},
	"migrations":       {},
	"node_numbers":     {},
	"nodes":            {}, // the processes, and nothing of owners
	"pin_changes":      {},
	"pins":             {}, // of servers
	"revoked_keys":     {}, // erasing nobody makes a key good again
	"schema_steps":     {},
	"seal_keys":        {},
	"topics":           {},
	"usage":            {Owner: "caller", Stays: "numbers of what was used, and nothing of what was said"},
	"usage_batches":    {},
	"usage_callers":    {Owner: "caller"},
}

// Tables returns our tables, in the order of their names.
func (tx *Tx) Tables() ([]Table, error) {
	var all []Table
	err := tx.Rows(tx.schema, nil, func(scan func(...any) error) error {
		var table string
		var c Column
		if err := scan(&table, &c.Name, &c.Type, &c.Key, &c.Null); err != nil {
			return err
		}
		if c.Type = strings.ToUpper(c.Type); c.Type == "INTEGER" {
			c.Type = "BIGINT" // see withRowNumbers
		}
		if len(all) == 0 || all[len(all)-1].Name != table {
			all = append(all, Table{Name: table})
		}
		t := &all[len(all)-1]
		t.Columns = append(t.Columns, c)
		return nil
	})
	for i := range all {
		all[i].mean()
	}
	slices.SortFunc(all, func(a, b Table) int { return strings.Compare(a.Name, b.Name) })
	return all, err
}

// A Standing is how many rows a table has.
type Standing struct {
	Table
	Rows int64
	// Oldest is when the oldest of them was made; zero where the table does not say.
	Oldest time.Time
}

// Standings returns what there is, table by table.
func (tx *Tx) Standings() ([]Standing, error) {
	tables, err := tx.Tables()
	all := make([]Standing, len(tables))
	for i, t := range tables {
		oldest := "0"
		if t.Time != "" {
			oldest = fmt.Sprintf("coalesce(min(%s), 0)", t.Time)
		}
		var first int64
		all[i].Table = t
		if err := tx.Row(fmt.Sprintf("SELECT count(*), %s FROM %s", oldest, t.Name), nil, &all[i].Rows, &first); err != nil {
			return nil, err
		}
		all[i].Oldest = FromTime(first)
	}
	return all, err
}

// Versions returns the version of the tables, and the one that this program makes.
func (tx *Tx) Versions() (have, ours int, err error) {
	all, err := steps(migrations)
	if err != nil {
		return 0, 0, err
	}
	have, _, err = schema{on: tx.on}.version(tx.ctx)
	return have, len(all), err
}

// mean says what a table's columns mean.
func (t *Table) mean() {
	for _, name := range timeColumns {
		if t.Time == "" && t.has(name) {
			t.Time = name
		}
	}
	if special, ok := known[t.Name]; ok {
		t.Owner, t.Stays, t.Expires = special.Owner, special.Stays, special.Expires
		return
	}
	if t.has(OwnerColumn) {
		t.Owner = OwnerColumn
		if t.has(expiresColumn) {
			t.Expires = expiresColumn
		}
	}
}

func (t *Table) has(column string) bool {
	return slices.ContainsFunc(t.Columns, func(c Column) bool { return c.Name == column })
}

// Owned reports whether rows go when their owner is erased.
func (t *Table) Owned() bool { return t.Owner != "" && t.Stays == "" }

// names are the columns' names, of the primary key alone or all, as SQL lists them.
func (t *Table) names(key bool) string {
	var names []string
	for _, c := range t.Columns {
		if c.Key || !key {
			names = append(names, c.Name)
		}
	}
	return strings.Join(names, ", ")
}

// Bytes is the SQL for how much a row counts against its owner; empty for nothing.
func (t *Table) Bytes() string {
	if t.Owner != OwnerColumn || !t.Owned() || t.Name == "owner_keys" {
		return ""
	}
	if t.has(sizeColumn) {
		return sizeColumn
	}
	var parts []string
	for _, c := range t.Columns {
		if c.Type == "BYTEA" {
			parts = append(parts, fmt.Sprintf("coalesce(octet_length(%s), 0)", c.Name))
		}
	}
	return strings.Join(parts, " + ")
}

// RemoveExpired removes rows of a table that have expired, most at once, and returns how
// many there were.
func (tx *Tx) RemoveExpired(t *Table, now int64, most int) (int64, error) {
	key := t.names(true)
	return tx.Exec(fmt.Sprintf("DELETE FROM %s WHERE (%s) IN (SELECT %s FROM %s WHERE %s <= $1 ORDER BY %s LIMIT %d)", t.Name, key, key, t.Name, t.Expires, t.Expires, most), now)
}

// sqliteSchema and postgresSchema list the columns of all tables: the table, the name, the
// type, whether it is part of the key, and whether it may be empty.
const (
	sqliteSchema = `SELECT m.name, c.name, c.type, c.pk > 0, c.pk = 0 AND NOT c."notnull" FROM sqlite_master m JOIN pragma_table_info(m.name) c
		WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' ORDER BY m.name, c.cid`
	postgresSchema = `SELECT t.relname, a.attname, format_type(a.atttypid, NULL), coalesce(a.attnum = ANY (i.indkey::int2[]), false), NOT a.attnotnull
		FROM pg_class t JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum > 0 AND NOT a.attisdropped
		LEFT JOIN pg_index i ON i.indrelid = t.oid AND i.indisprimary
		WHERE t.relkind = 'r' AND t.relnamespace = current_schema()::regnamespace ORDER BY t.relname, a.attnum`
)
