package servers

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestInheritedIsInTheGuide: docs/configuration.md names every variable that a local server
// gets from our environment, since it says that there are no others.
func TestInheritedIsInTheGuide(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "configuration.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(page), "It inherits `PATH`")
	list, _, found := strings.Cut("`PATH`"+list, "and nothing else")
	if !found {
		t.Fatal("docs/configuration.md does not say what is inherited")
	}
	for _, name := range inherited {
		if !strings.Contains(list, "`"+strings.ToUpper(name)+"`") {
			t.Errorf("docs/configuration.md does not say that %s is inherited", name)
		}
	}
}
