package logbuffer

import (
	"context"
	"log/slog"
	"slices"
	"sync"
)

// Late returns a handler that formats what its loggers carry ([slog.Logger.With]) when a
// line is written. Each request has a logger of its own and most write one line or none,
// while the handlers of log/slog format what they are given at once. A [slog.LogValuer] is
// therefore resolved with the line.
func Late(next slog.Handler) slog.Handler { return &late{next: next} }

type late struct {
	next    slog.Handler
	carried []slog.Attr
}

// Enabled implements [slog.Handler].
func (h *late) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

// Handle implements [slog.Handler].
func (h *late) Handle(ctx context.Context, r slog.Record) error {
	if len(h.carried) == 0 {
		return h.next.Handle(ctx, r)
	}
	room := rooms.Get().(*[]slog.Attr)
	all := append((*room)[:0], h.carried...)
	r.Attrs(func(a slog.Attr) bool { all = append(all, a); return true })
	whole := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	whole.AddAttrs(all...) // which copies them
	clear(all)
	*room = all
	rooms.Put(room)
	return h.next.Handle(ctx, whole)
}

// rooms are for the attributes of a line, before a record has them.
var rooms = sync.Pool{New: func() any { return new([]slog.Attr) }}

// WithAttrs implements [slog.Handler].
func (h *late) WithAttrs(attrs []slog.Attr) slog.Handler {
	if len(h.carried) == 0 {
		return &late{h.next, slices.Clip(attrs)} // they are the handler's now
	}
	return &late{h.next, slices.Concat(h.carried, attrs)}
}

// WithGroup implements [slog.Handler]: what comes later stands in the group, and what is
// carried does not.
func (h *late) WithGroup(name string) slog.Handler {
	return &late{next: h.next.WithAttrs(h.carried).WithGroup(name)}
}
