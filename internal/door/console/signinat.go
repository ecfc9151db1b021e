package console

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// signInBack is where an authorization server sends a browser back to.
const signInBack = Root + "sign-in/back"

// attemptLives is how long a browser may take to sign in.
const attemptLives = 10 * time.Minute

// at are the authorization servers at which people sign in.
func (c *Console) at() []string {
	if c.o.At == nil {
		return nil
	}
	return c.o.At.SignsIn()
}

// attemptCookie is the one that keeps an attempt in its browser.
func (c *Console) attemptCookie(r *http.Request) string { return c.cookie(r) + "_attempt" }

// maxAttempts bounds what a browser keeps of its attempts, in bytes: it throws a cookie of
// more than 4096 away.
const maxAttempts = 3500

// attempts are the sign-ins that a browser has begun, the last one first: several of its
// pages may be at an authorization server at once.
func (c *Console) attempts(r *http.Request) (all []caller.Attempt) {
	cookie, err := r.Cookie(c.attemptCookie(r))
	if err != nil {
		return nil
	}
	kept, err := base64.RawURLEncoding.DecodeString(cookie.Value)
	if err != nil || json.Unmarshal(kept, &all) != nil {
		return nil
	}
	return all
}

// keepAttempts gives a browser what it takes to come back; none takes it away. The cookie is
// Lax, since the way back begins on a page of others.
func (c *Console) keepAttempts(w http.ResponseWriter, r *http.Request, all []caller.Attempt) {
	cookie := &http.Cookie{
		Name: c.attemptCookie(r), Path: Root, HttpOnly: true, SameSite: http.SameSiteLaxMode,
		Secure: c.o.Secure, MaxAge: int(attemptLives.Seconds()),
	}
	if c.o.Secure {
		cookie.Path = "/" // as the prefix wants it
	}
	if len(all) > 0 {
		cookie.Value = packed(all)
	} else {
		cookie.MaxAge = -1
	}
	http.SetCookie(w, cookie)
}

// packed are attempts as a cookie holds them. Where they are too long the oldest go, and at
// last the page that the newest is for.
func packed(all []caller.Attempt) string {
	for {
		kept, _ := json.Marshal(all) // never fails: it is texts
		text := base64.RawURLEncoding.EncodeToString(kept)
		last := len(all) - 1
		switch {
		case len(text) > maxAttempts && last > 0:
			all = all[:last]
		case len(text) > maxAttempts && all[0].Next != "":
			all[0].Next = ""
		default:
			return text
		}
	}
}

// signInAt sends a browser to an authorization server: by a code, with PKCE.
func (c *Console) signInAt(w http.ResponseWriter, r *http.Request) {
	asked := r.URL.Query()
	to := next(asked.Get("next"))
	address, a, err := c.o.At.SignIn(r.Context(), asked.Get("issuer"), signInBack, to, asked.Get("again") != "")
	if err != nil {
		c.refuseSignIn(w, r, err, to)
		return
	}
	c.keepAttempts(w, r, append([]caller.Attempt{a}, c.attempts(r)...))
	http.Redirect(w, r, address, http.StatusSeeOther)
}

// signedInAt is where a browser comes back from an authorization server. Failures close
// nothing: what could be guessed here is that server's to bound, and nobody is to keep others
// out by trying.
func (c *Console) signedInAt(w http.ResponseWriter, r *http.Request) {
	var a caller.Attempt
	kept, state := c.attempts(r), r.URL.Query().Get("state")
	if at := slices.IndexFunc(kept, func(each caller.Attempt) bool { return each.State == state }); at >= 0 {
		a = kept[at]
		c.keepAttempts(w, r, slices.Delete(kept, at, at+1)) // it is good once
	}
	who, err := c.o.At.SignedIn(r, a, signInBack)
	if err != nil {
		c.refuseSignIn(w, r, err, a.Next)
		return
	}
	c.begin(w, r, who, a.Next)
}

// refuseSignIn says why nobody was signed in at an authorization server, who wanted to go to
// a page.
func (c *Console) refuseSignIn(w http.ResponseWriter, r *http.Request, err error, to string) {
	message := "You could not be signed in now. The log tells more."
	if failed, ok := errors.AsType[*caller.SignInError](err); ok {
		message = failed.Message
		if failed.Err != nil {
			err = errors.Join(err, failed.Err)
		}
	} else if refusal, ok := errors.AsType[*caller.Refusal](err); ok {
		message = refusal.Message
	}
	c.o.Log.Warn("nobody was signed in at the console", "from", r.RemoteAddr, "error", err)
	c.signInPage(w, r, http.StatusUnauthorized, message, to)
}

// Fresh is how long ago a person may have signed in at an authorization server who decides
// something for others: a session that was left open decides nothing.
const Fresh = 15 * time.Minute

// recent lets a person decide, or has them sign in again.
func (c *Console) recent(r *request) error {
	if r.who.Issuer == "" {
		return nil
	}
	s, err := c.o.Sessions.Find(r.Context(), c.sessionID(r.Request))
	if err != nil {
		return err
	}
	if time.Since(s.Began) < Fresh {
		return nil
	}
	return errAgain
}

var errAgain = &model.Error{
	Status: http.StatusForbidden, Type: model.TypePermission, Code: "sign_in_again",
	Message: "You signed in more than 15 minutes ago. Sign in again to decide for others; nothing was done.",
}
