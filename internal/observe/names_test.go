package observe

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table in docs/telemetry.md anew")

// TestNamesAreInTheGuide keeps the table of metrics in docs/telemetry.md as names.go has
// them.
func TestNamesAreInTheGuide(t *testing.T) {
	const begin, end = "<!-- metrics -->\n", "<!-- /metrics -->"
	page := filepath.Join("..", "..", "docs", "telemetry.md")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	table, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatal("the page has no place for the table")
	}
	var want strings.Builder
	want.WriteString("| metric | | unit | attributes | |\n|---|---|---|---|---|\n")
	for _, m := range Metrics {
		var keys []string
		for _, key := range m.Attributes {
			keys = append(keys, "`"+key+"`")
		}
		fmt.Fprintf(&want, "| `%s` | %s | %s | %s | %s |\n", m.Name, m.Shape, m.Unit, strings.Join(keys, ", "), m.Doc)
	}
	if table == want.String() {
		return
	}
	if !*update {
		t.Fatal("the table is not what names.go says; run go test ./internal/observe -update")
	}
	if err := os.WriteFile(page, []byte(before+begin+want.String()+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// A metric has a name of its own, and a histogram has buckets that grow.
func TestMetricsAreSound(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range Metrics {
		if seen[m.Name] || m.Doc == "" || (m.Shape == Histogram) != (len(m.Buckets) > 0) || !slices.IsSorted(m.Buckets) {
			t.Errorf("%s is no sound metric", m.Name)
		}
		seen[m.Name] = true
	}
}
