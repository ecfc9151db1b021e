// Package loglevel lets single packages log more, or less, than the rest.
package loglevel

import (
	"context"
	"log/slog"
	"path"
	"runtime"
	"strings"
)

// Levels are the least levels of packages. Make them with [New].
type Levels struct {
	rest     slog.Leveler
	packages map[string]slog.Level
}

// New returns levels by the last elements of packages' paths, and one for the rest, which may change. What
// is no level counts as the rest.
func New(rest slog.Leveler, packages map[string]string) *Levels {
	l := &Levels{rest: rest, packages: map[string]slog.Level{}}
	for name, text := range packages {
		var level slog.Level
		if level.UnmarshalText([]byte(text)) == nil {
			l.packages[name] = level
		}
	}
	return l
}

// Level is the lowest of all levels as they are now, so that Levels are a [slog.Leveler].
func (l *Levels) Level() slog.Level {
	least := l.rest.Level()
	for _, level := range l.packages {
		least = min(least, level)
	}
	return least
}

// Handler returns a handler that passes on what the package that logs may log. What logs
// for others, such as a logger of a standard package, is of no package that is named.
func (l *Levels) Handler(next slog.Handler) slog.Handler {
	if len(l.packages) == 0 {
		return next
	}
	return &handler{l, next}
}

type handler struct {
	*Levels
	next slog.Handler
}

// Enabled implements [slog.Handler]: whose record it is, is known only then.
func (h *handler) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= h.Level() && h.next.Enabled(ctx, level)
}

// Handle implements [slog.Handler].
func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	least, named := h.packages[packageOf(r.PC)]
	if !named {
		least = h.rest.Level()
	}
	if r.Level < least {
		return nil
	}
	return h.next.Handle(ctx, r)
}

// WithAttrs implements [slog.Handler].
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &handler{h.Levels, h.next.WithAttrs(attrs)}
}

// WithGroup implements [slog.Handler].
func (h *handler) WithGroup(name string) slog.Handler {
	return &handler{h.Levels, h.next.WithGroup(name)}
}

// packageOf returns the last element of the path of the package that a call stands in.
func packageOf(pc uintptr) string {
	if pc == 0 {
		return ""
	}
	frame, _ := runtime.CallersFrames([]uintptr{pc}).Next()
	name, _, _ := strings.Cut(path.Base(frame.Function), ".")
	return name
}
