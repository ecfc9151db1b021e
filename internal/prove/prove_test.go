package prove

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/schema"
)

func proveTool(t *testing.T, p *Prover, input string) *Proof {
	t.Helper()
	proof, err := p.Tool(t.Context(), dragoman.Tool{Name: "tool", InputSchema: json.RawMessage(input)})
	if err != nil {
		t.Fatal(err)
	}
	return proof
}

func in(t *testing.T, name string) *dialect.Dialect {
	t.Helper()
	d, err := dialect.For(name)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// An obtuse engine holds the model to a schema of its own, whatever is sent.
type obtuse struct{ schema string }

func (obtuse) Name() string { return "obtuse 1" }

func (o obtuse) Read(context.Context, json.RawMessage) (Language, error) {
	return &held{newShown(json.RawMessage(o.schema))}, nil
}

// held is a language that looks like a grammar: the spelling matters to it.
type held struct{ *shown }

func TestWitnessesAreFoundAndSmall(t *testing.T) {
	for _, test := range []struct {
		name, server, engine string
		kind                 Kind
		call                 string
	}{
		{"a length that is not held", `{"type":"object","properties":{"a":{"type":"string","minLength":2}},"required":["a"],"additionalProperties":false}`,
			`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`, Refused, `{"a":""}`},
		{"a bound that is not held", `{"type":"object","properties":{"n":{"type":"integer","maximum":77}},"additionalProperties":false}`,
			`{"type":"object","properties":{"n":{"type":"integer"}},"additionalProperties":false}`, Refused, `{"n":78}`},
		{"something needed that is not held, deep down", `{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"type":"array","items":{"type":"object","properties":{"c":{"type":"integer"}},"required":["c"]}}}}}}`,
			`{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"type":"array","items":{"type":"object","properties":{"c":{"type":"integer"}}}}}}}}`, Refused, `{"a":{"b":[{}]}}`},
		{"quotation marks that cannot be written", `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"}},"additionalProperties":false}`,
			`{"type":"object","properties":{"a":{"type":"string","pattern":"^[^\"]*$"},"b":{"type":"integer"}},"additionalProperties":false}`, Unsaid, `{"a":"\""}`},
		{"a value that is missing from the list", `{"type":"object","properties":{"a":{"enum":["x","y","long"]}},"required":["a"],"additionalProperties":false}`,
			`{"type":"object","properties":{"a":{"enum":["x","y"]}},"required":["a"],"additionalProperties":false}`, Unsaid, `{"a":"long"}`},
		{"two places at once", `{"type":"object","properties":{"a":{"type":"boolean"},"b":{"type":"boolean"}},"additionalProperties":false}`,
			`{"type":"object","properties":{"a":{"type":"boolean"},"b":{"type":"boolean"}},"additionalProperties":false,"maxProperties":1}`, Unsaid, `{"a":true,"b":true}`},
		{"a member that nobody declares", `{"type":"object","properties":{"a":{"type":"boolean"}}}`,
			`{"type":"object","properties":{"a":{"type":"boolean"}},"additionalProperties":false}`, Undeclared, `{"k":0}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			proof := proveTool(t, &Prover{Dialect: in(t, "openai"), Engine: obtuse{test.engine}}, test.server)
			w := proof.First(test.kind)
			if w == nil {
				t.Fatalf("nothing found: %+v", proof)
			}
			if string(w.Call) != test.call {
				t.Errorf("the witness is %s, want %s", w.Call, test.call)
			}
			if w.Why == "" || proof.Looked.Candidates == 0 || proof.Looked.Places == 0 {
				t.Errorf("it does not say why, or how it was looked: %+v", proof)
			}
			again := proveTool(t, &Prover{Dialect: in(t, "openai"), Engine: obtuse{test.engine}}, test.server)
			if diff := cmp.Diff(proof, again); diff != "" {
				t.Errorf("the second time it is another proof: %s", diff)
			}
		})
	}
}

func TestNothingFoundSaysHowHard(t *testing.T) {
	closed := `{"type":"object","properties":{"on":{"type":"boolean"},"how":{"enum":["a","b"]}},"required":["how"],"additionalProperties":false}`
	proof := proveTool(t, &Prover{Dialect: in(t, "vllm")}, closed)
	if len(proof.Witnesses) > 0 {
		t.Errorf("found %+v", proof.Witnesses)
	}
	if l := proof.Looked; !l.All || l.Taken != 6 || l.Writable == 0 || l.Longest != len(`{"on":false,"how":"a"}`) {
		t.Errorf("looked %+v; there are six calls", l)
	}
	open := proveTool(t, &Prover{Dialect: in(t, "vllm"), Effort: 2, Seed: 3}, `{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`)
	if l := open.Looked; l.All || l.Taken < 20 || l.Seed != 3 {
		t.Errorf("looked %+v", l)
	}
}

func TestUnusableTools(t *testing.T) {
	proof := proveTool(t, &Prover{Dialect: in(t, "openai")}, `{"type":"object","properties":{"a":{"$ref":"#/nowhere"}}}`)
	if proof.Unusable == "" || proof.Looked.Candidates != 0 {
		t.Errorf("%+v", proof)
	}
	engine := fakeEngine(t, `{"error":"no such keyword"}`)
	proof = proveTool(t, &Prover{Dialect: in(t, "vllm"), Engine: engine}, `{"type":"object"}`)
	if !strings.Contains(proof.Unusable, "no such keyword") || proof.Engine != "fake 7" {
		t.Errorf("%+v", proof)
	}
	dies := fakeEngine(t, "die")
	proof = proveTool(t, &Prover{Dialect: in(t, "vllm"), Engine: dies}, `{"type":"object"}`)
	if !strings.Contains(proof.Unusable, "gave up") {
		t.Errorf("%+v", proof)
	}
}

// TestCorpus proves a part of the tools of real servers, for what nobody thought
// of: it must end, and never say of a call that runs that it does not.
func TestCorpus(t *testing.T) {
	dir := os.Getenv("DRAGOMAN_CORPUS")
	if dir == "" {
		t.Skip("SKIPPED: DRAGOMAN_CORPUS does not name the folder with the tool lists of public servers")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no tool lists in %s: %v", dir, err)
	}
	p := &Prover{Dialect: in(t, "gemini")}
	tools := 0
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var list struct {
			Tools []struct {
				Name        string
				InputSchema json.RawMessage
			}
		}
		if filepath.Base(file) == "MANIFEST.json" || json.Unmarshal(b, &list) != nil {
			continue
		}
		for i := 0; i < len(list.Tools); i += 80 {
			tools++
			checkProof(t, p, dragoman.Tool{Name: list.Tools[i].Name, InputSchema: list.Tools[i].InputSchema})
		}
	}
	t.Logf("%d tools", tools)
}

// checkProof holds a proof to its word.
func checkProof(t *testing.T, p *Prover, tool dragoman.Tool) {
	t.Helper()
	proof, err := p.Tool(t.Context(), tool)
	if err != nil {
		t.Fatal(err)
	}
	if proof.Unusable != "" {
		return
	}
	plan, problem := p.Dialect.Plan(tool)
	if problem != nil {
		t.Fatal(problem)
	}
	server := schema.NewValidator(tool.InputSchema)
	sent := schema.NewOpenAPIValidator(plan.Parameters())
	for _, w := range proof.Witnesses {
		switch w.Kind {
		case Refused:
			back, _, problem := plan.Decode(string(w.Call), "tool_calls")
			if len(sent.Validate(w.Call)) > 0 || problem == nil && len(server.Validate(back)) == 0 {
				t.Errorf("%s: %s is no witness of what is refused", tool.Name, w.Call)
			}
		default:
			if len(server.Validate(w.Call)) > 0 {
				t.Errorf("%s: %s is a witness, and the server does not take it", tool.Name, w.Call)
			}
		}
	}
}
