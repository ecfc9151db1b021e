package bounded

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestOwnersAreApart(t *testing.T) {
	m := &Map[int]{Bytes: 1 << 20, Age: time.Hour}
	m.Put("a", "k", 1, 10)
	m.Put("b", "k", 2, 10)
	if v, ok := m.Get("a", "k"); v != 1 || !ok {
		t.Errorf("a's value is %d, %t", v, ok)
	}
	if _, ok := m.Get("c", "k"); ok || m.Has("c") {
		t.Error("c has a value of somebody else")
	}
	m.Delete("a", "k")
	if _, ok := m.Get("a", "k"); ok || m.Has("a") {
		t.Error("a's value is still there")
	}
	if v, _ := m.Get("b", "k"); v != 2 {
		t.Error("b's value went with a's")
	}
}

func TestAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &Map[string]{Bytes: 1 << 20, Age: time.Minute}
		m.Put("a", "used", "x", 1)
		m.Put("a", "unused", "y", 1)
		time.Sleep(40 * time.Second)
		m.Get("a", "used")
		time.Sleep(40 * time.Second)
		if _, ok := m.Get("a", "used"); !ok {
			t.Error("a value that was used is gone")
		}
		if _, ok := m.Get("a", "unused"); ok {
			t.Error("a value that nobody used is still there")
		}
		time.Sleep(time.Hour)
		m.Put("b", "new", "z", 1)
		if n, size := m.Held(); n != 1 || size != 1+Overhead {
			t.Errorf("what is too old still takes %d bytes in %d values", size, n)
		}
	})
}

// The owner who holds most pays for the room that others need.
func TestBytes(t *testing.T) {
	const each = 1000 - Overhead
	m := &Map[int]{Bytes: 10_000, Age: time.Hour}
	m.Put("small", "k", 1, each)
	for i := range 100 {
		m.Put("large", fmt.Sprint(i), i, each)
		if _, size := m.Held(); size > m.Bytes {
			t.Fatalf("%d bytes are kept", size)
		}
	}
	if _, ok := m.Get("small", "k"); !ok {
		t.Error("one owner pushed out another")
	}
	if _, ok := m.Get("large", "90"); ok {
		t.Error("the oldest value stayed")
	}
	if _, ok := m.Get("large", "99"); !ok {
		t.Error("the newest value is gone")
	}
	if m.Put("small", "k", 2, 20_000) {
		t.Error("a value larger than all was kept")
	}
	if _, ok := m.Get("small", "k"); ok {
		t.Error("a value that was to be replaced is still there")
	}
}

func TestTogether(t *testing.T) {
	m := &Map[int]{Bytes: 50_000, Age: time.Hour}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 500 {
				owner, key := fmt.Sprint(i%3), fmt.Sprint(j%40)
				m.Put(owner, key, j, int64(j))
				m.Get(owner, key)
				m.Has(owner)
				if j%7 == 0 {
					m.Delete(owner, key)
				}
			}
		})
	}
	wg.Wait()
	if n := m.size; n < 0 || n > m.Bytes {
		t.Errorf("%d bytes are kept", n)
	}
}

// Of many who take a value at the same time one gets it, and nobody what is too old
// or somebody else's.
func TestTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := Map[int]{Bytes: 1 << 20, Age: time.Minute}
		m.Put("ann", "x", 7, 0)
		if _, ok := m.Take("bob", "x"); ok {
			t.Error("bob takes what is ann's")
		}
		var got atomic.Int32
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				if v, ok := m.Take("ann", "x"); ok && v == 7 {
					got.Add(1)
				}
			})
		}
		wg.Wait()
		if got.Load() != 1 || m.Has("ann") {
			t.Errorf("%d took it", got.Load())
		}
		m.Put("ann", "y", 1, 0)
		time.Sleep(time.Minute)
		if _, ok := m.Take("ann", "y"); ok {
			t.Error("what is too old was taken")
		}
	})
}

// Other bounds hold at once.
func TestBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := Map[int]{Bytes: 10 * (Overhead + 1), Age: time.Hour}
		for i := range 10 {
			m.Put("ann", fmt.Sprint(i), i, 1)
			time.Sleep(time.Minute)
		}
		m.Bound(4*(Overhead+1), time.Hour)
		if n, _ := m.Held(); n != 4 {
			t.Errorf("%d are kept where there is room for 4", n)
		}
		if _, ok := m.Get("ann", "9"); !ok {
			t.Error("the newest went")
		}
		m.Bound(4*(Overhead+1), 2*time.Minute+time.Second)
		if n, _ := m.Held(); n != 2 {
			t.Errorf("%d are kept that are young enough", n)
		}
	})
}

// A slice of what was put says, slowly, what there has to be.
func TestAsASlice(t *testing.T) {
	type put struct {
		of, key string
		value   int
		size    int64
	}
	const most = 40 * Overhead
	synctest.Test(t, func(t *testing.T) {
		m, r := &Map[int]{Bytes: most, Age: time.Hour}, rand.New(rand.NewPCG(1, 2))
		var want []put // the longest unused first
		drop := func(at int) { want = slices.Delete(want, at, at+1) }
		find := func(of, key string) int {
			return slices.IndexFunc(want, func(p put) bool { return p.of == of && p.key == key })
		}
		for i := range 20_000 {
			of, key := string(rune('a'+r.IntN(5))), string(rune('a'+r.IntN(20)))
			at := find(of, key)
			switch r.IntN(6) {
			case 0:
				if m.Delete(of, key); at >= 0 {
					drop(at)
				}
			case 1:
				value, ok := m.Take(of, key)
				if ok != (at >= 0) || ok && value != want[at].value {
					t.Fatalf("step %d: took %d, %t", i, value, ok)
				}
				if ok {
					drop(at)
				}
			case 2:
				value, ok := m.Get(of, key)
				if ok != (at >= 0) || ok && value != want[at].value {
					t.Fatalf("step %d: got %d, %t", i, value, ok)
				}
				if ok {
					p := want[at]
					drop(at)
					want = append(want, p)
				}
			default:
				p := put{of, key, i, int64(r.IntN(Overhead)) + Overhead}
				if at >= 0 {
					drop(at)
				}
				for total := p.size; ; total = p.size {
					held := map[string]int64{}
					for _, p := range want {
						held[p.of] += p.size
						total += p.size
					}
					if total <= most {
						break
					}
					largest := ""
					for name, size := range held {
						if largest == "" || size > held[largest] || size == held[largest] && name < largest {
							largest = name
						}
					}
					drop(slices.IndexFunc(want, func(p put) bool { return p.of == largest }))
				}
				want = append(want, p)
				m.Put(of, key, i, p.size-Overhead)
			}
			if values, bytes := m.Held(); values != len(want) || bytes > most {
				t.Fatalf("step %d: holds %d in %d bytes, want %d", i, values, bytes, len(want))
			}
			var left []int
			for _, p := range want {
				if p.of == of {
					left = append(left, p.value)
				}
			}
			if got := m.Values(of); !slices.Equal(got, left) || m.Has(of) != (len(left) > 0) {
				t.Fatalf("step %d: %s has %v, want %v", i, of, got, left)
			}
		}
	})
}

// BenchmarkPut is what it costs to put a value where there is no room, for one owner and for
// the next of many.
func BenchmarkPut(b *testing.B) {
	for _, owners := range []int{1, 10_000} {
		b.Run(fmt.Sprint(owners), func(b *testing.B) {
			m := &Map[*int]{Bytes: 64 << 20, Age: time.Hour}
			names, keys := make([]string, owners), make([]string, 100_000)
			for i := range names {
				names[i] = fmt.Sprint("owner", i)
			}
			for i := range keys {
				keys[i] = fmt.Sprint("key", i)
				m.Put(names[i%owners], keys[i], new(int), 1000)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				m.Put(names[i%owners], keys[i%len(keys)], nil, 1000)
			}
		})
	}
}
