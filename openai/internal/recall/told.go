package recall

import (
	"context"
	"errors"
	"net/http"

	"github.com/dragoman-mcp/dragoman/openai/internal/output"
	"github.com/dragoman-mcp/dragoman/openai/memory"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// Over reports whether the turn has used up what it may use over all its requests. A
// zero member of the limit is no bound.
func (t *Thread) Over(limit memory.Spent) bool {
	spent := t.Dialogue.Spent
	return limit.Rounds > 0 && spent.Rounds >= limit.Rounds ||
		limit.Calls > 0 && spent.Calls >= limit.Calls ||
		limit.Bytes > 0 && spent.Bytes >= limit.Bytes
}

// Told returns what the client is told of the error that ended its request; nil where
// there is none, or nobody is there to be told. id is that of the request.
func (t *Thread) Told(err error, id string) *model.Error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, output.ErrGone) {
		return nil
	}
	e, ok := model.AsError(err)
	if !ok {
		e = &model.Error{
			Status: http.StatusInternalServerError, Type: model.TypeServer, Code: model.CodeInternal,
			Message: "The request failed here. The log tells more.", Err: err,
		}
	}
	told := t.noRetry(*e)
	if told.Body == nil {
		told.ID = id
	} else if id != "" {
		// The upstream's own error stays as it is.
		told.Header = told.Header.Clone()
		if told.Header == nil {
			told.Header = http.Header{}
		}
		told.Header.Set("X-Dragoman-Request-Id", id)
	}
	return &told
}

// overfull is the error of a request that has become too long by what tools said in it. As a
// request that is too long by itself, a client would make its history shorter, which has none
// of that, and ask again: all of it would be done once more, and end the same. Clients know
// those by the words of APIs as well as by the code, so that what the model's says is for the
// log alone; and opencode repeats what is called an error of the server's.
func overfull(e model.Error) model.Error {
	e.Status, e.Type, e.Code, e.Body = http.StatusNotAcceptable, model.TypeInvalidRequest, model.CodeInvalidPrompt, nil
	e.Message = "Tools of servers have answered more in this turn than the model reads, and may have changed something, so that the turn is not to be made again as it is. Ask for less at a time."
	return e
}

// noRetry keeps a client from sending a request again whose tools have already
// changed something. What earlier requests of its turn did is found again by the ids of
// its calls, and is not done twice. Official clients repeat 408, 409, 429 and 5xx by themselves, and
// can be told not to; LangChain's for JavaScript repeat all but 400 to 407, 409 and 413,
// whatever the header says, as requests that are new. After 400 Claude Code asks another
// time, with less in its request, which is a new one, too; 401 to 404, 407 and 413 say what
// is not so. A client that names its turn is told what is so, and waits where an API has it wait:
// what it sends again goes on from there, but for a history that it has made shorter.
func (t *Thread) noRetry(e model.Error) model.Error {
	if !t.Dialogue.Wrote || t.Request.Turn && t.Memory != nil && !e.TooLong() {
		return e
	}
	e.Header = e.Header.Clone()
	if e.Header == nil {
		e.Header = http.Header{}
	}
	e.Header.Set("X-Should-Retry", "false")
	if e.TooLong() {
		return overfull(e)
	}
	if e.Status > http.StatusProxyAuthRequired && e.Status != http.StatusRequestEntityTooLarge {
		e.Status = http.StatusNotAcceptable
		if e.Type == model.TypeInvalidRequest {
			e.Type = model.TypeServer // nothing is wrong with the request
		}
	}
	return e
}
