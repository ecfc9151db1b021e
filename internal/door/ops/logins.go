package ops

import (
	"context"
	"errors"
	"net/http"

	"github.com/dragoman-mcp/dragoman/internal/door"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/judge/policy"
	"github.com/dragoman-mcp/dragoman/internal/reach/credential"
	"github.com/dragoman-mcp/dragoman/internal/reach/servers"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// Servers log callers in. They are a [servers.Set], which says what comes of it.
type Servers interface {
	BeginLogin(ctx context.Context, label, who, redirect string) (address string, err error)
	FinishLogin(ctx context.Context, label, who string, answer credential.Answer) (address string, err error)
	ForgetLogin(label, who string) error
}

// Login is how far a login is: the answer of /logins/LABEL.
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

// logins are the routes by which a caller logs in at a server, for itself: POST
// /logins/LABEL with a [LoginWish] begins, PUT with the [credential.Answer] that the
// browser came back with goes on, and DELETE forgets what there is. They take the right
// route:/logins/LABEL.
func (o *Ops) logins() []door.Route {
	const words = "POST /logins/LABEL begins a login, PUT goes on with it, DELETE forgets it."
	return []door.Route{
		{Pattern: "POST /logins/{label...}", Serve: o.login(o.beginLogin, "logged in")},
		{Pattern: "PUT /logins/{label...}", Serve: o.login(o.finishLogin, "logged in")},
		{Pattern: "DELETE /logins/{label...}", Serve: o.login(o.forgetLogin, "forgotten")},
		{Pattern: "/logins/{label...}", Serve: o.only("POST, PUT, DELETE", words)},
	}
}

// login returns the handler of a step of a login, and what it comes to where there is
// nothing more to visit.
func (o *Ops) login(do func(ctx context.Context, body []byte, label string, who caller.Caller) (address string, err error), done string) door.Handler {
	return func(w http.ResponseWriter, r *http.Request, who caller.Caller) {
		label := r.PathValue("label")
		if servers.CheckLabel(label) != nil {
			o.fail(w, r, loginError(servers.ErrUnknownServer))
			return
		}
		body, err := door.ReadBody(w, r, o.maxBody())
		if err != nil {
			o.fail(w, r, err)
			return
		}
		leave, err := door.Admit(r.Context(), o.Gate, who, policy.Route, "/logins/"+label)
		if err != nil {
			o.fail(w, r, err)
			return
		}
		defer leave()
		address, err := do(r.Context(), body, label, who)
		if err != nil {
			wrong := loginError(err)
			o.Gate.LoggedIn(who, label, "failed", wrong.Code)
			o.fail(w, r, wrong)
			return
		}
		state := done
		if address != "" {
			state = "begun"
		}
		o.Gate.LoggedIn(who, label, state, "")
		o.Log.Info("login at a server", append(who.Logged(), "server", label, "state", state)...)
		w.Header().Set("Cache-Control", "no-store")
		o.answer(w, r, Login{label, address})
	}
}

func (o *Ops) beginLogin(ctx context.Context, body []byte, label string, who caller.Caller) (string, error) {
	wish, err := door.Texts(body)
	if err != nil {
		return "", err
	}
	return o.Servers.BeginLogin(ctx, label, who.ID, wish("redirect_uri"))
}

func (o *Ops) finishLogin(ctx context.Context, body []byte, label string, who caller.Caller) (string, error) {
	answer, err := door.Texts(body)
	if err != nil {
		return "", err
	}
	return o.Servers.FinishLogin(ctx, label, who.ID, credential.Answer{
		Code: answer("code"), State: answer("state"), Issuer: answer("iss"), Error: answer("error"),
	})
}

func (o *Ops) forgetLogin(_ context.Context, _ []byte, label string, who caller.Caller) (string, error) {
	return "", o.Servers.ForgetLogin(label, who.ID)
}

// loginError words why there is no login. What an authorization server says beside the
// codes of the standards is for our log.
func loginError(err error) *model.Error {
	if known, ok := errors.AsType[*model.Error](err); ok {
		return known
	}
	e := &model.Error{Status: http.StatusBadRequest, Type: model.TypeInvalidRequest, Code: model.CodeInvalidRequest, Err: err}
	refused, ok := errors.AsType[*credential.Refused](err)
	switch {
	case ok:
		e.Code, e.Message = "login_refused", "There is no login: "+refused.Error()+"."
	case errors.Is(err, credential.ErrUseless):
		e.Code, e.Message = "login_refused", "The login is of no use: "+err.Error()+"."
	case errors.Is(err, credential.ErrOtherIssuer):
		e.Code, e.Param, e.Message = "login_refused", "iss", "The login is of no use: "+err.Error()+"."
	case errors.Is(err, servers.ErrUnknownServer):
		e.Status, e.Code, e.Message = http.StatusNotFound, model.CodeUnknownServer, "There is no such server."
	case errors.Is(err, servers.ErrNotTheirs):
		e.Status, e.Message = http.StatusConflict, "Callers do not log in at this server themselves: its oauth is not whose: caller."
	case errors.Is(err, servers.ErrNotBegun):
		e.Status, e.Code, e.Message = http.StatusNotFound, "not_found", "No login was begun, or it has ended: begin again with POST."
	case errors.Is(err, servers.ErrTooManyLogins):
		e.Status, e.Type, e.Message = http.StatusTooManyRequests, model.TypeRateLimit, "Too many logins have begun: try again in a moment."
		e.Header = http.Header{"Retry-After": {"2"}}
	case errors.Is(err, credential.ErrNoLogin):
		e.Status, e.Code, e.Message = http.StatusConflict, "no_login", "The server asks for no login."
	case errors.Is(err, credential.ErrRedirect):
		e.Param, e.Message = "redirect_uri", "The answer goes to the machine of whoever logs in: "+err.Error()+"."
	default:
		e.Status, e.Type, e.Code, e.Message = http.StatusBadGateway, model.TypeServer, "login_failed", "The login could not be done; the gateway's log says why."
	}
	return e
}
