// Package keeping looks after what the store keeps for owners: it removes what has expired,
// counts what each has against the quota, and erases an owner. It knows no table: what a
// table means, [store.Table] says.
package keeping

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// Every is how often the sweep looks.
const Every = time.Minute

// most is how many rows are removed in one transaction: others wait meanwhile.
const most = 500

// ErrQuota: what is stored, of one owner or in all, has reached the quota.
var ErrQuota = errors.New("what is stored has reached the quota")

// A Keeper sweeps a store. Make it with [New]; it is safe for concurrent use.
type Keeper struct {
	db    *store.DB
	quota store.Quota
	log   *slog.Logger
	now   func(*store.Tx) (time.Time, error)
	full  atomic.Pointer[full]
}

// full is who had reached the quota when it was counted last.
type full struct {
	people map[string]bool // by person
	all    bool
}

// New returns what sweeps db. A log of nil discards what goes wrong.
func New(db *store.DB, quota store.Quota, log *slog.Logger) *Keeper {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Keeper{db: db, quota: quota, log: log, now: (*store.Tx).Now}
}

// Watch sweeps and counts now and every minute, until ctx ends. What goes wrong is said
// once, until it goes well again: it is tried again.
func (k *Keeper) Watch(ctx context.Context) {
	ticker := time.NewTicker(Every)
	defer ticker.Stop()
	said := false
	for {
		removed, err := k.Sweep(ctx)
		err = errors.Join(err, k.Count(ctx))
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !said && !errors.Is(err, store.ErrClosed):
			k.log.Error("what has expired cannot be removed from the store, or counted", "error", err)
		case len(removed) > 0:
			k.log.Debug("what had expired was removed from the store", "rows", removed)
		}
		said = err != nil
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// Sweep removes what has expired, and returns how many rows of which tables. Where nothing
// has, it writes nothing; where several processes share the store, one at a time removes.
func (k *Keeper) Sweep(ctx context.Context) (map[string]int64, error) {
	due, err := k.due(ctx)
	if err != nil {
		return nil, err
	}
	removed := map[string]int64{}
	for _, table := range due {
		for {
			var n int64
			if err := k.db.Write(ctx, func(tx *store.Tx) error {
				if err := tx.Lock("keeping", "sweep"); err != nil {
					return err
				}
				now, err := k.now(tx)
				if err == nil {
					n, err = tx.RemoveExpired(&table, store.Time(now), most)
				}
				return err
			}); err != nil {
				return removed, err
			}
			if n > 0 {
				removed[table.Name] += n
			}
			if n < most {
				break
			}
		}
	}
	return removed, nil
}

// due returns the tables in which something has expired.
func (k *Keeper) due(ctx context.Context) (due []store.Table, err error) {
	err = k.db.Read(ctx, func(tx *store.Tx) error {
		due = nil
		now, err := k.now(tx)
		if err != nil {
			return err
		}
		tables, err := tx.Tables()
		for _, t := range tables {
			if t.Expires == "" {
				continue
			}
			var there bool
			if err := tx.Row(fmt.Sprintf("SELECT EXISTS (SELECT 1 FROM %s WHERE %s <= $1)", t.Name, t.Expires), []any{store.Time(now)}, &there); err != nil {
				return err
			}
			if there {
				due = append(due, t)
			}
		}
		return err
	})
	return due, err
}

// Count counts what is stored, of each person and in all.
func (k *Keeper) Count(ctx context.Context) error {
	if k.quota.Owner <= 0 && k.quota.Total <= 0 {
		return nil
	}
	held, all := map[string]int64{}, int64(0)
	if err := k.db.Read(ctx, func(tx *store.Tx) error {
		clear(held)
		all = 0
		tables, err := tx.Tables()
		for _, t := range tables {
			if err != nil || t.Bytes() == "" {
				continue
			}
			err = tx.Rows(heldIn(&t), nil, func(scan func(...any) error) error {
				var owner string
				var n int64
				err := scan(&owner, &n)
				held[person(store.OwnerParts(owner))] += n
				all += n
				return err
			})
		}
		return err
	}); err != nil {
		return err
	}
	now := &full{people: map[string]bool{}, all: k.quota.Total > 0 && all >= k.quota.Total}
	for who, n := range held {
		if k.quota.Owner > 0 && n >= k.quota.Owner {
			now.people[who] = true
		}
	}
	k.full.Store(now)
	return nil
}

// heldIn is the query for how much each owner has in a table.
func heldIn(t *store.Table) string {
	return fmt.Sprintf("SELECT owner, CAST(sum(%s) AS BIGINT) FROM %s GROUP BY owner", t.Bytes(), t.Name)
}

// Admit returns [ErrQuota] where nothing more may be stored for an owner, as the count of at
// most a minute ago says. It costs no statement; what is stored meanwhile is beyond
// the quota at most. What a caller has without saying for whom is everybody's behind it.
func (k *Keeper) Admit(owner string) error {
	switch now := k.full.Load(); {
	case now == nil:
		return nil
	case now.people[person(strings.Split(owner, "\x00"))], now.people[strings.Split(owner, "\x00")[0]]:
		return fmt.Errorf("%w of an owner (%d bytes)", ErrQuota, k.quota.Owner)
	case now.all:
		return fmt.Errorf("%w in all (%d bytes)", ErrQuota, k.quota.Total)
	}
	return nil
}

// nobody is how an owner's part stands that says nothing: an empty JSON string.
const nobody = `""`

// person is whom an owner's parts name: the caller, and who is behind it where that is said
// (recall.Owner). What tells conversations apart is not counted apart.
func person(parts []string) string {
	who := parts[0]
	for i := 1; i < min(3, len(parts)); i++ {
		if parts[i] != nobody {
			who += "\x00" + parts[i]
		}
	}
	return who
}
