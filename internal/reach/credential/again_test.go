package credential

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
)

// TestSentAgain: a person is sent to the authorization server once more for what was not
// asked for yet, and not for what it does not give.
func TestSentAgain(t *testing.T) {
	for name, tt := range map[string]struct {
		wants []string            // the scope that the server wants at each visit; the last one for ever
		gives func(string) string // what the authorization server makes of a scope
		takes bool                // the server, any token at all
		times int                 // that the person is sent there
		good  bool
	}{
		"another scope":              {[]string{"read", "write"}, nil, true, 2, true},
		"a scope that is not given":  {[]string{"read", "admin"}, func(string) string { return "read" }, true, 2, false},
		"no token is taken":          {[]string{"read"}, nil, false, 1, false},
		"another scope at each turn": {[]string{"a", "b", "c", "d", "e", "f", "g", "h"}, func(string) string { return "none" }, true, 1 + maxBefore, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			turn := func(n int) { w.do(func() { w.needs = tt.wants[min(n, len(tt.wants)-1)] }) }
			turn(0)
			w.do(func() { w.refuses = !tt.takes })
			o := LoginOptions{Store: newStore(t), Redirect: "http://127.0.0.1:1/callback", Use: func(ctx context.Context, client *http.Client) error {
				status, err := ask(ctx, client, w.url())
				if err == nil && status != http.StatusOK {
					err = errors.New("refused")
				}
				return err
			}}
			a := Account{w.url(), "ann"}
			address, begun, err := Begin(t.Context(), a, http.DefaultTransport, o)
			times := 0
			for ; err == nil && address != nil && times < 10; times++ {
				back := visit(t, address)
				turn(times + 1)
				if tt.gives != nil {
					w.do(func() {
						for _, q := range w.codes {
							q.Set("scope", tt.gives(q.Get("scope")))
						}
					})
				}
				before := begun
				address, begun, err = Finish(t.Context(), a, http.DefaultTransport, o, begun, Answer{Code: back.Get("code"), Issuer: back.Get("iss")})
				if begun != nil && slices.Equal(before.Scopes, begun.Scopes) {
					t.Errorf("the same once more: %v", begun.Scopes)
				}
			}
			if times != tt.times || (err == nil) != tt.good || !tt.good && !errors.Is(err, ErrUseless) {
				t.Errorf("sent %d times, want %d; %v", times, tt.times, err)
			}
			if _, err := o.Store.Get(a); err != nil {
				t.Errorf("what it came to is not kept: %v", err)
			}
		})
	}
}
