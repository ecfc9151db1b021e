package session

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/state/park"
)

// Bounds of what waits for answers.
const (
	maxState     = 64 << 10        // size of a sealed state, in bytes
	askLife      = 5 * time.Minute // how long questions stand that do not say
	askedOfOne   = 16              // calls of one caller that wait at their servers
	askedOfAll   = 256             // of all callers
	processBytes = 8
)

// A seal makes the outermost toolset: the one place where the state of a call
// that asks is sealed before it leaves us, and opened when it comes back. A state
// is good for the caller, the method, the target as it was, and the arguments
// that it was given to, until it expires; whoever brings anything else gets
// nowhere. Layers below find their own state as they left it.
type seal struct {
	process [processBytes]byte
	box     cipher.AEAD
	held    park.Lot[heldCall] // calls that wait at their servers, by sealed state
}

// heldCall is a call that waits at its server, as its caller made it, with the
// state that the layers below gave it.
type heldCall struct {
	tools dragoman.Toolset
	call  dragoman.Call
	state []byte
	ran   dragoman.Ran
}

func newSeal() *seal {
	var key [32]byte
	s := &seal{held: park.Lot[heldCall]{Total: askedOfAll, Each: askedOfOne}}
	_, _ = rand.Read(key[:]) // it never fails
	_, _ = rand.Read(s.process[:])
	block, err := aes.NewCipher(key[:])
	if err == nil {
		s.box, err = cipher.NewGCM(block)
	}
	if err != nil {
		panic("session: " + err.Error()) // the size of the key is right
	}
	return s
}

func (s *seal) around(caller string, inner dragoman.Toolset) dragoman.Toolset {
	return &sealed{inner, s, caller}
}

type sealed struct {
	dragoman.Toolset
	seal   *seal
	caller string
}

// Call opens the state that a continuation brings, and seals what the result
// asks to be brought.
func (t *sealed) Call(ctx context.Context, call dragoman.Call) (dragoman.Result, error) {
	bound := t.binding(&call)
	if call.Answers != nil {
		opened := *call.Answers
		var err error
		if opened.State, opened.Ran, err = t.seal.open(opened.State, bound); err != nil {
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
	here := heldCall{t.Toolset, call, asks.State, res.Ran}
	asks.State = t.seal.close(asks.State, res.Ran, asks.Expires, bound)
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
// the room of nobody, and least of all their own for the next five minutes.
func (t *sealed) hold(ctx context.Context, state string, call heldCall, d time.Duration) bool {
	if t.seal.held.Park(t.caller, state, call, d) {
		return true
	}
	oldest, ok := t.seal.held.TakeOldest(t.caller)
	if !ok {
		return false
	}
	oldest.giveUp(ctx)
	return t.seal.held.Park(t.caller, state, call, d)
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
	h := sha256.New()
	add := func(part []byte) {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		h.Write(size[:])
		h.Write(part)
	}
	add([]byte(t.caller))
	add([]byte(call.Method))
	switch {
	case call.Tool != nil:
		add(call.Tool.Pin[:])
	case call.Entry != nil:
		pin := dragoman.Pin(call.Entry.Server, call.Entry.Original, call.Entry.Definition)
		add(pin[:])
	default:
		add([]byte(call.Server))
	}
	add(call.Arguments)
	return h.Sum(nil)
}

// Why a state is of no use.
var (
	errForeign = errors.New("another process keeps the call")
	errForged  = errors.New("the state was not given to this call")
	errExpired = errors.New("the questions have expired")
)

// refused is the result of a continuation whose state is of no use.
func refused(err error) dragoman.Result {
	p := &dragoman.Problem{Code: dragoman.CodeDenied, Message: "The answers do not belong to this call, so it was not continued.", Err: err}
	ran := dragoman.RanNot
	switch {
	case errors.Is(err, errForeign):
		ran = dragoman.RanMaybe
		p.Code, p.Message = dragoman.CodeUnknownOutcome, "The call that the answers are for is not known here any more. It may or may not have taken effect: check before you repeat it."
	case errors.Is(err, errExpired):
		ran = dragoman.RanMaybe
		p.Code, p.Message = dragoman.CodeUnanswered, "The answers came too late. The call may or may not have taken effect: check before you repeat it."
	}
	return dragoman.Result{Problem: p, Ran: ran}
}

// close seals a state: the process that keeps the call, a nonce, and sealed to
// bound the expiry in milliseconds, what earlier legs did, and the state.
func (s *seal) close(state []byte, ran dragoman.Ran, expires time.Time, bound []byte) []byte {
	plain := make([]byte, 9, 9+len(state))
	binary.BigEndian.PutUint64(plain, uint64(expires.UnixMilli()))
	plain[8] = byte(ran)
	plain = append(plain, state...)
	out := make([]byte, processBytes+s.box.NonceSize(), processBytes+s.box.NonceSize()+len(plain)+s.box.Overhead())
	copy(out, s.process[:])
	nonce := out[processBytes:]
	_, _ = rand.Read(nonce)
	return s.box.Seal(out, nonce, plain, bound)
}

func (s *seal) open(sealed, bound []byte) (state []byte, ran dragoman.Ran, err error) {
	if len(sealed) > maxState || len(sealed) < processBytes+s.box.NonceSize() {
		return nil, 0, errForged
	}
	if !bytes.Equal(sealed[:processBytes], s.process[:]) {
		return nil, 0, errForeign
	}
	nonce, rest := sealed[processBytes:processBytes+s.box.NonceSize()], sealed[processBytes+s.box.NonceSize():]
	plain, err := s.box.Open(nil, nonce, rest, bound)
	if err != nil || len(plain) < 9 {
		return nil, 0, errForged
	}
	if time.Now().UnixMilli() > int64(binary.BigEndian.Uint64(plain)) {
		return nil, 0, errExpired
	}
	return plain[9:], dragoman.Ran(plain[8]), nil
}
