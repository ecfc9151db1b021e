package meter

import (
	"bytes"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// lines are those of a stream, of which none is held back that is complete.
type lines struct {
	ready   []byte // what can be passed on; it is gone with the next add
	held    []byte // the beginning of a line
	dropped bool   // the last line was, and so is the blank one that ends its event
}

// maxLine is the longest line that is looked at, in bytes; a longer one is passed on
// in pieces, unread.
const maxLine = 4 << 20

// add takes what arrived, which may be all, and passes each line that is complete to
// keep, which returns it or what takes its place; nil drops its event.
func (l *lines) add(part []byte, all bool, keep func(line []byte) []byte) {
	l.ready = l.ready[:0]
	for {
		end := bytes.IndexByte(part, '\n') + 1
		l.held = append(l.held, part[:end]...)
		if part = part[end:]; end == 0 {
			break
		}
		l.pass(keep)
	}
	l.held = append(l.held, part...)
	switch {
	case all:
		l.pass(keep)
	case len(l.held) > maxLine:
		l.ready, l.held = append(l.ready, l.held...), l.held[:0]
	}
}

func (l *lines) pass(keep func(line []byte) []byte) {
	line := l.held
	l.held = l.held[:0]
	if l.dropped && len(bytes.TrimRight(line, "\r\n")) == 0 {
		l.dropped = false
		return
	}
	kept := keep(line)
	l.dropped = kept == nil && len(line) > 0
	l.ready = append(l.ready, kept...)
}

// line counts a line of a stream, and takes the usage out of it that the client did
// not ask for.
func (a *answer) line(line []byte) []byte {
	data, ok := bytes.CutPrefix(line, []byte("data:"))
	data = bytes.TrimSpace(data)
	switch {
	case !ok || len(data) == 0:
		return line
	case string(data) == "[DONE]": // whoever reads it may not read on
		a.whole = true
		return line
	}
	a.sum.event(data)
	if !a.hide || !bytes.Contains(data, []byte(`"usage"`)) {
		return line
	}
	o, err := rawjson.ParseObject(data)
	if err != nil || o.Get("usage") == nil {
		return line
	}
	if choices, err := rawjson.Elements(o.Get("choices")); err == nil && len(choices) == 0 && !rawjson.IsNull(o.Get("usage")) {
		return nil // it is there for nothing else
	}
	o.Delete("usage")
	at := bytes.Index(line, data)
	return append(append(bytes.Clone(line[:at]), o.Bytes()...), line[at+len(data):]...)
}
