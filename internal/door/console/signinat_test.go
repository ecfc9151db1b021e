package console

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/identity/signin"
)

// TestDecidesFreshly: who signed in at an authorization server decides for others within 15
// minutes of that, and then signs in again; looking goes on. Who shows a key, or the secret,
// decides as long as the session lasts.
func TestDecidesFreshly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Options{On: func() bool { return true }, Sessions: signin.NewSessions(nil, func(who caller.Caller) (caller.Caller, string, bool) { return who, "", true })})
		begin := func(who caller.Caller) *request {
			id, err := c.o.Sessions.Begin(t.Context(), who)
			if err != nil {
				t.Fatal(err)
			}
			r := httptest.NewRequest("POST", "http://localhost:1/console/inbox/x", nil)
			r.AddCookie(&http.Cookie{Name: c.cookie(r), Value: id})
			return &request{Request: r, who: who}
		}
		ada := caller.Caller{ID: "https://login.example#ada", Name: "ada", Issuer: "https://login.example", Grants: []string{"approve:*"}}
		first, keyed, operator := begin(ada), begin(caller.Caller{ID: "key-1", Name: "olga"}), begin(signin.Operator)
		decides := func(when string, r *request, want bool) {
			t.Helper()
			if err := c.recent(r); (err == nil) != want || err != nil && !errors.Is(err, errAgain) {
				t.Errorf("%s: %v", when, err)
			}
		}
		time.Sleep(Fresh - time.Second)
		decides("a moment before", first, true)
		time.Sleep(time.Second)
		decides("after 15 minutes", first, false)
		decides("with a key", keyed, true)
		decides("the operator", operator, true)
		if who, err := c.who(first.Request); err != nil || who.ID != ada.ID {
			t.Errorf("looking ends as well: %v", err)
		}
		again := begin(ada)
		decides("signed in again", again, true)
		decides("the session that was left open", first, false)
	})
}

// signIns are sign-ins at an authorization server that lets in whoever comes back.
type signIns struct{ begun int }

func (*signIns) SignsIn() []string { return []string{"https://login.example"} }

func (s *signIns) SignIn(_ context.Context, issuer, _, next string, _ bool) (string, caller.Attempt, error) {
	s.begun++
	state := strconv.Itoa(s.begun)
	return issuer + "/?state=" + state, caller.Attempt{Issuer: issuer, State: state, Next: next}, nil
}

func (*signIns) SignedIn(r *http.Request, a caller.Attempt, _ string) (caller.Caller, error) {
	if a.State == "" || a.State != r.URL.Query().Get("state") {
		return caller.Caller{}, &caller.SignInError{Message: "This is another's."}
	}
	return caller.Caller{ID: a.Issuer + "#ada", Issuer: a.Issuer}, nil
}

// TestSignsInOnSeveralPages: pages of one browser that are at an authorization server at once
// come back each, once, to where they were; also where an address is longer than a cookie.
func TestSignsInOnSeveralPages(t *testing.T) {
	c := New(Options{
		On: func() bool { return true }, Required: func() bool { return true }, At: &signIns{}, Log: slog.New(slog.DiscardHandler),
		Sessions: signin.NewSessions(nil, func(who caller.Caller) (caller.Caller, string, bool) { return who, "", true }),
	})
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	get := func(address string) *http.Response {
		t.Helper()
		r, w := httptest.NewRequest("GET", "http://localhost:1"+address, nil), httptest.NewRecorder()
		for _, cookie := range jar.Cookies(r.URL) {
			r.AddCookie(cookie)
		}
		c.Front().ServeHTTP(w, r)
		res := w.Result()
		for _, cookie := range res.Header.Values("Set-Cookie") {
			if len(cookie) > 4096 {
				t.Errorf("%.60s… of %d bytes, which no browser keeps", cookie, len(cookie))
			}
		}
		jar.SetCookies(r.URL, res.Cookies())
		return res
	}
	begin := func(next string) (back string) {
		t.Helper()
		to, err := get(Root + "sign-in/at?" + url.Values{"issuer": {"https://login.example"}, "next": {next}}.Encode()).Location()
		if err != nil {
			t.Fatal(err)
		}
		return signInBack + "?code=x&" + to.RawQuery
	}
	comes := func(back string, want int, to string) {
		t.Helper()
		if res := get(back); res.StatusCode != want || res.Header.Get("Location") != to {
			t.Errorf("%s: %s to %q, want %d to %q", back, res.Status, res.Header.Get("Location"), want, to)
		}
	}
	first, second := begin("/console/inbox"), begin("/console/live")
	comes(signInBack+"?code=x&state=forged", 401, "")
	comes(first, 303, "/console/inbox")
	comes(first, 401, "") // an attempt is good once
	comes(second, 303, "/console/live")

	long := "/console/tools?q=" + strings.Repeat("x", 2000)
	first, second = begin(long), begin(long)
	comes(first, 401, "") // there was no room for both
	comes(second, 303, long)
	comes(begin(long+long), 303, Root)
}
