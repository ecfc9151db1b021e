package logbuffer

import (
	"context"
	"log/slog"
	"time"
)

// Line logs what [slog.Logger.LogAttrs] does, but for where in the program that is said:
// finding it out costs more than the rest of a line, and no log of the gateway has it. It is
// for lines that each request has.
func Line(ctx context.Context, log *slog.Logger, level slog.Level, message string, attrs ...slog.Attr) {
	h := log.Handler()
	if !h.Enabled(ctx, level) {
		return
	}
	r := slog.NewRecord(time.Now(), level, message, 0)
	r.AddAttrs(attrs...)
	_ = h.Handle(ctx, r)
}
