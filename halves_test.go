package dragoman_test

import (
	"bufio"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestLinesOfHalves counts the lines of code of each client half, and wants those that
// docs/design.md says to be right within a tenth: lines that are neither empty nor a
// comment, without tests.
func TestLinesOfHalves(t *testing.T) {
	page, err := os.ReadFile("docs/design.md")
	if err != nil {
		t.Fatal(err)
	}
	for row, packages := range map[string][]string{
		"Chat": {"chat"}, "Responses": {"responses"}, "Messages": {"messages"},
		"what they share": {"model", "memory", "hosted", "internal/recall", "internal/output"},
	} {
		lines := 0
		for _, p := range packages {
			lines += linesOf(t, filepath.Join("openai", p))
		}
		t.Logf("%s: %d", row, lines)
		said := regexp.MustCompile(`(?m)^\| ` + row + ` \| (\d+) \|`).FindSubmatch(page)
		if said == nil {
			t.Errorf("docs/design.md has no row %q", row)
			continue
		}
		if n, _ := strconv.Atoi(string(said[1])); n < lines-lines/10 || n > lines+lines/10 {
			t.Errorf("docs/design.md says that %s has %d lines; it has %d", row, n, lines)
		}
	}
}

func linesOf(t *testing.T, dir string) (n int) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %v", dir, err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for s := bufio.NewScanner(f); s.Scan(); {
			if line := strings.TrimSpace(s.Text()); line != "" && !strings.HasPrefix(line, "//") {
				n++
			}
		}
	}
	return n
}
