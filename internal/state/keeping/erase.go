package keeping

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// Erased is the topic that is raised when somebody was erased: what a process has in
// memory of them goes, too.
const Erased = "erased"

// Erasures returns how often somebody was erased, by all processes.
func Erasures(ctx context.Context, db *store.DB) (n int64, err error) {
	err = db.Read(ctx, func(tx *store.Tx) (err error) {
		n, err = tx.Raised(Erased)
		return err
	})
	return n, err
}

// Whose says whom to erase, and so whose rows are meant.
type Whose struct {
	// Caller is the ID of a caller, with everybody behind it.
	Caller string
	// User is a person behind any caller, by the name that requests have for it, or a
	// caller that is a person, by its ID.
	User string
}

// is reports whether whom is meant is named by an owner's parts.
func (w Whose) is(parts []string) bool {
	if w.Caller != "" {
		return parts[0] == w.Caller
	}
	named, _ := json.Marshal(w.User)
	return parts[0] == w.User || slices.Contains(parts[1:min(3, len(parts))], string(named))
}

// A Share is what a table has of somebody.
type Share struct {
	Table string `json:"table"`
	Rows  int64  `json:"rows"`
	// Stays says why it stays when its owner is erased; empty for what goes.
	Stays string `json:"stays,omitempty"`
}

// Find returns what there is of somebody, in the order of the tables' names.
func Find(ctx context.Context, db *store.DB, whose Whose) ([]Share, error) {
	return find(ctx, db, whose, func(*store.Table) bool { return true })
}

// find returns what there is of somebody in some tables.
func find(ctx context.Context, db *store.DB, whose Whose, in func(*store.Table) bool) (found []Share, err error) {
	err = db.Read(ctx, func(tx *store.Tx) error {
		found = nil
		return owners(tx, whose, in, func(t *store.Table, _ string, rows int64) error {
			found = add(found, t, rows)
			return nil
		})
	})
	return found, err
}

// add adds rows of a table to those that are of the last share, or begins one.
func add(found []Share, t *store.Table, rows int64) []Share {
	if n := len(found); n == 0 || found[n-1].Table != t.Name {
		found = append(found, Share{Table: t.Name, Stays: t.Stays})
	}
	found[len(found)-1].Rows += rows
	return found
}

// Erase removes what there is of somebody, but for what stays, and the keys that it is
// encrypted under: all of it or nothing, and what the file had of it is overwritten. It
// returns what it found.
func Erase(ctx context.Context, db *store.DB, whose Whose) ([]Share, error) {
	// What stays is counted before: an audit log is long, and nobody else writes meanwhile.
	stays, err := find(ctx, db, whose, func(t *store.Table) bool { return !t.Owned() })
	if err != nil {
		return nil, err
	}
	var gone []Share
	err = db.Overwrite(ctx, func(tx *store.Tx) error {
		gone = nil
		if err := tx.Lock("keeping", "erase"); err != nil {
			return err
		}
		tx.Raise(Erased)
		return owners(tx, whose, (*store.Table).Owned, func(t *store.Table, owner string, _ int64) error {
			rows, err := tx.Exec(fmt.Sprintf("DELETE FROM %s WHERE %s = $1", t.Name, t.Owner), owner)
			if err == nil {
				gone = add(gone, t, rows)
			}
			return err
		})
	})
	return slices.SortedFunc(slices.Values(append(gone, stays...)), func(a, b Share) int { return strings.Compare(a.Table, b.Table) }), err
}

// EraseUnreadable removes everything that is encrypted, of all owners, and the keys that a
// master key wrapped which is lost. It returns what it removed.
func EraseUnreadable(ctx context.Context, db *store.DB) (found []Share, err error) {
	err = db.Write(ctx, func(tx *store.Tx) error {
		found = nil
		tx.Raise(Erased)
		tables, err := tx.Tables()
		for _, t := range tables {
			if t.Owner != store.OwnerColumn && t.Name != "seal_keys" {
				continue
			}
			rows, err := tx.Exec("DELETE FROM " + t.Name)
			if err != nil {
				return err
			}
			if rows > 0 {
				found = append(found, Share{Table: t.Name, Rows: rows})
			}
		}
		return err
	})
	return found, err
}

// owners calls each with those of some tables that have something of somebody, under which owner,
// and how many rows.
func owners(tx *store.Tx, whose Whose, in func(*store.Table) bool, each func(t *store.Table, owner string, rows int64) error) error {
	tables, err := tx.Tables()
	if err != nil {
		return err
	}
	for _, t := range tables {
		if t.Owner == "" || !in(&t) {
			continue
		}
		rows, names := map[string]int64{}, []string{}
		if err := tx.Rows(fmt.Sprintf("SELECT %s, count(*) FROM %s GROUP BY %s", t.Owner, t.Name, t.Owner), nil, func(scan func(...any) error) error {
			var owner string
			var n int64
			err := scan(&owner, &n)
			parts := []string{owner} // as package approval and audit write a caller
			if t.Owner == store.OwnerColumn {
				parts = store.OwnerParts(owner)
			}
			if err == nil && whose.is(parts) {
				rows[owner] = n
				names = append(names, owner)
			}
			return err
		}); err != nil {
			return err
		}
		for _, owner := range names {
			if err := each(&t, owner, rows[owner]); err != nil {
				return err
			}
		}
	}
	return nil
}
