package gateway

import (
	"context"
	"sync"

	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/judge/approval"
	"github.com/dragoman-mcp/dragoman/internal/state/run"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
	"github.com/dragoman-mcp/dragoman/internal/state/vault"
)

// background is what runs without anybody who waits for it: in the store where it is open,
// else in one in memory, which is made for the first that comes and ends with the process.
type background struct {
	mu     sync.Mutex
	runs   *run.Runs
	db     *store.DB // in memory; nil where the store is open
	cancel context.CancelFunc
	ended  chan struct{}
	closed bool
}

// openRuns keeps runs in the store.
func (g *Gateway) openRuns(db *store.DB, keys *vault.Vault) {
	g.background.runs = run.Open(db, keys, run.Config{Life: g.file.Store.Retention, Lease: g.o.RunLease, Woken: approval.Settled, Log: g.log})
}

// begunRuns returns where runs are kept; nil where there are none yet.
func (g *Gateway) begunRuns() *run.Runs {
	b := &g.background
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil
	}
	return b.runs
}

// runs returns where runs are kept, which this process looks after from then on.
func (g *Gateway) runs() (*run.Runs, error) {
	b := &g.background
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, store.ErrClosed
	}
	if b.runs != nil {
		b.begin(g.apiState.Work)
		return b.runs, nil
	}
	where := store.Config{Path: store.Memory}
	where.MaxBytes = store.DefaultMaxBytes
	db, err := store.Open(context.Background(), where)
	if err != nil {
		return nil, err
	}
	keys, err := vault.Open(context.Background(), db, where)
	if err != nil {
		db.Close()
		return nil, err
	}
	b.db, b.runs = db, run.Open(db, keys, run.Config{Woken: approval.Settled, Log: g.log})
	b.begin(g.apiState.Work)
	return b.runs, nil
}

// stored returns the runs of the store; nil where they are in memory, or it is over.
func (b *background) stored() *run.Runs {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || b.db != nil {
		return nil
	}
	return b.runs
}

// watch looks after the runs of the store, in a gateway that serves: one that a command
// makes for a moment takes nothing.
func (b *background) watch(work func(*run.Held)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.runs != nil && !b.closed {
		b.begin(work)
	}
}

// begin looks after runs until close. mu is held.
func (b *background) begin(work func(*run.Held)) {
	if b.cancel != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	b.cancel, b.ended = cancel, make(chan struct{})
	runs, ended := b.runs, b.ended
	go func() {
		defer close(ended)
		runs.Watch(ctx, work)
	}()
	runs.Work(work)
}

// drain lets what runs here come to its end until ctx ends, and takes nothing more.
func (b *background) drain(ctx context.Context) {
	b.mu.Lock()
	runs := b.runs
	b.mu.Unlock()
	if runs != nil {
		runs.Drain(ctx)
	}
}

// close gives back what runs here.
func (b *background) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	if b.cancel != nil {
		b.cancel()
		<-b.ended
	}
	if b.db != nil {
		b.db.Close()
	}
}

// detached returns the context of what a caller lets run and does not wait for. It ends
// once the caller could not come any more as they came, also where that was in another
// process: then, not fresh, the key is looked up, since nothing was shown here.
func (g *Gateway) detached(ctx context.Context, who caller.Caller, fresh bool) (context.Context, func()) {
	if !fresh {
		g.callers.Standing(who)
	}
	return g.callers.Stay(g.Observed(ctx, who), who)
}
