package api

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/stage/fakeresponses"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// Over a WebSocket a model whose API speaks Responses has the tools of our servers, and what
// it thought comes back to it from what is not stored anywhere else.
func TestSocketOverResponses(t *testing.T) {
	d, up := speaking(t, "chat", "responses")
	up.Say(said(thoughtItem, getItem), said(coldItem))
	w := d.dial("OpenAI-Beta", "responses_websockets=2026-02-06")
	events, first := w.create(`"store":false,"input":"Weather?"`)
	if first == nil || d.tools.calls() != `weather__get {"city":"Oslo"}` || !strings.Contains(string(first.Get("output")), `"mcp_call"`) {
		t.Fatalf("%s, ran %q", events[len(events)-1].Bytes(), d.tools.calls())
	}
	up.Asked()
	later := strings.Replace(thoughtItem, "rs_1", "rs_2", 1)
	up.Say(said(later, theirItem))
	_, second := w.create(`"store":false,"input":"Call mine.","tools":[{"type":"function","name":"theirs","parameters":{"type":"object"},"strict":false}],"previous_response_id":"` + idOf(first.Bytes()) + `"`)
	if second == nil {
		t.Fatal("it is not gone on from")
	}
	got := input(t, up.Asked()[0])
	if len(got) != 6 || got[1] != thoughtItem || !strings.Contains(got[2], `"weather__get"`) || !strings.Contains(got[3], "degrees") || !strings.Contains(got[4], "It is cold.") {
		t.Errorf("the second request\n%s", strings.Join(got, "\n"))
	}
	up.Say(said(strings.Replace(coldItem, "msg_1", "msg_2", 1)))
	call, _ := rawjson.Elements(second.Get("output"))
	o, _ := rawjson.ParseObject(call[len(call)-1])
	_, third := w.create(`"store":false,"input":[{"type":"function_call_output","call_id":` + string(o.Get("call_id")) + `,"output":"7"}],"tools":[{"type":"function","name":"theirs","parameters":{"type":"object"},"strict":false}],"previous_response_id":"` + idOf(second.Bytes()) + `"`)
	if third == nil || told(third) != "It is cold." {
		t.Fatal("it is not gone on from")
	}
	asked := up.Asked()
	if got := input(t, asked[0]); len(asked) != 1 || len(got) != 9 || got[6] != later || got[7] != theirItem || !strings.Contains(got[8], `"call_2"`) {
		t.Errorf("the third request\n%s", strings.Join(got, "\n"))
	}
	if refused := up.Refused(); len(refused) > 0 {
		t.Errorf("refused %q", refused)
	}
	if events, ready := w.create(`"generate":false,"store":false,"input":"one"`); len(events) != 3 || ready == nil || len(up.Asked()) != 0 {
		t.Error("nothing is prepared")
	}
}

// What is asked over a WebSocket is judged by the model that it names, whatever the first
// upstream speaks, and an error of the API's comes as an event with its code.
func TestSocketErrorsOverResponses(t *testing.T) {
	d, up := speaking(t, "responses")
	up.Say(fakeresponses.Answer{Status: 429, Code: "rate_limit_exceeded", Message: "Slow down."})
	w := d.dial()
	if code, words := w.refused(`{"type":"response.create","model":"m","input":"x"}`); code != "rate_limit_exceeded" || words != "Slow down." {
		t.Errorf("%s %q", code, words)
	}
	if code, _ := w.refused(`{"type":"response.create","model":"m","input":"x","previous_response_id":"resp_9"}`); code != "previous_response_not_found" {
		t.Errorf("%s", code)
	}
	up.Say(said(coldItem))
	if _, made := w.create(`"input":"x"`); told(made) != "It is cold." {
		t.Error("the connection does not go on")
	}
}

// The size of a request counts the tools of servers that its model would be offered, and what
// they did, as the model's API counts.
func TestCountOverResponses(t *testing.T) {
	d, up := speaking(t, "chat", "responses")
	count := func(body string) (n int) {
		n, _ = rawjson.Int(d.ok("POST", "/v1/responses/input_tokens", body).Get("input_tokens"))
		return n
	}
	bare := count(`{"model":"m","input":"Weather?","tool_choice":"none"}`)
	up.Asked()
	whole := count(`{"model":"m","input":"Weather?","tools":[{"type":"web_search"}],"instructions":"Be brief."}`)
	asked, _ := rawjson.ParseObject(up.Asked()[0])
	if tools := string(asked.Get("tools")); !strings.HasPrefix(tools, `[{"type":"web_search"},{"type":"function","name":"files__delete"`) || !strings.HasPrefix(string(asked.Get("instructions")), `"Be brief.`) {
		t.Errorf("asked %s", asked.Bytes())
	}
	if one := count(`{"model":"m","input":"Weather?","tools":[{"type":"mcp","server_label":"weather","allowed_tools":["get"]}]}`); bare >= one || one >= whole {
		t.Errorf("without tools %d, with one %d, with all %d", bare, one, whole)
	}
	up.Say(said(getItem), said(coldItem))
	first := idOf(d.ok("POST", "/v1/responses", `{"model":"m","input":"Weather?"}`).Bytes())
	up.Asked()
	count(`{"model":"m","input":"Again?","previous_response_id":"` + first + `"}`)
	asked, _ = rawjson.ParseObject(up.Asked()[0])
	if got := string(asked.Get("previous_response_id")); got != `"resp_0002"` {
		t.Errorf("counts from %s", got)
	}
	up.Forget("")
	after := count(`{"model":"m","input":"Again?","previous_response_id":"` + first + `"}`)
	if asked := input(t, up.Asked()[0]); after <= whole || len(asked) != 5 || !strings.Contains(asked[1], `"weather__get"`) {
		t.Errorf("%d of %s", after, asked)
	}
	if d.tools.calls() != `weather__get {"city":"Oslo"}` || up.Left() > 0 {
		t.Errorf("ran %q", d.tools.calls())
	}
}

// What is compacted at a model's API has what our tools did in it, and what comes of it goes
// on there; an API that compacts nothing is asked for a summary.
func TestCompactOverResponses(t *testing.T) {
	d, up := speaking(t, "chat", "responses")
	up.Say(said(thoughtItem, getItem), said(coldItem))
	first := d.ok("POST", "/v1/responses", `{"model":"m","input":"Weather?","instructions":"Be brief."}`)
	up.Asked()
	compacted := d.ok("POST", "/v1/responses/compact", `{"model":"m","instructions":"Be brief.","previous_response_id":"`+idOf(first.Bytes())+`"}`)
	asked, _ := rawjson.ParseObject(up.Asked()[0])
	if string(asked.Get("previous_response_id")) != `"resp_0002"` || string(asked.Get("instructions")) != `"Be brief."` || asked.Get("tools") != nil {
		t.Errorf("asked %s", asked.Bytes())
	}
	// A client that keeps its own history sends what it has of our calls.
	history := append([]json.RawMessage{json.RawMessage(message("user", "Weather?"))}, outputOf(first)...)
	d.ok("POST", "/v1/responses/compact", `{"model":"m","input":`+string(rawjson.AppendArray(nil, history))+`}`)
	if got := input(t, up.Asked()[0]); len(got) < 4 || !strings.Contains(strings.Join(got, ""), `"function_call_output"`) {
		t.Errorf("compacted %s", got)
	}
	output := outputOf(compacted)
	if len(output) != 2 || !strings.Contains(string(output[1]), `"type":"compaction"`) {
		t.Fatalf("%s", compacted.Bytes())
	}
	up.Say(said(coldItem))
	d.ok("POST", "/v1/responses", `{"model":"m","input":`+string(rawjson.AppendArray(nil, append(output, json.RawMessage(message("user", "Again?")))))+`}`)
	if got := input(t, up.Asked()[0]); got[1] != string(output[1]) {
		t.Errorf("goes on from %s", got)
	}
	d, up = speaking(t, "responses")
	up.Bare = true
	up.Say(said(getItem), said(coldItem))
	history = append(history[:1], outputOf(d.ok("POST", "/v1/responses", `{"model":"m","input":"Weather?"}`))...)
	up.Say(said(strings.Replace(coldItem, "It is cold.", "Oslo was asked for.", 1)))
	summed := d.ok("POST", "/v1/responses/compact", `{"model":"m","input":`+string(rawjson.AppendArray(nil, history))+`}`)
	up.Asked()
	up.Say(said(coldItem))
	d.ok("POST", "/v1/responses", `{"model":"m","store":false,"input":`+string(rawjson.AppendArray(nil, append(outputOf(summed), json.RawMessage(message("user", "Again?")))))+`}`)
	if got := input(t, up.Asked()[0]); len(got) != 3 || !strings.Contains(got[1], "Oslo was asked for.") || strings.Contains(strings.Join(got, ""), "compaction") {
		t.Errorf("goes on from %s", strings.Join(got, "\n"))
	}
}

// Calls that wait for their client's approval, beside one of the client's own, go on over
// several responses that are not stored, and each item is said once to the model's API.
func TestSocketApprovalsOverResponses(t *testing.T) {
	d, up := speaking(t, "chat", "responses")
	w := d.dial()
	const tools = `"tools":[{"type":"function","name":"theirs","parameters":{"type":"object"},"strict":false},{"type":"mcp","server_label":"weather"}]`
	answered := func(r *rawjson.Object) (items []json.RawMessage) {
		for _, item := range outputOf(r) {
			o, _ := rawjson.ParseObject(item)
			switch kind, _ := rawjson.String(o.Get("type")); kind {
			case "mcp_approval_request":
				items = append(items, json.RawMessage(`{"type":"mcp_approval_response","approval_request_id":`+string(o.Get("id"))+`,"approve":true}`))
			case "function_call":
				items = append(items, json.RawMessage(`{"type":"function_call_output","call_id":`+string(o.Get("call_id"))+`,"output":"7"}`))
			}
		}
		return items
	}
	up.Say(said(thoughtItem, getItem, theirItem), said(strings.NewReplacer("fc_1", "fc_3", "call_1", "call_3", "get", "warn").Replace(getItem)), said(coldItem))
	_, r := w.create(`"store":false,"input":"Weather?",` + tools)
	for range 2 {
		items := answered(r)
		if r == nil || len(items) == 0 {
			t.Fatal("nothing is asked")
		}
		if _, r = w.create(`"store":false,"previous_response_id":"` + idOf(r.Bytes()) + `","input":` + string(rawjson.AppendArray(nil, items)) + `,` + tools); r == nil {
			t.Fatalf("refused %q", up.Refused())
		}
	}
	if told(r) != "It is cold." || d.tools.calls() != "weather__get {\"city\":\"Oslo\"}\nweather__warn {\"city\":\"Oslo\"}" {
		t.Errorf("%s, ran %q", r.Bytes(), d.tools.calls())
	}
}
