package api

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/caller"
	"github.com/dragoman-mcp/dragoman/internal/credential"
	"github.com/dragoman-mcp/dragoman/internal/policy"
	"github.com/dragoman-mcp/dragoman/internal/servers"
	"github.com/dragoman-mcp/dragoman/openai"
)

// loginsPath is where callers log in at servers, by label.
const loginsPath = "/logins/"

// ServesLogins reports whether a path is one where callers log in at servers.
func ServesLogins(path string) bool { return strings.HasPrefix(path, loginsPath) }

// Servers log callers in. They are a [servers.Set], which says what comes of it.
type Servers interface {
	BeginLogin(ctx context.Context, label, who, redirect string) (address string, err error)
	FinishLogin(ctx context.Context, label, who string, answer credential.Answer) (address string, err error)
	ForgetLogin(label, who string) error
}

// Login is how far a login is: the answer of the routes of [API.Logins].
type Login struct {
	// Server is the label.
	Server string `json:"server"`
	// Visit is the address that the person opens in a browser next; empty where there
	// is nothing more to do.
	Visit string `json:"visit,omitempty"`
}

// LoginWish is the body of a request to begin a login.
type LoginWish struct {
	// Redirect is where the authorization server sends the browser back to; see
	// [credential.CheckRedirect].
	Redirect string `json:"redirect_uri"`
}

// Logins lets a caller log in at a server, for itself: POST /logins/LABEL with a
// [LoginWish] begins, PUT with the [credential.Answer] that the browser came back with
// goes on, and DELETE forgets what there is. It takes the right route:/logins/LABEL.
func (a *API) Logins(w http.ResponseWriter, r *http.Request, who caller.Caller) {
	label := strings.TrimPrefix(r.URL.Path, loginsPath)
	step, known := map[string]struct {
		do   func(ctx context.Context, body []byte, label string, who caller.Caller) (address string, err error)
		done string // what it comes to where there is nothing more to visit
	}{
		http.MethodPost: {a.beginLogin, "logged in"}, http.MethodPut: {a.finishLogin, "logged in"}, http.MethodDelete: {a.forgetLogin, "forgotten"},
	}[r.Method]
	switch {
	case servers.CheckLabel(label) != nil:
		a.fail(w, r, loginError(servers.ErrUnknownServer))
		return
	case !known:
		w.Header().Set("Allow", "POST, PUT, DELETE")
		a.fail(w, r, &openai.Error{
			Status: http.StatusMethodNotAllowed, Type: openai.TypeInvalidRequest, Code: openai.CodeInvalidRequest,
			Message: "POST /logins/LABEL begins a login, PUT goes on with it, DELETE forgets it.",
		})
		return
	}
	body, err := a.readBody(w, r)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	leave, err := a.admit(r.Context(), who, policy.Route, loginsPath+label)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	defer leave()
	address, err := step.do(r.Context(), body, label, who)
	if err != nil {
		wrong := loginError(err)
		a.Sessions.Gate().LoggedIn(who, label, "failed", wrong.Code)
		a.fail(w, r, wrong)
		return
	}
	state := step.done
	if address != "" {
		state = "begun"
	}
	a.Sessions.Gate().LoggedIn(who, label, state, "")
	a.Log.Info("login at a server", append(who.Logged(), "server", label, "state", state)...)
	w.Header().Set("Cache-Control", "no-store")
	a.answer(w, r, Login{label, address})
}

func (a *API) beginLogin(ctx context.Context, body []byte, label string, who caller.Caller) (string, error) {
	wish, err := texts(body)
	if err != nil {
		return "", err
	}
	return a.Servers.BeginLogin(ctx, label, who.ID, wish("redirect_uri"))
}

func (a *API) finishLogin(ctx context.Context, body []byte, label string, who caller.Caller) (string, error) {
	answer, err := texts(body)
	if err != nil {
		return "", err
	}
	return a.Servers.FinishLogin(ctx, label, who.ID, credential.Answer{
		Code: answer("code"), State: answer("state"), Issuer: answer("iss"), Error: answer("error"),
	})
}

func (a *API) forgetLogin(_ context.Context, _ []byte, label string, who caller.Caller) (string, error) {
	return "", a.Servers.ForgetLogin(label, who.ID)
}

// loginError words why there is no login. What an authorization server says beside the
// codes of the standards is for our log.
func loginError(err error) *openai.Error {
	if known, ok := errors.AsType[*openai.Error](err); ok {
		return known
	}
	e := &openai.Error{Status: http.StatusBadRequest, Type: openai.TypeInvalidRequest, Code: openai.CodeInvalidRequest, Err: err}
	refused, ok := errors.AsType[*credential.Refused](err)
	switch {
	case ok:
		e.Code, e.Message = "login_refused", "There is no login: "+refused.Error()+"."
	case errors.Is(err, servers.ErrUnknownServer):
		e.Status, e.Code, e.Message = http.StatusNotFound, openai.CodeUnknownServer, "There is no such server."
	case errors.Is(err, servers.ErrNotTheirs):
		e.Status, e.Message = http.StatusConflict, "Callers do not log in at this server themselves: its oauth is not whose: caller."
	case errors.Is(err, servers.ErrNotBegun):
		e.Status, e.Code, e.Message = http.StatusNotFound, "not_found", "No login was begun, or it has ended: begin again with POST."
	case errors.Is(err, servers.ErrTooManyLogins):
		e.Status, e.Type, e.Message = http.StatusTooManyRequests, openai.TypeRateLimit, "Too many logins have begun: try again in a moment."
		e.Header = http.Header{"Retry-After": {"2"}}
	case errors.Is(err, credential.ErrNoLogin):
		e.Status, e.Code, e.Message = http.StatusConflict, "no_login", "The server asks for no login."
	case errors.Is(err, credential.ErrRedirect):
		e.Param, e.Message = "redirect_uri", "The answer goes to the machine of whoever logs in: "+err.Error()+"."
	default:
		e.Status, e.Type, e.Code, e.Message = http.StatusBadGateway, openai.TypeServer, "login_failed", "The login could not be done; the gateway's log says why."
	}
	return e
}
