package packaging

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestNotes: the notes of a release are its section of CHANGELOG.md, with the empty lines
// without which a heading would be part of the list before it, and with links that lead
// to the files of that release, since the page of a release has none.
func TestNotes(t *testing.T) {
	makes := need(t, "make", "make")
	need(t, "awk", "mawk")
	dir := t.TempDir()
	text, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	changes := `# Changes

## Unreleased

Later.

## v1.2.0

Said before [this](https://example.com/a).

**One**

* first ([use](docs/use.md#there))

**Two**

* second ([a](docs/a.md), [b](SECURITY.md))

## v1.1.0

Older.
`
	for name, text := range map[string]string{"Makefile": string(text), "CHANGELOG.md": changes} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const tree = "https://github.com/dragoman-mcp/dragoman/blob/v1.2.0/"
	want := `Said before [this](https://example.com/a).

**One**

* first ([use](` + tree + `docs/use.md#there))

**Two**

* second ([a](` + tree + `docs/a.md), [b](` + tree + `SECURITY.md))
`
	for _, version := range []string{"v1.2.0", "1.2.0"} {
		if got := output(t, nil, makes, "-s", "--no-print-directory", "-C", dir, "notes", "VERSION="+version); strings.TrimRight(got, "\n")+"\n" != want {
			t.Errorf("notes of %s:\n%s", version, got)
		}
	}
	if got := output(t, nil, makes, "-s", "--no-print-directory", "-C", dir, "notes"); strings.TrimSpace(got) != "Later." {
		t.Errorf("notes of what is not released: %q", got)
	}
	if out, err := exec.CommandContext(t.Context(), makes, "-s", "--no-print-directory", "-C", dir, "notes", "VERSION=v9").CombinedOutput(); err == nil || !strings.Contains(string(out), "has no section for v9") {
		t.Errorf("notes of a version that there is not: %v\n%s", err, out)
	}
}

// TestChangesLead: links of CHANGELOG.md lead to files that are there.
func TestChangesLead(t *testing.T) {
	text, err := os.ReadFile("../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range regexp.MustCompile(`\]\(([^)#]+)`).FindAllStringSubmatch(string(text), -1) {
		if strings.HasPrefix(link[1], "https://") {
			continue
		}
		if _, err := os.Stat(filepath.Join("..", filepath.FromSlash(link[1]))); err != nil {
			t.Error(err)
		}
	}
}
