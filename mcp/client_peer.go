package mcp

import (
	"context"
	"encoding/json"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dragoman-mcp/dragoman"
)

// A peer is our end of a JSON-RPC connection, on which both ends ask and tell.
// It gives out ids, keeps what the other end has asked until it is answered, and
// owns everything that runs for the connection. What the messages mean is for its
// handler, how they travel for a [connection].
type peer struct {
	handler messageHandler
	limits  Limits
	log     *slog.Logger
	ids     atomic.Int64
	version atomic.Pointer[string] // of the protocol; nil before one is agreed on

	ctx  context.Context // ends with the connection
	stop context.CancelFunc
	work sync.WaitGroup
	done chan struct{}
	busy atomic.Int64 // answers on their way to the other end

	heard atomic.Uint64 // how often the other end said something

	mu       sync.Mutex
	err      error
	shutting bool
	serving  map[string]func() // what the other end has asked, by raw id: how to withdraw it
}

// A messageHandler is what a peer does with what the other end says of its own accord.
// Its methods are called where messages are read, and do not block.
type messageHandler interface {
	// handleRequest takes a request, and handleNotification a notification. x is the exchange whose own
	// stream carried it; nil on a channel that all share.
	handleRequest(l connection, x *exchange, m message)
	handleNotification(l connection, x *exchange, m message)
	// notificationsMissed says that something may have been said that did not arrive.
	notificationsMissed()
	// handleStrayLine takes a line that is no message.
	handleStrayLine(line string)
}

func newPeer(h messageHandler, limits Limits, log *slog.Logger) *peer {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	p := &peer{handler: h, limits: limits.filled(), log: log, done: make(chan struct{}), serving: map[string]func(){}}
	p.ctx, p.stop = context.WithCancel(context.Background())
	return p
}

// protocolVersion returns the version of the protocol; empty before one is agreed on.
func (p *peer) protocolVersion() string {
	if v := p.version.Load(); v != nil {
		return *v
	}
	return ""
}

// start runs f in a goroutine that shut waits for, and reports whether it does:
// not when shut waits already. A panic in f ends the connection, and nothing else.
func (p *peer) start(f func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shutting {
		return false
	}
	p.work.Go(func() {
		defer func() {
			if v := recover(); v != nil {
				p.end(&dragoman.PanicError{Value: v, Stack: debug.Stack()})
			}
		}()
		f()
	})
	return true
}

// tell lets f tell the other end that nobody waits for something. It returns when f
// has, or a moment later: f goes on then, as long as cancelPatience.
func (p *peer) tell(f func(context.Context)) {
	told := make(chan struct{})
	if p.start(func() {
		defer close(told)
		ctx, cancel := context.WithTimeout(p.ctx, cancelPatience)
		defer cancel()
		f(ctx)
	}) {
		within(told, 100*time.Millisecond)
	}
}

// enter lets shut wait for its caller, until leave is called. It reports false when
// shut waits already.
func (p *peer) enter() (leave func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shutting {
		return nil, false
	}
	p.work.Add(1)
	return p.work.Done, true
}

// end marks the connection as gone because of err.
func (p *peer) end(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = err
		close(p.done)
		p.stop()
	}
}

// wait returns when nothing runs for the connection any more; nothing is started
// after it was called.
func (p *peer) wait() {
	p.mu.Lock()
	p.shutting = true
	p.mu.Unlock()
	p.work.Wait()
}

// cause says why the connection has ended; nil while it has not.
func (p *peer) cause() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// receive takes a notification or a request of the other end.
func (p *peer) receive(l connection, x *exchange, m message) {
	p.heard.Add(1)
	if m.id != nil {
		p.handler.handleRequest(l, x, m)
		return
	}
	if m.method == "notifications/cancelled" {
		p.withdrawn(object(m.params).Get("requestId"))
	}
	p.handler.handleNotification(l, x, m)
}

// serve keeps a request of the other end until it is answered or withdrawn, and
// reports false where too many are kept, or one of this id.
func (p *peer) serve(id json.RawMessage, withdraw func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.serving) >= p.limits.Requests || p.serving[string(id)] != nil {
		return false
	}
	p.serving[string(id)] = withdraw
	return true
}

// served forgets a request of the other end, and reports whether it was kept: it
// is answered once.
func (p *peer) served(id json.RawMessage) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	kept := p.serving[string(id)] != nil
	delete(p.serving, string(id))
	return kept
}

func (p *peer) withdrawn(id json.RawMessage) {
	p.mu.Lock()
	withdraw := p.serving[string(id)]
	delete(p.serving, string(id))
	p.mu.Unlock()
	if withdraw != nil {
		withdraw()
	}
}

// answerPatience is how long the answer to a request may take to leave.
const answerPatience = 30 * time.Second

// answer sends the answer to a request of the other end, without waiting for it: again
// where the way broke, since the other end waits for it, and takes one.
func (p *peer) answer(l connection, id, result json.RawMessage, err error) {
	if p.busy.Add(1) > 4*int64(p.limits.Requests) {
		p.busy.Add(-1)
		p.log.Warn("MCP server asks faster than it takes answers")
		return
	}
	body := reply(id, result, err)
	if !p.start(func() {
		defer p.busy.Add(-1)
		ctx, cancel := context.WithTimeout(p.ctx, answerPatience)
		defer cancel()
		for failures := 0; ; failures++ {
			err := l.send(ctx, body)
			if err == nil || p.ctx.Err() != nil {
				return
			}
			wait, broke := wayBroke(err)
			if !broke || failures >= resumptions || sleep(ctx, max(wait, backOff(failures))) != nil {
				p.log.Warn("answering a request of the MCP server", "error", err)
				return
			}
		}
	}) {
		p.busy.Add(-1)
	}
}
