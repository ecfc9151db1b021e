package dialect

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/stage/liveheap"
	"github.com/dragoman-mcp/dragoman/schema"
)

func TestForHost(t *testing.T) {
	for url, want := range map[string]string{
		"https://api.openai.com/v1":                                "openai",
		"https://acme.openai.azure.com/openai/deployments/x":       "azure",
		"https://generativelanguage.googleapis.com/v1beta/openai/": "gemini",
		"https://api.deepseek.com":                                 "deepseek",
		"https://api.deepseek.com/v1":                              "deepseek",
		"https://api.deepseek.com/beta":                            "deepseek-strict",
		"https://api.deepseek.com/betamax":                         "deepseek",
		"https://dashscope-intl.aliyuncs.com/compatible-mode/v1":   "qwen",
		"http://localhost:11434/v1":                                "ollama",
		"http://gpu-3:8000/v1":                                     "vllm",
		"http://127.0.0.1:8080/v1":                                 "llamacpp",
		"https://bedrock-runtime.us-east-1.amazonaws.com/openai":   "bedrock",
		"https://api.openai.com.evil.example/v1":                   "conservative",
		"https://llm.example.com/v1":                               "conservative",
		"::::":                                                     "conservative",
	} {
		if got := ForHost(url).Name(); got != want {
			t.Errorf("ForHost(%s) = %s, want %s", url, got, want)
		}
	}
}

func TestTableIsSound(t *testing.T) {
	if n := len(Names()); n != 24 {
		t.Errorf("%d dialects, want 24", n)
	}
	for _, name := range Names() {
		d, err := For(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.spec.validate(); err != nil || d.spec.Title == "" {
			t.Errorf("%s: %v, title %q", name, err, d.spec.Title)
		}
		for _, rules := range []*Rules{&d.spec.Rules, d.spec.Strict} {
			if rules == nil {
				continue
			}
			for f, c := range rules.Cells {
				if c.Support != Taken && c.Source == "" {
					t.Errorf("%s: %s has no source", name, f)
				}
			}
		}
	}
	if _, err := For("nobody"); err == nil || !strings.Contains(err.Error(), "conservative") {
		t.Errorf("For(nobody): %v", err)
	}
}

func TestDerive(t *testing.T) {
	table, err := Builtin().Derive("house", "openai-strict", func(spec any) error {
		return json.Unmarshal([]byte(`{"title":"ours","hosts":["llm.example.com"],
			"rules":{"cells":{"oneOf":{"support":"rejected","source":"tried"},"default":{"support":"taken"}},"depth":3},
			"strict":null,"wire":{"max_tools":7,"call_id":"^[a-z]+$"}}`), spec)
	})
	if err != nil {
		t.Fatal(err)
	}
	d := table.ForHost("https://llm.example.com/v1")
	if d.Name() != "house" || d.Wire().MaxTools != 7 || d.spec.Strict != nil || d.spec.Rules.Depth != 3 {
		t.Errorf("derived %+v", d.spec)
	}
	if !d.spec.Rules.bad(OneOf) || d.spec.Rules.bad(Default) || !d.spec.Rules.bad(Not) {
		t.Error("the cells are not laid over those of the base")
	}
	if _, err := For("house"); err == nil {
		t.Error("the built-in table has changed")
	}
	over, err := table.Derive("openai", "", func(spec any) error { return json.Unmarshal([]byte(`{"wire":{"max_tools":9}}`), spec) })
	if err != nil || over.ForHost("https://api.openai.com").Wire().MaxTools != 9 {
		t.Errorf("overriding: %v", err)
	}
	for _, bad := range []string{
		`{"rules":{"cells":{"nothing":{"support":"rejected"}}}}`, `{"rules":{"cells":{"oneOf":{"support":"maybe"}}}}`,
		`{"rules":{"property_name":"("}}`, `{"rules":{"form":"tight"}}`, `{"rules":{"any":"all"}}`,
		`{"wire":{"call_id":"("}}`, `{"wire":{"tool_choice":["some"]}}`,
		`{"wire":{"max_name_length":8}}`, `{"wire":{"max_name_length":-1}}`,
		`{"wire":{"max_tools":-1}}`, `{"wire":{"result":"markdown"}}`,
		`{"hosts":["https://llm.example.com/v1"]}`, `{"hosts":["/v1"]}`, `{"hosts":["two words"]}`, `{"hosts":[""]}`,
	} {
		if _, err := Builtin().Derive("x", "", func(spec any) error { return json.Unmarshal([]byte(bad), spec) }); err == nil {
			t.Errorf("%s was taken", bad)
		}
	}
	if _, err := Builtin().Derive("", "openai", func(any) error { return nil }); err == nil {
		t.Error("a dialect without a name was taken")
	}
	for _, pattern := range []string{"LLM.Example.com", "llm.example.com/V1/", "llm.example.com/v1", ".Example.com"} {
		table, err := Builtin().Derive("house", "openai", func(spec any) error { spec.(*Spec).Hosts = []string{pattern}; return nil })
		if err != nil {
			t.Fatal(err)
		}
		if got := table.ForHost("https://LLM.example.com/v1").Name(); got != "house" {
			t.Errorf("%s: %s", pattern, got)
		}
	}
	short, err := Builtin().Derive("short", "openai", func(spec any) error { return json.Unmarshal([]byte(`{"wire":{"max_name_length":9}}`), spec) })
	if err != nil {
		t.Fatal(err)
	}
	d, err = short.For("short")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"get_weather", "0123456789"} {
		plan, problem := d.Plan(dragoman.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)})
		if problem != nil || len(plan.Name()) > 9 {
			t.Errorf("the shortest names: %v, %v", plan, problem)
		}
	}
	if _, err := Builtin().Derive("x", "nobody", func(any) error { return nil }); err == nil {
		t.Error("an unknown base was taken")
	}
}

// TestQuarantine names what makes a tool unusable: it alone, in every dialect.
func TestQuarantine(t *testing.T) {
	deep := strings.Repeat(`{"type":"array","items":`, 40) + `{}` + strings.Repeat(`}`, 40)
	bad := []struct{ entry, reason string }{
		{`{"name":"","inputSchema":{"type":"object"}}`, "no name"},
		{`{"name":"` + strings.Repeat("n", 300) + `","inputSchema":{"type":"object"}}`, "300 characters"},
		{`{"name":"a","inputSchema":{"type":"object","properties":{"x":{"type":"unknown"}}}}`, `"/properties/x/type"`},
		{`{"name":"a","inputSchema":{"type":"object","properties":{"x":{"$ref":"http://127.0.0.1/x"}}}}`, `"/properties/x/$ref"`},
		{`{"name":"a","inputSchema":{"type":"object","properties":{"x":{"$ref":"#/$defs/none"}}}}`, `"/properties/x/$ref"`},
		{`{"name":"a","inputSchema":{"type":"object","properties":{"x":{"$ref":"#/properties/x"}}}}`, "without consuming"},
		{`{"name":"a","inputSchema":{"type":"string"}}`, "is of type string"},
		{`{"name":"a","inputSchema":false}`, "is false"},
		{`{"name":"a","inputSchema":"none"}`, "not a schema"},
		{`{"name":"a","inputSchema":{"type":"object","type":"object"}}`, "duplicate"},
		{`{"name":"a","inputSchema":{"type":"object","properties":{"x":` + deep + `}}}`, "deeper than 32"},
		{`{"name":"a","inputSchema":{"type":"object","description":"` + strings.Repeat("d", schema.MaxBytes) + `"}}`, "longer than"},
		{`"tool"`, "not a JSON object"},
		{`{"name":"good","inputSchema":{"type":"object"}}`, "already that of"},
		{`{"name":"go od","inputSchema":{"type":"object"}}`, ""},
		{`{"name":"go.od","inputSchema":{"type":"object"}}`, `already that of the tool "go od"`},
	}
	entries := []string{`{"name":"good","description":"d","inputSchema":{"type":"object"}}`}
	for _, b := range bad {
		entries = append(entries, b.entry)
	}
	for _, name := range Names() {
		d, _ := For(name)
		doc, err := d.Convert(json.RawMessage(`{"tools":[` + strings.Join(entries, ",") + `],"nextCursor":"x"}`))
		if err != nil {
			t.Fatal(err)
		}
		if len(doc.Tools) != 2 || len(doc.Tools)+len(doc.Quarantined) != len(entries) {
			t.Errorf("%s: %d tools and %d quarantined of %d", name, len(doc.Tools), len(doc.Quarantined), len(entries))
			continue
		}
		i := 0
		for _, b := range bad {
			if b.reason == "" {
				continue
			}
			if got := doc.Quarantined[i].Reason; !strings.Contains(got, b.reason) {
				t.Errorf("%s: %.80s: %s, want it to hold %s", name, b.entry, got, b.reason)
			}
			i++
		}
	}
	for _, broken := range []string{``, `{`, `{"tools":5}`, `{"tool":[]}`, `5`} {
		d, _ := For("openai")
		if _, err := d.Convert(json.RawMessage(broken)); err == nil {
			t.Errorf("%q was taken for a list", broken)
		}
	}
}

func TestRootUnion(t *testing.T) {
	input := `{"type":"object","properties":{"project":{"type":"string"}},"required":["project"],"oneOf":[
		{"properties":{"kind":{"const":"file"},"path":{"type":"string"}},"required":["kind","path"]},
		{"properties":{"kind":{"const":"link"},"url":{"type":"string"},"path":{"type":"integer"}},"required":["kind","url"]},
		{"type":"null"}]}`
	d, _ := For("anthropic")
	plan, problem := d.Plan(dragoman.Tool{Name: "t", Description: "Attach something", InputSchema: []byte(input)})
	if problem != nil {
		t.Fatal(problem)
	}
	want := `{"type":"object","properties":{"project":{"type":"string"},"kind":{"anyOf":[{"const":"file"},{"const":"link"}]},` +
		`"path":{"anyOf":[{"type":"string"},{"type":"integer"}]},"url":{"type":"string"}},"required":["project","kind"]}`
	if got := string(plan.Parameters()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	alternatives := "Attach something. Give exactly one of these sets of parameters: (kind = 'file', path) or (kind = 'link', url)."
	if f := string(plan.Function()); !strings.Contains(f, alternatives) {
		t.Errorf("the description does not tell the alternatives: %s", f)
	}
	if _, _, problem := plan.Decode(`{"project":"p","kind":"file","url":"u"}`, ""); problem == nil {
		t.Error("a mixture of both alternatives was taken")
	}
	if _, _, problem := plan.Decode(`{"project":"p","kind":"link","url":"u"}`, ""); problem != nil {
		t.Error(problem)
	}
}

// TestLargeEnums: OpenAI takes so many values in the enums of a strict tool, and 15,000 bytes
// in one of them that has more than 250. A tool beyond that is sent whole, and not strict.
func TestLargeEnums(t *testing.T) {
	for _, tt := range []struct {
		values, bytes int // of each value
		strict        bool
	}{
		{250, 100, true}, {251, 59, true}, {251, 60, false}, {300, 50, true}, {300, 51, false},
		{999, 15, true}, {1000, 15, true}, {1001, 14, false},
	} {
		values := make([]string, tt.values)
		for i := range values {
			values[i] = fmt.Sprintf(`"%0*d"`, tt.bytes, i)
		}
		input := `{"type":"object","properties":{"x":{"type":"string","enum":[` + strings.Join(values, ",") + `]}},"required":["x"],"additionalProperties":false}`
		for _, name := range []string{"openai-strict", "responses"} {
			plan := planFor(t, name, input)
			if plan.Strict() != tt.strict || !strings.Contains(string(plan.Parameters()), values[tt.values-1]) {
				t.Errorf("%s: %d values of %d bytes: strict is %v in %.100s", name, tt.values, tt.bytes, plan.Strict(), plan.Parameters())
			}
		}
	}
}

// TestWidest: what no form of a dialect can hold goes out as an object, with
// its schema as text, and is judged by the schema all the same.
func TestWidest(t *testing.T) {
	var properties []string
	for i := range 1500 {
		properties = append(properties, fmt.Sprintf(`"p%d":{"enum":["%s"]}`, i, strings.Repeat("v", 60)))
	}
	plan := planFor(t, "moonshot", `{"type":"object","properties":{`+strings.Join(properties, ",")+`}}`)
	if !plan.Wide() || string(plan.Parameters()) != `{"type":"object","properties":{}}` {
		t.Errorf("wide %v: %.200s", plan.Wide(), plan.Parameters())
	}
	if len(plan.Function()) > maxSchemaText+1000 || !strings.Contains(string(plan.Function()), `\"p0\"`) {
		t.Errorf("the description: %.300s", plan.Function())
	}
	if _, _, problem := plan.Decode(`{"p3":"w"}`, ""); problem == nil {
		t.Error("a wrong value was taken")
	}
}

func TestStrictOnlyWhereEquivalent(t *testing.T) {
	for _, tc := range []struct {
		input  string
		strict bool
	}{
		{`{"type":"object"}`, true},
		{`{"type":"object","properties":{"a":{"type":"string"}}}`, true},
		{`{"type":"object","properties":{"a":{"type":["string","null"]}},"required":["a"]}`, true},
		{`{"type":"object","properties":{"a":{"type":["string","null"]}}}`, false},
		{`{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}]}}}`, false},
		{`{"type":"object","properties":{"a":{"type":["string","null"],"enum":["x"]}}}`, true},
		{`{"type":"object","properties":{"a":{}}}`, false},
		{`{"type":"object","properties":{"a":{"type":"object"}}}`, true},
		{`{"type":"object","properties":{"a":{"type":"object","additionalProperties":true,"properties":{"b":{"type":"string"}}}}}`, false},
		{`{"type":"object","properties":{"a":{"type":"object","additionalProperties":{"type":"string"}}}}`, true},
		{`{"type":"object","properties":{"a":{"type":"object","additionalProperties":false}}}`, true},
		{`{"type":"object","properties":{"a":{"type":"string"}},"required":["b"]}`, false},
		{`{"type":"object","properties":{"a":{"type":"array"}}}`, false},
		{`{"type":"object","properties":{"a":{"type":"string","minLength":2,"format":"uri"}},"required":["a"]}`, true},
	} {
		plan := planFor(t, "openai-strict", tc.input)
		if plan.Strict() != tc.strict {
			t.Errorf("%s: strict %v (%v)", tc.input, plan.Strict(), plan.Report())
		}
		if want := fmt.Sprintf(`"strict":%v}`, tc.strict); !strings.Contains(string(plan.Function()), want) ||
			!strings.Contains(string(plan.ResponsesFunction()), want) {
			t.Errorf("%s: strict is not explicit: %s", tc.input, plan.Function())
		}
	}
	d, _ := For("openai-strict")
	forced, problem := d.With(Options{ForceStrict: true}).Plan(dragoman.Tool{
		Name: "t", InputSchema: []byte(`{"type":"object","properties":{"a":{"type":["string","null"]}}}`),
	})
	if problem != nil || !forced.Strict() || !forced.Report()[len(forced.Report())-2].Narrows {
		t.Errorf("forced: %v %+v", problem, forced.Report())
	}
	if loose, _ := d.With(Options{Loose: true}).Plan(dragoman.Tool{Name: "t", InputSchema: []byte(`{"type":"object"}`)}); loose.Strict() {
		t.Error("a loose dialect made a strict tool")
	}
	if first, second := d.With(Options{Loose: true}), d.With(Options{Loose: true}); first != second {
		t.Error("the same options give two dialects")
	}
}

func TestFit(t *testing.T) {
	strictTool := func(i, optional int) dragoman.Tool {
		var properties []string
		for j := range optional {
			properties = append(properties, fmt.Sprintf(`"p%d":{"type":"string"}`, j))
		}
		return dragoman.Tool{Name: fmt.Sprintf("t%d", i), InputSchema: []byte(`{"type":"object","properties":{` + strings.Join(properties, ",") + `}}`)}
	}
	plansOf := func(d *Dialect, tools ...dragoman.Tool) (plans []*Plan) {
		for _, tool := range tools {
			plan, problem := d.Plan(tool)
			if problem != nil {
				t.Fatal(problem)
			}
			plans = append(plans, plan)
		}
		return plans
	}
	states := func(plans []*Plan) (s string) {
		for _, p := range plans {
			s += map[bool]string{true: "s", false: "l"}[p.Strict()]
		}
		return s
	}
	anthropic, _ := For("anthropic-strict")
	fitted, left, report := anthropic.Fit(plansOf(anthropic, strictTool(0, 10), strictTool(1, 10), strictTool(2, 10), strictTool(3, 2)), Budget{})
	if states(fitted) != "ssls" || len(left) != 0 || len(report) != 1 || report[0].Tool != "t2" || report[0].Pass != "demote" {
		t.Errorf("optionals: %s %v", states(fitted), report)
	}
	var many []dragoman.Tool
	for i := range 22 {
		many = append(many, strictTool(i, 0))
	}
	if fitted, _, _ = anthropic.Fit(plansOf(anthropic, many...), Budget{}); states(fitted) != strings.Repeat("s", 20)+"ll" {
		t.Errorf("tools: %s", states(fitted))
	}
	deepseek, _ := For("deepseek-strict")
	free := dragoman.Tool{Name: "free", InputSchema: []byte(`{"type":"object","properties":{"a":{}}}`)}
	if fitted, _, report = deepseek.Fit(plansOf(deepseek, strictTool(0, 1), free), Budget{}); states(fitted) != "ll" || len(report) != 1 {
		t.Errorf("all or none: %s %v", states(fitted), report)
	}
	if fitted, _, _ = deepseek.Fit(plansOf(deepseek, strictTool(0, 1), strictTool(1, 1)), Budget{}); states(fitted) != "ss" {
		t.Errorf("all strict: %s", states(fitted))
	}
	openai, _ := For("openai")
	plans := plansOf(openai, many...)
	if fitted, left, report = openai.Fit(plans, Budget{Tools: 5}); len(fitted) != 5 || len(left) != 17 || len(report) != 17 || fitted[0] != plans[0] {
		t.Errorf("5 tools: %d and %d, %d reported", len(fitted), len(left), len(report))
	}
	if fitted, left, _ = openai.Fit(plans, Budget{Bytes: 3 * len(plans[0].Function())}); len(fitted) != 3 || len(left) != 19 {
		t.Errorf("bytes: %d and %d", len(fitted), len(left))
	}
	conservative, _ := For("conservative")
	if fitted, _, _ = conservative.Fit(plans, Budget{Tools: 1000}); len(fitted) != len(plans) {
		t.Errorf("%d of %d tools", len(fitted), len(plans))
	}
}

// The plans that are cached are bounded in bytes, since one may take megabytes.
func TestCachedPlansAreBounded(t *testing.T) {
	var c planCache
	large := cached{plan: &Plan{size: 5 << 20}}
	for i := range 100 {
		key := cacheKey{pin: [32]byte{byte(i), 1}}
		c.put(key, large)
		if _, ok := c.get(key); !ok {
			t.Fatal("the plan that was made last is not cached")
		}
	}
	held := 0
	for _, all := range []map[cacheKey]cached{c.young, c.old} {
		for _, e := range all {
			held += e.size()
		}
	}
	if held > cacheBytes {
		t.Errorf("%d MiB are kept, want at most %d", held>>20, cacheBytes>>20)
	}
}

// The size of a plan is that of the memory that it takes.
func TestPlanSize(t *testing.T) {
	var values, properties, branches strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&values, `,"value %d"`, i)
	}
	for i := range 300 {
		fmt.Fprintf(&properties, `,"p%d":{"type":"string","description":"what number %d is"}`, i, i)
		fmt.Fprintf(&branches, `,{"type":"object","properties":{"kind":{"const":"%d"},"list":{"type":"array","items":{"type":"integer"}}},"required":["kind"]}`, i)
	}
	for name, schema := range map[string]string{
		"values":     `{"type":"object","properties":{"a":{"type":"string","enum":[` + values.String()[1:] + `]}}}`,
		"properties": `{"type":"object","properties":{` + properties.String()[1:] + `}}`,
		"branches":   `{"type":"object","properties":{"a":{"anyOf":[` + branches.String()[1:] + `]}}}`,
	} {
		for _, of := range []string{"openai", "gemini", Conservative} {
			d, err := For(of)
			if err != nil {
				t.Fatal(err)
			}
			plans, said := make([]*Plan, 5), 0
			before := liveheap.Bytes()
			for i := range plans {
				p, problem := d.convert(dragoman.Tool{Name: "a", InputSchema: []byte(schema)})
				if problem != nil {
					t.Fatal(problem)
				}
				plans[i], said = p, said+p.Size()
			}
			held := liveheap.Bytes() - before
			if part := float64(said) / float64(held); part < 0.6 || part > 1.6 {
				t.Errorf("%s in %s: %d bytes are said and %d held", name, of, said/len(plans), held/int64(len(plans)))
			}
			runtime.KeepAlive(plans)
		}
	}
}

func TestPlansAreCached(t *testing.T) {
	d, err := Builtin().Derive("fresh", "openai", func(any) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	fresh, _ := d.For("fresh")
	tool := dragoman.Tool{Name: "a", InputSchema: []byte(`{"type":"object"}`)}
	first, _ := fresh.Plan(tool)
	if again, _ := fresh.Plan(tool); again != first {
		t.Error("the same tool was planned twice")
	}
	tool.Description = "other"
	if other, _ := fresh.Plan(tool); other == first {
		t.Error("another tool got the same plan")
	}
	for i := range 3 * cacheSize {
		fresh.cache.put(cacheKey{pin: [32]byte{byte(i), byte(i >> 8), byte(i >> 16), 1}}, cached{})
	}
	if n := len(fresh.cache.young) + len(fresh.cache.old); n > cacheSize {
		t.Errorf("%d plans are kept, want at most %d", n, cacheSize)
	}
	if allocs := testing.AllocsPerRun(100, func() { fresh.Plan(benchTool) }); allocs > 0 {
		t.Errorf("a plan from the cache costs %v allocations", allocs)
	}
}

func TestDecodeTellsWhatIsMissing(t *testing.T) {
	plan := planFor(t, "openai", `{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"}},"required":["city"]}`)
	_, _, problem := plan.Decode(`{"days":{}}`, "tool_calls")
	if problem == nil || problem.Code != dragoman.CodeInvalidArguments || len(problem.Fields) != 2 {
		t.Fatalf("problem %+v", problem)
	}
	if f := problem.Fields[0]; f.Path != "/city" || !f.Missing || f.Expected != "string" {
		t.Errorf("first field %+v", f)
	}
	if f := problem.Fields[1]; f.Path != "/days" || f.Missing || f.Expected != "integer" {
		t.Errorf("second field %+v", f)
	}
}

// TestDefinitionsAreTheToolsOwn: vLLM puts the definitions of all tools of a
// request together.
func TestDefinitionsAreTheToolsOwn(t *testing.T) {
	d, _ := For("vllm")
	plan, problem := d.Plan(dragoman.Tool{Name: "find", InputSchema: []byte(
		`{"type":"object","properties":{"i":{"$ref":"#/$defs/Item"}},"$defs":{"Item":{"type":"string"}}}`)})
	if problem != nil {
		t.Fatal(problem)
	}
	want := `{"type":"object","properties":{"i":{"$ref":"#/$defs/find__Item"}},"$defs":{"find__Item":{"type":"string"}}}`
	if got := string(plan.Parameters()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestToolNames(t *testing.T) {
	d, _ := For("openai")
	for name, want := range map[string]string{
		"plain-name_1":              "plain-name_1",
		"a.b/c d":                   "a_b_c_d",
		"1st":                       "t_1st",
		"日本":                        "__b0b3a8c9",
		strings.Repeat("long_", 20): strings.Repeat("long_", 11) + "_",
	} {
		plan, problem := d.Plan(dragoman.Tool{Name: name, InputSchema: []byte(`{"type":"object"}`)})
		if problem != nil {
			t.Errorf("%s: %v", name, problem)
			continue
		}
		if got := plan.Name(); got != want && (len(name) < 64 && !strings.HasPrefix(want, "__") || !strings.HasPrefix(got, want[:2])) || len(got) > 64 || !legalTool.MatchString(got) {
			t.Errorf("%s became %s, want %s", name, got, want)
		}
	}
}
