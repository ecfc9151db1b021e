package gate

import (
	"github.com/dragoman-mcp/dragoman"
)

// A frame is what this layer keeps in the state of a call that asks: an approval
// that is waited for, or, where the call has begun, the one that it was begun with,
// if any, and the state of the layer below. The session seals it, so that it comes
// back as it was, to the same call of the same caller.
type frame struct {
	began    bool
	approval string
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
	b := append([]byte{kind, byte(len(f.approval))}, f.approval...)
	return append(b, f.inner...)
}

// unframe reads a frame. Whatever is none came past this layer, and is refused.
func unframe(state []byte) (f frame, ok bool) {
	if len(state) < 2 || state[0] != frameWaits && state[0] != frameBegan || len(state) < 2+int(state[1]) {
		return f, false
	}
	f.began = state[0] == frameBegan
	f.approval, f.inner = string(state[2:2+int(state[1])]), state[2+int(state[1]):]
	return f, f.began || f.approval != "" && len(f.inner) == 0
}

// wrapped returns the result of a call that has begun, with what it asks framed.
func wrapped(res dragoman.Result, approval string) dragoman.Result {
	if res.Asks == nil || res.Asks.Deferred() {
		return res
	}
	asks := *res.Asks
	asks.State = frame{began: true, approval: approval, inner: asks.State}.bytes()
	res.Asks = &asks
	return res
}
