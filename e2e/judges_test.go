package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/dialect"
)

// lists returns lists of tools to judge: our own, and real ones where there are
// any.
func lists(t *testing.T) map[string]json.RawMessage {
	t.Helper()
	files := []string{filepath.Join("testdata", "judged.json")}
	if corpus := os.Getenv("DRAGOMAN_CORPUS"); corpus != "" {
		found, err := filepath.Glob(filepath.Join(corpus, "*.json"))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	} else {
		t.Log("DRAGOMAN_CORPUS is not set: no real tools are judged")
	}
	lists := map[string]json.RawMessage{}
	for _, file := range files {
		if filepath.Base(file) == "MANIFEST.json" {
			continue
		}
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lists[strings.TrimSuffix(filepath.Base(file), ".json")] = b
	}
	return lists
}

// A judged schema is one that we send, with where it comes from.
type judged struct {
	Tool    string          `json:"tool"`
	Dialect string          `json:"dialect"`
	Schema  json.RawMessage `json:"schema"`
}

// sent converts all lists into a dialect and returns the schemas that go out.
func sent(t *testing.T, name string, onlyStrict bool) (out []judged) {
	t.Helper()
	d, err := dialect.For(name)
	if err != nil {
		t.Fatal(err)
	}
	for label, list := range lists(t) {
		doc, err := d.Convert(list)
		if err != nil {
			t.Fatalf("%s: %v", label, err)
		}
		for _, plan := range doc.Plans {
			if !onlyStrict || plan.Strict() {
				out = append(out, judged{label + "/" + plan.Name(), name, plan.Parameters()})
			}
		}
	}
	return out
}

// TestJudges lets programs of others judge what we send: the grammar engine of
// vLLM and SGLang has to compile it, and OpenAI's own helper for strict schemas
// has nothing to change.
func TestJudges(t *testing.T) {
	program, script := node(t, filepath.Join("clients", "judges.mjs"))
	document, err := json.Marshal(map[string][]judged{
		"grammar": append(sent(t, "vllm", false), sent(t, "sglang", false)...),
		"strict":  sent(t, "openai-strict", true),
	})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "schemas.json")
	if err := os.WriteFile(file, document, 0o600); err != nil {
		t.Fatal(err)
	}
	var facts struct {
		Grammar, Strict struct {
			Judged           int
			Refused, Changed []json.RawMessage
		}
	}
	said := strings.TrimSpace(string(output(t, nil, program, script, file)))
	last := said[strings.LastIndexByte(said, '\n')+1:] // the engine warns on the lines before
	if err := json.Unmarshal([]byte(last), &facts); err != nil {
		t.Fatal(err)
	}
	t.Logf("the grammar engine compiled %d of %d schemas; OpenAI's helper left %d of %d strict ones as they are",
		facts.Grammar.Judged-len(facts.Grammar.Refused), facts.Grammar.Judged,
		facts.Strict.Judged-len(facts.Strict.Refused)-len(facts.Strict.Changed), facts.Strict.Judged)
	if facts.Grammar.Judged == 0 || facts.Strict.Judged == 0 {
		t.Error("nothing was judged")
	}
	for what, refused := range map[string][]json.RawMessage{
		"the grammar engine refuses": facts.Grammar.Refused, "OpenAI's helper refuses": facts.Strict.Refused, "OpenAI's helper changes": facts.Strict.Changed,
	} {
		for i, r := range refused {
			if i < 10 {
				t.Errorf("%s %s", what, r)
			}
		}
	}
}

// TestOllamaKeepsTools sends what we make for Ollama through Ollama's own types,
// which drop without a word what they do not know.
func TestOllamaKeepsTools(t *testing.T) {
	d, err := dialect.For("ollama")
	if err != nil {
		t.Fatal(err)
	}
	var tools []json.RawMessage
	for label, list := range lists(t) {
		doc, err := d.Convert(list)
		if err != nil {
			t.Fatalf("%s: %v", label, err)
		}
		tools = append(tools, doc.Tools...)
	}
	document, err := json.Marshal(tools)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "tools.json")
	if err := os.WriteFile(file, document, 0o600); err != nil {
		t.Fatal(err)
	}
	var facts struct {
		Judged int
		Lost   []string
	}
	if err := json.Unmarshal(output(t, nil, must(t, buildOllama), file), &facts); err != nil {
		t.Fatal(err)
	}
	// Ollama knows required at the top only. What a nested object needs is caught
	// when its arguments are checked, and the model is told then.
	nested := 0
	for _, l := range facts.Lost {
		if strings.HasSuffix(l, "/required") && strings.Count(l, "/properties/") > 0 {
			nested++
			continue
		}
		t.Errorf("lost: %s", l)
	}
	t.Logf("Ollama's types kept %d of %d tools whole; %d lost what their nested objects require", facts.Judged-len(facts.Lost), facts.Judged, nested)
	if facts.Judged == 0 {
		t.Error("nothing was judged")
	}
}
