package gate

import (
	"crypto/rand"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/state/frame"
)

// A passage is what this layer keeps in the state of a call that asks: an approval that
// is waited for, or, where the call has begun, the one that it was begun with, if any, the
// leg that comes next, and the state of the layer below. The session seals it, so that it
// comes back as it was, to the same call of the same caller.
type passage struct {
	began    bool
	approval string
	leg      string // of a call that goes on once; empty where it may go on often
	inner    []byte
}

func (p passage) bytes() []byte {
	return frame.Frame{Began: p.began, Fields: []string{p.approval, p.leg}, Inner: p.inner}.Bytes()
}

// passed reads the passage of a call. Whatever is none came past this layer, and is
// refused.
func passed(state []byte) (p passage, ok bool) {
	f, ok := frame.Read(state, 2)
	if !ok {
		return p, false
	}
	p = passage{f.Began, f.Fields[0], f.Fields[1], f.Inner}
	return p, p.began || p.approval != "" && p.leg == ""
}

// wrapped returns the result of a call that has begun, with what it asks framed.
// A call that may change something, or that somebody approved, goes on once: the
// next leg is written down here and crossed out when it comes.
func (t *gated) wrapped(call *dragoman.Call, res dragoman.Result, approval string) dragoman.Result {
	if res.Asks == nil || res.Asks.Deferred() {
		return res
	}
	p := passage{began: true, approval: approval, inner: res.Asks.State}
	if changes(call) || approval != "" {
		p.leg = rand.Text()
		t.legs.Put(t.who.Caller.ID, p.leg, struct{}{}, int64(len(p.leg)))
	}
	asks := *res.Asks
	asks.State = p.bytes()
	res.Asks = &asks
	return res
}
