package clip

import "testing"

func TestText(t *testing.T) {
	for _, tt := range []struct {
		text string
		n    int
		want string
	}{{"abc", 3, "abc"}, {"abcd", 3, "abc…"}, {"aé", 2, "a…"}, {"", 0, ""}, {"日本", 3, "日…"}} {
		if got := Text(tt.text, tt.n); got != tt.want {
			t.Errorf("Text(%q, %d) = %q, want %q", tt.text, tt.n, got, tt.want)
		}
	}
}
