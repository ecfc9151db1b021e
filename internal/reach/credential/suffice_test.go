package credential

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

// TestRenewedAndNotEnough: a token that is good, and does not suffice, is not called useless
// where it was just renewed. The next login asks for what is wanted.
func TestRenewedAndNotEnough(t *testing.T) {
	w, s := newWorld(t), newStore(t)
	if err := logIn(t, w, s, Config{}); err != nil {
		t.Fatal(err)
	}
	transport := transportOf(t, TransportOptions{Account: Account{w.url(), ""}, Store: s})
	w.do(func() {
		clear(w.tokens) // they have ended
		w.needs = "write"
	})
	if status, err := ask(t.Context(), &http.Client{Transport: transport}, w.url()); status != 403 || err != nil {
		t.Errorf("%d, %v", status, err)
	}
	if stuck := transport.Stuck(); stuck == nil || !strings.Contains(stuck.Error(), "it does not suffice") {
		t.Errorf("says %v", stuck)
	}
	if e, err := s.Get(Account{w.url(), ""}); err != nil || !slices.Contains(e.Scopes, "write") {
		t.Errorf("the next login asks for %v, %v", e.Scopes, err)
	}
}
