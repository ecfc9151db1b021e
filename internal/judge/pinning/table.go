package pinning

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/judge/pin"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// State is what became of a definition.
type State string

// The states. Under a key one definition is approved, at most, and one waits or has
// passed.
const (
	Standing State = "approved"
	Waiting  State = "waiting"
	// Passed: it was held, and its server no longer lists it so.
	Passed State = "passed"
)

// Reasons why a definition is approved.
const (
	ByFirst  = "first use"
	ByLock   = "lock"
	ByPerson = "person"
)

// A Pin is one definition in the book.
type Pin struct {
	// Server is a label, and the key says which definition of that server it is.
	Server string
	pin.Key
	State State
	Pin   pin.Digest
	// Definition is the whole entry in the server's list, byte for byte; of
	// instructions what [pin.TextOf] makes of them.
	Definition json.RawMessage
	// At is when it was approved, or seen.
	At time.Time
	// Reason says how it came to be approved, or why it waits.
	Reason string
	// By is the person who approved it.
	By string

	identity string
	size     int
}

// None reports whether p are instructions of a server that has none.
func (p *Pin) None() bool { return (&pin.Said{Key: p.Key, Definition: p.Definition}).Empty() }

// StandingFor returns what is approved in the place of one of pins; nil for nothing.
func StandingFor(pins []Pin, w *Pin) *Pin {
	i := slices.IndexFunc(pins, func(p Pin) bool {
		return p.State == Standing && p.Server == w.Server && p.Key == w.Key
	})
	if i < 0 {
		return nil
	}
	return &pins[i]
}

const columns = "server, kind, tool, state, pin, identity, at, reason, decider"

func scanned(scan func(...any) error, more any) (p Pin, err error) {
	var digest, state string
	var at int64
	if err := scan(&p.Server, &p.Kind, &p.Name, &state, &digest, &p.identity, &at, &p.Reason, &p.By, more); err != nil {
		return p, err
	}
	if err := p.Pin.UnmarshalText([]byte(digest)); err != nil {
		return p, fmt.Errorf("the pin of %s/%s is damaged: %w", p.Server, p.Key, err)
	}
	p.State, p.At = State(state), store.FromTime(at)
	return p, nil
}

// list returns all of a server, or of all.
func list(tx *store.Tx, server string) (all []Pin, err error) {
	query, args := "SELECT "+columns+", definition FROM pins", []any{}
	if server != "" {
		query, args = query+" WHERE server = $1", []any{server}
	}
	err = tx.Rows(query+" ORDER BY server, kind, tool, state", args, func(scan func(...any) error) error {
		var definition []byte
		p, err := scanned(scan, &definition)
		p.Definition, p.size = definition, len(definition)
		all = append(all, p)
		return err
	})
	return all, err
}

// sizes returns all of a server without the definitions: what is approved, and what
// waits or has passed.
func sizes(tx *store.Tx, server string) (standing, held map[pin.Key]*Pin, err error) {
	standing, held = map[pin.Key]*Pin{}, map[pin.Key]*Pin{}
	err = tx.Rows("SELECT "+columns+", length(definition) FROM pins WHERE server = $1", []any{server}, func(scan func(...any) error) error {
		var size int
		p, err := scanned(scan, &size)
		p.size = size
		if p.State == Standing {
			standing[p.Key] = &p
		} else {
			held[p.Key] = &p
		}
		return err
	})
	return standing, held, err
}

func get(tx *store.Tx, server string, key pin.Key, state State) (p Pin, err error) {
	var definition []byte
	p, err = scanned(func(dest ...any) error {
		return tx.Row("SELECT "+columns+", definition FROM pins WHERE server = $1 AND kind = $2 AND tool = $3 AND state = $4", []any{server, string(key.Kind), key.Name, string(state)}, dest...)
	}, &definition)
	if errors.Is(err, sql.ErrNoRows) {
		return p, ErrUnknown
	}
	p.Definition, p.size = definition, len(definition)
	return p, err
}

// put writes p in place of what there was under its key: what is approved in place of
// what was, what waits in place of what did.
func put(tx *store.Tx, p *Pin) error {
	states := []State{Waiting, Passed}
	if p.State == Standing {
		states = []State{Standing}
	}
	if err := remove(tx, p.Server, p.Key, states...); err != nil {
		return err
	}
	_, err := tx.Exec("INSERT INTO pins ("+columns+", definition) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
		p.Server, string(p.Kind), p.Name, string(p.State), p.Pin.String(), p.identity, store.Time(p.At), p.Reason, p.By, []byte(p.Definition))
	return err
}

// pass says that what waits under a key is no longer listed.
func pass(tx *store.Tx, server string, key pin.Key) error {
	_, err := tx.Exec("UPDATE pins SET state = $1 WHERE server = $2 AND kind = $3 AND tool = $4 AND state = $5", string(Passed), server, string(key.Kind), key.Name, string(Waiting))
	return err
}

func remove(tx *store.Tx, server string, key pin.Key, states ...State) error {
	for _, state := range states {
		if _, err := tx.Exec("DELETE FROM pins WHERE server = $1 AND kind = $2 AND tool = $3 AND state = $4", server, string(key.Kind), key.Name, string(state)); err != nil {
			return err
		}
	}
	return nil
}

// count counts a change that a person makes, and returns how many there were.
func count(tx *store.Tx) (n int64, err error) {
	if _, err = tx.Exec("INSERT INTO pin_changes (id, n) VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET n = pin_changes.n + 1"); err != nil {
		return 0, err
	}
	return n, tx.Row("SELECT n FROM pin_changes WHERE id = 1", nil, &n)
}

// changes returns how often people have changed what is approved.
func (b *Book) changes(ctx context.Context) (n int64, err error) {
	err = b.db.Read(ctx, func(tx *store.Tx) error {
		return tx.Row("SELECT coalesce(max(n), 0) FROM pin_changes", nil, &n)
	})
	return n, err
}
