package cputime

import "testing"

// Work is counted, and waiting is not taken for less than nothing.
func TestOf(t *testing.T) {
	little := Of(func() {})
	n := uint64(1)
	much := Of(func() {
		for range 20_000_000 {
			n = n*6364136223846793005 + 1
		}
	})
	if little < 0 || much <= little || n == 0 {
		t.Errorf("%v for nothing, %v for much", little, much)
	}
}
