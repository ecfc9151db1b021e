package qualified

import "testing"

func TestSplit(t *testing.T) {
	for text, want := range map[string][3]any{
		"github__search":      {"github", "search", true},
		"github__a__b":        {"github", "a__b", true},
		"github__":            {"github", "", true},
		"github_search":       {"github_search", "", false},
		Name("x", "__strict"): {"x", "__strict", true},
	} {
		label, name, ok := Split(text)
		if got := [3]any{label, name, ok}; got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
		if ok && Name(label, name) != text {
			t.Errorf("%s: put together as %s", text, Name(label, name))
		}
	}
}
