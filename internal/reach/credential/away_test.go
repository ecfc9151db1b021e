package credential

import (
	"context"
	"errors"
	"net/http"
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
