package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/judge/policy"
	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
	"github.com/dragoman-mcp/dragoman/internal/state/idempotency"
	"github.com/dragoman-mcp/dragoman/internal/state/run"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
	kept "github.com/dragoman-mcp/dragoman/internal/state/stored"
	"github.com/dragoman-mcp/dragoman/openai/model"
	"github.com/dragoman-mcp/dragoman/openai/responses"
)

// A response in the background is a run: its request is written down and answered at once,
// and a conversation makes it that nobody waits for, with what it says going to a [tape].
// Whoever takes the run after its process died, or once what it waited for has come,
// makes the same conversation again with what is on the tape, up to where that ends.

// maxAttempts is how often processes may die with a run until it is given up.
const maxAttempts = 3

// A queued response is what a run is made of.
type queued struct {
	Body  json.RawMessage `json:"body"`
	Query string          `json:"query,omitempty"`
	// Header is what may be written down of the request's, and Lent says that the client's
	// own credentials, which may not be, went to the upstream.
	Header  http.Header      `json:"header,omitempty"`
	Lent    bool             `json:"lent,omitempty"`
	Caller  caller.Caller    `json:"caller"`
	Request string           `json:"request"` // its id in logs
	Begun   *responses.Begun `json:"begun"`
	// Before is what it goes on from, as it was when it came; nil for nothing.
	Before *responses.Before `json:"before,omitempty"`
}

// An admitted run is one that this process was asked for: what goes with it no further.
type admitted struct {
	leave  func()
	header http.Header // with what is not written down
}

// background answers a request for a response that its client does not wait for.
func (a *API) background(w http.ResponseWriter, r *http.Request, who caller.Caller, request *responses.Request, again *idempotency.Run) error {
	runs, err := a.runs()
	if err != nil {
		return err
	}
	said := responsesAsking{Request: request, api: a}.about()
	if _, err := said.withheld(http.Header{}); err != nil {
		return err
	}
	if _, err := said.want(); err != nil {
		return err
	}
	up, err := a.upstream(said.model)
	if err != nil {
		return err
	}
	leave, err := a.admit(r.Context(), who, policy.Model, said.model)
	if err != nil {
		return err
	}
	q := &queued{Body: request.Plain(), Query: r.URL.RawQuery, Header: upstream.Lasting(r.Header), Lent: a.clientCredentials() && up.Lends(r.Header), Caller: who, Request: model.NewRequestID(), Begun: responses.NewBegun()}
	stored, events := q.Begun.Queue(request)
	if err := a.enqueue(r.Context(), who.ID, request, stored); err != nil {
		leave()
		return err
	}
	q.Before = request.Before()
	document, err := json.Marshal(q)
	if err != nil {
		leave()
		return err
	}
	a.State.admitted.Store(stored.ID, admitted{leave, r.Header.Clone()})
	held, err := runs.Begin(r.Context(), run.New{
		Owner: who.ID, ID: stored.ID, Label: said.model, Document: document, Events: events,
		Also: func(tx *store.Tx) error {
			if claim := claiming(again); claim != nil {
				if err := claim(tx); err != nil {
					return err
				}
			}
			if err := a.stayIn(tx, who.ID, stored); err != nil {
				return err
			}
			return a.putIn(tx, who.ID, stored)
		},
	})
	if err == nil {
		if err = errors.Join(a.putBeside(r.Context(), who.ID, stored), a.stayBeside(r.Context(), who.ID, stored)); err != nil {
			err = errors.Join(err, a.unbegin(r.Context(), runs, who.ID, stored.ID))
		}
	}
	if err != nil || held == nil {
		a.State.let(stored.ID)
	}
	if err != nil {
		if stored.Conversation != "" && !errors.Is(err, store.ErrUnknown) {
			a.release(r.Context(), who.ID, stored.Conversation, stored.ID)
		}
		return err
	}
	again.Changed, again.Answered = true, true
	if held != nil {
		runs.Go(held)
	}
	w.Header().Set(wireHeader, wayName(responsesAsking{Request: request}.way()))
	if request.Stream {
		return a.follow(w, r, who.ID, stored.ID)
	}
	writeJSON(w, stored.Response)
	return nil
}

// unbegin forgets a run that was begun, and of which nobody is told.
func (a *API) unbegin(ctx context.Context, runs *run.Runs, who, id string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ending)
	defer cancel()
	_, err := a.State.Responses.Delete(ctx, who, id)
	return errors.Join(err, runs.Delete(ctx, who, id, nil))
}

// enqueue lets a response in the background have its turn in its conversation, as that is
// then.
func (a *API) enqueue(ctx context.Context, who string, request *responses.Request, s *responses.Stored) error {
	if s.Conversation == "" {
		return nil
	}
	if err := a.mayJoin(ctx, who, request); err != nil { // before it waits
		return err
	}
	if err := a.await(ctx, who, s.Conversation, s.ID, claimLife); err != nil {
		return inWords(err, s.Conversation, "conversation")
	}
	err := a.mayJoin(ctx, who, request)
	if err != nil {
		a.release(ctx, who, s.Conversation, s.ID)
	}
	return err
}

// let forgets what goes with a run that this process was asked for.
func (s *State) let(id string) {
	if with, ok := s.admitted.LoadAndDelete(id); ok {
		with.(admitted).leave()
	}
}

// putIn keeps a response in a transaction of its run, where it is kept in the same store;
// putBeside where it is not.
func (a *API) putIn(tx *store.Tx, who string, s *responses.Stored) error {
	if in, ok := a.State.Responses.(kept.Transactional); ok {
		return in.PutIn(tx, who, s)
	}
	return nil
}

func (a *API) putBeside(ctx context.Context, who string, s *responses.Stored) error {
	if _, ok := a.State.Responses.(kept.Transactional); ok {
		return nil
	}
	return a.State.Responses.Put(context.WithoutCancel(ctx), who, s)
}

// runs returns where runs are kept.
func (a *API) runs() (*run.Runs, error) {
	if a.State.Runs == nil || a.State.Responses == nil {
		return nil, model.Invalid("background", "Responses are not made in the background here: leave \"background\" out.")
	}
	return a.State.Runs()
}

// detached returns the context of what a caller lets run and does not wait for.
func (a *API) detached(ctx context.Context, who caller.Caller, fresh bool) (context.Context, func()) {
	if a.Detached == nil {
		return ctx, func() {}
	}
	return a.Detached(ctx, who, fresh)
}

// step names what a call of a run keeps: the tool, its arguments, and which of equal ones
// it is.
func step(tool string, arguments json.RawMessage, n int) string {
	sum := sha256.Sum256(append([]byte(tool+"\x00"), arguments...))
	return fmt.Sprintf("call %s %d", hex.EncodeToString(sum[:12]), n)
}
