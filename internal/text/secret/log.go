package secret

import (
	"context"
	"fmt"
	"log/slog"
)

// Handler returns a handler of logs that hides the secrets in what it passes on to
// another one.
func (m Mask) Handler(next slog.Handler) slog.Handler {
	if m.forms == nil {
		return next
	}
	return &handler{next, m}
}

type handler struct {
	next slog.Handler
	mask Mask
}

// Enabled implements [slog.Handler].
func (h *handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

// Handle implements [slog.Handler].
func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	hidden := slog.NewRecord(r.Time, r.Level, h.mask.Hide(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		hidden.AddAttrs(h.mask.attr(a))
		return true
	})
	return h.next.Handle(ctx, hidden)
}

// WithAttrs implements [slog.Handler].
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &handler{h.next.WithAttrs(h.mask.attrs(attrs)), h.mask}
}

// WithGroup implements [slog.Handler].
func (h *handler) WithGroup(name string) slog.Handler {
	return &handler{h.next.WithGroup(name), h.mask}
}

func (m Mask) attrs(attrs []slog.Attr) []slog.Attr {
	hidden := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		hidden[i] = m.attr(a)
	}
	return hidden
}

func (m Mask) attr(a slog.Attr) slog.Attr {
	a.Value = a.Value.Resolve()
	switch a.Value.Kind() {
	case slog.KindString:
		a.Value = slog.StringValue(m.Hide(a.Value.String()))
	case slog.KindGroup:
		a.Value = slog.GroupValue(m.attrs(a.Value.Group())...)
	case slog.KindAny:
		text := fmt.Sprint(a.Value.Any())
		if hidden := m.Hide(text); hidden != text {
			a.Value = slog.StringValue(hidden)
		}
	}
	return a
}
