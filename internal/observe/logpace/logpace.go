// Package logpace bounds what somebody else can make us log: who says the same thing
// without end fills neither a disk nor a screen.
package logpace

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// A peer gets so many lines a second, and as many at once as one needs that says how
// it starts.
const (
	Rate  = 20
	Burst = 200
)

// countedFor is how long lines that were left out are counted before that is said.
const countedFor = 10 * time.Second

// New returns a logger that lets at most [Rate] lines a second through to another one, and
// counts the rest, which a line of its own tells later.
func New(to *slog.Logger) *slog.Logger {
	return slog.New(&handler{to: to.Handler(), pace: &pace{limit: rate.NewLimiter(Rate, Burst), log: to}})
}

// A pace is that of a logger and of all that are derived from it.
type pace struct {
	limit *rate.Limiter
	log   *slog.Logger

	mu   sync.Mutex
	left int // out of the log, since that was last told
}

func (p *pace) allow() bool {
	if p.limit.Allow() {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left++; p.left == 1 {
		time.AfterFunc(countedFor, p.tell)
	}
	return false
}

func (p *pace) tell() {
	p.mu.Lock()
	left := p.left
	p.left = 0
	p.mu.Unlock()
	p.log.Warn("lines were left out of the log", "lines", left)
}

type handler struct {
	to   slog.Handler
	pace *pace
}

func (h *handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.to.Enabled(ctx, level)
}

func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	if !h.pace.allow() {
		return nil
	}
	return h.to.Handle(ctx, r)
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &handler{to: h.to.WithAttrs(attrs), pace: h.pace}
}

func (h *handler) WithGroup(name string) slog.Handler {
	return &handler{to: h.to.WithGroup(name), pace: h.pace}
}
