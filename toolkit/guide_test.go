package toolkit_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	block = regexp.MustCompile("(?ms)^```go\n(.*?)^```$")
	file  = regexp.MustCompile("(?ms)^File: `([^`]+)`\n\n```[a-z]+\n(.*?)^```$")
)

func guide(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "docs", "toolkit.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestGuide holds that every piece of Go in docs/toolkit.md stands in one of the
// guide's files, where it is compiled and run.
func TestGuide(t *testing.T) {
	text := file.ReplaceAllString(guide(t), "")
	names, err := filepath.Glob("guide_*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var sources strings.Builder
	for _, name := range names {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		sources.Write(source)
	}
	blocks := block.FindAllStringSubmatch(text, -1)
	if len(blocks) < 30 {
		t.Errorf("%d blocks of Go in the guide", len(blocks))
	}
	for _, b := range blocks {
		if !strings.Contains(sources.String(), b[1]) {
			t.Errorf("no guide_*_test.go has\n%s", b[1])
		}
	}
}

// TestGuideListsEveryTag holds the table of tags to what the code reads.
func TestGuideListsEveryTag(t *testing.T) {
	read := regexp.MustCompile(`(?:tag|Tag)\.(?:Get|Lookup)\("(\w+)"\)`)
	text, found := guide(t), 0
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range sources {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range read.FindAllStringSubmatch(string(source), -1) {
			found++
			if !regexp.MustCompile("(?m)^\\| [^|]*`" + m[1] + "`").MatchString(text) {
				t.Errorf("%s reads the tag %q, which is not in the table of docs/toolkit.md", name, m[1])
			}
		}
	}
	if found < 18 {
		t.Errorf("only %d tags are found in the code", found)
	}
}

// TestThreeFiles builds, tests and runs the newcomer's example of
// docs/toolkit.md, word for word. A workspace stands in for "go get", which would
// fetch another version of this module.
func TestThreeFiles(t *testing.T) {
	files := file.FindAllStringSubmatch(guide(t), -1)
	if len(files) != 3 {
		t.Fatalf("%d files in the guide, want 3", len(files))
	}
	dir := t.TempDir()
	weather := filepath.Join(dir, "weather")
	if err := os.Mkdir(weather, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(weather, f[1]), []byte(f[2]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	module, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	work := filepath.Join(dir, "go.work")
	module = filepath.ToSlash(module)
	text := "go 1.26.0\n\nuse ./weather\nuse " + module + "\n"
	if err := os.WriteFile(work, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = weather
		cmd.Env = append(os.Environ(), "GOWORK="+work, "GOFLAGS=", "GO111MODULE=on")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	run("vet", ".")
	if out := run("test", "-run", "TestForecast", "-v", "."); !strings.Contains(out, "--- PASS: TestForecast") {
		t.Errorf("go test: %s", out)
	}
	if out := run("run", ".", "--check"); out != "weather-mcp-server is ready to serve.\n" {
		t.Errorf("go run . --check: %s", out)
	}
}
