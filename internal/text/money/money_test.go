package money

import (
	"strings"
	"testing"
)

func TestMoney(t *testing.T) {
	for _, text := range []string{"-1", "two", "1e9", "0.0000001", "1/3", "10000000", "nan", "1_0"} {
		if n, err := Parse(text); err == nil && text != "1_0" {
			t.Errorf("%q is %d", text, n)
		}
	}
	if n, err := Parse(strings.Repeat("9", 8<<20)); err == nil || len(err.Error()) > 1<<10 { // or it takes minutes
		t.Errorf("a long text is %d: %.100v", n, err)
	}
	for n, want := range map[int64]string{0: "0.00", 2_500_000: "2.50", 1: "0.000001", 12_345_000: "12.345"} {
		if got := Format(n); got != want {
			t.Errorf("%d is written %s, want %s", n, got, want)
		}
	}
}
