// Package logins keeps the tokens of logins at MCP servers in the store: encrypted, each
// under the key of the caller who has logged in, and the same for all processes that share
// the store. What stood in the file of an earlier version is taken over once; the file
// stays as it is, for that version to come back to.
//
// It is apart from package credential, which programs without a store use.
package logins

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/reach/credential"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
	"github.com/dragoman-mcp/dragoman/internal/state/vault"
)

// topic is raised with each change, and its lock is for making one.
const topic = "logins"

const (
	// stays is when an entry expires: never, since its refresh token may be good for ever.
	stays = math.MaxInt64
	// forgottenFor is how long it is written down that one was forgotten: every process
	// has seen it by then, or looks at all anew.
	forgottenFor = time.Hour
	// maxKnown bounds the accounts that are known without asking the store.
	maxKnown = 10000
	// again is how soon taking over a file is tried again.
	again = 30 * time.Second
)

// Logins are the entries of a store. Make it with [Open]; it is safe for concurrent use.
type Logins struct {
	db   *store.DB
	keys *vault.Vault
	file *credential.File // nil for none
	log  *slog.Logger

	mu       sync.Mutex
	imported bool
	watched  int       // how many watch
	last     int64     // the change that known is as of
	seen     time.Time // when that was found out
	turn     int       // raised whenever something known may be so no more
	known    map[credential.Account]entry
}

var _ credential.Store = (*Logins)(nil)

// An entry as it was read, or that there is none.
type entry struct {
	credential.Entry
	none bool
}

// Open returns the logins of a store, and takes over what stands in a file, which may be
// nil. That this fails is said in the log, and tried again while somebody watches.
func Open(ctx context.Context, db *store.DB, keys *vault.Vault, file *credential.File, log *slog.Logger) *Logins {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	l := &Logins{db: db, keys: keys, file: file, log: log, known: map[credential.Account]entry{}}
	l.takeOver(ctx)
	_ = l.see(ctx) // where that fails, nothing is kept in memory until it was seen
	return l
}

// takeOver takes over the file, and says where that fails.
func (l *Logins) takeOver(ctx context.Context) {
	n, err := l.importFile(ctx)
	switch {
	case err != nil && ctx.Err() == nil && !errors.Is(err, store.ErrClosed):
		l.log.Warn("logins that stand in a file cannot be taken over into the store, so they are not used", "file", l.file.Path, "error", err)
		return
	case n > 0:
		l.log.Info("logins that stood in a file are in the store from now on", "file", l.file.Path, "logins", n)
	}
	l.mu.Lock()
	l.imported = err == nil
	l.mu.Unlock()
}

// importFile takes over the entries of the file that were not taken over before. One
// that has changed since, as an earlier version changes it that was started again, is
// another one, and comes in the place of what there is.
func (l *Logins) importFile(ctx context.Context) (taken int, err error) {
	if l.file == nil {
		return 0, nil
	}
	all, err := l.file.Sealed()
	if err != nil || len(all) == 0 {
		return 0, err
	}
	entries := map[credential.Account]credential.Entry{}
	digests := map[credential.Account][]byte{}
	for a, box := range all {
		e, err := l.file.Get(a)
		if errors.Is(err, credential.ErrNone) {
			continue // forgotten meanwhile
		}
		if err != nil {
			return 0, err
		}
		sum := sha256.Sum256(slices.Concat([]byte(a.Server), []byte("\n"+a.Caller+"\n"), box))
		entries[a], digests[a] = e, sum[:]
	}
	missing := func(tx *store.Tx) (accounts []credential.Account, err error) {
		for _, a := range slices.SortedFunc(maps.Keys(entries), compare) {
			var n int
			if err := tx.Row("SELECT count(*) FROM login_imports WHERE digest = $1", []any{digests[a]}, &n); err != nil {
				return nil, err
			}
			if n == 0 {
				accounts = append(accounts, a)
			}
		}
		return accounts, nil
	}
	if err := l.db.Read(ctx, func(tx *store.Tx) error {
		accounts, err := missing(tx)
		taken = len(accounts)
		return err
	}); err != nil || taken == 0 {
		return 0, err
	}
	err = l.db.Write(ctx, func(tx *store.Tx) error {
		taken = 0
		if err := tx.Lock(topic, "changes"); err != nil {
			return err
		}
		accounts, err := missing(tx)
		if err != nil {
			return err
		}
		now, err := tx.Now()
		if err != nil {
			return err
		}
		for _, a := range accounts {
			if _, err := tx.Exec("INSERT INTO login_imports (digest, at) VALUES ($1, $2)", digests[a], store.Time(now)); err != nil {
				return err
			}
			if err := l.put(tx, a, entries[a]); err != nil {
				return err
			}
		}
		taken = len(accounts)
		return nil
	})
	return taken, err
}

// Get returns the entry of an account. While somebody watches, the store is asked once for
// each account, and for what has changed. What was asked before somebody did counts, too:
// whoever watches asks at once what has changed since.
func (l *Logins) Get(a credential.Account) (credential.Entry, error) {
	l.mu.Lock()
	e, ok := l.known[a]
	turn, watched := l.turn, l.watched > 0
	l.mu.Unlock()
	if !ok || !watched {
		var err error
		if e, err = l.read(a); err != nil {
			return credential.Entry{}, err
		}
		l.learn(turn, a, e)
	}
	if e.none {
		return credential.Entry{}, credential.ErrNone
	}
	e.Scopes = slices.Clone(e.Scopes)
	return e.Entry, nil
}

// learn keeps what was read in memory, unless something may have changed since turn, or it
// is not known what has.
func (l *Logins) learn(turn int, a credential.Account, e entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen.IsZero() || l.turn != turn {
		return
	}
	if len(l.known) >= maxKnown {
		clear(l.known)
	}
	l.known[a] = e
}

// Forget drops what is known without the store: somebody was erased.
func (l *Logins) Forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turn++
	clear(l.known)
}

// read asks the store.
func (l *Logins) read(a credential.Account) (e entry, err error) {
	err = l.db.Read(context.Background(), func(tx *store.Tx) (err error) {
		e, err = l.get(tx, a)
		return err
	})
	return e, err
}

// get reads an entry in a transaction.
func (l *Logins) get(tx *store.Tx, a credential.Account) (entry, error) {
	var box []byte
	err := tx.Row("SELECT entry FROM logins WHERE owner = $1 AND server = $2", []any{store.Owner(a.Caller), a.Server}, &box)
	if errors.Is(err, sql.ErrNoRows) || err == nil && len(box) == 0 {
		return entry{none: true}, nil
	}
	if err != nil {
		return entry{}, err
	}
	text, err := l.keys.Open(tx, store.Owner(a.Caller), place(a), box)
	if err != nil {
		return entry{}, err
	}
	e, err := credential.ParseEntry(text)
	return entry{Entry: e}, err
}

func place(a credential.Account) string { return "login " + a.Server }

// put writes an entry. The lock is held.
func (l *Logins) put(tx *store.Tx, a credential.Account, e credential.Entry) error {
	box, err := l.keys.Close(tx, store.Owner(a.Caller), place(a), e.Open())
	if err != nil {
		return err
	}
	_, err = l.write(tx, a, box, stays)
	return err
}

// write writes a row, and returns the number of the change. The lock is held.
func (l *Logins) write(tx *store.Tx, a credential.Account, box []byte, expires int64) (changed int64, err error) {
	now, err := tx.Now()
	if err != nil {
		return 0, err
	}
	if changed, err = tx.Raised(topic); err != nil {
		return 0, err
	}
	changed++ // as the topic will be
	tx.Raise(topic)
	_, err = tx.Exec(`INSERT INTO logins (owner, server, changed, entry, made, expires) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (owner, server) DO UPDATE SET changed = excluded.changed, entry = excluded.entry, expires = excluded.expires`,
		store.Owner(a.Caller), a.Server, changed, box, store.Time(now), expires)
	return changed, err
}

// change runs fn while nobody else changes a login, and lets this process see it at once.
// Where the store is away, nothing was read, and what is known is good.
func (l *Logins) change(a credential.Account, fn func(tx *store.Tx) (entry, error)) (e entry, err error) {
	read := false
	err = l.db.Write(context.Background(), func(tx *store.Tx) (err error) {
		if err := tx.Lock(topic, "changes"); err != nil {
			return err
		}
		read = true
		e, err = fn(tx)
		return err
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turn++
	if read {
		delete(l.known, a)
	}
	return e, err
}

// Accounts returns the accounts for which something is kept, in order.
func (l *Logins) Accounts() (accounts []credential.Account, err error) {
	err = l.db.Read(context.Background(), func(tx *store.Tx) error {
		accounts = nil
		return tx.Rows("SELECT owner, server FROM logins WHERE octet_length(entry) > 0", nil, func(scan func(...any) error) error {
			var owner, server string
			err := scan(&owner, &server)
			accounts = append(accounts, credential.Account{Server: server, Caller: strings.Join(store.OwnerParts(owner), "\x00")})
			return err
		})
	})
	slices.SortFunc(accounts, compare)
	return accounts, err
}

func compare(a, b credential.Account) int {
	if n := strings.Compare(a.Server, b.Server); n != 0 {
		return n
	}
	return strings.Compare(a.Caller, b.Caller)
}

// Put keeps an entry in place of an older one.
func (l *Logins) Put(a credential.Account, e credential.Entry) error {
	_, err := l.change(a, func(tx *store.Tx) (entry, error) {
		return entry{}, l.put(tx, a, e)
	})
	return err
}

// Update changes an entry that is there, by the clock of the database.
func (l *Logins) Update(a credential.Account, change func(e *credential.Entry, now time.Time) error) (credential.Entry, error) {
	e, err := l.change(a, func(tx *store.Tx) (entry, error) {
		e, err := l.get(tx, a)
		if err != nil {
			return e, err
		}
		if e.none {
			return e, credential.ErrNone
		}
		now, err := tx.Now()
		if err != nil {
			return e, err
		}
		before := string(e.Open())
		if err := change(&e.Entry, now); err != nil || string(e.Open()) == before {
			return e, err
		}
		return e, l.put(tx, a, e.Entry)
	})
	return e.Entry, err
}

// Delete forgets an account, in the file as well.
func (l *Logins) Delete(a credential.Account) error {
	_, err := l.change(a, func(tx *store.Tx) (entry, error) {
		e, err := l.get(tx, a)
		if err != nil && !errors.Is(err, vault.ErrErased) || e.none {
			return e, err
		}
		now, err := tx.Now()
		if err == nil {
			_, err = l.write(tx, a, []byte{}, store.Time(now.Add(forgottenFor)))
		}
		return e, err
	})
	if err != nil || l.file == nil {
		return err
	}
	all, err := l.file.Sealed()
	if _, there := all[a]; there {
		return l.file.Delete(a)
	}
	return err
}
