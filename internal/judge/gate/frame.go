package gate

import (
	"github.com/dragoman-mcp/dragoman"
)

// A frame is what this layer keeps in the state of a call that asks: an approval
// that is waited for, or, where the call has begun, the one that it was begun with,
// if any, the leg that comes next, and the state of the layer below. The session
// seals it, so that it comes back as it was, to the same call of the same caller.
type frame struct {
	began    bool
	approval string
	leg      string // of a call that goes on once; empty where it may go on often
	inner    []byte
}

// The first byte of a frame.
const (
	frameWaits = 'w'
	frameBegan = 'b'
)

func (f frame) bytes() []byte {
	kind := byte(frameWaits)
	if f.began {
		kind = frameBegan
	}
	b := append([]byte{kind, byte(len(f.approval)), byte(len(f.leg))}, f.approval...)
	return append(append(b, f.leg...), f.inner...)
}

// unframe reads a frame. Whatever is none came past this layer, and is refused.
func unframe(state []byte) (f frame, ok bool) {
	const head = 3
	if len(state) < head || state[0] != frameWaits && state[0] != frameBegan || len(state) < head+int(state[1])+int(state[2]) {
		return f, false
	}
	approval, rest := state[head:head+int(state[1])], state[head+int(state[1]):]
	f.began = state[0] == frameBegan
	f.approval, f.leg, f.inner = string(approval), string(rest[:state[2]]), rest[state[2]:]
	return f, f.began || f.approval != "" && f.leg == "" && len(f.inner) == 0
}

// wrapped returns the result of a call that has begun, with what it asks framed.
// A call that may change something, or that somebody approved, goes on once: the
// next leg is written down here and crossed out when it comes.
func (t *gated) wrapped(call *dragoman.Call, res dragoman.Result, approval string) dragoman.Result {
	if res.Asks == nil || res.Asks.Deferred() {
		return res
	}
	f := frame{began: true, approval: approval, inner: res.Asks.State}
	if changes(call) || approval != "" {
		f.leg = t.remembered.leg(t.who.Caller.ID)
	}
	asks := *res.Asks
	asks.State = f.bytes()
	res.Asks = &asks
	return res
}
