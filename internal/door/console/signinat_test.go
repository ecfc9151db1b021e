package console

import (
	"errors"
	"net/http"
	"net/http/httptest"
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
