package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/dragoman-mcp/dragoman/internal/door"
	"github.com/dragoman-mcp/dragoman/internal/state/run"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
	kept "github.com/dragoman-mcp/dragoman/internal/state/stored"
	"github.com/dragoman-mcp/dragoman/openai/model"
	"github.com/dragoman-mcp/dragoman/openai/responses"
)

// follow streams what a run says, from behind a number on, to a client that may leave.
func (a *API) follow(w http.ResponseWriter, r *http.Request, who, id string) error {
	runs, err := a.runs()
	if err != nil {
		return err
	}
	err = door.Follow(w, r, runs, who, id)
	if errors.Is(err, run.ErrNone) { // it ended long ago
		err = door.EventsGone()
	}
	return err
}

// status is what a response in the background is at now; empty where it is as it is stored.
func (a *API) status(ctx context.Context, who string, s *responses.Stored) (string, error) {
	if !s.IsBackground() || !s.Unfinished() {
		return "", nil
	}
	runs, err := a.runs()
	if err != nil {
		return "", err
	}
	switch now, err := runs.Get(ctx, who, s.ID); {
	case errors.Is(err, run.ErrNone):
		return "failed", nil // its run is gone
	case err != nil:
		return "", err
	case now.State == run.Ready && now.Attempt == 0 && now.Last < 2:
		return "queued", nil
	case now.State == run.Done:
		return "", nil // it is stored by now, or will not be
	}
	return "in_progress", nil
}

// vanished is why a response failed whose run is not there any more.
var vanished = &model.Error{Code: "server_error", Message: "What made the response is not there any more."}

// getResponse answers GET /v1/responses/{id}.
func (a *API) getResponse(w http.ResponseWriter, r *http.Request, who string, stored *responses.Stored) error {
	if r.URL.Query().Get("stream") == "true" {
		if !stored.IsBackground() {
			return model.Invalid("stream", "Only the stream of a response that is made in the background is kept: get the response itself.")
		}
		return a.follow(w, r, who, stored.ID)
	}
	status, err := a.status(r.Context(), who, stored)
	if err != nil {
		return err
	}
	if status == "" {
		if stored.IsBackground() && stored.Unfinished() { // it ended this moment
			if now, err := a.State.Responses.Get(r.Context(), who, stored.ID); err == nil && now != nil {
				stored = now
			}
		}
		if stored.IsBackground() && stored.Unfinished() { // nobody could write its end
			stored, _ = stored.Failed(nil, vanished)
		}
		writeJSON(w, stored.Response)
		return nil
	}
	if status == run.Failed {
		stored, _ = stored.Failed(nil, vanished)
	}
	writeJSON(w, stored.At(status))
	return nil
}

// deleteResponse answers DELETE /v1/responses/{id}. One that is being made ends.
func (a *API) deleteResponse(w http.ResponseWriter, r *http.Request, who string, stored *responses.Stored) (err error) {
	in, together := a.State.Responses.(kept.Transactional)
	if stored.IsBackground() {
		runs, err := a.runs()
		if err != nil {
			return err
		}
		if err := runs.Delete(r.Context(), who, stored.ID, func(tx *store.Tx) error {
			if err := a.leaveIn(tx, who, stored, nil); err != nil || !together {
				return err
			}
			_, err := in.DeleteIn(tx, who, stored.ID)
			return err
		}); err != nil {
			return err
		}
		if err := a.leaveBeside(r.Context(), who, stored, nil); err != nil {
			return err
		}
	}
	if !stored.IsBackground() || !together {
		if _, err := a.State.Responses.Delete(r.Context(), who, stored.ID); err != nil {
			return err
		}
	}
	writeJSON(w, json.RawMessage(`{"id":`+strconv.Quote(stored.ID)+`,"object":"response","deleted":true}`))
	return nil
}

// cancelResponse answers POST /v1/responses/{id}/cancel. A second one answers the same.
func (a *API) cancelResponse(w http.ResponseWriter, r *http.Request, who string, stored *responses.Stored) error {
	if !stored.IsBackground() {
		return model.Invalid("", "Only responses that are made in the background can be cancelled, and this one was not.")
	}
	runs, err := a.runs()
	if err != nil {
		return err
	}
	mine, err := kept.Cancel(r.Context(), runs, a.State.Responses, who, stored.ID)
	if err != nil {
		return err
	}
	if mine {
		a.State.let(stored.ID)
		if err := a.leaveBeside(r.Context(), who, stored, nil); err != nil {
			return err
		}
	}
	now, err := a.State.Responses.Get(r.Context(), who, stored.ID)
	if err == nil && now == nil {
		err = door.NotFound(fmt.Sprintf("Response with id %.80q not found.", stored.ID))
	}
	if err != nil {
		return err
	}
	writeJSON(w, now.Response)
	return nil
}
