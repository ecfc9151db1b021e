package rehearsal

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDocs holds docs/rehearsal.md to the misbehaviours there are: a row for each, in
// their order and words, and for no other.
func TestDocs(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "docs", "rehearsal.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "## Misbehaving\n")
	var rows []string
	for line := range strings.Lines(table) {
		if strings.HasPrefix(line, "| `") {
			rows = append(rows, line)
		}
	}
	all := Misbehaviours()
	if len(rows) != len(all) {
		t.Errorf("the page has %d rows, there are %d misbehaviours", len(rows), len(all))
	}
	for i, m := range all {
		if want := fmt.Sprintf("| `%s` | %s |\n", m, m.Means()); i >= len(rows) || rows[i] != want {
			t.Errorf("docs/rehearsal.md needs the row\n%s", want)
		}
	}
}
