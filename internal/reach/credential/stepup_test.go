package credential

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

// TestRegisteredForMore: a login that a server wants more of while it goes on registers for
// all that it asks for then, what it had before among it.
func TestRegisteredForMore(t *testing.T) {
	w, s := newWorld(t), newStore(t)
	var registered []string
	w.login.Config.Handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/register":
			body, _ := io.ReadAll(r.Body)
			var client struct{ Scope string }
			if err := json.Unmarshal(body, &client); err != nil {
				t.Error(err)
			}
			registered, r.Body = strings.Fields(client.Scope), io.NopCloser(bytes.NewReader(body))
		case "/authorize": // a client gets what it is registered for
			q := r.URL.Query()
			for _, scope := range strings.Fields(q.Get("scope")) {
				if !slices.Contains(registered, scope) {
					t.Errorf("asks for %q, registered for %q", q.Get("scope"), registered)
					http.Redirect(rw, r, q.Get("redirect_uri")+"?"+url.Values{"error": {"invalid_scope"}, "state": {q.Get("state")}}.Encode(), http.StatusFound)
					return
				}
			}
		}
		w.authorize(rw, r)
	})
	back, err := ListenLoopback()
	if err != nil {
		t.Fatal(err)
	}
	defer back.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err = Login(ctx, Account{w.url(), ""}, http.DefaultTransport, LoginOptions{
		Store: s, Redirect: back.Redirect(),
		Visit: func(ctx context.Context, address string) (Answer, error) { return back.Visit(ctx, address, browse) },
		Use: func(ctx context.Context, client *http.Client) error {
			for _, scope := range []string{"read", "write"} {
				w.do(func() { w.needs = scope })
				if status, err := ask(ctx, client, w.url()); err != nil || status != 200 {
					t.Errorf("%s: %d, %v", scope, status, err)
				}
			}
			return nil
		},
	})
	if err != nil {
		t.Error(err)
	}
}

// TestScopesAreBounded: a server that wants another scope with each request does not make
// what is kept of a login, and what is asked for, longer and longer.
func TestScopesAreBounded(t *testing.T) {
	w, s := newWorld(t), newStore(t)
	if err := logIn(t, w, s, Config{}); err != nil {
		t.Fatal(err)
	}
	subjects := NewSubjects()
	subjects.Keep("ann", w.login.URL, "subject-ann", time.Now().Add(time.Hour))
	exchanged := w.onBehalf(t, "ann", exchanging(w), subjects)
	robot := Config{Grant: ClientCredentialsGrant, ClientID: "robot", ClientSecret: secret.New("robot-secret"), Issuer: w.login.URL}
	for name, client := range map[string]*http.Client{
		"login": gatewayOf(t, w, s, Config{}), "exchange": {Transport: exchanged}, "client credentials": gatewayOf(t, w, s, robot),
	} {
		for n := range 20 {
			w.do(func() { w.needs = strings.Repeat("x", 1000) + strconv.Itoa(n) })
			if _, err := ask(t.Context(), client, w.url()); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
	e, err := s.Get(Account{w.url(), ""})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(e.Open()); n > 10_000 {
		t.Errorf("%d bytes are kept of a login", n)
	}
	w.do(func() {
		for _, form := range w.asked {
			if n := len(form.Get("scope")); n > 10_000 {
				t.Errorf("%s asks for %d bytes of scopes", form.Get("grant_type"), n)
			}
		}
	})
}
