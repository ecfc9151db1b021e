package weakcache

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"weak"
)

type value struct{ N [8]int }

// What is made of a value is made once, whoever asks.
func TestGet(t *testing.T) {
	var m Map[value, int]
	var made atomic.Int64
	one, other := &value{}, &value{}
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if got := m.Get(one, func() int { return int(made.Add(1)) }); got != 1 {
				t.Errorf("made %d", got)
			}
		})
	}
	wg.Wait()
	if got := m.Get(other, func() int { return 7 }); got != 7 {
		t.Errorf("another value has %d", got)
	}
	runtime.KeepAlive(one)
	runtime.KeepAlive(other)
}

// What was made of values that are gone is kept no more.
func TestValuesThatAreGone(t *testing.T) {
	var m Map[value, *[1 << 16]byte]
	stays := &value{}
	m.Get(stays, func() *[1 << 16]byte { return &[1 << 16]byte{} })
	for range 100 {
		m.Get(&value{}, func() *[1 << 16]byte { return &[1 << 16]byte{} })
	}
	// Cleanups run some time after a collection; there is nothing that tells us.
	for deadline := time.Now().Add(time.Minute); m.Len() > 1; runtime.Gosched() {
		runtime.GC()
		if time.Now().After(deadline) {
			t.Fatalf("%d values are kept, one is in use", m.Len())
		}
	}
	runtime.KeepAlive(stays)
}

// A value that stays does not keep what a Map is a part of, that nobody has any more.
func TestMapsThatAreGone(t *testing.T) {
	type owner struct {
		made Map[value, int]
		more [1 << 10]byte
	}
	stays := &value{}
	var owners []weak.Pointer[owner]
	for range 100 {
		o := &owner{}
		o.made.Get(stays, func() int { return len(o.more) })
		owners = append(owners, weak.Make(o))
	}
	alive := func() (n int) {
		for _, o := range owners {
			if o.Value() != nil {
				n++
			}
		}
		return n
	}
	for deadline := time.Now().Add(time.Minute); alive() > 1; runtime.Gosched() {
		runtime.GC()
		if time.Now().After(deadline) {
			t.Fatalf("%d owners are kept", alive())
		}
	}
	runtime.KeepAlive(stays)
}

// What could not be made is made by who asks next.
func TestMakePanics(t *testing.T) {
	var m Map[int, string]
	key := new(int)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("nobody heard of it")
			}
		}()
		m.Get(key, func() string { panic("no") })
	}()
	if got := m.Get(key, func() string { return "made" }); got != "made" {
		t.Errorf("got %q", got)
	}
	if got := m.Get(key, func() string { return "again" }); got != "made" {
		t.Errorf("got %q", got)
	}
	if n := testing.AllocsPerRun(100, func() { m.Get(key, func() string { return *new(string) + t.Name() }) }); n != 0 {
		t.Errorf("%v allocations to find what was made", n)
	}
}
