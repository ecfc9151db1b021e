package schema

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// corpusTools calls visit for each tool of the public servers whose tool lists
// are in the folder that DRAGOMAN_CORPUS names.
func corpusTools(t testing.TB, visit func(server, tool string, input json.RawMessage)) {
	t.Helper()
	dir := os.Getenv("DRAGOMAN_CORPUS")
	if dir == "" {
		t.Skip("SKIPPED: DRAGOMAN_CORPUS does not name the folder with the tool lists of public servers")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no tool lists in %s: %v", dir, err)
	}
	for _, file := range files {
		if filepath.Base(file) == "MANIFEST.json" {
			continue
		}
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var list struct {
			Tools []struct {
				Name        string          `json:"name"`
				InputSchema json.RawMessage `json:"inputSchema"`
			} `json:"tools"`
		}
		if err := json.Unmarshal(b, &list); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, tool := range list.Tools {
			visit(filepath.Base(file), tool.Name, tool.InputSchema)
		}
	}
}

// TestCorpusIsAdmitted admits every schema of real servers, writes it back
// byte for byte, and compiles it.
func TestCorpusIsAdmitted(t *testing.T) {
	tools, refused, noted, unchecked := 0, 0, 0, 0
	var slowest time.Duration
	corpusTools(t, func(server, tool string, input json.RawMessage) {
		tools++
		n, err := Parse(input)
		if err != nil {
			t.Errorf("%s %s: %v", server, tool, err)
			return
		}
		if string(n.Bytes()) != string(input) {
			t.Errorf("%s %s: not written back as it was", server, tool)
		}
		start := time.Now()
		d, refusal := Admit(input)
		slowest = max(slowest, time.Since(start))
		if refusal != nil {
			refused++
			t.Logf("%s %s: refused %v", server, tool, refusal)
			return
		}
		if len(d.Notes) > 0 {
			noted++
		}
		if u := d.Validator().Unchecked(); len(u) > 0 {
			unchecked++
			t.Logf("%s %s: %q", server, tool, u)
		}
	})
	t.Logf("%d tools, %d refused, %d with notes, %d not checked in full, slowest %s", tools, refused, noted, unchecked, slowest)
	if refused > tools/100 {
		t.Errorf("%d of %d tools refused", refused, tools)
	}
}
