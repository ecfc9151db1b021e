package logbuffer

import (
	"context"
	"io"
	"log/slog"
	"slices"
)

// Handler returns a handler of records that are formatted where they are written, by what
// form returns for what it is to write to: a [slog.TextHandler], say.
//
// What loggers carry ([slog.Logger.With]) is formatted with each line as well. Each request
// has a logger of its own and most write one line or none, while the handlers of log/slog
// format what they are given at once. A [slog.LogValuer] is therefore resolved with the line.
//
// A record waits only where nobody can change what it says: one with an attribute that is
// neither a text, a number, a time nor a truth value is formatted where it is logged.
func (w *Writer) Handler(form func(io.Writer) slog.Handler) slog.Handler {
	return &handler{to: w, now: form(w), later: form(&w.lines)}
}

// A handler has a record formatted now or later; both write the same.
type handler struct {
	to         *Writer
	now, later slog.Handler
	carried    []slog.Attr
	changing   bool // something that is carried can change
}

// Enabled implements [slog.Handler].
func (h *handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.now.Enabled(ctx, level)
}

// Handle implements [slog.Handler].
func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	changes := h.changing
	r.Attrs(func(a slog.Attr) bool {
		changes = changes || mayChange(a)
		return !changes
	})
	if !changes && h.to.record(h, &r) {
		return nil
	}
	if len(h.carried) == 0 {
		return h.now.Handle(ctx, r)
	}
	whole := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	whole.AddAttrs(h.carried...)
	r.Attrs(func(a slog.Attr) bool {
		whole.AddAttrs(a)
		return true
	})
	return h.now.Handle(ctx, whole)
}

// record puts a record behind. It returns false once the writer is closed.
func (w *Writer) record(h *handler, r *slog.Record) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	room, open := w.waitForRoom()
	if room {
		w.behind.record(h.later, h.carried, r)
	}
	return open
}

// mayChange reports whether what an attribute says may become something else.
func mayChange(a slog.Attr) bool {
	switch a.Value.Kind() {
	case slog.KindAny, slog.KindLogValuer, slog.KindGroup:
		return true
	}
	return false
}

// WithAttrs implements [slog.Handler].
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := *h
	if with.carried = slices.Clip(attrs); len(h.carried) > 0 {
		with.carried = slices.Concat(h.carried, attrs)
	} // otherwise they are the handler's now
	with.changing = h.changing || slices.ContainsFunc(attrs, mayChange)
	return &with
}

// WithGroup implements [slog.Handler]: what comes later stands in the group, and what is
// carried does not.
func (h *handler) WithGroup(name string) slog.Handler {
	return &handler{to: h.to, now: h.now.WithAttrs(h.carried).WithGroup(name), later: h.later.WithAttrs(h.carried).WithGroup(name)}
}
