package logins

import (
	"context"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/reach/credential"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// Watch reads what other processes change, until ctx ends. While the store cannot be
// read, what is known is good.
func (l *Logins) Watch(ctx context.Context) {
	l.watching(+1)
	defer l.watching(-1)
	changed := l.db.Changed(ctx, topic)
	ticker := time.NewTicker(again)
	defer ticker.Stop()
	missed := l.see(ctx) != nil
	for {
		select {
		case <-changed:
			missed = l.see(ctx) != nil
		case <-ticker.C:
			if missed {
				missed = l.see(ctx) != nil
			}
			l.mu.Lock()
			missing := !l.imported
			l.mu.Unlock()
			if missing {
				l.takeOver(ctx)
			}
		case <-ctx.Done():
			return
		}
	}
}

// watching counts those who watch.
func (l *Logins) watching(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watched += n
}

// see drops what is known of accounts that have changed since it was seen last. The first
// time it finds out what was changed last, and so where the database has lost changes that were
// seen, as a standby that takes over may have: later ones have their numbers again.
func (l *Logins) see(ctx context.Context) error {
	l.mu.Lock()
	last, before := l.last, l.seen
	l.mu.Unlock()
	first := before.IsZero()
	var lost bool
	var accounts []credential.Account
	now := last
	err := l.db.Read(ctx, func(tx *store.Tx) (err error) {
		accounts = nil
		if now, err = tx.Raised(topic); err != nil || first {
			return err
		}
		if lost = now < last; lost {
			return nil
		}
		now = last
		return tx.Rows("SELECT owner, server, changed FROM logins WHERE changed > $1", []any{last}, func(scan func(...any) error) error {
			var owner, server string
			var n int64
			err := scan(&owner, &server, &n)
			now = max(now, n)
			accounts = append(accounts, credential.Account{Server: server, Caller: strings.Join(store.OwnerParts(owner), "\x00")})
			return err
		})
	})
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last, l.seen = now, time.Now()
	if len(accounts) == 0 && !first && !lost && l.seen.Sub(before) < forgottenFor/2 {
		return nil // and what somebody is reading at this moment is as it was
	}
	l.turn++
	if lost || l.seen.Sub(before) >= forgottenFor/2 { // what was forgotten since may not be written down any more
		clear(l.known)
	}
	for _, a := range accounts {
		delete(l.known, a)
	}
	return nil
}
