package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/door/terminal"
	"github.com/dragoman-mcp/dragoman/internal/reach/servers"
	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
	"github.com/dragoman-mcp/dragoman/mcp"
	"github.com/dragoman-mcp/dragoman/schema"
)

// hostile returns schemas that want to cost too much, or to have something fetched:
// from an address, or from a file. They are by the groups that stand at one server.
func hostile(address, file string) map[string][]string {
	all := map[string][]string{}
	add := func(group string, schemas ...string) { all[group] = append(all[group], schemas...) }
	property := func(s string) string { return `{"type":"object","properties":{"f":` + s + `}}` }
	for opening, closing := range map[string]string{
		`{"items":`: `}`, `{"not":`: `}`, `{"additionalProperties":`: `}`, `{"if":`: `}`, `{"properties":{"a":`: `}}`, `{"anyOf":[`: `]}`, `{"allOf":[`: `]}`,
	} {
		for _, depth := range []int{20, 33, 100, 400} {
			add("deep", property(strings.Repeat(opening, depth)+"{}"+strings.Repeat(closing, depth)))
		}
	}
	for _, n := range []int{100, 2001, 5000} {
		members, list := make([]string, n), make([]string, n)
		for i := range n {
			members[i], list[i] = fmt.Sprintf(`"p%d":{"type":"string","minLength":1}`, i), fmt.Sprintf(`{"const":%d}`, i)
		}
		properties, schemas := strings.Join(members, ","), strings.Join(list, ",")
		add("wide", `{"type":"object","properties":{`+properties+`}}`, `{"type":"object","patternProperties":{`+properties+`}}`, `{"type":"object","dependentSchemas":{`+properties+`}}`,
			property(`{"anyOf":[`+schemas+`]}`), property(`{"oneOf":[`+schemas+`]}`), property(`{"enum":[`+schemas+`]}`), property(`{"allOf":[{"enum":[`+schemas+`]},{"enum":[`+schemas+`,0]}]}`), property(`{"type":"array","items":{"anyOf":[{"enum":[`+schemas+`]},{"enum":[0,`+schemas+`]}]}}`), property(`{"type":"array","prefixItems":[`+schemas+`]}`))
	}
	for _, n := range []int{100, 400} {
		branches := make([]string, n)
		for i := range n {
			branches[i] = fmt.Sprintf(`{"properties":{"f":{"type":"integer","minimum":%d},"g":{"const":%d}}}`, i, i)
		}
		for _, union := range []string{"anyOf", "oneOf", "allOf"} {
			add("branches", `{"type":"object","`+union+`":[`+strings.Join(branches, ",")+`]}`)
		}
	}
	for _, n := range []int{1900, 6000} {
		defs := make([]string, n)
		for i := range n {
			defs[i] = fmt.Sprintf(`"d%d":{"$ref":"#/$defs/d%d"}`, i, i+1)
		}
		end := fmt.Sprintf(`,"d%d":{"type":"string"}}}`, n)
		add("references", `{"type":"object","properties":{"f":{"$ref":"#/$defs/d0"}},"$defs":{`+strings.Join(defs, ",")+end,
			`{"allOf":[`+strings.Repeat(fmt.Sprintf(`{"$ref":"#/$defs/d%d"},`, n), 2000)+`{}],"$defs":{`+strings.Join(defs, ",")+end)
	}
	for _, form := range []string{`{"anyOf":[%s,%s]}`, `{"allOf":[%s,%s]}`, `{"oneOf":[%s,%s]}`, `{"type":"object","properties":{"a":%s,"b":%s}}`, `{"if":%s,"then":%s}`, `{"type":"array","prefixItems":[%s],"contains":%s}`} {
		for _, depth := range []int{10, 30, 200} {
			defs := `"d0":{"type":"string"}`
			for i := range depth {
				ref := fmt.Sprintf(`{"$ref":"#/$defs/d%d"}`, i)
				defs += fmt.Sprintf(`,"d%d":`, i+1) + fmt.Sprintf(form, ref, ref)
			}
			add("laughs", `{"type":"object","properties":{"f":{"$ref":"#/$defs/d`+fmt.Sprint(depth)+`"}},"$defs":{`+defs+`}}`)
		}
	}
	for _, loop := range []string{
		`{"$ref":"#"}`, `{"$dynamicRef":"#"}`, `{"$recursiveRef":"#"}`, `{"$ref":"#/properties/f"}`, `{"anyOf":[{"$ref":"#/properties/f"},{"type":"string"}]}`,
		`{"not":{"$ref":"#/properties/f"}}`, `{"allOf":[{"$ref":"#/properties/f"}]}`, `{"if":{"$ref":"#/properties/f"},"then":{}}`, `{"type":"array","items":{"$ref":"#"}}`,
		`{"additionalProperties":{"$ref":"#"}}`, `{"$id":"x","$ref":"x"}`, `{"$anchor":"a","$ref":"#a"}`, `{"$dynamicAnchor":"a","anyOf":[{"$dynamicRef":"#a"},{"$dynamicRef":"#a"}]}`,
		`{"dependentSchemas":{"f":{"$ref":"#/properties/f"}}}`, `{"propertyNames":{"$ref":"#"}}`, `{"unevaluatedProperties":{"$ref":"#"},"allOf":[{"$ref":"#/properties/f/unevaluatedProperties"}]}`,
	} {
		add("loops", property(loop))
	}
	for _, to := range []string{
		"http://" + address + "/s.json", "http://" + address + "/s.json#/a", "//" + address + "/s.json", "HTTP://" + address, "http://user:pass@" + address + "/", "jar:http://" + address + "!/s",
		"file://" + file, "file:" + file, file, "../../../../../../../.." + file, "FILE://" + file, "file://localhost" + file, "data:application/json,{}", "unix:" + file, "\\\\" + address + "\\s",
	} {
		ref, _ := json.Marshal(to)
		add("refs", property(`{"$ref":`+string(ref)+`}`), property(`{"$dynamicRef":`+string(ref)+`}`), property(`{"$id":`+string(ref)+`,"$ref":"other.json"}`),
			`{"$schema":`+string(ref)+`,"type":"object","properties":{"f":{"type":"string"}}}`, `{"type":"object","properties":{"f":{}},"$defs":{"a":{"$ref":`+string(ref)+`}}}`)
	}
	for _, pattern := range []string{
		`^(a+)+$`, `^(a|a)*$`, `^(a|aa)+$`, `^(.*a){25}$`, `([a-zA-Z]+)*$`, `^(([a-z])+.)+[A-Z]([a-z])+$`, `(x+x+)+y`, `^((a{1,50}){1,50}){1,50}$`, `(?=(a+)+$)a`, `(a)\\1+(\\1+)+$`, `((((((((((a{9}){9}){9}){9}){9}){9}){9}){9}){9}){9})`, `\\p{L}{1000}{1000}`, `(?<!a+)b`, `[[[[[`,
	} {
		add("patterns", property(`{"type":"string","pattern":"`+pattern+`"}`), property(`{"type":"object","patternProperties":{"`+pattern+`":false}}`), property(`{"type":"object","propertyNames":{"pattern":"`+pattern+`"}}`))
	}
	for _, odd := range []string{
		`{"type":"number","maximum":1e999999999}`, `{"type":"number","multipleOf":1e-300000}`, `{"type":"number","multipleOf":0}`, `{"type":"number","multipleOf":5e-324}`, `{"type":"string","minLength":1e18}`,
		`{"type":"array","minItems":9007199254740993}`, `{"type":"array","uniqueItems":true}`, `{"type":"array","contains":{},"minContains":1e9}`, `{"const":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + `}`,
		`{"default":"` + strings.Repeat("x", 200<<10) + `"}`, `{"type":"string","format":"` + strings.Repeat("regex", 1000) + `"}`, `{"type":"string","contentSchema":{"$ref":"#"}}`, `{"type":["string","string","null","null"]}`, `{"enum":[` + strings.Repeat(`"a",`, 50000) + `"b"]}`,
	} {
		add("values", property(odd))
	}
	return all
}

// hostileValue is an argument that is dear to judge by a bad pattern.
var hostileValue = strings.Repeat("a", 200) + "!"

// longest keeps the longest of some times, and what took it.
type longest struct {
	mu   sync.Mutex
	time time.Duration
	what string
}

func (l *longest) measure(what string, f func()) {
	began := time.Now()
	f()
	l.mu.Lock()
	defer l.mu.Unlock()
	if took := time.Since(began); took > l.time {
		l.time, l.what = took, what
	}
}

func (l *longest) String() string {
	return l.time.Round(10*time.Microsecond).String() + " (" + l.what + ")"
}

// stubborn types the same answer in each field, twice, and then declines.
type stubborn struct{ left int }

func (s *stubborn) Read(context.Context, string) (string, error) {
	if s.left--; s.left <= 0 {
		return "/decline", nil
	}
	return hostileValue, nil
}

// Fault 24: schemas that are bombs, in what tools take, in what they return and in
// what they ask. Each is judged in a moment, nothing is fetched, and nobody else
// notices.
func TestFaultSchemas(t *testing.T) {
	trap, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer trap.Close()
	var fetched atomic.Int32
	go func() {
		for conn, err := trap.Accept(); err == nil; conn, err = trap.Accept() {
			fetched.Add(1)
			_ = conn.Close()
		}
	}()
	file := filepath.Join(t.TempDir(), "canary.json")
	opened := watchFile(t, file)
	corpus := hostile(trap.Addr().String(), file)

	var admitted, planned, judged, decoded longest
	cases, refused, dialects := 0, 0, dialect.Builtin()
	for group, schemas := range corpus {
		for i, s := range schemas {
			if i%often(3, 1) != 0 {
				continue
			}
			cases++
			name := fmt.Sprintf("%s %d", group, i)
			admitted.measure(name, func() {
				if _, refusal := schema.Admit(json.RawMessage(s)); refusal != nil {
					refused++
				}
			})
			judged.measure(name, func() {
				schema.NewValidator(json.RawMessage(s)).Validate(json.RawMessage(`{"f":"` + hostileValue + `"}`))
			})
			for _, d := range []string{dialect.Conservative, "openai"} {
				tool := dragoman.Tool{Name: "x", Original: "x", Server: "s", InputSchema: json.RawMessage(s), Definition: json.RawMessage(`{"name":"x","inputSchema":` + s + `}`)}
				tool.Pin = dragoman.Pin("s", "x", tool.Definition)
				of, err := dialects.For(d)
				if err != nil {
					t.Fatal(err)
				}
				var plan *dialect.Plan
				planned.measure(name+" for "+d, func() { plan, _ = of.Plan(tool) })
				if plan != nil {
					decoded.measure(name+" for "+d, func() { plan.DecodeAs(`{"f":"`+hostileValue+`"}`, "", dialect.GradeOf(&tool)) })
				}
			}
		}
	}
	t.Logf("%d schemas, %d refused: admitted after at most %s, converted after %s; a value judged after %s, arguments of a model decoded after %s", cases, refused, &admitted, &planned, &judged, &decoded)

	all := map[string]servers.Config{}
	all["other"], _ = fakes(t, fakemcp.Config{Tools: []fakemcp.Tool{{Name: "echo"}}})
	for group, schemas := range corpus {
		for _, era := range []fakemcp.Era{fakemcp.LegacyOnly, fakemcp.ModernOnly} {
			var tools []fakemcp.Tool
			for i, s := range schemas {
				tools = append(tools,
					fakemcp.Tool{Name: fmt.Sprintf("in%d", i), InputSchema: json.RawMessage(s)},
					fakemcp.Tool{Name: fmt.Sprintf("out%d", i), Do: fakemcp.Structured, Definition: json.RawMessage(fmt.Sprintf(`{"name":"out%d","inputSchema":{"type":"object"},"outputSchema":%s}`, i, s))},
					fakemcp.Tool{Name: fmt.Sprintf("ask%d", i), Do: fakemcp.Ask, Question: json.RawMessage(`{"message":"?","requestedSchema":` + s + `}`)})
			}
			all[fmt.Sprintf("%s-%s", group, era)], _ = fakes(t, fakemcp.Config{Era: era, Keep: -1, Tools: tools})
		}
	}
	conf := config.Default()
	conf.MCPServers = all
	g, err := New(conf, Options{Lookup: func(string) (string, bool) { return "", false }, Can: dragoman.AskForm})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	if err := g.Wait(within(t)); err != nil {
		t.Fatal(err)
	}
	c, err := mcp.Connect(t.Context(), mcp.HTTP{URL: web(t, g.Handler()) + "/mcp"}, &mcp.ClientOptions{Era: mcp.Modern, Can: dragoman.AskForm})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	list, err := c.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	asker := func() *terminal.Asker {
		return &terminal.Asker{In: &stubborn{3}, Screen: &terminal.Screen{Writer: io.Discard}}
	}
	var called, asked longest
	calls, failed, forms := 0, 0, 0
	for i, each := range list.Tools.All() {
		if each.Name == "other__echo" || i%often(5, 1) != 0 {
			continue
		}
		call := dragoman.Call{Tool: &each, Arguments: json.RawMessage(`{"f":"` + hostileValue + `"}`), Can: dragoman.AskForm}
		var res dragoman.Result
		calls++
		called.measure(each.Name, func() { res, err = c.Call(within(t), call) })
		if err != nil {
			t.Fatalf("%s: %v", each.Name, err)
		}
		if res.Asks == nil {
			if res.Problem != nil || res.Failed {
				failed++
			}
			continue
		}
		forms++
		asked.measure(each.Name, func() { call.Answers, err = asker().Ask(t.Context(), call, res.Asks) })
		if err != nil {
			t.Fatalf("%s: %v", each.Name, err)
		}
		call.Answers.State = res.Asks.State
		if res, err = c.Call(within(t), call); err != nil || res.Problem != nil {
			t.Errorf("%s: going on: %v, %v", each.Name, res.Problem, err)
		}
	}
	if res, err := call(within(t), c, tool(t, c, "other__echo"), 1); fine(res, err, 1) != nil {
		t.Errorf("another server: %v", fine(res, err, 1))
	}
	var states []string
	for _, s := range g.Servers() {
		if s.State != dragoman.Connected {
			states = append(states, s.Label+" "+string(s.State))
		}
	}
	slices.Sort(states)
	t.Logf("through the gateway: %d calls, %d refused, the longest %s; %d forms at a terminal, the longest %s; servers that were not taken: %v", calls, failed, &called, forms, &asked, states)
	if n := fetched.Load(); n > 0 || opened() {
		t.Errorf("%d connections were made for schemas; a file was opened: %v", n, opened())
	}
	for _, l := range []*longest{&admitted, &planned, &judged, &decoded, &called, &asked} {
		if l.time > 30*time.Second { // a slow machine under load, with the race detector
			t.Errorf("a schema held something up: %s", l)
		}
	}
}
