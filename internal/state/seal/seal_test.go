package seal

import (
	"bytes"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestSeal(t *testing.T) {
	old, young := NewKey(), NewKey()
	plain, bound := []byte("what the layers below keep"), Bind([]byte("alice"), []byte("tools/call"))
	sealed := New(old).Close(Continuation, bound, plain, time.Time{})
	if bytes.Contains(sealed, plain) || len(sealed) != len(plain)+Overhead {
		t.Errorf("%d bytes sealed are %d: %q", len(plain), len(sealed), sealed)
	}
	for _, tt := range []struct {
		name    string
		ring    *Ring
		purpose Purpose
		bound   []byte
		sealed  []byte
		want    error
	}{
		{"as it was", New(old), Continuation, bound, sealed, nil},
		{"with an older key of the ring", New(young, old), Continuation, bound, sealed, nil},
		{"another gateway's", New(young), Continuation, bound, sealed, ErrForeign},
		{"for another purpose", New(old), Cursor, bound, sealed, ErrForged},
		{"another owner's", New(old), Continuation, Bind([]byte("bob"), []byte("tools/call")), sealed, ErrForged},
		{"borders of parts count", New(old), Continuation, Bind([]byte("alicetools/"), []byte("call")), sealed, ErrForged},
		{"cut", New(old), Continuation, bound, sealed[:len(sealed)-1], ErrForged},
		{"too short for anything", New(old), Continuation, bound, sealed[:Overhead-1], ErrForged},
		{"nothing", New(old), Continuation, bound, nil, ErrForged},
		{"a bit of it turned", New(old), Continuation, bound, turned(sealed, len(sealed)-20), ErrForged},
		{"of another format", New(old), Continuation, bound, turned(sealed, 0), ErrForged},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.ring.Open(tt.purpose, tt.bound, tt.sealed)
			if !errors.Is(err, tt.want) || err == nil && !bytes.Equal(got, plain) {
				t.Errorf("%q, %v, want %v", got, err, tt.want)
			}
		})
	}
}

func turned(b []byte, at int) []byte {
	b = bytes.Clone(b)
	b[at] ^= 1
	return b
}

// TestLife: a seal is good for the life of its purpose, and for less where less is asked
// for, but never for more.
func TestLife(t *testing.T) {
	for _, tt := range []struct {
		name      string
		asked     time.Duration
		good, bad time.Duration
	}{
		{"of the purpose", 0, 15 * time.Minute, 15*time.Minute + time.Millisecond},
		{"shorter", time.Minute, time.Minute, time.Minute + time.Millisecond},
		{"longer than the purpose's", time.Hour, 15 * time.Minute, 15*time.Minute + time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := New()
				expires := time.Time{}
				if tt.asked > 0 {
					expires = time.Now().Add(tt.asked)
				}
				sealed := r.Close(Cursor, nil, []byte("x"), expires)
				time.Sleep(tt.good)
				if _, err := r.Open(Cursor, nil, sealed); err != nil {
					t.Errorf("after %s: %v", tt.good, err)
				}
				time.Sleep(tt.bad - tt.good)
				if _, err := r.Open(Cursor, nil, sealed); !errors.Is(err, ErrExpired) {
					t.Errorf("after %s: %v", tt.bad, err)
				}
			})
		})
	}
}

// TestClocks: what is sealed at one machine is good for as long at another, whichever of their
// clocks is the wrong one.
func TestClocks(t *testing.T) {
	const off, life = 10 * time.Minute, 5 * time.Minute
	for _, wrong := range []string{"opens", "closes"} {
		synctest.Test(t, func(t *testing.T) {
			key := NewKey()
			closes, opens := New(key), New(key)
			if wrong == "opens" {
				opens.Share(func() time.Duration { return off })
			} else {
				closes.Share(func() time.Duration { return -off })
			}
			sealed := closes.Close(Continuation, nil, []byte("x"), time.Now().Add(life))
			time.Sleep(off) // now it is the other machine's clock
			if _, err := opens.Open(Continuation, nil, sealed); err != nil {
				t.Errorf("the one that %s is wrong: %v", wrong, err)
			}
			time.Sleep(life + time.Millisecond)
			if _, err := opens.Open(Continuation, nil, sealed); !errors.Is(err, ErrExpired) {
				t.Errorf("the one that %s is wrong, later: %v", wrong, err)
			}
		})
	}
}

// TestTurn: after a ring is turned the new key seals, and the old one opens until it is
// taken away.
func TestTurn(t *testing.T) {
	old, young := NewKey(), NewKey()
	r := New(old)
	before := r.Close(Reasoning, nil, []byte("before"), time.Time{})
	r.Set(young, old)
	after := r.Close(Reasoning, nil, []byte("after"), time.Time{})
	if got, err := r.Open(Reasoning, nil, before); err != nil || string(got) != "before" {
		t.Errorf("%q, %v", got, err)
	}
	r.Set(young)
	if _, err := r.Open(Reasoning, nil, before); !errors.Is(err, ErrForeign) {
		t.Errorf("the key is gone: %v", err)
	}
	if got, err := r.Open(Reasoning, nil, after); err != nil || string(got) != "after" {
		t.Errorf("%q, %v", got, err)
	}
}

func FuzzOpen(f *testing.F) {
	r := New(Key{ID: 1})
	f.Add(r.Close(Cursor, nil, []byte("x"), time.Time{}))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, sealed []byte) {
		plain, err := r.Open(Cursor, []byte("somebody else"), sealed)
		if err == nil {
			t.Errorf("%q was opened: %q", sealed, plain)
		}
	})
}
