package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/judge/policy"
	"github.com/dragoman-mcp/dragoman/internal/state/idempotency"
	"github.com/dragoman-mcp/dragoman/internal/state/run"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
	"github.com/dragoman-mcp/dragoman/internal/wire/retry"
	"github.com/dragoman-mcp/dragoman/openai/model"
	"github.com/dragoman-mcp/dragoman/openai/responses"
)

// Work makes the response of a run that this process has, with the door as it is now. It
// returns when the run is over, or is had no more.
func (s *State) Work(held *run.Held) {
	a := s.door.Load()
	if a == nil {
		_ = held.Release(context.Background())
		return
	}
	if err := a.work(held); err != nil && held.Context().Err() == nil {
		a.Log.Error("what became of a response in the background could not be written down, so that it is tried again", "response", held.ID, "error", err)
	}
}

// work makes the response of a run. An error says that the run is left without an end.
func (a *API) work(held *run.Held) error {
	with, _ := a.State.admitted.LoadAndDelete(held.ID)
	mine, here := with.(admitted)
	if here {
		defer mine.leave()
	}
	if held.Attempt > maxAttempts {
		return a.failed(held, nil, &model.Error{Type: model.TypeServer, Code: "server_error", Message: fmt.Sprintf("The processes that made the response died %d times, so it was given up.", held.Attempt)})
	}
	var q queued
	if err := json.Unmarshal(held.Document, &q); err != nil {
		return a.failed(held, nil, err)
	}
	request, err := a.parseResponses(q.Body)
	if err != nil {
		return a.failed(held, nil, err)
	}
	ctx, leave := a.detached(held.Context(), q.Caller, here)
	defer leave()
	t, err := newTape(ctx, held)
	if err != nil {
		return err
	}
	r := (&http.Request{Method: http.MethodPost, URL: &url.URL{Path: "/v1/responses", RawQuery: q.Query}, Header: q.Header, Body: http.NoBody}).WithContext(ctx)
	if here {
		r.Header = mine.header
		r.Header.Del(UsageHeader) // another process, which takes it up, has it no more
	}
	log := a.Log.With("response", held.ID).With(q.Caller.Logged()...)
	err = a.make(r, &q, request, t, here)
	switch why := context.Cause(held.Context()); {
	case errors.Is(why, run.ErrWaits), errors.Is(why, run.ErrStopped):
		log.Info("a response in the background goes on later", "why", why)
		return nil
	case why != nil:
		log.Info("a response in the background ends here", "why", why)
		return nil
	case t.final != nil:
		return a.over(held, outcomeOf(t.final), t.final, t.addition, t.last)
	}
	if err == nil {
		err = t.told(nil) // which is all there is
	}
	log.Warn("a response in the background failed", "error", err)
	return a.failed(held, t, err)
}

// make makes the response of a run. An error is still to be told.
func (a *API) make(r *http.Request, q *queued, request *responses.Request, t *tape, admitted bool) error {
	if err := context.Cause(r.Context()); err != nil {
		return err
	}
	if q.Lent && !admitted {
		return &model.Error{Type: model.TypeInvalidRequest, Code: "credentials_not_kept", Message: "The response was to be made with the key that its client sends to the model's API, which is not kept: it cannot be gone on with after a restart, in another process, or once it has waited. Ask once more."}
	}
	if err := a.before(r.Context(), q, request); err != nil {
		return err
	}
	if !admitted {
		leave, err := a.admit(r.Context(), q.Caller, policy.Model, request.Model)
		if later := laterThan(err); later > 0 {
			return t.held.Wait(r.Context(), "", later)
		}
		if err != nil {
			return err
		}
		defer leave()
	}
	request.Stream = true // events are always said
	err := a.respond(responsesWire, t, r, responsesAsking{Request: request, api: a, begun: q.Begun, tape: t}, q.Caller, &idempotency.Run{Claim: t.held.Fence})
	if later := laterThan(err); later > 0 && t.goesOn() {
		return t.held.Wait(r.Context(), "", later)
	}
	return err
}

// before puts what a request goes on from before its own items: as it was when it came, so
// that a response which is made again is the same, and waits for days, whatever becomes of
// that. Where nothing was found then, nothing is now, but by what a version before this one
// wrote down.
func (a *API) before(ctx context.Context, q *queued, request *responses.Request) error {
	if q.Before != nil {
		return request.GoOnFrom(q.Before)
	}
	err := request.Resolve(ctx, a.State.Responses, q.Caller.ID)
	if err == nil {
		err = a.mayJoin(ctx, q.Caller.ID, request)
	}
	return err
}

// laterThan is how long to wait before a caller is let in whom a limit does not now, or a
// response is gone on with whose servers are not there now; zero where waiting does not help,
// or there is nothing to wait for.
func laterThan(err error) time.Duration {
	e, ok := model.AsError(err)
	if err == nil || !ok || e.Header.Get("X-Should-Retry") == "false" {
		return 0
	}
	wait, err := retry.After(e.Header.Get("Retry-After"), time.Second)
	if err != nil {
		return 0
	}
	return min(max(wait, time.Second), longestWait)
}

// longestWait is how long a response waits at most before it is tried again, whatever it is
// asked to.
const longestWait = 24 * time.Hour

func outcomeOf(s *responses.Stored) string {
	switch status := s.Status(); status {
	case run.Completed, run.Incomplete, run.Cancelled:
		return status
	}
	return run.Failed
}

// over writes down what became of a run, with its last events and what it adds to its
// conversation, in one transaction. A response that is kept elsewhere, in memory, is there
// before anybody can hear of the end: who then asked for it would take it for lost.
func (a *API) over(held *run.Held, outcome string, s *responses.Stored, addition *responses.Addition, last [][]byte) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(held.Context()), ending)
	defer cancel()
	err := held.End(ctx, outcome, func(tx *store.Tx) error {
		if err := a.leaveIn(tx, held.Owner, s, addition); err != nil {
			return err
		}
		return errors.Join(a.putIn(tx, held.Owner, s), a.putBeside(ctx, held.Owner, s))
	}, last...)
	if err == nil {
		err = a.leaveBeside(ctx, held.Owner, s, addition)
	}
	return err
}

// ending is how long writing down an end may take.
const ending = 30 * time.Second

// failed writes down that a response could not be made; t is nil where nothing was begun.
func (a *API) failed(held *run.Held, t *tape, err error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(held.Context()), ending)
	defer cancel()
	found, getErr := a.State.Responses.Get(ctx, held.Owner, held.ID)
	switch {
	case getErr != nil:
		return getErr
	case found == nil: // it was deleted
		return held.End(ctx, run.Failed, nil)
	case t != nil && t.failed != nil: // the conversation has told it
		return a.over(held, run.Failed, found.As(t.failed), nil, t.last)
	}
	if err := held.Flush(ctx); err != nil {
		return err
	}
	before, saidErr := held.Said(ctx)
	if saidErr != nil {
		return saidErr
	}
	ended, last := found.Failed(before, t.told(err))
	return a.over(held, run.Failed, ended, nil, last)
}

// told is what is told of why a response could not be made. A nil tape knows nothing.
func (t *tape) told(err error) *model.Error {
	if t != nil {
		if said := t.failure(); said != nil {
			err = said
		}
		if t.differs {
			return &model.Error{Type: model.TypeServer, Code: "server_error", Message: t.interrupted()}
		}
	}
	if known, ok := model.AsError(err); err != nil && ok {
		return known
	}
	return &model.Error{Type: model.TypeServer, Code: "server_error", Message: "The response could not be made."}
}

// interrupted says why a response cannot be gone on with.
func (t *tape) interrupted() string {
	const ends = " Ask once more; calls of tools that had run are in the output."
	if t.spoken {
		return "The process that made the response ended while a model was speaking, and what it had said cannot be said again." + ends
	}
	return "The process that made the response ended, or the response waited, and the tools that it was made with have changed since, so it cannot be gone on with." + ends
}
