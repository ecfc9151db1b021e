package dialect

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"testing"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/schema"
)

// corpus returns the tools of the public servers whose tool lists are in the
// folder that DRAGOMAN_CORPUS names.
func corpus(t testing.TB) []dragoman.Tool {
	t.Helper()
	dir := os.Getenv("DRAGOMAN_CORPUS")
	if dir == "" {
		t.Skip("SKIPPED: DRAGOMAN_CORPUS does not name the folder with the tool lists of public servers")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no tool lists in %s: %v", dir, err)
	}
	var tools []dragoman.Tool
	for _, file := range files {
		if filepath.Base(file) == "MANIFEST.json" {
			continue
		}
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var list struct {
			Tools []listed `json:"tools"`
		}
		if err := json.Unmarshal(b, &list); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, tool := range list.Tools {
			tools = append(tools, tool.tool(strings.TrimSuffix(filepath.Base(file), ".json")))
		}
	}
	return tools
}

type listed struct {
	Name         string          `json:"name"`
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"inputSchema"`
	OutputSchema json.RawMessage `json:"outputSchema"`
}

func (l listed) tool(server string) dragoman.Tool {
	return dragoman.Tool{
		Name: l.Name, Description: l.Description, InputSchema: l.InputSchema, OutputSchema: l.OutputSchema, Server: server,
	}
}

// TestCorpusInvariants converts every tool of real servers into every dialect
// and checks what the package promises.
func TestCorpusInvariants(t *testing.T) {
	var tools []dragoman.Tool
	for i, tool := range corpus(t) {
		if i%thinned == 0 {
			tools = append(tools, tool)
		}
	}
	if thinned > 1 {
		t.Logf("THINNED: with the race detector one tool in %d is converted", thinned)
	}
	checkInvariants(t, tools, 3)
}

// TestOddToolsInvariants does the same with fifty tools of our own, which are as
// odd as those of real servers; it runs everywhere.
func TestOddToolsInvariants(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("testdata", "tools.json"))
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		Tools []listed `json:"tools"`
	}
	if err := json.Unmarshal(b, &list); err != nil {
		t.Fatal(err)
	}
	var tools []dragoman.Tool
	for _, tool := range list.Tools {
		tools = append(tools, tool.tool("odd"))
	}
	for i, s := range sayable {
		tools = append(tools, dragoman.Tool{
			Name: fmt.Sprint("sayable_", i), InputSchema: json.RawMessage(`{"type":"object","properties":{"p":` + s + `},` + sayableDefinitions + `}`), Server: "odd",
		})
	}
	if len(list.Tools) < 50 {
		t.Fatalf("%d tools", len(list.Tools))
	}
	checkInvariants(t, tools, 8)
}

// tally counts what a property test saw.
type tally struct {
	plans, strict, wide, quarantined, values, narrowed, answers, refused int
	lossy, narrows                                                       map[string]int
	widest                                                               []string
}

// checkInvariants makes so many values of each schema, and fewer with the race
// detector, which is after something else.
func checkInvariants(t *testing.T, tools []dragoman.Tool, rounds int) {
	rounds = max(1, rounds/thinned)
	names := Names()
	sums := make([]tally, len(names))
	t.Run("dialects", func(t *testing.T) {
		for i, name := range names {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				d, err := For(name)
				if err != nil {
					t.Fatal(err)
				}
				sum := &sums[i]
				sum.lossy, sum.narrows = map[string]int{}, map[string]int{}
				for i, tool := range tools {
					checkTool(t, d, tool, rand.New(rand.NewPCG(uint64(i), 7)), rounds, sum)
				}
			})
		}
	})
	plans, values := 0, 0
	for i, sum := range sums {
		t.Logf("%s: %d tools: %d plans, %d strict, %d wide, %d quarantined; %d values there and back, %d not expressible where the plan says so; %d answers read, %d refused; lossy by pass: %v; narrowing by pass: %v",
			names[i], len(tools), sum.plans, sum.strict, sum.wide, sum.quarantined, sum.values, sum.narrowed, sum.answers, sum.refused, sum.lossy, sum.narrows)
		if len(sum.widest) > 0 {
			t.Logf("%s: wide: %s", names[i], strings.Join(sum.widest, "; "))
		}
		plans += sum.plans
		values += sum.values
	}
	t.Logf("%d tools in %d dialects: %d plans, %d values there and back", len(tools), len(names), plans, values)
}

func checkTool(t *testing.T, d *Dialect, tool dragoman.Tool, r *rand.Rand, rounds int, sum *tally) {
	t.Helper()
	where := tool.Server + " " + tool.Name
	plan, problem := d.convert(tool)
	if problem != nil {
		sum.quarantined++
		if problem.Code != dragoman.CodeInvalidTool || problem.Message == "" {
			t.Errorf("%s: problem %+v", where, problem)
		}
		return
	}
	again, _ := d.convert(tool)
	if string(plan.Function()) != string(again.Function()) || fmt.Sprint(plan.report) != fmt.Sprint(again.report) {
		t.Errorf("%s: converted differently the second time\n%s\n%s", where, plan.Function(), again.Function())
	}
	sum.plans++
	rules := &d.spec.Rules
	if plan.strict {
		sum.strict++
		rules = d.spec.Strict
	}
	if plan.wide {
		sum.wide++
		sum.widest = append(sum.widest, where+": "+plan.report[len(plan.report)-1].Why)
	}
	narrow := false
	seen := map[string]bool{}
	for _, c := range plan.report {
		switch {
		case c.Narrows:
			narrow = true
			if !seen[c.Pass+"!"] {
				sum.narrows[c.Pass]++
			}
			seen[c.Pass+"!"] = true
		case !c.Lossless:
			if !seen[c.Pass] {
				sum.lossy[c.Pass]++
			}
			seen[c.Pass] = true
		}
	}
	sent, err := schema.Parse(plan.Parameters())
	if err != nil {
		t.Errorf("%s: sent schema: %v", where, err)
		return
	}
	if faults := check(sent, rules).faults; len(faults) > 0 {
		t.Errorf("%s: sent schema is against the rules: %v\n%s", where, faults, sent.Bytes())
	}
	judge := schema.NewOpenAPIValidator(plan.Meaning())
	if u := judge.Unchecked(); len(u) > 0 && len(plan.judge.Unchecked()) == 0 {
		t.Errorf("%s: sent schema cannot be checked: %v", where, u)
	}
	for range rounds {
		checkThereAndBack(t, where, plan, judge, generated(r, plan.admitted.Root, plan.admitted.Root), narrow, sum)
	}
	for range rounds {
		y := generated(r, plan.meant, plan.meant)
		if len(judge.ValidateNode(y)) > 0 {
			continue
		}
		sum.answers++
		x, _, problem := plan.Decode(string(y.Bytes()), "tool_calls")
		switch {
		case problem == nil:
			if v := plan.judge.Validate(x); len(v) > 0 {
				t.Errorf("%s: %s decoded to %s, which the server refuses: %v", where, y.Bytes(), x, v)
			}
		case problem.Code != dragoman.CodeInvalidArguments || problem.Message == "":
			t.Errorf("%s: %s gave %+v", where, y.Bytes(), problem)
		default:
			sum.refused++
		}
	}
}

func checkThereAndBack(t *testing.T, where string, plan *Plan, judge *schema.Validator, x *schema.Node, narrow bool, sum *tally) {
	t.Helper()
	if len(plan.judge.ValidateNode(x)) > 0 {
		return // the generator is not clever enough for this schema
	}
	y, err := plan.Encode(x.Bytes())
	if err != nil {
		if !narrow {
			t.Errorf("%s: encoding %s: %v", where, x.Bytes(), err)
		}
		sum.narrowed++
		return
	}
	if v := judge.Validate(y); len(v) > 0 {
		if !narrow {
			t.Errorf("%s: %s was encoded as %s, which the sent schema refuses: %v\nsent %s", where, x.Bytes(), y, v, plan.Parameters())
		}
		sum.narrowed++
		return
	}
	back, repairs, problem := plan.Decode(string(y), "tool_calls")
	if problem != nil {
		if !narrow {
			t.Errorf("%s: %s encoded as %s did not come back: %v", where, x.Bytes(), y, problem)
		}
		sum.narrowed++
		return
	}
	got, err := schema.Parse(back)
	if err != nil || !schema.Equal(got, x) {
		if !narrow {
			t.Errorf("%s: %s encoded as %s came back as %s (%v)", where, x.Bytes(), y, back, repairs)
		}
		sum.narrowed++
		return
	}
	sum.values++
}

// generated makes a value of a schema, of declared members alone. It does not
// always fit: pairs of constraints can be beyond it.
func generated(r *rand.Rand, root, n *schema.Node) *schema.Node {
	g := generator{r: r, root: root}
	return g.value(n, 0)
}

type generator struct {
	r    *rand.Rand
	root *schema.Node
	made int
}

func (g *generator) value(n *schema.Node, depth int) *schema.Node {
	if g.made++; g.made > 2000 {
		return schema.NewNull()
	}
	if target := resolveRef(g.root, n); target != nil {
		if depth > 40 {
			return schema.NewNull()
		}
		return g.value(target, depth+1)
	}
	if v := n.Get("const"); v != nil {
		return v.Clone()
	}
	if enum := n.Get("enum").Items(); len(enum) > 0 {
		return enum[g.r.IntN(len(enum))].Clone()
	}
	if n.Get("nullable").IsBool(true) && g.r.IntN(4) == 0 {
		return schema.NewNull()
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		if branches := n.Get(keyword).Items(); len(branches) > 0 {
			i := g.r.IntN(len(branches))
			if depth > 6 { // towards the end of a recursion
				i = slices.IndexFunc(branches, func(b *schema.Node) bool { return !b.Has("$ref") })
				i = max(i, 0)
			}
			v := g.value(branches[i], depth+1)
			if v.Kind() == schema.Object {
				g.members(v, n, depth)
			}
			return v
		}
	}
	types := typesOf(n)
	t := "object"
	switch {
	case len(types) > 0:
		t = types[g.r.IntN(len(types))]
		if depth > 6 && slices.Contains(types, "null") {
			t = "null"
		}
	case n.Has("items"):
		t = "array"
	case n.Has("properties"), n.Has("allOf"):
	case depth == 0:
	default:
		for _, m := range n.Members() {
			if of := keywordTypes[m.Name]; of != "" {
				return g.typed(n, of, depth)
			}
		}
		t = []string{"string", "integer", "boolean", "object"}[g.r.IntN(4)]
	}
	return g.typed(n, t, depth)
}

func (g *generator) typed(n *schema.Node, t string, depth int) *schema.Node {
	switch t {
	case "null":
		return schema.NewNull()
	case "boolean":
		return schema.NewBool(g.r.IntN(2) == 0)
	case "integer", "number":
		return g.number(n, t)
	case "string":
		return schema.NewString(g.text(n))
	case "array":
		return g.array(n, depth)
	}
	v := schema.NewObject()
	g.members(v, n, depth)
	return v
}

func (g *generator) members(v, n *schema.Node, depth int) {
	for _, branch := range n.Get("allOf").Items() {
		if target := resolveRef(g.root, branch); target != nil {
			branch = target
		}
		g.members(v, branch, depth)
	}
	needed := required(n)
	for _, p := range n.Get("properties").Members() {
		if v.Has(p.Name) || !slices.Contains(needed, p.Name) && (depth > 6 || g.r.IntN(3) > 0) {
			continue
		}
		v.Set(p.Name, g.value(p.Value, depth+1))
	}
	for _, name := range needed {
		if !v.Has(name) && len(n.Get("properties").Members()) == 0 {
			v.Set(name, schema.NewString("x"))
		}
	}
	extra := n.Get("additionalProperties")
	free := len(n.Get("properties").Members()) == 0 && !extra.IsBool(false) && depth > 0 && !n.Has("allOf") && !n.Has("anyOf") && !n.Has("oneOf")
	if extra.Kind() == schema.Object || free {
		for range g.r.IntN(3) {
			name := "k" + strconv.Itoa(g.r.IntN(10))
			if extra.Kind() == schema.Object {
				v.Set(name, g.value(extra, depth+1))
			} else {
				v.Set(name, schema.NewNumber(strconv.Itoa(g.r.IntN(100))))
			}
		}
	}
}

func (g *generator) number(n *schema.Node, t string) *schema.Node {
	low, high := -5.0, 1000.0
	for _, k := range []string{"minimum", "exclusiveMinimum"} {
		if f, err := strconv.ParseFloat(n.Get(k).Text(), 64); err == nil {
			low, high = f+1, max(high, f+1000)
		}
	}
	for _, k := range []string{"maximum", "exclusiveMaximum"} {
		if f, err := strconv.ParseFloat(n.Get(k).Text(), 64); err == nil {
			high = f
			low = min(low, f-1)
		}
	}
	if v := n.Get("minimum"); v != nil && low > high {
		return v.Clone()
	}
	if t == "number" && g.r.IntN(2) == 0 {
		return schema.NewNumber(strconv.FormatFloat(low+g.r.Float64()*(high-low), 'g', 6, 64))
	}
	return schema.NewNumber(strconv.FormatInt(int64(low)+g.r.Int64N(int64(min(max(high-low, 1), 1e15))), 10))
}

// formatted are texts in the formats that the validator judges.
var formatted = map[string][]string{
	"date": {"2026-11-21"}, "date-time": {"2026-11-21T17:00:00Z", "2026-11-21T17:00:00.25+01:00"}, "time": {"17:00:00Z"},
	"duration": {"P1D", "PT5M"}, "email": {"a.b@example.com"}, "hostname": {"example.com"}, "ipv4": {"192.0.2.1"},
	"ipv6": {"2001:db8::1"}, "uri": {"https://example.com/a?b=c"}, "iri": {"https://example.com/"},
	"uri-reference": {"/a/b", "https://example.com/"}, "iri-reference": {"/a"}, "uuid": {"123e4567-e89b-12d3-a456-426614174000"},
	"json-pointer": {"/a/b", ""}, "relative-json-pointer": {"0#"}, "uri-template": {"/a/{b}"}, "regex": {"^a+$"},
}

func (g *generator) text(n *schema.Node) string {
	if texts := formatted[n.Get("format").Text()]; len(texts) > 0 && !n.Has("pattern") {
		return texts[g.r.IntN(len(texts))]
	}
	if p := n.Get("pattern").Text(); p != "" {
		if re, err := syntax.Parse(p, syntax.Perl); err == nil {
			return g.match(re.Simplify())
		}
	}
	length := g.r.IntN(12)
	switch g.r.IntN(12) { // what models write now and then
	case 0:
		length = 0
	case 1:
		length = 300
	}
	if m, err := strconv.Atoi(n.Get("minLength").Text()); err == nil {
		length = max(length, min(m, 1000))
	}
	if m, err := strconv.Atoi(n.Get("maxLength").Text()); err == nil {
		length = min(length, m)
	}
	alphabet := []rune("ab Z09_-{}[]\"\\/é\n")
	var b strings.Builder
	for range length {
		b.WriteRune(alphabet[g.r.IntN(len(alphabet))])
	}
	return b.String()
}

// match makes a text that a regular expression matches.
func (g *generator) match(re *syntax.Regexp) string {
	var b strings.Builder
	switch re.Op {
	case syntax.OpLiteral:
		return string(re.Rune)
	case syntax.OpCharClass:
		if len(re.Rune) > 0 {
			i := g.r.IntN(len(re.Rune)/2) * 2
			lo, hi := re.Rune[i], min(re.Rune[i+1], re.Rune[i]+30)
			return string(lo + rune(g.r.IntN(int(hi-lo)+1)))
		}
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return "x"
	case syntax.OpConcat, syntax.OpCapture:
		for _, sub := range re.Sub {
			b.WriteString(g.match(sub))
		}
	case syntax.OpAlternate:
		return g.match(re.Sub[g.r.IntN(len(re.Sub))])
	case syntax.OpPlus:
		return g.match(re.Sub[0])
	case syntax.OpStar, syntax.OpQuest:
		if g.r.IntN(2) == 0 {
			return g.match(re.Sub[0])
		}
	}
	return b.String()
}

func (g *generator) array(n *schema.Node, depth int) *schema.Node {
	prefix := n.Get("prefixItems").Items()
	items := n.Get("items")
	length := g.r.IntN(3)
	if depth > 6 {
		length = 0
	}
	if m, err := strconv.Atoi(n.Get("minItems").Text()); err == nil {
		length = max(length, min(m, 20))
	}
	if m, err := strconv.Atoi(n.Get("maxItems").Text()); err == nil {
		length = min(length, m)
	}
	if len(prefix) > 0 {
		length = max(length, len(prefix))
	}
	v := schema.NewArray()
	var out []*schema.Node
	for i := range length {
		switch {
		case i < len(prefix):
			out = append(out, g.value(prefix[i], depth+1))
		case items.Kind() == schema.Object:
			out = append(out, g.value(items, depth+1))
		case items.IsBool(false):
		default:
			out = append(out, schema.NewString("any"))
		}
	}
	v.SetItems(out)
	return v
}
