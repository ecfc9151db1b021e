package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/identity/revocation"
	"github.com/dragoman-mcp/dragoman/internal/judge/approval"
	"github.com/dragoman-mcp/dragoman/internal/judge/audit"
	"github.com/dragoman-mcp/dragoman/internal/judge/budget"
	"github.com/dragoman-mcp/dragoman/internal/judge/gate"
	"github.com/dragoman-mcp/dragoman/internal/judge/ledger"
	"github.com/dragoman-mcp/dragoman/internal/judge/limit"
	"github.com/dragoman-mcp/dragoman/internal/judge/pinning"
	"github.com/dragoman-mcp/dragoman/internal/judge/usage"
	"github.com/dragoman-mcp/dragoman/internal/reach/credential"
	"github.com/dragoman-mcp/dragoman/internal/reach/logins"
	"github.com/dragoman-mcp/dragoman/internal/state/content"
	"github.com/dragoman-mcp/dragoman/internal/state/idempotency"
	"github.com/dragoman-mcp/dragoman/internal/state/keeping"
	"github.com/dragoman-mcp/dragoman/internal/state/seal"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
	"github.com/dragoman-mcp/dragoman/internal/state/stored"
	"github.com/dragoman-mcp/dragoman/internal/state/turns"
	"github.com/dragoman-mcp/dragoman/internal/state/vault"
	"github.com/dragoman-mcp/dragoman/result"
)

// openLedger bounds how long another process may hold the store while we start.
const openLedger = 30 * time.Second

// openGate builds what judges every request, and opens the ledger where there is
// something to be kept in it.
//
// The audit log is kept wherever callers are told apart or rules are made, and
// where the configuration names the store. Where it was not asked for by name, and
// cannot be opened, such as in a container without a place to write, that is said,
// and nothing is kept; where rules may ask somebody, there is nothing to start
// without it.
func (g *Gateway) openGate(first *setup) (err error) {
	var db *store.DB
	if g.o.Credentials != nil {
		g.elsewhere = &logins.Where{Store: g.file.Store, File: g.o.Credentials}
	}
	if needed := first.keepsRecords(); needed || g.callers.Required() || len(g.file.Limits) > 0 {
		ctx, cancel := context.WithTimeout(context.Background(), openLedger)
		defer cancel()
		err = g.openLedger(ctx, g.log)
		switch {
		case err != nil && needed:
			return fmt.Errorf("the store of the audit log, of approvals and of pins: %w", err)
		case errors.Is(err, vault.ErrOtherKey):
			return fmt.Errorf("the store: %w", err)
		case err != nil:
			g.elsewhere = nil // it cannot be opened for logins either
			g.log.Warn("nothing is kept: no audit log, no pins of servers; budgets of a day, what is remembered of conversations and responses that clients store end with this process", "error", err, "hint", "set store.path to a file that can be written")
		default:
			db = g.ledger.DB
			g.log.Debug("audit log", "file", g.ledger.DB.String())
		}
	}
	if err := g.join(first); err != nil {
		g.closeLedger()
		return err
	}
	if g.limits, err = limit.New(context.Background(), limit.Options{Limits: g.file.Limits, Store: db, Node: g.node, CallTime: g.file.Loop.CallTimeout, Log: g.log}); err != nil {
		g.closeLedger()
		return err
	}
	if db != nil && !g.file.Usage.Off {
		g.usage = usage.New(db, g.log)
	}
	g.budgets = budget.New(budget.Options{Budgets: g.file.Budgets, Book: g.usage, Log: g.log})
	g.gate = gate.New(gate.Options{Usage: g.usage, Model: g.priced, Price: g.toolPrice, Policy: first.rules, Limit: g.limits, Budget: g.budgets, Inbox: g.inbox(), Audit: g.audit(), Store: db, Log: g.log})
	return nil
}

// openLedger opens the ledger and its keys: both, or none.
func (g *Gateway) openLedger(ctx context.Context, log *slog.Logger) error {
	opened, err := ledger.Open(ctx, ledger.Config{Store: g.file.Store, Audit: g.file.Audit, Approvals: g.file.Approvals, Pins: g.file.Pins}, log)
	if err != nil {
		return err
	}
	keys, err := vault.Open(ctx, opened.DB, g.file.Store)
	if err != nil {
		return errors.Join(err, opened.Close())
	}
	if g.revoked, err = revocation.Open(ctx, opened.DB); err != nil {
		return errors.Join(err, opened.Close())
	}
	if g.erasures, err = keeping.Erasures(ctx, opened.DB); err != nil {
		return errors.Join(err, opened.Close())
	}
	g.talks = stored.NewConversations(opened.DB, keys, g.file.Store.Retention)
	g.stored, g.claims = stored.New(opened.DB, keys, g.file.Store.Retention), idempotency.NewClaims(opened.DB, keys, g.file.Idempotency)
	g.results = content.NewDocuments(opened.DB, content.Kind{Name: "result", Life: result.DefaultShelfAge, Bytes: result.DefaultShelfBytes, Vault: keys, Rooms: new(content.Rooms)}, log)
	g.ledger, g.vault = opened, keys
	g.logins = logins.Open(ctx, opened.DB, keys, g.o.Credentials, log)
	g.keeper = keeping.New(opened.DB, g.file.Store.Quota, log)
	g.openRuns(opened.DB, keys)
	if g.telemetry.Measuring() {
		opened.DB.Time(g.timed)
	}
	g.openCaptures(opened.DB, keys)
	g.turns = turns.New(opened.DB, keys, turns.Config{Bounds: turns.Bounds{Bytes: g.file.Memory.Bytes, TTL: g.file.Memory.TTL}, Log: log, Single: g.file.Store.URL.IsZero()})
	return nil
}

// seals are the keys of what leaves us and comes back; nil where they end with the
// process.
func (g *Gateway) seals() *seal.Ring {
	if g.vault == nil {
		return nil
	}
	return g.vault.Ring()
}

// credentials is where tokens of logins are: in our store; in one that is there and that
// this process needs for nothing else; in the file; or nil for nowhere.
func (g *Gateway) credentials() credential.Store {
	switch {
	case g.logins != nil:
		return g.logins
	case g.elsewhere != nil:
		return g.elsewhere
	case g.o.Credentials != nil:
		return g.o.Credentials
	}
	return nil
}

// forget drops what this process has in memory of what is kept, whenever somebody was
// erased, until ctx ends. While the store cannot be read, what is known is good.
func (g *Gateway) forget(ctx context.Context) {
	erased := g.ledger.DB.Changed(ctx, keeping.Erased)
	var again <-chan time.Time
	for {
		select {
		case <-erased:
		case <-again:
		case <-ctx.Done():
			return
		}
		now, err := keeping.Erasures(ctx, g.ledger.DB)
		if again = nil; err != nil {
			again = time.After(store.LookEvery)
			continue
		}
		if now != g.erasures {
			g.turns.Forget()
			g.state.Forget()
			g.live.Forget()
			g.logins.Forget()
		}
		g.erasures = now
	}
}

// room says why nothing more may be stored for an owner now; nil where nothing is stored.
func (g *Gateway) room() func(owner string) error {
	if g.keeper == nil {
		return nil
	}
	return func(owner string) error {
		if err := g.ledger.DB.Behind(); err != nil {
			return err
		}
		return g.keeper.Admit(owner)
	}
}

// keep looks after the ledger and the keys until ctx ends, in a process that stays.
func (g *Gateway) keep(ctx context.Context, secured *certificates) {
	var each sync.WaitGroup
	defer each.Wait()
	each.Go(func() { g.callers.Watch(ctx) })
	each.Go(func() { g.follow(ctx) })
	each.Go(func() { g.settle(ctx) })
	if secured != nil {
		each.Go(func() { secured.watch(ctx) })
	}
	if tokens := g.credentials(); tokens != nil && g.logins == nil {
		each.Go(func() { tokens.Watch(ctx) })
	}
	if g.ledger != nil {
		each.Go(func() { g.ledger.Keep(ctx) })
	}
	if g.usage != nil {
		each.Go(func() { g.usage.Keep(ctx, g.file.Usage.Retention) })
	}
}

// watch lets the book of what is approved, and the keys, see what other processes
// change, and what has expired go, until the ledger is closed. It is for a gateway that has
// all that those who watch tell.
func (g *Gateway) watch() {
	if g.ledger == nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() { g.ledger.Book.Watch(ctx) })
	all.Go(func() { g.turns.Watch(ctx) })
	all.Go(func() { g.revoked.Watch(ctx, g.callers.Revoke) })
	all.Go(func() { g.logins.Watch(ctx) })
	all.Go(func() { g.keeper.Watch(ctx) })
	all.Go(func() { g.forget(ctx) })
	all.Go(func() {
		g.vault.Keep(ctx, func(err error) {
			g.log.Error("the keys of the store cannot be read, so those that are known are used", "error", err)
		})
	})
	all.Go(func() { g.node.Keep(ctx, g.log) })
	all.Go(func() { g.mail.Watch(ctx, g.log) })
	if g.clients != nil {
		all.Go(func() { g.clients.Watch(ctx, g.log, g.mcp.Noted) })
	}
	g.unwatch = func() { cancel(); all.Wait() }
}

func (g *Gateway) book() *pinning.Book {
	if g.ledger == nil {
		return nil
	}
	return g.ledger.Book
}

// A Held counts what waits for somebody's approval.
type Held struct{ Tools, Texts int }

// Held returns what waits for somebody's approval, by the labels of the servers: tools,
// and prompts, skills and instructions.
func (g *Gateway) Held() map[string]Held {
	held := map[string]Held{}
	list, err := g.servers.List(context.Background())
	if err != nil {
		return held
	}
	for _, t := range list.Tools.All() {
		if t.Quarantined != nil && t.Quarantined.Code == dragoman.CodeNotApproved {
			of := held[t.Server]
			of.Tools++
			held[t.Server] = of
		}
	}
	for _, s := range list.Servers {
		if len(s.Held) > 0 {
			held[s.Label] = Held{held[s.Label].Tools, len(s.Held)}
		}
	}
	return held
}

func (g *Gateway) inbox() *approval.Inbox {
	if g.ledger == nil {
		return nil
	}
	return g.ledger.Inbox
}

func (g *Gateway) audit() *audit.Log {
	if g.ledger == nil {
		return nil
	}
	return g.ledger.Audit
}

// closeLedger writes what is left, when nothing runs any more.
func (g *Gateway) closeLedger() {
	if g.limits != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := g.limits.Close(ctx); err != nil {
			g.log.Warn("what was used of the budgets could not be written down", "error", err)
		}
	}
	g.usage.Close()
	if g.ledger != nil {
		if g.unwatch != nil {
			g.unwatch()
		}
		g.leave()
		if err := g.ledger.Close(); err != nil {
			g.log.Warn("the audit log could not be closed", "error", err)
		}
	}
}
