package gateway

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/judge/approval"
	"github.com/dragoman-mcp/dragoman/internal/judge/audit"
	"github.com/dragoman-mcp/dragoman/internal/judge/gate"
	"github.com/dragoman-mcp/dragoman/internal/judge/ledger"
	"github.com/dragoman-mcp/dragoman/internal/judge/limit"
	"github.com/dragoman-mcp/dragoman/internal/judge/pinning"
	"github.com/dragoman-mcp/dragoman/internal/judge/policy"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
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
func (g *Gateway) openGate(o Options) (*gate.Gate, error) {
	rules, err := policy.New(policy.Config{Rules: g.file.Policy, File: g.file.PolicyFile})
	if err != nil {
		return nil, err
	}
	needed := !rules.Zero() || g.file.Store.Path != "" || g.file.NamesPins()
	var db *store.DB
	if needed || g.callers.Required() || len(g.file.Limits) > 0 {
		ctx, cancel := context.WithTimeout(context.Background(), openLedger)
		defer cancel()
		g.ledger, err = ledger.Open(ctx, ledger.Config{Store: g.file.Store, Audit: g.file.Audit, Approvals: g.file.Approvals, Pins: g.file.Pins}, o.Log)
		switch {
		case err != nil && needed:
			return nil, fmt.Errorf("the store of the audit log, of approvals and of pins: %w", err)
		case err != nil:
			o.Log.Warn("nothing is kept: no audit log, no pins of servers, and budgets of a day begin anew with each start", "error", err, "hint", "set store.path to a file that can be written")
			g.ledger = nil
		default:
			db = g.ledger.DB
			o.Log.Debug("audit log", "file", g.ledger.DB.Path())
			g.watch()
		}
	}
	if g.limits, err = limit.New(context.Background(), limit.Options{Limits: g.file.Limits, Store: db, Log: o.Log}); err != nil {
		g.closeLedger()
		return nil, err
	}
	return gate.New(gate.Options{Policy: rules, Limit: g.limits, Inbox: g.inbox(), Audit: g.audit(), Log: o.Log}), nil
}

// keep looks after the ledger and the keys until ctx ends, in a process that stays.
func (g *Gateway) keep(ctx context.Context) {
	var each sync.WaitGroup
	defer each.Wait()
	each.Go(func() { g.callers.Watch(ctx) })
	if g.credentials != nil {
		each.Go(func() { g.credentials.Watch(ctx) })
	}
	if g.ledger != nil {
		each.Go(func() { g.ledger.Keep(ctx) })
	}
}

// watch lets the book of what is approved see what other processes change, until the
// ledger is closed.
func (g *Gateway) watch() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); g.ledger.Book.Watch(ctx) }()
	g.unwatch = func() { cancel(); <-done }
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
	if g.ledger != nil {
		g.unwatch()
		if err := g.ledger.Close(); err != nil {
			g.log.Warn("the audit log could not be closed", "error", err)
		}
	}
}
