package console

import (
	"errors"
	"maps"
	"net/http"
	"net/url"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/door"
	"github.com/dragoman-mcp/dragoman/internal/identity/apikey"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/identity/signin"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// maxSignIn bounds what is sent to sign in, in bytes.
const maxSignIn = 64 << 10

// Front returns what everybody gets: the page to sign in, the script and the style sheet.
func (c *Console) Front() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+Root+"sign-in", func(w http.ResponseWriter, r *http.Request) {
		c.signInPage(w, r, http.StatusOK, "", r.URL.Query().Get("next"))
	})
	mux.HandleFunc("POST "+Root+"sign-in", c.signIn)
	if c.o.At != nil {
		mux.HandleFunc("GET "+Root+"sign-in/at", c.signInAt)
		mux.HandleFunc("GET "+signInBack, c.signedInAt)
	}
	mux.HandleFunc("GET "+Root+"assets/{name}", asset)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		guard(w)
		if !c.o.On() {
			http.Error(w, "The console is off.", http.StatusNotFound)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// cookie is the name of the cookie. Only over https can a browser hold it to this host
// alone (the prefix __Host-); on the plain http of loopback the port stands in it, since
// cookies of one host are shared by all its ports.
func (c *Console) cookie(r *http.Request) string {
	if c.o.Secure {
		return "__Host-dragoman"
	}
	_, port, _ := strings.Cut(r.Host[strings.LastIndexByte(r.Host, ']')+1:], ":")
	return "dragoman_" + port
}

// remember gives a browser its cookie; an empty one takes it away.
func (c *Console) remember(w http.ResponseWriter, r *http.Request, id string) {
	cookie := &http.Cookie{
		Name: c.cookie(r), Value: id, Path: Root, HttpOnly: true, SameSite: http.SameSiteLaxMode,
		Secure: c.o.Secure, MaxAge: int(signin.Life.Seconds()),
	}
	if c.o.Secure {
		cookie.Path = "/" // as the prefix wants it
	}
	if id == "" {
		cookie.MaxAge = -1
	}
	http.SetCookie(w, cookie)
}

func (c *Console) sessionID(r *http.Request) string {
	if cookie, err := r.Cookie(c.cookie(r)); err == nil {
		return cookie.Value
	}
	return ""
}

// who finds out who is signed in.
func (c *Console) who(r *http.Request) (caller.Caller, error) {
	if !c.o.On() {
		return caller.Caller{}, &caller.Refusal{Status: http.StatusNotFound, Code: "not_found", Message: "The console is off."}
	}
	s, err := c.o.Sessions.Find(r.Context(), c.sessionID(r))
	switch {
	case errors.Is(err, signin.ErrNone):
		return caller.Caller{}, &caller.Refusal{Status: http.StatusUnauthorized, Code: "sign_in", Message: "Sign in first.", Err: err}
	case err != nil:
		return caller.Caller{}, &caller.Refusal{Status: http.StatusServiceUnavailable, Code: "unavailable", Message: "It cannot be found out now who is signed in. Try again.", Err: err}
	}
	return s.Caller, nil
}

// signIn signs in whoever shows the secret, or a key.
func (c *Console) signIn(w http.ResponseWriter, r *http.Request) {
	if c.origins.Check(r) != nil {
		c.signInPage(w, r, http.StatusForbidden, "This came from a page of another site, so nothing was done.", "")
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxSignIn)
	shown := strings.TrimSpace(r.PostFormValue("secret"))
	who, why := c.shown(r, shown)
	if why != nil {
		status, message := http.StatusUnauthorized, why.Error()
		if errors.Is(why, signin.ErrSlower) {
			status = http.StatusTooManyRequests
			w.Header().Set("Retry-After", "10")
		}
		c.o.Log.Warn("nobody was signed in at the console", "from", r.RemoteAddr, "error", message)
		c.signInPage(w, r, status, message, r.PostForm.Get("next"))
		return
	}
	c.begin(w, r, who, r.PostFormValue("next"))
}

// begin begins a session, and goes on to a page.
func (c *Console) begin(w http.ResponseWriter, r *http.Request, who caller.Caller, to string) {
	id, err := c.o.Sessions.Begin(r.Context(), who)
	if err != nil {
		c.o.Log.Error("a session of the console could not be begun", "error", err)
		c.signInPage(w, r, http.StatusServiceUnavailable, "You could not be signed in now. The log tells more.", to)
		return
	}
	c.o.Log.Info("signed in at the console", append(who.Logged(), "from", r.RemoteAddr)...)
	c.remember(w, r, id)
	http.Redirect(w, r, next(to), http.StatusSeeOther)
}

// Why nobody is signed in.
var (
	errNotTheSecret = errors.New("that is not the secret, or it was used before: dragoman console shows the one that is good now")
	errNotAKey      = errors.New("that is no key that is good here")
)

// shown returns who shows a secret or a key. What could be guessed is looked at seldom.
func (c *Console) shown(r *http.Request, text string) (caller.Caller, error) {
	if !c.o.Required() {
		ok, err := c.o.Secret.Spend(text)
		if err != nil {
			c.o.Log.Warn("the next secret of the console could not be written down", "error", err)
		}
		if ok {
			return signin.Operator, nil
		}
		return caller.Caller{}, errors.Join(errNotTheSecret, c.tries.Wrong())
	}
	if c.tries.Closed() && !apikey.Is(text) { // nobody guesses one of those, nor keeps others out by trying
		return caller.Caller{}, signin.ErrSlower
	}
	asked := r.Clone(r.Context())
	asked.Header = http.Header{"Authorization": {"Bearer " + text}}
	who, err := c.o.Recognise(asked)
	switch {
	case err == nil && who.Valid() && !who.IsLocal():
		return who, nil
	case err != nil:
		if refusal, ok := errors.AsType[*caller.Refusal](err); ok && refusal.Status == http.StatusServiceUnavailable {
			return caller.Caller{}, errors.New(refusal.Message)
		}
	}
	return caller.Caller{}, errors.Join(errNotAKey, c.tries.Wrong())
}

// next is where a browser goes once it is signed in: a page of ours, and nowhere else.
func next(wanted string) string {
	u, err := url.Parse(wanted)
	if err != nil || u.Scheme != "" || u.Host != "" || !strings.HasPrefix(u.Path, Root) || strings.Contains(wanted, `\`) || strings.Contains(u.Path, "..") || strings.HasPrefix(u.Path, Root+"sign-") {
		return Root
	}
	return wanted
}

func (c *Console) signOut(r *request) error {
	if err := c.o.Sessions.End(r.Context(), c.sessionID(r.Request)); err != nil {
		return err
	}
	c.remember(r.w, r.Request, "")
	http.Redirect(r.w, r.Request, Root+"sign-in", http.StatusSeeOther)
	return nil
}

// signInPage is the page to sign in, for who then wants to go to another one.
func (c *Console) signInPage(w http.ResponseWriter, r *http.Request, status int, why, to string) {
	c.write(w, r, status, "sign-in.html", view{Title: "Sign in", Data: signInData{c.o.Required(), why, next(to), c.at(), false}})
}

type signInData struct {
	Keys bool // a key is asked for
	Why  string
	Next string
	At   []string // authorization servers at which people sign in

	Again bool // they are to show there who they are, signed in or not
}

// form shows errors as pages in the language of the reader. Who is not signed in gets the
// page to sign in.
func (c *Console) form(r *http.Request) door.Form {
	return func(w http.ResponseWriter, e *model.Error) {
		guard(w)
		maps.Copy(w.Header(), e.Header)
		if e.Status == http.StatusUnauthorized {
			w.Header().Del("WWW-Authenticate")
			c.write(w, r, e.Status, "sign-in.html", view{Title: "Sign in", Data: signInData{Keys: c.o.Required(), Next: next(r.URL.RequestURI()), At: c.at()}})
			return
		}
		if e.Code == errAgain.Code {
			c.write(w, r, e.Status, "sign-in.html", view{Title: "Sign in", Data: signInData{Keys: true, Why: e.Message, Next: next(r.URL.RequestURI()), At: c.at(), Again: true}})
			return
		}
		v := view{Title: "Error", Data: e}
		if who, err := c.who(r); err == nil { // whoever is signed in goes on from here
			v.Who, v.Menu = who, menu(who)
		}
		c.write(w, r, e.Status, "error.html", v)
	}
}

func notFound(message string) error {
	return &model.Error{Status: http.StatusNotFound, Type: model.TypeInvalidRequest, Code: "not_found", Message: message}
}

func forbidden(message string) error {
	return &model.Error{Status: http.StatusForbidden, Type: model.TypePermission, Code: "permission_denied", Message: message}
}

// granted is an error unless the person has a right.
func (r *request) granted(right string) error {
	if r.who.May(right) {
		return nil
	}
	return forbidden("This takes a key with the right " + right + ".")
}
