package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
	"github.com/dragoman-mcp/dragoman/internal/session"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// open opens a session, and says in the API's words why there is none.
func (a *API) open(ctx context.Context, who caller.Caller, want session.Want) (*session.Session, error) {
	s, err := a.Sessions.Open(ctx, who, want)
	switch {
	case errors.Is(err, session.ErrUnknownServer):
		return nil, &model.Error{
			Status: http.StatusBadRequest, Type: model.TypeInvalidRequest, Code: model.CodeUnknownServer, Param: "tools",
			Message: err.Error() + ".",
		}
	case errors.Is(err, session.ErrUnknownTool):
		return nil, model.Invalid("tools", err.Error()+".")
	case errors.Is(err, session.ErrServerUnavailable):
		return nil, unavailable(err)
	case errors.Is(err, session.ErrUnknownDialect):
		return nil, model.Invalid("dialect", err.Error()+".")
	case errors.Is(err, upstream.ErrUnknownModel):
		return nil, unknownModel(want.Model, err)
	}
	if err == nil && len(s.Missing) > 0 {
		a.Log.Warn("servers are missing", "servers", missing(s.Missing))
	}
	return s, err
}

// unavailable says that a server which the request names is not there.
func unavailable(err error) error {
	e := &model.Error{
		Status: http.StatusServiceUnavailable, Type: model.TypeServer, Code: dragoman.CodeServerUnavailable, Param: "tools",
		Message: err.Error() + ".", Err: err,
	}
	if s, ok := errors.AsType[*session.ServerError](err); ok {
		e.Header = http.Header{"Retry-After": {strconv.Itoa(int(s.RetryAfter().Seconds()))}}
	}
	return e
}

// tellMissing tells the client which servers are missing.
func tellMissing(w http.ResponseWriter, s *session.Session) {
	if len(s.Missing) > 0 {
		w.Header().Set("X-Dragoman-Missing", missing(s.Missing))
	}
}

// missing names servers and what they are doing, or what somebody has to do first.
func missing(servers []dragoman.Server) string {
	names := make([]string, len(servers))
	for i, s := range servers {
		names[i] = s.Label + " (" + string(s.State) + ")"
		if s.Problem != nil && s.Problem.Code == dragoman.CodeNeedsAuthorization {
			names[i] = s.Label + " (" + s.Problem.Message + ")"
		}
	}
	return strings.Join(names, ", ")
}
