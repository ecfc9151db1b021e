package logbuffer

import (
	"bytes"
	"context"
	"log/slog"
	"time"
)

// A queue is what waits to be written, in order. Its room is used again.
type queue struct {
	entries []entry
	bytes   []byte      // what was written by those of them that have no form
	attrs   []slog.Attr // of those that do
	size    int         // in bytes; 0 only where there is nothing
}

// An entry is one record, or some bytes.
type entry struct {
	form    slog.Handler // formats the record; nil for bytes
	time    time.Time
	level   slog.Level
	message string
	pc      uintptr
	end     int // of its attributes, or of its bytes, in those of the queue
}

// write puts bytes behind.
func (q *queue) write(p []byte) {
	q.bytes = append(q.bytes, p...)
	q.size += max(len(p), 1)
	if last := len(q.entries) - 1; last >= 0 && q.entries[last].form == nil {
		q.entries[last].end = len(q.bytes)
		return
	}
	q.entries = append(q.entries, entry{end: len(q.bytes)})
}

// record puts a record behind, with attributes before its own.
func (q *queue) record(form slog.Handler, carried []slog.Attr, r *slog.Record) {
	begin := len(q.attrs)
	q.attrs = append(q.attrs, carried...)
	r.Attrs(func(a slog.Attr) bool {
		q.attrs = append(q.attrs, a)
		return true
	})
	q.size += 64 + len(r.Message)
	for _, a := range q.attrs[begin:] {
		q.size += 16 + len(a.Key)
		if a.Value.Kind() == slog.KindString {
			q.size += len(a.Value.String())
		}
	}
	q.entries = append(q.entries, entry{form, r.Time, r.Level, r.Message, r.PC, len(q.attrs)})
}

// format writes all of it to lines, to which the forms of its records write.
func (q *queue) format(lines *bytes.Buffer) {
	written, said := 0, 0
	for i := range q.entries {
		e := &q.entries[i]
		if e.form == nil {
			lines.Write(q.bytes[written:e.end])
			written = e.end
			continue
		}
		r := slog.NewRecord(e.time, e.level, e.message, e.pc)
		r.AddAttrs(q.attrs[said:e.end]...) // which copies them
		said = e.end
		_ = e.form.Handle(context.Background(), r)
	}
}

// empty returns the queue's room, without what was in it.
func (q *queue) empty() queue {
	clear(q.entries)
	clear(q.attrs)
	return queue{entries: q.entries[:0], bytes: q.bytes[:0], attrs: q.attrs[:0]}
}
