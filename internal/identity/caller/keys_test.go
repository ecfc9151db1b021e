package caller

import (
	"fmt"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

// Each of many keys of the configuration is a caller of its own, and nothing else is.
func TestManyFixedKeys(t *testing.T) {
	f := newFixed(append(manyKeys(1000), secret.Text{}))
	ids := map[string]bool{}
	for _, key := range manyKeys(1000) {
		who, ok := f.recognise(key.Reveal())
		if !ok || !f.has(who.ID) {
			t.Fatalf("%s is not known", key.Reveal())
		}
		ids[who.ID] = true
	}
	if len(ids) != 1000 {
		t.Errorf("%d callers", len(ids))
	}
	for _, key := range []string{"", "key number 1000", "key number 1 "} {
		if who, ok := f.recognise(key); ok {
			t.Errorf("%q is %+v", key, who)
		}
	}
}

// What a key costs does not grow with the number of keys.
func BenchmarkFixedKeys(b *testing.B) {
	for _, n := range []int{1, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			f := newFixed(manyKeys(n))
			for b.Loop() {
				if _, ok := f.recognise("key number 0"); !ok {
					b.Fatal("not known")
				}
			}
		})
	}
}

func manyKeys(n int) (keys []secret.Text) {
	for i := range n {
		keys = append(keys, secret.New(fmt.Sprint("key number ", i)))
	}
	return keys
}
