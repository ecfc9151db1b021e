package credential

import (
	"testing"
	"time"

	"golang.org/x/oauth2"
)

// TestShortLived: tokens that live no longer than they are renewed before their end are
// renewed halfway, and not with each request of each process.
func TestShortLived(t *testing.T) {
	for name, life := range map[string]time.Duration{
		"short":             25 * time.Second,
		"over as it comes":  -time.Second,
		"for an hour":       time.Hour,
		"just long enough":  early + 10*time.Second,
		"renewed so before": early,
	} {
		t.Run(name, func(t *testing.T) {
			w, s := newWorld(t), newStore(t)
			w.life = life
			if err := logIn(t, w, s, Config{}); err != nil {
				t.Fatal(err)
			}
			w.do(func() { w.asked = nil })
			o := TransportOptions{Account: Account{w.url(), ""}, Store: s}
			processes := []*Transport{transportOf(t, o), transportOf(t, o)}
			for n := range 6 {
				if _, err := processes[n%2].Token(t.Context()); err != nil {
					t.Error(err)
				}
			}
			w.do(func() {
				if len(w.asked) != 0 {
					t.Errorf("renewed %d times for 6 requests", len(w.asked))
				}
			})
		})
	}
	for life, due := range map[time.Duration]time.Duration{time.Hour: time.Hour - early, 2 * early: early, 40 * time.Second: 20 * time.Second, 2 * time.Second: time.Second} {
		var e Entry
		e.got(&oauth2.Token{Expiry: time.Now().Add(life)})
		if off := (e.dueIn() - due).Abs(); off > 500*time.Millisecond {
			t.Errorf("one of %s is due in %s, want %s", life, e.dueIn(), due)
		}
	}
}
