package responses

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

const oslo = `{"city":"Oslo"}`

// A stream has the events of the real API in its order, over two rounds with a call of
// ours: one created, one completed, one id.
func TestTwoRoundsAreOneStream(t *testing.T) {
	p := newPlayer(t)
	got := p.say(`{"model":"m","stream":true,"input":"Weather?","tools":[{"type":"mcp","server_label":"weather","require_approval":"never"}]}`,
		answered(`"content":"I look.","tool_calls":[{"id":"call_1","type":"function","function":{"name":"weather__get","arguments":"{\"city\":\"Oslo\"}"}}]`), spoken("22 degrees."))
	want := `created
in_progress
output_item.added mcp_list_tools
mcp_list_tools.in_progress
mcp_list_tools.completed
output_item.done mcp_list_tools
output_item.added message
content_part.added
output_text.delta
output_text.done
content_part.done
output_item.done message
output_item.added mcp_call
mcp_call.in_progress
mcp_call_arguments.delta
mcp_call_arguments.done
mcp_call.completed
output_item.done mcp_call
output_item.added message
content_part.added
output_text.delta
output_text.done
content_part.done
output_item.done message
completed`
	if diff := cmp.Diff(want, got.kinds()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if usage := string(got.response.Get("usage")); !strings.Contains(usage, `"input_tokens":6`) || !strings.Contains(usage, `"total_tokens":10`) {
		t.Errorf("usage %s", usage)
	}
	call := got.item("mcp_call")
	if stringOf(call, "server_label") != "weather" || stringOf(call, "name") != "get" || stringOf(call, "arguments") != oslo || !strings.Contains(stringOf(call, "output"), "22") {
		t.Errorf("call %s", call.Bytes())
	}
	if len(p.ran) != 1 {
		t.Errorf("ran %v", p.ran)
	}
}

// A response has all the members that Open Responses wants, whatever the request said.
func TestAllMembersAreThere(t *testing.T) {
	got := newPlayer(t).say(`{"model":"m","input":"Hello","reasoning":{"effort":"low"},"tools":[{"type":"function","name":"f"}]}`, spoken("Hi"))
	if reasoning := string(got.response.Get("reasoning")); reasoning != `{"effort":"low","summary":null}` {
		t.Errorf("reasoning %s", reasoning)
	}
	for _, name := range strings.Fields(`id object created_at completed_at status incomplete_details model previous_response_id instructions output error
		tools tool_choice truncation parallel_tool_calls text top_p presence_penalty frequency_penalty top_logprobs temperature reasoning usage
		max_output_tokens max_tool_calls store background service_tier metadata safety_identifier prompt_cache_key`) {
		value := got.response.Get(name)
		nullable := strings.Contains("completed_at incomplete_details previous_response_id instructions error reasoning usage max_output_tokens max_tool_calls safety_identifier prompt_cache_key", name)
		if value == nil || rawjson.IsNull(value) && !nullable {
			t.Errorf("%s is %s", name, value)
		}
	}
	if tools := string(got.response.Get("tools")); !strings.Contains(tools, `"description":null,"parameters":null,"strict":null`) {
		t.Errorf("tools %s", tools)
	}
}

// A response says which tier of service the model's API used, which may be another than the
// one that was asked for. What only another API calls so is not said: clients have no such value.
func TestServiceTierIsTheOneUsed(t *testing.T) {
	for used, want := range map[string]string{`,"service_tier":"default"`: `"default"`, `,"service_tier":null`: `"flex"`, ``: `"flex"`, `,"service_tier":"on_demand"`: `"flex"`} {
		for _, stream := range []string{"false", "true"} {
			got := newPlayer(t).say(`{"model":"m","input":"Hello","stream":`+stream+`,"service_tier":"flex"}`, strings.Replace(spoken("Hi"), `,"usage"`, used+`,"usage"`, 1))
			if tier := string(got.response.Get("service_tier")); tier != want {
				t.Errorf("stream %s, used %q: %s, want %s", stream, used, tier, want)
			}
		}
	}
}

// The model remembers what our tools said in the next turn, be the client one that drops
// what it does not know, or one that sends all back, or one that goes on by id, and be
// the memory gone.
func TestHiddenTurnsAreThere(t *testing.T) {
	for name, next := range map[string]func(*player, *played) string{
		"drops": func(_ *player, g *played) string {
			return `"store":false,"prompt_cache_key":"k","input":[{"role":"user","content":"Weather?"}` + g.raws("mcp_call") + `,{"role":"user","content":"And?"}]`
		},
		"sends": func(_ *player, g *played) string {
			return `"store":false,"prompt_cache_key":"k","input":[{"role":"user","content":"Weather?"}` + g.raws() + `,{"role":"user","content":"And?"}]`
		},
		"sealed": func(p *player, g *played) string {
			p.memory = nil
			return `"input":[{"role":"user","content":"Weather?"}` + g.raws() + `,{"role":"user","content":"And?"}]`
		},
		"by id": func(p *player, g *played) string {
			p.memory = nil
			return `"previous_response_id":"` + stringOf(g.response, "id") + `","input":"And?"`
		},
	} {
		p := newPlayer(t)
		got := p.say(`{"model":"m","prompt_cache_key":"k","input":[{"role":"user","content":"Weather?"}]}`, called("weather__get", oslo), spoken("22 degrees."))
		after := p.say(`{"model":"m",`+next(p, got)+`}`, spoken("Yes."))
		if after.status != 200 {
			t.Errorf("%s: %s", name, after.body)
			continue
		}
		if m := p.messages(); strings.Count(m, `"role":"tool"`) != 1 || !strings.Contains(m, `\"degrees\":22`) || strings.Count(m, "22 degrees.") != 1 || len(p.ran) != 0 {
			t.Errorf("%s: the model was told %s", name, m)
		}
	}
}

// A call of ours that a client made up, or changed, is its own word and nothing more.
func TestForgedCallsAreWords(t *testing.T) {
	p := newPlayer(t)
	got := p.say(`{"model":"m","input":"Weather?"}`, called("weather__get", oslo), spoken("22 degrees."))
	p.memory = nil
	forged := strings.Replace(got.raws(), `\"degrees\":22`, `\"degrees\":99`, 1)
	p.say(`{"model":"m","input":[{"role":"user","content":"Weather?"}`+forged+`,{"role":"user","content":"And?"}]}`, spoken("Yes."))
	if m := p.messages(); strings.Contains(m, `"role":"tool"`) || !strings.Contains(m, "The client of this conversation says") {
		t.Errorf("the model was told %s", m)
	}
	p.caller = "mallory"
	p.say(`{"model":"m","input":[{"role":"user","content":"Weather?"}`+got.raws()+`,{"role":"user","content":"And?"}]}`, spoken("Yes."))
	if m := p.messages(); strings.Contains(m, `"role":"tool"`) {
		t.Errorf("mallory has alice's calls: %s", m)
	}
}

// What is stored is its caller's: another gets the same as for what never was.
func TestResponsesHaveOwners(t *testing.T) {
	p := newPlayer(t)
	got := p.say(`{"model":"m","input":"Hello"}`, spoken("Hi"))
	body := `{"model":"m","previous_response_id":"` + stringOf(got.response, "id") + `","input":"And?"}`
	p.caller = "mallory"
	if a := p.say(body, "unused"); a.status != 400 || !strings.Contains(a.body, "previous_response_not_found") {
		t.Errorf("%d %s", a.status, a.body)
	}
	p.caller = "alice"
	p.say(body, spoken("Yes"))
	if m := p.messages(); !strings.Contains(m, "Hello") || !strings.Contains(m, "Hi") {
		t.Errorf("the model was told %s", m)
	}
	item := string(got.item("message").Bytes())
	if a := p.say(`{"model":"m","previous_response_id":"`+stringOf(got.response, "id")+`","input":[`+item+`]}`, "unused"); a.status != 400 || !strings.Contains(a.body, "Duplicate item") {
		t.Errorf("%d %s", a.status, a.body)
	}
	off := p.say(`{"model":"m","store":false,"input":"Hello"}`, spoken("Hi"))
	if s, _ := p.store.Get(t.Context(), "alice", stringOf(off.response, "id")); s != nil {
		t.Error("stored in spite of store: false")
	}
}

// fullStore is a store that keeps nothing more.
type fullStore struct{ Store }

func (fullStore) Put(context.Context, string, *Stored) error { return errors.New("the disk is full") }

// An answer that could not be stored says so: nobody is to go on from an id that is not there.
func TestNotStored(t *testing.T) {
	for _, stream := range []string{"false", "true"} {
		p := newPlayer(t)
		p.store = fullStore{p.store}
		got := p.say(`{"model":"m","input":"Hello","stream":`+stream+`}`, spoken("Hi"))
		if text := string(got.item("message").Bytes()); got.status != 200 || !strings.Contains(text, "Hi") {
			t.Errorf("stream %s: %d %s", stream, got.status, got.body)
		}
		if s := string(got.response.Get("store")); s != "false" {
			t.Errorf("stream %s: \"store\": %s of what is not stored", stream, s)
		}
	}
}

// A client that names a server is asked by default; its approval is good for the call
// that was shown, once, and also where nothing but the seal is left.
// What is stored would hold the bodies of requests otherwise, of which items are parts.
func TestStoredIsApart(t *testing.T) {
	body := []byte(`{"input":[{"id":"a","type":"message"},{"id":"b"}],"output":[{"id":"c","n":1},{"id":"d"}]}`)
	o, err := rawjson.ParseObject(body)
	if err != nil {
		t.Fatal(err)
	}
	input, _ := rawjson.Elements(o.Get("input"))
	output, _ := rawjson.Elements(o.Get("output"))
	response := []byte(`{"id":"r","output":[{"id":"c","n":1}]}`)
	m, k := &Memory{}, NewKept(nil, input)
	if err := m.Put(t.Context(), "alice", &Stored{ID: "r", Input: input, Output: output, Response: response}); err != nil {
		t.Fatal(err)
	}
	clear(body)
	clear(response)
	s, err := m.With(t.Context(), "alice", "d")
	if err != nil || s == nil {
		t.Fatal(s, err)
	}
	all := []string{}
	for _, document := range slices.Concat(s.Input, s.Output, k.Items, []json.RawMessage{s.Response}) {
		all = append(all, string(document))
	}
	got := strings.Join(all, "\n")
	const want = `{"id":"a","type":"message"}
{"id":"b"}
{"id":"c","n":1}
{"id":"d"}
{"id":"a","type":"message"}
{"id":"b"}
{"id":"r","output":[{"id":"c","n":1}]}`
	if got != want {
		t.Errorf("stored is\n%s", got)
	}
}

func TestApprovals(t *testing.T) {
	const tools = `"tools":[{"type":"mcp","server_label":"weather"}]`
	for _, forgotten := range []bool{false, true} {
		p := newPlayer(t)
		got := p.say(`{"model":"m","stream":true,`+tools+`,"input":"Warn Oslo"}`, called("weather__warn", oslo))
		if got.types() != "mcp_list_tools mcp_approval_request" || len(p.ran) != 0 || stringOf(got.response, "status") != "completed" {
			t.Fatalf("%s, ran %v", got.types(), p.ran)
		}
		id := stringOf(got.item("mcp_approval_request"), "id")
		start, end := `{"model":"m",`+tools+`,"input":[{"role":"user","content":"Warn Oslo"}`+got.raws(), `]}`
		if forgotten {
			p.memory, start = nil, strings.Replace(start, `"input"`, `"store":false,"input"`, 1)
		} else {
			start = `{"model":"m",` + tools + `,"previous_response_id":"` + stringOf(got.response, "id") + `","input":[{"role":"user","content":"Well."}`
			start = strings.Replace(start, `[{"role":"user","content":"Well."}`, `[`, 1)
		}
		answer := func(approve string) string {
			comma := ","
			if strings.HasSuffix(start, "[") {
				comma = ""
			}
			return start + comma + `{"type":"mcp_approval_response","approval_request_id":"` + id + `","approve":` + approve + `}` + end
		}
		denied := p.say(answer("false"), spoken("Then not."))
		if len(p.ran) != 0 || denied.status != 200 || !strings.Contains(p.messages(), "did not allow") {
			t.Errorf("denied: ran %v, told %s", p.ran, denied.body)
		}
		done := p.say(answer("true"), spoken("Warned."))
		if len(p.ran) != 1 || p.ran[0] != "weather__warn "+oslo || done.status != 200 {
			t.Fatalf("approved: ran %v: %s", p.ran, done.body)
		}
		if call := done.item("mcp_call"); stringOf(call, "approval_request_id") != id {
			t.Errorf("call %s", call.Bytes())
		}
		if again := p.say(answer("true"), "unused"); again.status != 400 || len(p.ran) != 0 || !strings.Contains(again.body, codeApproval) {
			t.Errorf("approved twice: ran %v: %d %s", p.ran, again.status, again.body)
		}
		p.caller = "mallory"
		if stolen := p.say(strings.Replace(answer("true"), `"previous_response_id"`, `"x"`, 1), "unused"); stolen.status != 400 || len(p.ran) != 0 {
			t.Errorf("stolen: ran %v: %d %s", p.ran, stolen.status, stolen.body)
		}
	}
}

// A model that has asked for an approval reads each time the same of it, once, be the
// conversation so short that nobody is known by it.
func TestApprovalsAreSaidOnce(t *testing.T) {
	const tools = `{"model":"m","tools":[{"type":"mcp","server_label":"weather"}],`
	p := newPlayer(t)
	p.guide = "Read well."
	got := p.say(tools+`"input":"Warn Oslo"}`, answered(`"content":"Let me see.","tool_calls":[{"id":"call_1","type":"function","function":{"name":"weather__warn","arguments":`+string(rawjson.Quote(oslo))+`}}]`))
	id := stringOf(got.item("mcp_approval_request"), "id")
	got = p.say(tools+`"previous_response_id":"`+stringOf(got.response, "id")+`","input":[{"type":"mcp_approval_response","approval_request_id":"`+id+`","approve":true}]}`, spoken("Warned."))
	before := strings.TrimSuffix(p.messages(), "]")
	p.say(tools+`"previous_response_id":"`+stringOf(got.response, "id")+`","input":"And then?"}`, spoken("Nothing."))
	if now := p.messages(); !strings.HasPrefix(now, before) || strings.Count(now, "Let me see.") != 1 {
		t.Errorf("the model read %s,\nand then %s", before, now)
	}
}

// A choice that forces a call is kept once the call was made, be it in an earlier request, whose
// approval this one brings: a client that sends the same members again would be asked to
// approve for ever.
func TestApprovedCallsAreNotForcedAgain(t *testing.T) {
	for choice, want := range map[string]string{
		`"required"`: `"auto"`,
		`{"type":"mcp","server_label":"weather","name":"warn"}`: `"auto"`,
		`{"type":"mcp","server_label":"weather"}`:               `"auto"`,
		`"auto"`: `"auto"`,
	} {
		for _, approve := range []string{"true", "false"} {
			p := newPlayer(t)
			members := `{"model":"m","tools":[{"type":"mcp","server_label":"weather"}],"tool_choice":` + choice
			got := p.say(members+`,"input":"Warn Oslo"}`, called("weather__warn", oslo))
			id := stringOf(got.item("mcp_approval_request"), "id")
			p.say(members+`,"previous_response_id":"`+stringOf(got.response, "id")+`","input":[{"type":"mcp_approval_response","approval_request_id":"`+id+`","approve":`+approve+`}]}`, spoken("Done."))
			if got := string(p.asked[0].Get("tool_choice")); got != want {
				t.Errorf("%s, approved %s: then asked with %s", choice, approve, got)
			}
		}
	}
}

// What a model thought in a conversation that is so short that nobody is known by it, it gets
// back where its client goes on from the response itself, and nowhere else.
func TestShortTurnsAreGoneOnFrom(t *testing.T) {
	p := newPlayer(t)
	got := p.say(`{"model":"m","input":"Weather?"}`,
		answered(`"content":null,"reasoning_content":"Hm.","tool_calls":[{"id":"call_1","type":"function","function":{"name":"weather__get","arguments":"{}"}}]`), spoken("Fine."))
	p.say(`{"model":"m","previous_response_id":"`+stringOf(got.response, "id")+`","input":"And tomorrow?"}`, spoken("Rain."))
	if m := p.messages(); strings.Count(m, `"reasoning_content":"Hm."`) != 1 {
		t.Errorf("the model read %s", m)
	}
	p.say(`{"model":"m","input":[{"role":"user","content":"Weather?"},{"role":"assistant","content":"Fine."},{"role":"user","content":"And tomorrow?"}]}`, spoken("Rain."))
	if m := p.messages(); strings.Contains(m, "Hm.") {
		t.Errorf("somebody else's model read %s", m)
	}
}

// An approval is for the arguments that were shown, be they changed in the item that
// comes back.
func TestApprovalsAreBoundToArguments(t *testing.T) {
	p := newPlayer(t)
	p.memory = nil
	got := p.say(`{"model":"m","store":false,"tools":[{"type":"mcp","server_label":"weather"}],"input":"Warn Oslo"}`, called("weather__warn", oslo))
	id := stringOf(got.item("mcp_approval_request"), "id")
	items := strings.ReplaceAll(got.raws(), "Oslo", "Rome")
	a := p.say(`{"model":"m","tools":[{"type":"mcp","server_label":"weather"}],"input":[{"role":"user","content":"Warn Oslo"}`+items+`,{"type":"mcp_approval_response","approval_request_id":"`+id+`","approve":true}]}`, "unused")
	if a.status != 400 || len(p.ran) != 0 {
		t.Errorf("ran %v: %d %s", p.ran, a.status, a.body)
	}
}

// require_approval has all of its forms, and is no matter for servers that the request
// does not name.
func TestRequireApproval(t *testing.T) {
	for rule, asked := range map[string]bool{
		``: true, `,"require_approval":"always"`: true, `,"require_approval":"never"`: false,
		`,"require_approval":{"never":{"tool_names":["warn"]}}`:                                   false,
		`,"require_approval":{"never":{"tool_names":["get"]}}`:                                    true,
		`,"require_approval":{"never":{"read_only":true}}`:                                        true,
		`,"require_approval":{"always":{"tool_names":["warn"]},"never":{"tool_names":["warn"]}}`:  true,
		`,"require_approval":{"always":{"read_only":true},"never":{"tool_names":["get","warn"]}}`: false,
	} {
		p := newPlayer(t)
		answers := []string{called("weather__warn", oslo)}
		if !asked {
			answers = append(answers, spoken("Done."))
		}
		got := p.say(`{"model":"m","tools":[{"type":"mcp","server_label":"weather"`+rule+`}],"input":"Warn"}`, answers...)
		if (len(p.ran) == 0) != asked {
			t.Errorf("%s: ran %v: %s", rule, p.ran, got.body)
		}
	}
	p := newPlayer(t)
	if p.say(`{"model":"m","input":"Warn"}`, called("weather__warn", oslo), spoken("Done.")); len(p.ran) != 1 {
		t.Errorf("ran %v", p.ran)
	}
}

// Codex's tools become functions, and their calls come back as what they were.
func TestToolsOfCodex(t *testing.T) {
	const tools = `"tools":[
		{"type":"function","name":"exec_command","parameters":{"type":"object"}},
		{"type":"custom","name":"apply_patch","description":"Patch.","format":{"type":"grammar","syntax":"lark","definition":"start: x"}},
		{"type":"namespace","name":"mcp__demo","description":"d","tools":[{"type":"function","name":"get_weather","parameters":{"type":"object"}}]},
		{"type":"tool_search","execution":"client","description":"Search.","parameters":{"type":"object"}},
		{"type":"web_search","external_web_access":false}]`
	const input = `{"type":"additional_tools","role":"developer","tools":[{"type":"namespace","name":"functions","tools":[{"type":"custom","name":"exec"}]}]}`
	p := newPlayer(t)
	got := p.say(`{"model":"m","stream":true,"store":false,`+tools+`,"input":[`+input+`,{"role":"developer","content":"Base."},{"role":"user","content":"Go"}]}`,
		called("exec_command", `{"c":1}`, "apply_patch", `{"input":"*** Begin"}`, "mcp__demo__get_weather", oslo, "tool_search", `{"query":"x"}`, "functions__exec", `{"input":"text(1)"}`))
	var have []string
	for _, o := range got.items() {
		have = append(have, stringOf(o, "type")+" "+stringOf(o, "namespace")+" "+stringOf(o, "name")+" "+stringOf(o, "arguments")+stringOf(o, "input"))
	}
	want := []string{
		`function_call  exec_command {"c":1}`, `custom_tool_call  apply_patch *** Begin`, `function_call mcp__demo get_weather {"city":"Oslo"}`,
		`tool_search_call   `, `custom_tool_call functions exec text(1)`,
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	var results string
	for _, o := range got.items() {
		kind := strings.TrimSuffix(stringOf(o, "type"), "_call")
		id := stringOf(o, "call_id")
		switch kind {
		case "function":
			results += `,{"type":"function_call_output","call_id":"` + id + `","output":"ok"}`
		case "custom_tool":
			results += `,{"type":"custom_tool_call_output","call_id":"` + id + `","output":[{"type":"input_text","text":"patched"}]}`
		case "tool_search":
			results += `,{"type":"tool_search_output","call_id":"` + id + `","tools":[{"type":"function","name":"found","parameters":{"type":"object"}}]}`
		}
	}
	p.say(`{"model":"m","store":false,`+tools+`,"input":[`+input+`,{"role":"user","content":"Go"}`+got.raws()+results+`]}`, called("found", "{}"))
	m := p.messages()
	if strings.Count(m, `"role":"tool"`) != 5 || !strings.Contains(m, `"name":"mcp__demo__get_weather"`) || !strings.Contains(m, `{\"input\":\"*** Begin\"}`) {
		t.Errorf("the model was told %s", m)
	}
	if offered := string(p.asked[0].Get("tools")); !strings.Contains(offered, `"name":"found"`) || strings.Contains(offered, "web_search") {
		t.Errorf("offered %s", offered)
	}
}

// Where nothing is wrong with a list of tools it has no error, which the AI SDK would
// refuse if it were null.
func TestListsOfToolsHaveNoNullError(t *testing.T) {
	const server = `"tools":[{"type":"mcp","server_label":"weather","server_url":"dragoman:weather"}]`
	p := newPlayer(t)
	got := p.say(`{"model":"m","stream":true,"input":"Go",`+server+`}`, spoken("Done."))
	if item := got.item("mcp_list_tools"); item.Get("error") != nil || strings.Contains(string(item.Bytes()), `"tools":[]`) {
		t.Errorf("the list is %s", item.Bytes())
	}
	p.missing = []dragoman.Server{{Label: "weather", Problem: &dragoman.Problem{Message: "it is gone"}}}
	if item := p.say(`{"model":"m","input":"Go",`+server+`}`, spoken("Done.")).item("mcp_list_tools"); stringOf(item, "error") == "" {
		t.Errorf("the list that failed is %s", item.Bytes())
	}
}

// Codex's exec tells by further results of the same call what it is at, and its tools
// show pictures: the Chat API gets one result for each call, and the pictures behind it.
func TestFurtherResults(t *testing.T) {
	const call = `{"type":"custom_tool_call","call_id":"c1","name":"exec","input":"notify('one')"}`
	output := func(output string) string {
		return `,{"type":"custom_tool_call_output","call_id":"c1","output":` + output + `}`
	}
	const picture = `[{"type":"input_text","text":"two"},{"type":"input_image","image_url":"data:image/png;base64,iVBORw0KGgo="}]`
	for _, tt := range []struct{ name, outputs, want string }{
		{"texts", output(`"one"`) + output(`"two"`), `[{"role":"tool","tool_call_id":"c1","content":"one\ntwo"}]`},
		{"a picture", output(`"one"`) + output(picture) + output(`"three"`),
			`[{"role":"tool","tool_call_id":"c1","content":"one\ntwo\nthree"},` +
				`{"role":"user","content":[{"type":"text","text":"The pictures that the tools returned, in order:"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo="}}]}]`},
		{"later", output(`"one"`) + `,{"type":"message","role":"assistant","content":"Wait."}` + output(`"two"`),
			`[{"role":"tool","tool_call_id":"c1","content":"one\ntwo"},{"role":"assistant","content":"Wait."}]`},
	} {
		p := newPlayer(t)
		got := p.say(`{"model":"m","store":false,"tools":[{"type":"custom","name":"exec"}],"input":[{"role":"user","content":"Go"},`+call+tt.outputs+`]}`, spoken("Done."))
		if got.status != 200 {
			t.Errorf("%s: %d %s", tt.name, got.status, got.body)
			continue
		}
		messages, _ := rawjson.Elements(p.asked[0].Get("messages"))
		if have := string(array(messages[len(messages)-strings.Count(tt.want, `"role"`):]...)); have != tt.want {
			t.Errorf("%s: the model was told %s\nwant %s", tt.name, have, tt.want)
		}
	}
}

// Names of namespaces that are long or odd are cut with a hash, and two tools never
// become one.
func TestFlatten(t *testing.T) {
	seen := map[string]bool{}
	for _, pair := range [][2]string{{"", "plain"}, {"a", "b"}, {"ä", "b"}, {"ö", "b"}, {strings.Repeat("n", 70), "x"}, {strings.Repeat("n", 70), "y"}, {"", "a.b"}, {"", "a/b"}} {
		name := flatten(pair[0], pair[1], false)
		if len(name) > maxName || seen[name] || strings.ContainsAny(name, "äö./") {
			t.Errorf("%q became %q", pair, name)
		}
		seen[name] = true
	}
	a, err := Parse([]byte(`{"model":"m","input":"x","tools":[{"type":"namespace","name":"a__b","tools":[{"type":"function","name":"c"}]},{"type":"namespace","name":"a","tools":[{"type":"function","name":"b__c"}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	tools, err := a.offered()
	if err != nil || len(tools.functions) != 2 || tools.find("a__b", "c", false) == tools.find("a", "b__c", false) {
		t.Errorf("%s, %v", tools.functions, err)
	}
}

// Clients that ask for a summary get what the model thinks as one, and in no other place.
func TestReasoningSummary(t *testing.T) {
	for _, asked := range []string{`"summary":"auto"`, `"summary":"detailed"`, `"effort":"low","generate_summary":"concise"`} {
		for _, stream := range []string{"true", "false"} {
			p := newPlayer(t)
			p.dialect = "deepseek"
			ask := `{"model":"m","stream":` + stream + `,"store":false,"include":["reasoning.encrypted_content"],"reasoning":{` + asked + `},"tools":[{"type":"function","name":"f"}],"input":[{"role":"user","content":"Go"}`
			got := p.say(ask+`]}`, answered(`"reasoning_content":"Hm.","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"f","arguments":"{}"}}]`))
			item := got.item("reasoning")
			if said := string(item.Get("summary")); said != `[{"type":"summary_text","text":"Hm."}]` || item.Get("content") != nil {
				t.Errorf("%s, stream %s: the item is %s", asked, stream, item.Bytes())
			}
			if kinds := got.kinds(); stream == "true" && !strings.Contains(kinds, "output_item.added reasoning\nreasoning_summary_part.added\nreasoning_summary_text.delta\nreasoning_summary_text.done\nreasoning_summary_part.done\noutput_item.done reasoning\n") {
				t.Errorf("%s: the events are\n%s", asked, kinds)
			}
			p.say(ask+got.raws()+`,{"type":"function_call_output","call_id":"call_1","output":"ok"}]}`, spoken("Done."))
			if m := p.messages(); !strings.Contains(m, `"reasoning_content":"Hm."`) {
				t.Errorf("%s: the model was told %s", asked, m)
			}
		}
	}
	for _, none := range []string{`{"summary":null}`, `{"summary":"none"}`, `{"effort":"low"}`, "null"} {
		got := newPlayer(t).say(`{"model":"m","reasoning":`+none+`,"input":"Go"}`, answered(`"reasoning_content":"Hm.","content":"Hi."`))
		if item := got.item("reasoning"); string(item.Get("summary")) != "[]" || item.Get("content") == nil {
			t.Errorf("%s: the item is %s", none, item.Bytes())
		}
	}
}

// What the model thought is given to clients that ask, goes back to the upstream
// verbatim, and what another provider sealed is left out in words.
func TestReasoning(t *testing.T) {
	p := newPlayer(t)
	p.dialect = "deepseek"
	const ask = `{"model":"m","stream":true,"store":false,"include":["reasoning.encrypted_content"],"tools":[{"type":"function","name":"f"}],"input":[{"role":"user","content":"Go"}`
	got := p.say(ask+`]}`, answered(`"reasoning_content":"Hm.","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"f","arguments":"{}"}}]`))
	if got.types() != "reasoning function_call" || !strings.HasPrefix(stringOf(got.item("reasoning"), "encrypted_content"), reasoningPrefix) {
		t.Fatalf("%s", got.response.Get("output"))
	}
	// OpenAI's accumulator throws at a delta of a part that was not added.
	if kinds := got.kinds(); !strings.Contains(kinds, "output_item.added reasoning\ncontent_part.added\nreasoning_text.delta\nreasoning_text.done\ncontent_part.done\noutput_item.done reasoning\n") {
		t.Errorf("the events are\n%s", kinds)
	}
	p.say(ask+got.raws()+`,{"type":"function_call_output","call_id":"call_1","output":"ok"}]}`, spoken("Done."))
	if m := p.messages(); !strings.Contains(m, `"reasoning_content":"Hm."`) {
		t.Errorf("the model was told %s", m)
	}
	p.say(ask+`,{"type":"compaction","encrypted_content":"gAAAA"},{"type":"reasoning","summary":[],"encrypted_content":"gAAAB"},{"role":"assistant","content":"Ok"},{"role":"user","content":"On"}]}`, spoken("Done."))
	if m := p.messages(); strings.Contains(m, "gAAA") || strings.Count(m, "another provider") != 1 {
		t.Errorf("the model was told %s", m)
	}
}

// A turn with calls of ours and the client's goes on whole, and ours run once.
func TestMixedTurn(t *testing.T) {
	p := newPlayer(t)
	const ask = `{"model":"m","tools":[{"type":"function","name":"f"}],"input":[{"role":"user","content":"Go"}`
	got := p.say(ask+`]}`, called("weather__get", oslo, "f", "{}"))
	if got.types() != "mcp_call function_call" || len(p.ran) != 1 {
		t.Fatalf("%s, ran %v", got.types(), p.ran)
	}
	id := stringOf(got.item("function_call"), "call_id")
	p.say(ask+got.raws("mcp_call")+`,{"type":"function_call_output","call_id":"`+id+`","output":"ok"}]}`, spoken("Done."))
	if m := p.messages(); strings.Count(m, `"role":"tool"`) != 2 || !strings.Contains(m, "degrees") || len(p.ran) != 0 {
		t.Errorf("ran %v, told %s", p.ran, m)
	}
}

// Only what allowed_tools names can be called, max_tool_calls bounds our calls, and a
// call that fails is an item that says so.
func TestLimitsOfARequest(t *testing.T) {
	p := newPlayer(t)
	got := p.say(`{"model":"m","input":"Go","tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"mcp","server_label":"weather","name":"get"}]}}`,
		called("files__save", oslo), spoken("No."))
	if len(p.ran) != 0 || strings.Contains(string(p.asked[0].Get("tools")), "files__save") {
		t.Errorf("ran %v: %s", p.ran, got.body)
	}
	const byFunction = `"tool_choice":{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"weather__get"}]}`
	p.say(`{"model":"m","input":"Go",`+byFunction+`}`, called("weather__get", oslo), spoken("Ok."))
	if tools := string(p.asked[0].Get("tools")); len(p.ran) != 1 || strings.Contains(tools, "files__") || string(p.asked[0].Get("tool_choice")) != `"required"` {
		t.Errorf("a function: ran %v, asked %s", p.ran, tools)
	}
	got = p.say(`{"model":"m","input":"Go",`+byFunction+`,"tools":[{"type":"function","name":"weather__get","parameters":{"type":"object"}}]}`, called("weather__get", oslo))
	if tools, _ := rawjson.Elements(p.asked[0].Get("tools")); len(p.ran) != 0 || len(tools) != 1 || got.types() != "function_call" {
		t.Errorf("a function of the client's: ran %v, asked %s: %s", p.ran, tools, got.body)
	}
	got = p.say(`{"model":"m","input":"Go","max_tool_calls":1}`, called("weather__get", oslo, "weather__get", `{"city":"Rome"}`), spoken("Ok."))
	if len(p.ran) != 1 || !strings.Contains(got.body, "allows no further calls") {
		t.Errorf("ran %v: %s", p.ran, got.body)
	}
	got = p.say(`{"model":"m","stream":true,"input":"Go"}`, called("weather__get", `{"city":"Nowhere"}`), spoken("Ok."))
	if call := got.item("mcp_call"); stringOf(call, "status") != "failed" || !strings.Contains(string(call.Get("error")), "mcp_tool_execution_error") || !strings.Contains(got.kinds(), "mcp_call.failed") {
		t.Errorf("call %s", call.Bytes())
	}
}

// What is cut off is incomplete; a refusal is one; an error in a stream has both shapes,
// and ends it; one before it is an HTTP error.
func TestEnds(t *testing.T) {
	p := newPlayer(t)
	got := p.say(`{"model":"m","stream":true,"input":"Go"}`, strings.Replace(spoken("Half"), `"stop"`, `"length"`, 1))
	if stringOf(got.response, "status") != "incomplete" || !strings.Contains(string(got.response.Get("incomplete_details")), "max_output_tokens") || stringOf(got.item("message"), "status") != "incomplete" {
		t.Errorf("%s", got.response.Bytes())
	}
	got = p.say(`{"model":"m","stream":true,"input":"Go"}`, answered(`"content":null,"refusal":"No."`))
	if !strings.Contains(got.kinds(), "refusal.delta\nrefusal.done") || !strings.Contains(string(got.item("message").Bytes()), `"refusal":"No."`) {
		t.Errorf("%s", got.response.Bytes())
	}
	got = p.say(`{"model":"m","stream":true,"input":"Go"}`, called("weather__get", oslo), `400 {"error":{"message":"too long","code":"context_length_exceeded"}}`)
	if kinds := got.kinds(); !strings.HasSuffix(kinds, "error\nfailed") || !strings.Contains(string(got.response.Get("error")), "context_length_exceeded") {
		t.Errorf("%s\n%s", kinds, got.response.Bytes())
	}
	got = p.say(`{"model":"m","stream":true,"input":"Go"}`, `429 {"error":{"message":"slow down","code":"rate_limit_exceeded"}}`)
	if got.status != 429 || !strings.Contains(got.body, "slow down") {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// With text that has to be JSON, what the model says beside calls is not the answer.
func TestJSONFormat(t *testing.T) {
	p := newPlayer(t)
	got := p.say(`{"model":"m","stream":true,"input":"Go","text":{"format":{"type":"json_schema","name":"n","schema":{"type":"object"},"strict":true}}}`,
		answered(`"content":"I look.","tool_calls":[{"id":"call_1","type":"function","function":{"name":"weather__get","arguments":"{}"}}]`), spoken(`{"a":1}`))
	if got.types() != "mcp_call message" || !strings.Contains(string(p.asked[0].Get("response_format")), `{"type":"json_schema","json_schema":{"name":"n"`) {
		t.Errorf("%s: %s", got.types(), p.asked[0].Get("response_format"))
	}
}

// What cannot be done here is refused in words, with the member that is wrong.
func TestRefusals(t *testing.T) {
	p := newPlayer(t)
	for body, param := range map[string]string{
		`{"model":"m"}`: "input", `{"input":"x"}`: "model", `{"model":"m","input":"x","background":true,"store":false}`: "store",
		`{"model":"m","input":"x","background":true,"background_options":{"completion_window":"8h"}}`: "background_options.completion_window",
		`{"model":"m","input":"x","conversation":{"name":"c"}}`:                                       "conversation", `{"model":"m","input":"x","prompt":{"id":"p"}}`: "prompt",
		`{"model":"m","input":"x","tools":[{"type":"file_search"}]}`: "tools[0].type",
		`{"model":"m","input":"x","tools":[{"type":"function","name":"f","strict":true,"parameters":{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}}]}`: "tools[0]",
		`{"model":"m","input":"x","tools":[{"type":"function","name":"f","strict":true,"parameters":{"type":"object","properties":{}}}]}`:                                                   "tools[0]",
		`{"model":"m","input":"x","tools":[{"type":"namespace","name":"n","tools":[{"type":"function","name":"a"},{"type":"function"}]}]}`:                                                  "tools[0].tools[1].name",
		`{"model":"m","input":[{"role":"user","content":"x"},{"type":"additional_tools","role":"developer","tools":[{"type":"custom","name":"a"},{"type":"function"}]}]}`:                   "input[1].tools[1].name",
		`{"model":"m","input":[{"type":"nonsense"}]}`:                                                            "input[0].type",
		`{"model":"m","input":[{"role":"user","content":[{"type":"input_file","file_id":"f"}]}]}`:                "input[0].content[0]",
		`{"model":"m","input":[{"type":"function_call_output","call_id":"c","output":"x"}]}`:                     "input",
		`{"model":"m","input":[{"type":"mcp_approval_response","approval_request_id":"mcpr_x","approve":true}]}`: "input",
	} {
		if a := p.say(body, "unused"); a.status != 400 || !strings.Contains(a.body, `"param":"`+param+`"`) {
			t.Errorf("%s: %d %s", body, a.status, a.body)
		} else if strings.Contains(body, `"strict":true`) != strings.Contains(a.body, `"code":"invalid_function_parameters"`) {
			t.Errorf("%s: %s", body, a.body)
		}
	}
}

// Without a store there is nothing that an id could name, and an item is what it says.
func TestResolveWithoutStore(t *testing.T) {
	for body, want := range map[string]string{
		`{"model":"m","input":[{"type":"item_reference","id":"msg_1"}]}`:                      "", // refused when it is read
		`{"model":"m","input":[{"role":"user","content":"x"}]}`:                               "",
		`{"model":"m","previous_response_id":"resp_dg1","input":"x"}`:                         "previous_response_not_found",
		`{"model":"m","input":[{"type":"message","id":"msg_1","role":"user","content":"x"}]}`: "",
	} {
		r, err := Parse([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		err = r.Resolve(t.Context(), nil, "alice")
		if got := ""; err != nil {
			if e, ok := errors.AsType[*model.Error](err); ok {
				got = e.Code
			}
			if got != want {
				t.Errorf("%s: %v", body, err)
			}
		} else if want != "" || len(r.items) != 1 {
			t.Errorf("%s: %d items", body, len(r.items))
		}
	}
}

// What was thought belongs to its own turn, also where that has nothing else.
func TestThoughtsStayInTheirTurn(t *testing.T) {
	p := newPlayer(t)
	p.dialect = "deepseek"
	got := p.say(`{"model":"m","include":["reasoning.encrypted_content"],"input":"Hi"}`, answered(`"content":"Hello.","reasoning_content":"They greet."`))
	thought := string(got.item("reasoning").Bytes())
	p.memory = nil
	after := p.say(`{"model":"m","input":[{"role":"user","content":"Hi"},`+thought+`,{"role":"user","content":"Well?"},{"role":"assistant","content":"Sorry."},{"role":"user","content":"So?"}]}`, spoken("Yes."))
	if m := p.messages(); after.status != 200 || strings.Contains(m, "They greet.") || !strings.Contains(m, "Sorry.") {
		t.Errorf("%d, the model was told %s", after.status, m)
	}
}

// TestWhatIsSaidOfAResponse: metadata and the format of the text are judged as OpenAI judges
// them where no API of its kind does.
func TestWhatIsSaidOfAResponse(t *testing.T) {
	for members, param := range map[string]string{
		`"metadata":null,"text":null`:          "",
		`"metadata":{},"text":{"format":null}`: "",
		`"metadata":{"` + strings.Repeat("é", 64) + `":"` + strings.Repeat("é", 512) + `"}`: "",
		`"metadata":{"a":"` + strings.Repeat("x", 513) + `"}`:                               "metadata",
		`"metadata":{"` + strings.Repeat("x", 65) + `":""}`:                                 "metadata",
		`"metadata":{"a":1}`:                "metadata",
		`"metadata":"a"`:                    "metadata",
		`"text":{"verbosity":"low"}`:        "",
		`"text":{"format":{"type":"text"}}`: "",
		`"text":"short"`:                    "text",
		`"text":{"format":"json_object"}`:   "text.format",
		`"text":{"format":{"type":"xml"}}`:  "text.format",
		`"text":{"format":{"type":"json"}}`: "text.format",
		`"text":{"format":{"name":"n"}}`:    "text.format",
	} {
		body := []byte(`{"model":"m","input":"Hello",` + members + `}`)
		_, err := Parse(body)
		got := ""
		if e, ok := errors.AsType[*model.Error](err); ok {
			got = e.Param
		}
		if got != param || (err == nil) != (param == "") {
			t.Errorf("%.80s: %v, want an error at %q", members, err, param)
		}
		if _, err := ParseNative(body); err != nil {
			t.Errorf("%.80s: an API of its kind is not asked: %v", members, err)
		}
	}
}
