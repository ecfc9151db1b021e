package e2e

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/prove"
)

// samplesEach is how many texts an engine makes up for a tool.
const samplesEach = 8

// TestDecoded lets grammar engines write calls by the schemas that are sent, at
// random, and reads them back: what comes out, an independent validator has to
// take, too, and every schema has to compile.
func TestDecoded(t *testing.T) {
	engines := prove.Engines{Dir: "engines"}
	defer engines.Close()
	done := map[string]bool{}
	for _, name := range []string{"vllm", "sglang", "llamacpp", "lmstudio"} {
		engine, err := engines.For(t.Context(), name)
		if err != nil {
			t.Run(name, func(t *testing.T) { missing(t, "%v; run make engines", err) })
			continue
		}
		t.Run(name, func(t *testing.T) { decodeSamples(t, name, engine, done) })
	}
}

// decodeSamples judges a dialect by what its engine makes up. What the engine was
// asked about another dialect with the same outcome is not asked again: where a
// tool and the schema that is sent for it are the same, so is the way back.
func decodeSamples(t *testing.T, name string, engine prove.Engine, done map[string]bool) {
	d, err := dialect.For(name)
	if err != nil {
		t.Fatal(err)
	}
	var decoded []takenInstance
	schemas, same, texts, refused := 0, 0, 0, 0
	for label, list := range lists(t) {
		var read struct {
			Tools []struct {
				Name        string
				InputSchema json.RawMessage
			}
		}
		if err := json.Unmarshal(list, &read); err != nil {
			t.Fatal(err)
		}
		for i, tool := range read.Tools {
			plan, problem := d.Plan(dragoman.Tool{Name: tool.Name, InputSchema: tool.InputSchema})
			if problem != nil {
				continue // quarantined, and told
			}
			schemas++
			key := engine.Name() + "\x00" + string(tool.InputSchema) + "\x00" + string(plan.Parameters())
			if done[key] {
				same++
				continue
			}
			done[key] = true
			language, err := engine.Read(t.Context(), plan.Parameters())
			if err != nil {
				t.Errorf("%s/%s: %s does not take what is sent: %v", label, tool.Name, engine.Name(), err)
				continue
			}
			samples, err := language.Sample(t.Context(), samplesEach, uint64(i))
			if err != nil {
				t.Errorf("%s/%s: %v", label, tool.Name, err)
				continue
			}
			for _, text := range samples {
				texts++
				arguments, _, problem := plan.Decode(text, "tool_calls")
				if problem != nil {
					refused++
					continue
				}
				decoded = append(decoded, takenInstance{File: label + "/" + tool.Name, Description: text, Schema: tool.InputSchema, Data: arguments, Unchecked: plan.Unchecked()})
			}
		}
	}
	if schemas == 0 || texts == 0 && same == 0 {
		t.Fatal("nothing was sampled")
	}
	wrong, unsure := 0, 0
	for i, v := range secondOpinion(t, decoded) {
		switch {
		case v.Valid == nil:
			unsure++
		case !*v.Valid:
			if wrong++; wrong <= 10 {
				t.Errorf("%s: %.300s was decoded as %.300s, which the independent validator refuses: %s", decoded[i].File, decoded[i].Description, decoded[i].Data, v.Why)
			}
		}
	}
	t.Logf("%s: %d schemas, of which %d were sampled before, %d texts made up, %d refused on the way back, %d decoded, of which the independent validator refuses %d and cannot judge %d",
		engine.Name(), schemas, same, texts, refused, len(decoded), wrong, unsure)
}

// TestEnginesAgreeWithTheirDialects asks each engine for the faults that its
// dialect is written against: where an engine changes its mind, its row of the
// table has to.
func TestEnginesAgreeWithTheirDialects(t *testing.T) {
	engines := prove.Engines{Dir: "engines"}
	defer engines.Close()
	for _, test := range []struct {
		name, dialect, schema string
		writes, cannot        []string
		refuses               bool
	}{
		{"XGrammar holds lengths, and then takes no escapes", "vllm", `{"type":"object","properties":{"a":{"type":"string","maxLength":9}}}`, []string{`{"a":"b"}`}, []string{`{"a":"\""}`}, false},
		{"XGrammar takes patterns as full matches", "vllm", `{"type":"object","properties":{"a":{"type":"string","pattern":"^https?://"}}}`, []string{`{"a":"http://"}`}, []string{`{"a":"http://a.bc"}`}, false},
		{"XGrammar reads bounds of numbers as those of integers", "vllm", `{"type":"object","properties":{"a":{"type":"number","exclusiveMinimum":0}}}`, []string{`{"a":1}`}, []string{`{"a":0.5}`}, false},
		{"XGrammar wants members in their order", "vllm", `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}}}`, []string{`{"a":1,"b":1}`}, []string{`{"b":1,"a":1}`}, false},
		{"XGrammar dies over looking around", "sglang", `{"type":"object","properties":{"a":{"type":"string","pattern":"^(?=x)x$"}}}`, nil, nil, true},
		{"XGrammar loses negative numbers to a negative minimum", "vllm", `{"type":"object","properties":{"a":{"type":"integer","minimum":-5}}}`, []string{`{"a":1}`}, []string{`{"a":-1}`}, false},
		{"XGrammar loses negative numbers to a negative maximum", "vllm", `{"type":"object","properties":{"a":{"type":"integer","maximum":-12}}}`, []string{`{"a":-112}`}, []string{`{"a":-20}`}, false},
		{"XGrammar holds bounds on both sides", "vllm", `{"type":"object","properties":{"a":{"type":"integer","minimum":-5,"maximum":5}}}`, []string{`{"a":-1}`}, []string{`{"a":7}`}, false},
		{"XGrammar escapes Latin letters into what follows", "vllm", `{"type":"object","properties":{"größe":{"type":"integer"},"a":{"enum":["idéal","élève"]}}}`, []string{`{"a":"élève"}`}, []string{`{"größe":1}`, `{"a":"idéal"}`}, false},
		{"XGrammar escapes slashes in enums", "vllm", `{"type":"object","properties":{"a":{"enum":["text/plain"]}}}`, []string{`{"a":"text\/plain"}`}, []string{`{"a":"text/plain"}`}, false},
		{"XGrammar dies over a quotation mark in a name", "vllm", `{"type":"object","properties":{"a\"b":{"type":"integer"}}}`, nil, nil, true},
		{"XGrammar dies over a line break in a name", "sglang", `{"type":"object","properties":{"a\nb":{"type":"integer"}}}`, nil, nil, true},
		{"XGrammar writes tuples whole", "vllm", `{"type":"object","properties":{"a":{"type":"array","prefixItems":[{"type":"string"},{"type":"integer"}]}}}`, []string{`{"a":["x",1]}`}, []string{`{"a":[]}`, `{"a":["x"]}`, `{"a":["x",1,2]}`}, false},
		{"XGrammar writes what may follow a tuple", "vllm", `{"type":"object","properties":{"a":{"type":"array","prefixItems":[{"type":"string"}],"items":{"type":"integer"},"minItems":1}}}`, []string{`{"a":["x",1,2]}`}, []string{`{"a":["x","y"]}`}, false},
		{"llama.cpp writes tuples whole", "llamacpp", `{"type":"object","properties":{"a":{"type":"array","prefixItems":[{"type":"string"},{"type":"integer"}]}}}`, []string{`{"a":["x",1]}`}, []string{`{"a":[]}`, `{"a":["x",1,2]}`}, false},
		{"llama.cpp forgets a tuple over what may follow", "llamacpp", `{"type":"object","properties":{"a":{"type":"array","prefixItems":[{"type":"string"}],"items":{"type":"integer"},"minItems":1}}}`, []string{`{"a":[1]}`}, []string{`{"a":["x",1]}`}, false},
		{"llama.cpp holds no bounds of numbers", "llamacpp", `{"type":"object","properties":{"a":{"type":"number","exclusiveMinimum":0}}}`, []string{`{"a":1}`, `{"a":-1}`}, nil, false},
		{"llama.cpp cannot write an empty name", "llamacpp", `{"type":"object","properties":{"":{"type":"integer"}}}`, nil, []string{`{"":1}`, `{}`}, false},
		{"llama.cpp writes no further name that begins a declared one", "llamacpp", `{"type":"object","properties":{"ab":{"type":"integer"}},"additionalProperties":true}`, []string{`{"b":1}`}, []string{`{"a":1}`}, false},
		{"llama.cpp takes a bracket in a name for syntax", "llamacpp", `{"type":"object","properties":{"a]b":{"type":"integer"}},"additionalProperties":true}`, nil, nil, true},
		{"llama.cpp takes names with signs as they are", "llamacpp", `{"type":"object","properties":{"a\nb":{"type":"integer"},"größe":{"type":"integer"}}}`, []string{`{"a\nb":1,"größe":1}`}, nil, false},
		{"llama.cpp has a limit of lengths", "llamacpp", `{"type":"object","properties":{"a":{"type":"string","maxLength":2000}}}`, nil, nil, true},
		{"llama.cpp does not know all escapes", "llamacpp", `{"type":"object","properties":{"a":{"type":"string","pattern":"^[\\-a]+$"}}}`, nil, nil, true},
		{"llama.cpp wants anchors", "lmstudio", `{"type":"object","properties":{"a":{"type":"string","pattern":"a"}}}`, nil, nil, true},
		{"llama.cpp wants what is needed first", "llamacpp", `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["b"]}`, []string{`{"b":1,"a":1}`}, []string{`{"a":1,"b":1}`}, false},
		{"Ollama shows no bounds", "ollama", `{"type":"object","properties":{"a":{"type":"integer","minimum":5}}}`, []string{`{"a":5}`, `{"a":4}`}, nil, false},
		{"Ollama forgets what nested objects need", "ollama", `{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"type":"integer"}},"required":["b"]}}}`, []string{`{"a":{}}`}, []string{`{"a":1}`}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			engine, err := engines.For(t.Context(), test.dialect)
			if err != nil {
				missing(t, "%v; run make engines", err)
			}
			language, err := engine.Read(t.Context(), json.RawMessage(test.schema))
			if test.refuses != (err != nil) {
				t.Fatalf("%s says %v to %s", engine.Name(), err, test.schema)
			}
			if err != nil {
				return
			}
			got, err := language.Writes(t.Context(), append(slices.Clone(test.writes), test.cannot...))
			if err != nil {
				t.Fatal(err)
			}
			for i, ok := range got {
				if want := i < len(test.writes); ok != want {
					t.Errorf("%s: text %d by %s: %v", engine.Name(), i, test.schema, ok)
				}
			}
		})
	}
}
