package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/session"
	"github.com/dragoman-mcp/dragoman/internal/state/run"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
	kept "github.com/dragoman-mcp/dragoman/internal/state/stored"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/memory"
	"github.com/dragoman-mcp/dragoman/openai/model"
	"github.com/dragoman-mcp/dragoman/openai/responses"
)

// noHeartbeat is for conversations whose client is a tape, which needs no signs of life.
const noHeartbeat = 24 * time.Hour

// A tape is what a response in the background says, and what it has from others: what a
// model answered and what a call came to are kept before anything is done with it, and
// played when the conversation is made again. It stands between the conversation and its
// client, which is the [run.Held], its model and its tools.
type tape struct {
	held *run.Held
	ctx  context.Context

	played [][]byte // events that were said before this conversation, which says them again
	events int      // that it has said
	frame  []byte   // the beginning of one
	header http.Header
	status int
	body   bytes.Buffer // of an answer that is no stream

	last     [][]byte            // the events that tell the end, which are said with it
	final    *responses.Stored   // how it ended; nil where it did not end well
	addition *responses.Addition // what it adds to its conversation; nil with final
	failed   json.RawMessage     // the response that the conversation told to have failed
	differs  bool                // it does not say what was said before
	spoken   bool                // since a model said something else

	models int  // answers of models that were kept, or played
	live   bool // what a model says comes from it, and not from what was kept

	mu      sync.Mutex
	idle    sync.Cond
	active  int               // calls that run
	waiting int               // calls for which the run is about to wait: none begins any more
	times   map[string]int    // how often a call was made, by what it is
	steps   map[string]string // the steps of calls, by their ids
}

func newTape(ctx context.Context, held *run.Held) (*tape, error) {
	t := &tape{held: held, ctx: ctx, header: http.Header{}, times: map[string]int{}, steps: map[string]string{}}
	t.idle.L = &t.mu
	context.AfterFunc(held.Context(), func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.idle.Broadcast()
	})
	err := error(nil)
	t.played, err = held.Said(held.Context()) // also where its caller has ended
	t.events = min(2, len(t.played))          // those that say that it was begun
	return t, err
}

// goesOn reports whether the response was said in part, and is made again.
func (t *tape) goesOn() bool { return len(t.played) > 2 }

// left is why the run is had no more, such as that it waits or was cancelled: nothing has
// failed then. It is nil while the run is had, and for a nil tape.
func (t *tape) left() error {
	if t == nil {
		return nil
	}
	return context.Cause(t.held.Context())
}

// away is the error for a server of which something was said, and that has nothing to offer
// now, such as after a restart: without its tools the response cannot be made again. It is nil
// where there is none, as for a nil tape.
func (t *tape) away(missing []dragoman.Server) error {
	if t == nil || len(missing) == 0 {
		return nil
	}
	said := map[string]bool{}
	for _, event := range t.played {
		label, _ := rawjson.String(rawjson.Find(rawjson.Find(event, "item"), "server_label"))
		said[label] = true
	}
	for _, s := range missing {
		if said[s.Label] {
			return &session.ServerError{Server: s}
		}
	}
	return nil
}

// tapeOf returns the tape of a request; nil where its client waits for it.
func tapeOf(request asking) *tape {
	q, _ := request.(responsesAsking)
	return q.tape
}

// Header implements [http.ResponseWriter].
func (t *tape) Header() http.Header { return t.header }

// WriteHeader implements [http.ResponseWriter].
func (t *tape) WriteHeader(status int) { t.status = status }

// SetWriteDeadline is for [http.ResponseController].
func (*tape) SetWriteDeadline(time.Time) error { return nil }

// FlushError is for [http.ResponseController].
func (*tape) FlushError() error { return nil }

var errDiffers = errors.New("the conversation does not say what it said before")

// Write implements [http.ResponseWriter]: it takes a stream of events apart.
func (t *tape) Write(p []byte) (int, error) {
	if t.status >= 400 {
		return t.body.Write(p)
	}
	if err := context.Cause(t.held.Context()); err != nil {
		return 0, err
	}
	t.frame = append(t.frame, p...)
	for {
		frame, rest, ok := bytes.Cut(t.frame, []byte("\n\n"))
		if !ok {
			return len(p), nil
		}
		if err := t.event(frame); err != nil {
			t.differs = true
			return 0, err
		}
		t.frame = append(t.frame[:0], rest...)
	}
}

// event takes one event of the stream.
func (t *tape) event(frame []byte) error {
	for line := range bytes.Lines(frame) {
		data, ok := bytes.CutPrefix(bytes.TrimRight(line, "\n"), []byte("data: "))
		if !ok || string(data) == "[DONE]" {
			continue
		}
		n := t.events
		t.events++
		if n < len(t.played) {
			if was := shapeOf(t.played[n]); was != shapeOf(data) {
				t.spoken = t.live && !strings.HasPrefix(was.item, "mcp") // calls are shown once what the model said is kept
				return errDiffers
			}
			continue
		}
		data = bytes.Clone(data)
		switch shapeOf(data).kind {
		case "response.failed":
			if o, err := rawjson.ParseObject(data); err == nil {
				t.failed = o.Get("response")
			}
			t.last = append(t.last, data)
		case "response.completed", "response.incomplete", "error":
			t.last = append(t.last, data) // who hears of the end may go on at once
		default:
			t.held.Say(data)
		}
	}
	return nil
}

// A shape is what two events have in common that say the same. What is sealed is never
// twice the same.
type shape struct{ kind, item, index, text string }

func shapeOf(event []byte) (s shape) {
	o, err := rawjson.ParseObject(event)
	if err != nil {
		return s
	}
	s.kind, _ = rawjson.String(o.Get("type"))
	s.item, _ = rawjson.String(o.Get("item_id"))
	s.index = string(o.Get("output_index"))
	for _, member := range []string{"delta", "text", "arguments"} {
		s.text += string(o.Get(member))
	}
	if item := o.Get("item"); item != nil {
		s.item = idOf(item)
	}
	return s
}

// failure is what the conversation told of its failure, in the stream or in place of it; nil
// where it told none.
func (t *tape) failure() error {
	told := []byte(t.failed)
	if told == nil {
		if t.status < 400 {
			return nil
		}
		told = t.body.Bytes()
	}
	e := &model.Error{Status: t.status, Type: model.TypeServer, Code: "server_error", Message: http.StatusText(t.status)}
	if body, err := rawjson.ParseObject(told); err == nil {
		if o, err := rawjson.ParseObject(body.Get("error")); err == nil {
			for name, to := range map[string]*string{"code": &e.Code, "message": &e.Message, "type": &e.Type} {
				if s, ok := rawjson.String(o.Get(name)); ok && s != "" {
					*to = s
				}
			}
		}
	}
	return e
}

// store returns a store of responses whose response is written down with the end of the
// run, and that lets a run use again what it has used itself.
func (t *tape) store(s responses.Store) responses.Store { return &tapedStore{s, t} }

type tapedStore struct {
	responses.Store
	tape *tape
}

// Put implements [responses.Store].
func (s *tapedStore) Put(_ context.Context, _ string, r *responses.Stored) error {
	s.tape.final = r
	return nil
}

// Spend implements [responses.Store]. A run that is repeated is the first again, where it
// was: whether the call ran then, its step says.
func (s *tapedStore) Spend(ctx context.Context, caller, id string) (first bool, err error) {
	name := "spent " + id
	before, err := s.tape.step(ctx, name)
	if err != nil || before != nil {
		return err == nil, err
	}
	together, ok := s.Store.(kept.Transactional)
	if !ok {
		if first, err = s.Store.Spend(ctx, caller, id); err == nil && first {
			err = s.tape.keep(ctx, name, []byte("x"))
		}
		return first && err == nil, err
	}
	err = s.tape.held.KeepWith(ctx, name, []byte("x"), func(tx *store.Tx) error {
		if first, err = together.SpendIn(tx, caller, id); err == nil && !first {
			err = errSpent
		}
		return err
	})
	if errors.Is(err, errSpent) {
		return false, nil
	}
	return first && err == nil, s.tape.needed(ctx, err)
}

var errSpent = errors.New("it was used before")

// once returns what a step keeps, and keeps a value where it keeps none.
func (t *tape) once(ctx context.Context, name, value string) (string, error) {
	before, err := t.step(ctx, name)
	if err != nil || before != nil {
		return string(before), err
	}
	return value, t.keep(ctx, name, []byte(value))
}

// step returns what a step keeps; nil where there is none.
func (t *tape) step(ctx context.Context, name string) ([]byte, error) {
	document, err := t.held.Step(ctx, name)
	return document, t.needed(ctx, err)
}

// keep keeps a step.
func (t *tape) keep(ctx context.Context, name string, document []byte) error {
	return t.needed(ctx, t.held.Keep(ctx, name, document))
}

// needed gives the run up where the store failed: the response is gone on with once its lease
// is over, as where its process died.
func (t *tape) needed(ctx context.Context, err error) error {
	if err != nil && ctx.Err() == nil {
		t.held.GiveUp(err)
	}
	return err
}

// add takes what the response adds to its conversation, which is written down with the end
// of the run.
func (t *tape) add(_ context.Context, addition *responses.Addition) error {
	t.addition = addition
	return nil
}

// memory returns a memory of conversations that keeps nothing of one that goes on later.
func (t *tape) memory(m memory.Store) memory.Store { return &tapedMemory{m, t} }

type tapedMemory struct {
	memory.Store
	tape *tape
}

// Keep implements [memory.Store].
func (m *tapedMemory) Keep(ctx context.Context, owner string, keys []string, turn *memory.Turn) error {
	if m.tape.held.Context().Err() != nil {
		return nil
	}
	return m.Store.Keep(ctx, owner, keys, turn)
}
