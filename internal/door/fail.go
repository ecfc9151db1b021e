package door

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/observe"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
	"github.com/dragoman-mcp/dragoman/internal/text/clip"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// A Form writes an error as the clients of an API know it.
type Form func(http.ResponseWriter, *model.Error)

// OpenAI is the form of the OpenAI API.
func OpenAI(w http.ResponseWriter, e *model.Error) { e.Write(w) }

// loggedError bounds what a line of the log has of an error, in bytes: clients put names of
// any length into one.
const loggedError = 4 << 10

// Fail answers with an error in a form, under an id that stands in the log as well, with
// more. What the error does not say to clients is told to the log alone: it is our own
// trouble.
func Fail(log *slog.Logger, form Form, w http.ResponseWriter, r *http.Request, err error, more ...any) {
	if r.Context().Err() != nil && errors.Is(err, context.Canceled) {
		return // nobody is there to be told
	}
	e, ok := model.AsError(err)
	if trouble := inTrouble(err); !ok && trouble != nil {
		e = trouble
	} else if !ok {
		e = &model.Error{
			Status: http.StatusInternalServerError, Type: model.TypeServer, Code: model.CodeInternal,
			Message: "The request failed here. The log tells more.", Err: err,
		}
	}
	told := *e
	if told.ID = observe.RequestOf(r.Context()); told.ID == "" {
		told.ID = model.NewRequestID()
	}
	line := []any{"request", told.ID, "path", r.URL.Path, "status", told.Status, "code", told.Code, "error", clip.Text(err.Error(), loggedError)}
	if told.Err != nil && !strings.Contains(err.Error(), told.Err.Error()) {
		line = append(line, "reason", clip.Text(told.Err.Error(), loggedError))
	}
	log.Warn("request refused", append(line, more...)...)
	form(w, &told)
}

// inTrouble is the error for what could not be written, or read, because the store is in
// trouble; nil for any other.
func inTrouble(err error) *model.Error {
	code, after := store.Refusal(err)
	if code == "" {
		return nil
	}
	e := &model.Error{
		Status: http.StatusServiceUnavailable, Type: model.TypeServer, Code: code, Err: err,
		Message: "The gateway's store cannot be used now, and this has to be written down first. The log tells more.",
		Header:  http.Header{"Retry-After": {strconv.Itoa(int(math.Ceil(after.Seconds())))}},
	}
	if code == store.CodeBusy {
		e.Message = "The gateway is behind with what it has to write down. Try again in a moment."
	}
	return e
}

// NotFound is the error for a path or a thing that is not there.
func NotFound(message string) error {
	return &model.Error{Status: http.StatusNotFound, Type: model.TypeInvalidRequest, Code: "not_found", Message: message}
}
