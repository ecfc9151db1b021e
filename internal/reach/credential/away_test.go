package credential

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

func robot(w *world) Config {
	return Config{Grant: ClientCredentialsGrant, ClientID: "robot", ClientSecret: secret.New("robot-secret"), Issuer: w.login.URL}
}

// A token endpoint that is away is not asked for each request, and what is good until its
// end is shown until then.
func TestTokenEndpointAway(t *testing.T) {
	w := newWorld(t)
	w.life = 5 * time.Second // about to end, always
	client := gatewayOf(t, w, nil, robot(w))
	if status, err := ask(t.Context(), client, w.url()); status != 200 || err != nil {
		t.Fatalf("%d, %v", status, err)
	}
	w.do(func() { w.away, w.asked, w.shown = true, nil, nil })
	for range 5 {
		if status, err := ask(t.Context(), client, w.url()); status != 200 || err != nil {
			t.Errorf("good still: %d, %v", status, err)
		}
	}
	w.do(func() {
		if len(w.asked) != 1 || len(w.shown) != 5 {
			t.Errorf("asked %d times, and the server %d times for 5 requests", len(w.asked), len(w.shown))
		}
		clear(w.tokens)
	})
	for range 5 {
		status, err := ask(t.Context(), client, w.url())
		if err == nil || !strings.Contains(err.Error(), "cannot be asked for a token") {
			t.Errorf("good no more: %d, %v", status, err)
		}
		// The server refused the request, and so did not act on it.
		if refused, ok := errors.AsType[*refusedError](err); !ok || !refused.Unhandled() {
			t.Errorf("said of what the server refused: %v", err)
		}
	}
	w.do(func() {
		if len(w.asked) != 2 { // once to renew it, and once for another
			t.Errorf("asked %d times", len(w.asked))
		}
	})
}

// TestAwayWithACode: an authorization server that is in trouble, and says so with a code,
// refuses nobody: who logged in need not do it again.
func TestAwayWithACode(t *testing.T) {
	for _, tt := range []struct {
		status int
		code   string
		away   bool
	}{
		{http.StatusServiceUnavailable, "temporarily_unavailable", true},
		{http.StatusInternalServerError, "server_error", true},
		{http.StatusBadRequest, "temporarily_unavailable", true},
		{http.StatusTooManyRequests, "too_many_requests", true},
		{http.StatusBadGateway, "E1", true},
		{http.StatusBadRequest, "invalid_grant", false},
		{http.StatusInternalServerError, "invalid_grant", false}, // whatever the status is
		{http.StatusOK, "bad_refresh_token", false},
	} {
		t.Run(strconv.Itoa(tt.status)+" "+tt.code, func(t *testing.T) {
			w, s := newWorld(t), newStore(t)
			if err := logIn(t, w, s, Config{}); err != nil {
				t.Fatal(err)
			}
			w.login.Config.Handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/token" {
					w.authorize(rw, r)
					return
				}
				rw.Header().Set("Content-Type", "application/json")
				rw.WriteHeader(tt.status)
				_ = json.NewEncoder(rw).Encode(map[string]any{"error": tt.code})
			})
			w.do(func() { clear(w.tokens) })
			keeper := transportOf(t, TransportOptions{Account: Account{w.url(), ""}, Store: s})
			status, err := ask(t.Context(), &http.Client{Transport: keeper}, w.url())
			if stuck := keeper.Stuck(); tt.away != (stuck == nil) || tt.away != (err != nil) {
				t.Errorf("of a login: %d, %v, and wanted: %v", status, err, stuck)
			}
			subjects := NewSubjects()
			subjects.Keep("ann", w.login.URL, "subject-ann", time.Time{})
			config := robot(w)
			config.Grant = TokenExchangeGrant
			exchanger := transportOf(t, TransportOptions{Account: Account{w.url(), "ann"}, Config: config, Subjects: subjects})
			_, err = ask(t.Context(), &http.Client{Transport: exchanger}, w.url())
			if stuck := exchanger.Stuck(); tt.away != (stuck == nil) || tt.away != (err != nil) {
				t.Errorf("of an exchange: %v, and wanted: %v", err, stuck)
			}
			if _, err = ask(t.Context(), gatewayOf(t, w, nil, robot(w)), w.url()); err == nil || tt.away != strings.Contains(err.Error(), "cannot be asked") {
				t.Errorf("by client credentials: %v", err)
			}
			err = logIn(t, w, newStore(t), Config{})
			if refused, ok := errors.AsType[*Refused](err); err == nil || ok == tt.away {
				t.Errorf("logging in: %v, refused: %v", err, refused)
			}
		})
	}
}

// A token endpoint that is slow holds up nobody who goes away, be it who asked it or who
// waits behind.
func TestSlowTokenEndpoint(t *testing.T) {
	for name, config := range map[string]func(*world) Config{
		"of a login":            func(*world) Config { return Config{} },
		"by client credentials": robot,
	} {
		w, s := newWorld(t), newStore(t)
		c := config(w)
		if c.LogsIn() {
			if err := logIn(t, w, s, c); err != nil {
				t.Fatal(err)
			}
		}
		transport := transportOf(t, TransportOptions{Account: Account{w.url(), ""}, Config: c, Store: s})
		client := &http.Client{Transport: transport}
		hold, came := make(chan struct{}), make(chan struct{}, 8)
		w.do(func() { w.hold, w.came = hold, came; clear(w.tokens) })
		ctx, leave := context.WithCancel(t.Context())
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		left := make(chan error, 2)
		go func() {
			_, err := ask(ctx, client, w.url())
			left <- err
		}()
		<-came
		for _, who := range []func(){
			func() { _, err := transport.Token(gone); left <- err }, // waits behind the first
			leave,
		} {
			go who()
			select {
			case err := <-left:
				if !errors.Is(err, context.Canceled) {
					t.Errorf("%s: %v", name, err)
				}
			case <-time.After(10 * time.Second):
				t.Errorf("%s: somebody who went away still waits", name)
			}
		}
		close(hold)
		if status, err := ask(t.Context(), client, w.url()); status != 200 || err != nil {
			t.Errorf("%s: %d, %v", name, status, err)
		}
	}
}
