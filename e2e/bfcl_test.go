package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
	"github.com/dragoman-mcp/dragoman/rehearsal"
	"github.com/dragoman-mcp/dragoman/schema"
)

// A bfclCase is a question of the Berkeley Function Calling Leaderboard with the
// calls that answer it.
type bfclCase struct {
	id    string
	tools []string // names of those on offer, at the server
	calls []bfclCall
}

// A bfclCall is a call that the leaderboard accepts.
type bfclCall struct {
	tool      string
	arguments json.RawMessage
}

// bfclData is one folder of the leaderboard's data.
type bfclData struct {
	tools    []fakemcp.Tool
	schemas  map[string]json.RawMessage // by the tool's name
	cases    []bfclCase
	repeats  int      // calls that only repeat one of the same case
	unfit    []string // calls of which no accepted form fits the function's own document
	renamed  map[string]string
	variants map[string]int
}

// TestBFCL lets a model that always knows the right answer make the calls of the
// leaderboard, in every dialect: what arrives at the server must be what it
// accepts. It is the whole way there and back: names, schemas, arguments, loop,
// wire.
func TestBFCL(t *testing.T) {
	for kind, dir := range bfcl.folders(t) {
		data := readBFCL(t, dir)
		run := newBFCLRun(t, data)
		every := everyNth(t, kind)
		t.Logf("%s: %d functions, %d cases, %d accepted calls that differ, %d repeats; %d calls fit no document of their function",
			kind, len(data.tools), len(data.cases), data.count(), data.repeats, len(data.unfit))
		for _, u := range data.unfit[:min(len(data.unfit), 10)] {
			t.Logf("  fits no document: %s", u)
		}
		for _, name := range judgedDialects() {
			arrived, narrowed, wrong := run.dialect(t, name, every)
			t.Logf("  %-17s %d calls arrived as accepted, %d cannot be said and the plan says so, %d are wrong", name, arrived, narrowed, len(wrong))
			for _, w := range wrong[:min(len(wrong), 5)] {
				t.Errorf("%s %s: %s", kind, name, w)
			}
			if arrived == 0 {
				t.Errorf("%s %s: nothing arrived", kind, name)
			}
		}
	}
}

func (d *bfclData) count() (n int) {
	for _, c := range d.cases {
		n += len(c.calls)
	}
	return n
}

// A bfclRun is a gateway between the model and a server with all functions.
type bfclRun struct {
	data   *bfclData
	g      *gateway
	server *fakemcp.Server
	tools  map[string]dragoman.Tool
}

func newBFCLRun(t *testing.T, data *bfclData) *bfclRun {
	t.Helper()
	run := &bfclRun{data: data, tools: map[string]dragoman.Tool{}}
	for _, tool := range data.tools {
		run.tools[tool.Name] = dragoman.Tool{Name: tool.Name, InputSchema: data.schemas[tool.Name]}
	}
	// As strict as OpenAI where the dialect is OpenAI's; the others have rules of
	// their own, by which package dialect judges.
	strict, lenient := httptest.NewServer(&rehearsal.Model{}), httptest.NewServer(&rehearsal.Model{Lenient: true})
	t.Cleanup(strict.Close)
	t.Cleanup(lenient.Close)
	entry, s := remote(t, fakemcp.Config{Tools: data.tools, Keep: 256})
	run.server = s
	var models []any
	for _, name := range judgedDialects() {
		model := lenient
		if slices.Contains([]string{"openai", "openai-strict", "responses", "azure"}, name) {
			model = strict
		}
		models = append(models, map[string]any{"match": "judged-" + name, "base_url": model.URL + "/v1", "dialect": name})
	}
	run.g = start(t, nil, servers{"bfcl": entry}, with("models", models), with("log", map[string]any{"format": "json", "level": "info"}))
	run.g.ready()
	return run
}

// dialect makes the calls of every nth case in one dialect.
func (r *bfclRun) dialect(t *testing.T, name string, every int) (arrived, narrowed int, wrong []string) {
	t.Helper()
	d, err := dialect.For(name)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(r.data.cases); i += every {
		c := r.data.cases[i]
		script, expected, cannot := r.script(d, c)
		narrowed += cannot
		if len(expected) == 0 {
			continue
		}
		got, failure := r.ask(t, name, c, script)
		for j, want := range expected {
			switch {
			case j >= len(got):
				wrong = append(wrong, fmt.Sprintf("%s: %s %s did not arrive: %s", c.id, want.tool, want.arguments, failure))
			case got[j].tool != want.tool || !equalJSON(got[j].arguments, want.arguments):
				wrong = append(wrong, fmt.Sprintf("%s: %s %s arrived as %s %s", c.id, want.tool, want.arguments, got[j].tool, got[j].arguments))
			default:
				arrived++
			}
		}
	}
	return arrived, narrowed, wrong
}

// script is what the model is told to call: each call as a model writes it in
// this dialect.
func (r *bfclRun) script(d *dialect.Dialect, c bfclCase) (script string, expected []bfclCall, cannot int) {
	var lines []string
	for _, call := range c.calls {
		plan, problem := d.Plan(r.tools[call.tool])
		if problem != nil {
			expected = append(expected, call) // it cannot arrive, and is told as wrong
			continue
		}
		wrote, err := plan.Encode(call.arguments)
		if err != nil {
			if slices.ContainsFunc(plan.Report(), func(c dialect.Change) bool { return c.Narrows }) {
				cannot++
				continue
			}
			wrote = call.arguments
		}
		var line bytes.Buffer
		if json.Compact(&line, wrote) != nil {
			line.Write(wrote)
		}
		lines = append(lines, "CALL "+plan.Name()+" "+line.String())
		expected = append(expected, call)
	}
	return strings.Join(lines, "\n"), expected, cannot
}

// ask sends the request and returns the calls that arrived at the server.
func (r *bfclRun) ask(t *testing.T, name string, c bfclCase, script string) (got []bfclCall, failure string) {
	t.Helper()
	body, err := json.Marshal(map[string]any{
		"model":    "judged-" + name,
		"messages": []any{map[string]any{"role": "user", "content": script}},
		"tools":    []any{map[string]any{"type": "mcp", "server_label": "bfcl", "allowed_tools": c.tools}},
	})
	if err != nil {
		t.Fatal(err)
	}
	before := r.server.Count("tools/call")
	reply := r.g.post(body)
	n := r.server.Count("tools/call") - before
	entries := r.server.Received("tools/call")
	for _, e := range entries[len(entries)-min(n, len(entries)):] {
		var m struct {
			Params struct {
				Name      string
				Arguments json.RawMessage
			}
		}
		if err := json.Unmarshal([]byte(e.Message), &m); err != nil {
			t.Fatal(err)
		}
		got = append(got, bfclCall{m.Params.Name, m.Params.Arguments})
	}
	return got, fmt.Sprintf("HTTP %d %s%s", reply.Status, reply.Error.Message, reply.text())
}

func equalJSON(a, b json.RawMessage) bool {
	x, err := schema.Parse(a)
	if err != nil {
		return false
	}
	y, err := schema.Parse(b)
	return err == nil && schema.Equal(x, y)
}

// readBFCL reads the single-turn cases: questions with functions in one file,
// accepted answers in a file of the same name below possible_answer.
func readBFCL(t *testing.T, dir string) *bfclData {
	t.Helper()
	answers, err := filepath.Glob(filepath.Join(dir, "possible_answer", "*.json"))
	if err != nil || len(answers) == 0 {
		t.Fatalf("no answers in %s: %v", dir, err)
	}
	data := &bfclData{schemas: map[string]json.RawMessage{}, renamed: map[string]string{}, variants: map[string]int{}}
	for _, path := range answers {
		functions := map[string][]bfclFunction{}
		for _, line := range jsonLines(t, filepath.Join(dir, filepath.Base(path))) {
			var q struct {
				ID       string
				Function []bfclFunction
			}
			if json.Unmarshal(line, &q) == nil {
				functions[q.ID] = q.Function
			}
		}
		for _, line := range jsonLines(t, path) {
			var a struct {
				ID     string
				Answer []map[string]map[string][]json.RawMessage `json:"ground_truth"`
			}
			if json.Unmarshal(line, &a) != nil {
				break // multi turn, memory and web search have answers of other kinds
			}
			data.add(a.ID, functions[a.ID], a.Answer)
		}
	}
	return data
}

func jsonLines(t *testing.T, path string) (lines [][]byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(b) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			lines = append(lines, line)
		}
	}
	return lines
}

// add takes a case in.
func (d *bfclData) add(id string, functions []bfclFunction, answer []map[string]map[string][]json.RawMessage) {
	c := bfclCase{id: id}
	names := map[string]string{}
	for _, f := range functions {
		name := d.tool(f)
		names[f.Name] = name
		c.tools = append(c.tools, name)
	}
	for _, calls := range answer {
		for _, function := range slices.Sorted(maps.Keys(calls)) {
			tool := names[function]
			arguments, ok := accepted(d.schemas[tool], calls[function])
			if !ok {
				d.unfit = append(d.unfit, fmt.Sprintf("%s: %s %s", id, function, arguments))
				continue
			}
			call := bfclCall{tool, arguments}
			if slices.ContainsFunc(c.calls, func(c bfclCall) bool { return c.tool == tool && equalJSON(c.arguments, arguments) }) {
				d.repeats++ // what may change something is not made twice in a row, on purpose
				continue
			}
			c.calls = append(c.calls, call)
		}
	}
	if len(c.calls) > 0 {
		d.cases = append(d.cases, c)
	}
}

// tool registers a function and returns its name at the server. The same name
// with another document is another tool.
func (d *bfclData) tool(f bfclFunction) string {
	input := jsonSchema(f.Parameters)
	key := f.Name + "\x00" + string(input)
	if name := d.renamed[key]; name != "" {
		return name
	}
	d.variants[f.Name]++
	name := f.Name
	if n := d.variants[f.Name]; n > 1 {
		name = fmt.Sprintf("%s_%d", f.Name, n)
	}
	d.renamed[key] = name
	d.schemas[name] = input
	d.tools = append(d.tools, fakemcp.Tool{Name: name, Description: f.Description, InputSchema: input})
	return name
}
