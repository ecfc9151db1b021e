package session

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/state/park"
	"github.com/dragoman-mcp/dragoman/internal/state/seal"
)

// Bounds of what waits for answers.
const (
	maxState     = 64 << 10        // size of a sealed state, in bytes
	askLife      = 5 * time.Minute // how long questions stand that do not say
	askedOfOne   = 16              // calls of one caller that wait at their servers
	askedOfAll   = 256             // of all callers
	processBytes = 8
)

// seals make the outermost toolset: the one place where the state of a call
// that asks is sealed before it leaves us, and opened when it comes back. A state
// is good for the caller, the method, the target as it was, and the arguments
// that it was given to, until it expires; whoever brings anything else gets
// nowhere. Layers below find their own state as they left it.
//
// What waits at its server waits in one process: its state names that one, and is of
// no use to others, unless the layers below hand it on. Every other state is good wherever
// the ring of keys is the same.
type seals struct {
	ring    *seal.Ring
	relayed bool // they do
	process [processBytes]byte
	held    park.Lot[heldCall] // calls that wait at their servers, by sealed state
}

// heldCall is a call that waits at its server, as its caller made it, with the
// state that the layers below gave it.
type heldCall struct {
	tools dragoman.Toolset
	call  dragoman.Call
	state []byte
	ran   dragoman.Ran
	over  <-chan struct{} // closed when it waits no more; nil where nothing tells
}

// waitsNoMore reports that a call has gone on, which it may have at another replica.
func (h heldCall) waitsNoMore() bool {
	select {
	case <-h.over:
		return true
	default:
		return false
	}
}

func newSeals(ring *seal.Ring) *seals {
	if ring == nil {
		ring = seal.New()
	}
	s := &seals{ring: ring, held: park.Lot[heldCall]{Total: askedOfAll, Each: askedOfOne}}
	_, _ = rand.Read(s.process[:]) // it never fails
	return s
}

func (s *seals) around(caller string, inner dragoman.Toolset) dragoman.Toolset {
	return &sealed{inner, s, caller}
}

type sealed struct {
	dragoman.Toolset
	seal   *seals
	caller string
}

// Call opens the state that a continuation brings, and seals what the result
// asks to be brought.
func (t *sealed) Call(ctx context.Context, call dragoman.Call) (dragoman.Result, error) {
	if call.Answers != nil {
		opened := *call.Answers
		var err error
		if opened.State, opened.Ran, err = t.seal.open(opened.State, t.binding(&call)); err != nil {
			res := refused(err)
			res.Ran = res.Ran.After(call.Answers)
			return res, nil
		}
		t.seal.held.Take(string(call.Answers.State))
		call.Answers = &opened
	}
	res, err := t.Toolset.Call(ctx, call)
	res.Ran = res.Ran.After(call.Answers)
	if err != nil || res.Asks == nil || res.Asks.Deferred() {
		return res, err
	}
	asks := *res.Asks
	if asks.Expires.IsZero() {
		asks.Expires = time.Now().Add(askLife)
	}
	here := heldCall{t.Toolset, call, asks.State, res.Ran, asks.Withdrawn}
	asks.State = t.seal.close(&asks, res.Ran, t.binding(&call))
	if len(asks.State) > maxState || asks.Held && !t.hold(ctx, string(asks.State), here, time.Until(asks.Expires)) {
		here.giveUp(ctx)
		return dragoman.Result{Ran: res.Ran, Problem: &dragoman.Problem{
			Code:    dragoman.CodeUnanswered,
			Message: "The tool asked a question, but too many calls wait for answers already, so the call was given up.",
		}}, nil
	}
	res.Asks = &asks
	return res, nil
}

// hold keeps a call that waits at its server. Where the caller has as many of them
// as one may have, the oldest is given up: whoever left questions unanswered takes
// the room of nobody, and least of all their own for the next five minutes. Those that
// have gone on elsewhere take no room.
func (t *sealed) hold(ctx context.Context, state string, call heldCall, d time.Duration) bool {
	if t.seal.held.Park(t.caller, state, call, d) {
		return true
	}
	t.seal.held.Drop(heldCall.waitsNoMore)
	for !t.seal.held.Park(t.caller, state, call, d) {
		oldest, ok := t.seal.held.TakeOldest(t.caller)
		if !ok {
			return false
		}
		defer oldest.giveUp(ctx) // once its room is taken, which others want, too
	}
	return true
}

// giveUp ends a call whose questions nobody will answer.
func (h heldCall) giveUp(ctx context.Context) {
	h.call.Answers = &dragoman.Answers{State: h.state, Ran: h.ran, Gone: true}
	h.call.Progress, h.call.Notify = nil, nil
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_, _ = h.tools.Call(ctx, h.call)
}

// binding is what a state belongs to.
func (t *sealed) binding(call *dragoman.Call) []byte {
	target := []byte(call.Server)
	switch {
	case call.Tool != nil:
		target = call.Tool.Pin[:]
	case call.Entry != nil:
		pin := dragoman.Pin(call.Entry.Server, call.Entry.Original, call.Entry.Definition)
		target = pin[:]
	}
	return seal.Bind([]byte(t.caller), []byte(call.Method), target, call.Arguments)
}

// Why a state is of no use.
var (
	errElsewhere = errors.New("another process keeps the call")
	errTooLong   = errors.New("the state is longer than any that we give")
)

// refused is the result of a continuation whose state is of no use.
func refused(err error) dragoman.Result {
	p := &dragoman.Problem{Code: dragoman.CodeDenied, Message: "The answers do not belong to this call, so it was not continued.", Err: err}
	ran := dragoman.RanNot
	switch {
	case errors.Is(err, errElsewhere), errors.Is(err, seal.ErrForeign):
		ran = dragoman.RanMaybe
		p.Code, p.Message = dragoman.CodeUnknownOutcome, "The call that the answers are for is not known here any more. It may or may not have taken effect: check before you repeat it."
	case errors.Is(err, seal.ErrExpired):
		ran = dragoman.RanMaybe
		p.Code, p.Message = dragoman.CodeUnanswered, "The answers came too late. The call may or may not have taken effect: check before you repeat it."
	}
	return dragoman.Result{Problem: p, Ran: ran}
}

// Refused reports whether a call was not continued since the state that it brought is of no
// use: its time is over, or the tool is another one now.
func Refused(res *dragoman.Result) bool {
	p := res.Problem
	return p != nil && (errors.Is(p.Err, seal.ErrForeign) || errors.Is(p.Err, seal.ErrForged) || errors.Is(p.Err, seal.ErrExpired))
}

// close seals what earlier legs did, the process that keeps the call where one does, and
// the state.
func (s *seals) close(asks *dragoman.Asks, ran dragoman.Ran, bound []byte) []byte {
	plain := append(make([]byte, 0, 2+processBytes+len(asks.State)), byte(ran))
	if asks.Held && !s.relayed {
		plain = append(append(plain, 1), s.process[:]...)
	} else {
		plain = append(plain, 0)
	}
	return s.ring.Close(seal.Continuation, bound, append(plain, asks.State...), asks.Expires)
}

func (s *seals) open(sealed, bound []byte) (state []byte, ran dragoman.Ran, err error) {
	if len(sealed) > maxState {
		return nil, 0, errTooLong
	}
	plain, err := s.ring.Open(seal.Continuation, bound, sealed)
	if err != nil {
		return nil, 0, err
	}
	ran, held, state := dragoman.Ran(plain[0]), plain[1] == 1, plain[2:]
	if held {
		if !bytes.Equal(state[:processBytes], s.process[:]) {
			return nil, 0, errElsewhere
		}
		state = state[processBytes:]
	}
	return state, ran, nil
}
