package store

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// TestTables holds all tables to the conventions of [Table], on both databases alike: each
// says whose its rows are, or stands in known; what an owner has is found by an index; and
// what expires has a key to remove it by.
func TestTables(t *testing.T) {
	var first []Table
	everywhere(t, func(t *testing.T, db *DB) {
		tables := tablesOf(t, db)
		tables = slices.DeleteFunc(tables, func(t Table) bool { return t.Name == "words" }) // the test's own
		if len(tables) < 12 {
			t.Fatalf("found %d tables", len(tables))
		}
		for _, table := range tables {
			_, special := known[table.Name]
			switch {
			case table.Owner == "" && !special:
				t.Errorf("%s has no column owner and does not stand in known: whose are its rows?", table.Name)
			case table.Owner != "" && !table.has(table.Owner):
				t.Errorf("%s has no column %s", table.Name, table.Owner)
			case table.names(true) == "":
				t.Errorf("%s has no primary key", table.Name)
			case table.Owned() && !indexed(t, db, table):
				t.Errorf("%s has no index that begins with %s", table.Name, table.Owner)
			}
			for _, c := range table.Columns {
				if !slices.Contains([]string{"TEXT", "BIGINT", "BYTEA"}, c.Type) {
					t.Errorf("%s.%s is %s", table.Name, c.Name, c.Type)
				}
			}
		}
		if first == nil {
			first = tables
		} else if !reflect.DeepEqual(tables, first) {
			t.Errorf("%+v\nand elsewhere\n%+v", tables, first)
		}
	})
}

// TestTablesAreInTheGuide: what is kept, and for how long, is said of every table.
func TestTablesAreInTheGuide(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "store.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range tablesOf(t, opened(t, Memory)) {
		if !strings.Contains(string(page), "`"+table.Name+"`") {
			t.Errorf("docs/store.md does not say how long the rows of %s are kept", table.Name)
		}
	}
}

func tablesOf(t *testing.T, db *DB) (tables []Table) {
	t.Helper()
	if err := db.Read(t.Context(), func(tx *Tx) (err error) { tables, err = tx.Tables(); return err }); err != nil {
		t.Fatal(err)
	}
	return tables
}

// indexed reports whether a row is found by its owner: in SQLite, which says so; the
// indexes of PostgreSQL are made by the same statements.
func indexed(t *testing.T, db *DB, table Table) (found bool) {
	t.Helper()
	if strings.HasPrefix(db.String(), "postgres:") {
		return true
	}
	if err := db.Read(t.Context(), func(tx *Tx) error {
		return tx.Rows(fmt.Sprintf("EXPLAIN QUERY PLAN SELECT 1 FROM %s WHERE %s = 'x'", table.Name, table.Owner), nil, func(scan func(...any) error) error {
			var id, parent, unused int
			var plan string
			err := scan(&id, &parent, &unused, &plan)
			found = found || strings.HasPrefix(plan, "SEARCH")
			return err
		})
	}); err != nil {
		t.Fatal(err)
	}
	return found
}

// TestOwner: owners are written so that every database takes them, and never alike.
func TestOwner(t *testing.T) {
	for _, parts := range [][]string{{"key-1"}, {"key-1", `"ada"`, ""}, {`a\`, `0`}, {`a\0`}, {"", ""}, {`https://x#\\ann`, `\0`, `\`}} {
		stored := Owner(strings.Join(parts, "\x00"))
		if got := OwnerParts(stored); !reflect.DeepEqual(got, parts) || strings.Contains(stored, "\x00") {
			t.Errorf("%q is %q, and that is %q", parts, stored, got)
		}
	}
	if got := OwnerParts("key-1\x00\"ada\"\x00"); !reflect.DeepEqual(got, []string{"key-1", `"ada"`, ""}) {
		t.Errorf("as it was written before: %q", got)
	}
}
