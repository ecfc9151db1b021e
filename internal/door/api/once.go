package api

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/door"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
	"github.com/dragoman-mcp/dragoman/internal/state/idempotency"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// Codes of errors about the header Idempotency-Key. They are stable.
const (
	codeKeyInvalid = "idempotency_key_invalid"
	codeKeyReused  = "idempotency_key_reused"
	codeAnswerLost = "idempotency_answer_lost"
)

// keyHeader is by what clients say that a request is one that they sent before.
const keyHeader = "Idempotency-Key"

// maxKey is how long such a key may be, in characters.
const maxKey = 255

// A onceRoute answers a request that may run tools, and says in run what became of it.
type onceRoute func(w http.ResponseWriter, r *http.Request, who caller.Caller, run *idempotency.Run)

// onceOnly returns the route of requests that may run tools: one that comes again
// with the same Idempotency-Key gets the answer of the first.
func (a *API) onceOnly(route onceRoute) func(http.ResponseWriter, *http.Request, caller.Caller) {
	return func(w http.ResponseWriter, r *http.Request, who caller.Caller) {
		if len(r.Header.Values(keyHeader)) == 0 {
			route(w, r, who, &idempotency.Run{})
			return
		}
		name, err := requestKey(r.Header)
		if err != nil {
			a.fail(w, r, err)
			return
		}
		body, err := a.readBody(w, r)
		if err != nil {
			a.fail(w, r, err)
			return
		}
		r = r.WithContext(r.Context())
		r.Body, r.ContentLength = door.ReadAgain(body), int64(len(body))
		key := a.keyOf(r, who, name)
		key.Print = fingerprint(r, body)
		err = a.State.once.Serve(w, r, key, func(w http.ResponseWriter, r *http.Request, run *idempotency.Run) { route(w, r, who, run) })
		switch {
		case errors.Is(err, idempotency.ErrOther):
			a.fail(w, r, &model.Error{
				Status: http.StatusUnprocessableEntity, Type: model.TypeInvalidRequest, Code: codeKeyReused, Err: err,
				Message: "This Idempotency-Key was sent with another request. Send each request with a key of its own, and with the same one only when it is sent again as it was.",
			})
		case errors.Is(err, idempotency.ErrRunning):
			a.fail(w, r, inProgress(err))
		case errors.Is(err, idempotency.ErrLarge):
			a.fail(w, r, answerLost(err))
		case err != nil:
			a.fail(w, r, fmt.Errorf("looking for the answer of an Idempotency-Key: %w", err))
		}
	}
}

// keyOf returns the key of a name that is a caller's own.
func (a *API) keyOf(r *http.Request, who caller.Caller, name string) idempotency.Key {
	key := idempotency.Key{Owner: who.ID, Name: name}
	if a.clientCredentials() { // then nobody knows callers apart but by these
		key.Apart = upstream.Credentials(r.Header)
	}
	return key
}

// hold claims the turn of an agent's that a request is part of, where it names that: one that
// comes again waits for the first at whichever process that is, and is known to have run where
// that process died. Others that clients send again are claimed later: see [API.holding]. Until
// end is called, and where a request has no key of its own.
func (a *API) hold(r *http.Request, said about, who caller.Caller, run *idempotency.Run) (end func(), err error) {
	switch {
	case run.Claim != nil:
		return func() {}, nil
	case said.claim != "":
		end, err = a.State.once.Hold(r.Context(), a.keyOf(r, who, "turn\x00"+said.claim), run)
		return end, elsewhere(err)
	case retried(r, said):
		return a.State.once.Later(run), nil
	}
	return func() {}, nil
}

// holding returns how a request is claimed that is known by all that it says, and reports whether
// it has run before.
func (a *API) holding(r *http.Request, who caller.Caller, run *idempotency.Run) func(ctx context.Context, request string) (again bool, err error) {
	return func(ctx context.Context, request string) (bool, error) {
		err := run.Hold(ctx, a.keyOf(r, who, "request\x00"+request))
		return run.Again, elsewhere(err)
	}
}

// held returns how a request learns that another process has taken its place.
func held(run *idempotency.Run) func(context.Context) error {
	return func(ctx context.Context) error {
		if run.Held == nil {
			return nil
		}
		return elsewhere(run.Held(ctx))
	}
}

// claiming returns how a request is claimed by what it is about to change; nil where it
// has not to be.
func claiming(run *idempotency.Run) func(*store.Tx) error {
	if run.Claim == nil {
		return nil
	}
	return func(tx *store.Tx) error {
		return elsewhere(run.Claim(tx))
	}
}

// elsewhere returns an error as clients get it, where it says that another process runs a request.
func elsewhere(err error) error {
	if errors.Is(err, idempotency.ErrRunning) {
		return inProgress(err)
	}
	return err
}

// inProgress refuses a request that another process runs.
func inProgress(err error) error {
	return &model.Error{
		Status: http.StatusConflict, Type: model.TypeInvalidRequest, Code: model.CodeInProgress, Err: err,
		Message: "A request with this Idempotency-Key, or of this turn, runs at another process of this gateway. Send it again later: it then gets the answer of the first.",
		Header:  http.Header{"Retry-After": {"5"}},
	}
}

// answerLost refuses a request that has run, whose answer nobody has any more.
func answerLost(err error) error {
	return &model.Error{
		Status: http.StatusConflict, Type: model.TypeInvalidRequest, Code: codeAnswerLost, Err: err,
		Message: "A request with this Idempotency-Key has run, and its answer is not kept: it broke off, was too large, or too many came after it. It is not run again, since it may have changed something. Look what it did; to run it once more, send another key.",
		Header:  http.Header{"X-Should-Retry": {"false"}},
	}
}

// requestKey returns the key that a client gave a request: a string as structured
// fields have it (RFC 9651, section 3.3.3), as the draft wants it, or the bare text
// that most clients send.
func requestKey(h http.Header) (string, error) {
	key := h.Get(keyHeader)
	if inner, ok := strings.CutPrefix(key, `"`); ok {
		if inner, ok = strings.CutSuffix(inner, `"`); ok && !strings.ContainsAny(inner, `"\`) {
			key = inner
		} else {
			key = ""
		}
	}
	visible := !strings.ContainsFunc(key, func(c rune) bool { return c < ' ' || c > '~' })
	if len(h.Values(keyHeader)) > 1 || key == "" || len(key) > maxKey || !visible {
		return "", &model.Error{
			Status: http.StatusBadRequest, Type: model.TypeInvalidRequest, Code: codeKeyInvalid,
			Message: fmt.Sprintf("The header Idempotency-Key has to be there once, with 1 to %d visible ASCII characters.", maxKey),
		}
	}
	return key, nil
}

// fingerprint is a digest of all that two requests have in common that are one.
func fingerprint(r *http.Request, body []byte) (sum [32]byte) {
	h := sha256.New()
	fmt.Fprintf(h, "%s %q %q %d\n", r.Method, r.URL.EscapedPath(), r.URL.RawQuery, len(body))
	h.Write(body)
	h.Sum(sum[:0])
	return sum
}
