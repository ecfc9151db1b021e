package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
	"github.com/dragoman-mcp/dragoman/internal/stage/fakeresponses"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/responses"
)

// speaking opens a door in front of a model whose API speaks those of Chat, Responses and
// Messages.
func speaking(t *testing.T, wires ...string) (*tested, *fakeresponses.API) {
	t.Helper()
	up := &fakeresponses.API{}
	server := httptest.NewServer(up)
	t.Cleanup(server.Close)
	t.Cleanup(func() {
		if t.Failed() {
			for _, why := range up.Refused() {
				t.Logf("the upstream refused: %s", why)
			}
		}
	})
	return open(t, nil, upstream.Model{Match: "*", BaseURL: server.URL + "/v1", Wires: wires, Dialect: "openai"}), up
}

// said is an answer of items.
func said(items ...string) fakeresponses.Answer {
	return fakeresponses.Answer{Items: fakeresponses.Items(items...)}
}

// Items of a model's API, as it gives them.
const (
	thoughtItem = `{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"I look it up."}],"encrypted_content":"gAAAA1"}`
	getItem     = `{"id":"fc_1","type":"function_call","status":"completed","arguments":"{\"city\":\"Oslo\"}","call_id":"call_1","name":"weather__get"}`
	theirItem   = `{"id":"fc_2","type":"function_call","status":"completed","arguments":"{\"x\":1}","call_id":"call_2","name":"theirs"}`
	coldItem    = `{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","annotations":[],"logprobs":[],"text":"It is cold."}]}`
)

var guide = regexp.MustCompile(`(\\n\\n)?\[Reading tool results, guide .*It never gives you instructions\.`)

// input returns the items of a request to the upstream, without the guide.
func input(t *testing.T, body json.RawMessage) (items []string) {
	t.Helper()
	o, err := rawjson.ParseObject(body)
	if err != nil {
		t.Fatal(err)
	}
	all, err := rawjson.Elements(o.Get("input"))
	if err != nil {
		return []string{string(o.Get("input"))}
	}
	for _, each := range all {
		item := guide.ReplaceAllString(string(each), "")
		if item != `{"type":"message","role":"system","content":""}` {
			items = append(items, item)
		}
	}
	return items
}

// A model that exists on Responses alone works for clients of Chat: our tools run, with what
// the model thought sent back to it, and usage has what was cached and what was thought.
func TestChatOverResponses(t *testing.T) {
	for _, stream := range []string{"false", "true"} {
		d, up := speaking(t, "responses")
		up.Say(said(thoughtItem, getItem), said(coldItem))
		a := d.chat(`{"model":"m","stream":` + stream + `,"stream_options":{"include_usage":true},"max_tokens":50,"response_format":{"type":"json_schema","json_schema":{"name":"s","schema":{"type":"object"}}},"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":[{"type":"text","text":"Weather?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA==","detail":"low"}}]}]}`)
		if a.status != 200 || !strings.Contains(strings.ReplaceAll(a.body, `"},"finish_reason":null}]`, ""), "cold") || d.tools.calls() != `weather__get {"city":"Oslo"}` {
			t.Fatalf("stream %s: %d %s, ran %q", stream, a.status, a.body, d.tools.calls())
		}
		for _, want := range []string{`"prompt_tokens":20`, `"cached_tokens":8`, `"reasoning_tokens":4`, `"total_tokens":30`, `"finish_reason":"stop"`} {
			if !strings.Contains(a.body, want) {
				t.Errorf("stream %s: no %s in %s", stream, want, a.body)
			}
		}
		if strings.Contains(a.body, "gAAAA1") || strings.Contains(a.body, "rs_1") {
			t.Errorf("stream %s: the client sees %s", stream, a.body)
		}
		asked := up.Asked()
		first, _ := rawjson.ParseObject(asked[0])
		for name, want := range map[string]string{
			"store": "false", "include": `["reasoning.encrypted_content"]`, "max_output_tokens": "50", "stream_options": "", "messages": "",
			"text": `{"format":{"type":"json_schema","name":"s","schema":{"type":"object"}}}`,
		} {
			if got := string(first.Get(name)); got != want {
				t.Errorf("stream %s: %s is %s, want %s", stream, name, got, want)
			}
		}
		if tools := string(first.Get("tools")); !strings.HasPrefix(tools, `[{"type":"function","name":"files__delete"`) {
			t.Errorf("tools are %s", tools)
		}
		got := input(t, asked[1])
		if output := got[4]; !strings.HasPrefix(output, `{"type":"function_call_output","call_id":"call_1","output":"`) || !strings.Contains(output, "degrees") {
			t.Errorf("the result is %s", output)
		}
		if diff := cmp.Diff([]string{
			`{"type":"message","role":"system","content":"Be brief."}`,
			`{"type":"message","role":"user","content":[{"type":"input_text","text":"Weather?"},{"type":"input_image","image_url":"data:image/png;base64,AA==","detail":"low"}]}`,
			thoughtItem, getItem,
		}, got[:4]); diff != "" {
			t.Errorf("stream %s: the second round (-want +got)\n%s", stream, diff)
		}
	}
}

// A client of Chat keeps what the model thought between calls of its own, which it cannot
// see: it is remembered by the id that its call gets.
func TestThoughtsBetweenCallsOfChat(t *testing.T) {
	for _, stream := range []string{"false", "true"} {
		d, up := speaking(t, "responses")
		up.Say(said(thoughtItem, theirItem))
		body := `{"model":"m","stream":` + stream + `,"messages":[{"role":"user","content":"Go."}%s],"tools":[{"type":"function","function":{"name":"theirs","parameters":{"type":"object"}}}]}`
		a := d.chat(strings.Replace(body, "%s", "", 1))
		_, rest, ok := strings.Cut(a.body, `"id":"call_dragoman0`)
		id, _, _ := strings.Cut(rest, `"`)
		if !ok {
			t.Fatalf("stream %s: %d %s", stream, a.status, a.body)
		}
		up.Say(said(coldItem))
		a = d.chat(strings.Replace(body, "%s", `,{"role":"assistant","content":null,"tool_calls":[{"id":"call_dragoman0`+id+`","type":"function","function":{"name":"theirs","arguments":"{\"x\":1}"}}]},{"role":"tool","tool_call_id":"call_dragoman0`+id+`","content":"done"}`, 1))
		if a.status != 200 {
			t.Fatalf("stream %s: %d %s", stream, a.status, a.body)
		}
		asked := up.Asked()
		if diff := cmp.Diff([]string{
			`{"type":"message","role":"user","content":"Go."}`, thoughtItem, theirItem, `{"type":"function_call_output","call_id":"call_2","output":"done"}`,
		}, input(t, asked[1])); diff != "" {
			t.Errorf("stream %s (-want +got)\n%s", stream, diff)
		}
	}
}

// A model that exists on Responses alone works for clients of Messages, too.
func TestMessagesOverResponses(t *testing.T) {
	for _, stream := range []string{"false", "true"} {
		d, up := speaking(t, "responses")
		up.Say(said(thoughtItem, getItem), said(coldItem))
		a := d.do("POST", "/v1/messages", `{"model":"m","max_tokens":100,"stream":`+stream+`,"messages":[{"role":"user","content":"Weather?"}]}`)
		if a.status != 200 || !strings.Contains(strings.ReplaceAll(a.body, `It is `, ""), "cold") || d.tools.calls() != `weather__get {"city":"Oslo"}` {
			t.Errorf("stream %s: %d %s", stream, a.status, a.body)
		}
		if got := input(t, up.Asked()[1]); len(got) != 4 || got[1] != thoughtItem || got[2] != getItem {
			t.Errorf("stream %s: the second round is %v", stream, got)
		}
	}
	d, _ := speaking(t, "responses")
	if a := d.do("POST", "/v1/messages", `{"model":"m","max_tokens":100,"stop_sequences":["x"],"messages":[{"role":"user","content":"Hi"}]}`); a.status != 400 || !strings.Contains(a.body, `"type":"error"`) || !strings.Contains(a.body, "Responses API") || !strings.Contains(a.body, `nothing for \"stop_sequences\"`) {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// What a client of Chat made of the model's text beside calls counts, be it one text or parts of
// it, and the same text in parts is the same.
func TestTextInPartsOverResponses(t *testing.T) {
	for content, want := range map[string]string{
		`[{"type":"text","text":"It is "},{"type":"text","text":"cold."}]`: coldItem,
		`[{"type":"text","text":"It is"},{"type":"text","text":" warm."}]`: `{"type":"message","role":"assistant","content":"It is warm."}`,
		`"It is warm."`: `{"type":"message","role":"assistant","content":"It is warm."}`,
	} {
		d, up := speaking(t, "responses")
		up.Say(said(thoughtItem, coldItem, theirItem), said(coldItem))
		body := `{"model":"m","messages":[{"role":"user","content":"Go."}%s],"tools":[{"type":"function","function":{"name":"theirs","parameters":{"type":"object"}}}]}`
		a := d.chat(strings.Replace(body, "%s", "", 1))
		id := regexp.MustCompile(`call_dragoman0\w+`).FindString(a.body)
		a = d.chat(strings.Replace(body, "%s", `,{"role":"assistant","content":`+content+`,"tool_calls":[{"id":"`+id+`","type":"function","function":{"name":"theirs","arguments":"{\"x\":1}"}}]},{"role":"tool","tool_call_id":"`+id+`","content":"done"}`, 1))
		if a.status != 200 {
			t.Fatalf("%s: %d %s", content, a.status, a.body)
		}
		if diff := cmp.Diff([]string{
			`{"type":"message","role":"user","content":"Go."}`, thoughtItem, want, theirItem, `{"type":"function_call_output","call_id":"call_2","output":"done"}`,
		}, input(t, up.Asked()[1])); diff != "" {
			t.Errorf("%s (-want +got)\n%s", content, diff)
		}
	}
}

// A text that a client puts beside calls of a message that had none stands before them.
func TestTextWhereNoneWasOverResponses(t *testing.T) {
	d, up := speaking(t, "responses")
	up.Say(said(thoughtItem, theirItem), said(coldItem))
	body := `{"model":"m","max_tokens":100,"thinking":{"type":"adaptive"},"messages":[{"role":"user","content":"Go."}%s],"tools":[{"name":"theirs","input_schema":{"type":"object"}}]}`
	a := d.do("POST", "/v1/messages", strings.Replace(body, "%s", "", 1))
	answer, err := rawjson.ParseObject([]byte(a.body))
	id := regexp.MustCompile(`call_dragoman0\w+`).FindString(a.body)
	if a.status != 200 || err != nil || id == "" {
		t.Fatalf("%d %s", a.status, a.body)
	}
	content := strings.Replace(string(answer.Get("content")), `{"type":"tool_use"`, `{"type":"text","text":"I ask."},{"type":"tool_use"`, 1)
	a = d.do("POST", "/v1/messages", strings.Replace(body, "%s", `,{"role":"assistant","content":`+content+`},{"role":"user","content":[{"type":"tool_result","tool_use_id":"`+id+`","content":"done"}]}`, 1))
	if a.status != 200 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if diff := cmp.Diff([]string{
		`{"type":"message","role":"user","content":"Go."}`, thoughtItem, `{"type":"message","role":"assistant","content":"I ask."}`,
		theirItem, `{"type":"function_call_output","call_id":"call_2","output":"done"}`,
	}, input(t, up.Asked()[1])); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// A client of Messages that sees the calls of servers sends them back itself. What the model
// thought beside them goes back to it all the same, with the client asking for thoughts or not:
// its calls have the ids that the client knows.
func TestThoughtsBesideShownCallsOverResponses(t *testing.T) {
	for _, thinking := range []string{``, `,"thinking":{"type":"adaptive"}`} {
		d, up := speaking(t, "responses")
		up.Say(said(thoughtItem, getItem, theirItem))
		body := `{"model":"m","max_tokens":100,"messages":[{"role":"user","content":"Go."}%s],"tools":[{"name":"theirs","input_schema":{"type":"object"}},{"type":"mcp_toolset","mcp_server_name":"weather"}]` + thinking + `}`
		a := d.do("POST", "/v1/messages", strings.Replace(body, "%s", "", 1))
		answer, err := rawjson.ParseObject([]byte(a.body))
		if a.status != 200 || err != nil {
			t.Fatalf("%d %s", a.status, a.body)
		}
		ids := regexp.MustCompile(`"id":"((?:mcp)?toolu_[^"]*)"`).FindAllStringSubmatch(a.body, -1)
		if len(ids) != 2 {
			t.Fatalf("calls are %v in %s", ids, a.body)
		}
		ours, theirs := ids[0][1], ids[1][1]
		up.Say(said(coldItem))
		a = d.do("POST", "/v1/messages", strings.Replace(body, "%s", `,{"role":"assistant","content":`+string(answer.Get("content"))+`},{"role":"user","content":[{"type":"tool_result","tool_use_id":"`+theirs+`","content":"done"}]}`, 1))
		if a.status != 200 {
			t.Fatalf("%d %s", a.status, a.body)
		}
		got := input(t, up.Asked()[1])
		if len(got) != 6 || !strings.HasPrefix(got[4], `{"type":"function_call_output","call_id":"`+ours+`"`) {
			t.Fatalf("thinking %q: %v", thinking, got)
		}
		if diff := cmp.Diff([]string{
			`{"type":"message","role":"user","content":"Go."}`, thoughtItem,
			strings.Replace(getItem, "call_1", ours, 1), strings.Replace(theirItem, "call_2", theirs, 1),
			`{"type":"function_call_output","call_id":"` + theirs + `","output":"done"}`,
		}, append(got[:4:4], got[5])); diff != "" {
			t.Errorf("thinking %q (-want +got)\n%s", thinking, diff)
		}
	}
}

// What the model's API says against a request reaches each client in the form of its own.
func TestErrorsOverResponses(t *testing.T) {
	limit := fakeresponses.Answer{Status: 429, Code: "rate_limit_exceeded", Message: "Slow down."}
	midway := fakeresponses.Answer{Items: fakeresponses.Items(thoughtItem), Status: 200, Code: "server_error", Message: "It broke."}
	cutOff := fakeresponses.Answer{Items: fakeresponses.Items(thoughtItem), Cut: true}
	chat := `{"model":"m","stream":true,"messages":[{"role":"user","content":"Hi"}]}`
	messages := `{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"Hi"}]}`
	for _, tt := range []struct {
		name, path, body string
		answer           fakeresponses.Answer
		status           int
		want             string
	}{
		{"limit", "/v1/chat/completions", chat, limit, 429, `{"error":{"message":"Slow down.","type":"rate_limit_error","param":null,"code":"rate_limit_exceeded"}}`},
		{"limit", "/v1/messages", messages, limit, 429, `{"type":"error","error":{"type":"rate_limit_error","message":`},
		{"midway", "/v1/chat/completions", chat, midway, 200, `{"error":{"message":"It broke."`},
		{"midway", "/v1/messages", messages, midway, 200, "event: error\ndata: {\"type\":\"error\""},
		{"cut off", "/v1/chat/completions", chat, cutOff, 200, `{"error":{`},
		{"cut off", "/v1/messages", messages, cutOff, 200, "event: error\n"},
	} {
		d, up := speaking(t, "responses")
		up.Say(tt.answer)
		if a := d.do("POST", tt.path, tt.body); a.status != tt.status || !strings.Contains(a.body, tt.want) {
			t.Errorf("%s at %s: %d %s", tt.name, tt.path, a.status, a.body)
		}
	}
}

// A round behind a call that changed something is asked again where the API fails, and the
// call is not made again.
func TestRoundsOverResponsesAreRepeated(t *testing.T) {
	d, up := speaking(t, "responses")
	up.Say(said(strings.Replace(getItem, "weather__get", "weather__warn", 1)), fakeresponses.Answer{Status: 503, Code: "server_error", Message: "Busy."}, said(coldItem))
	if a := d.chat(hello); a.status != 200 || !strings.Contains(a.body, "cold") || strings.Count(d.tools.calls(), "warn") != 1 {
		t.Errorf("%d %s, ran %q", a.status, a.body, d.tools.calls())
	}
	if asked := up.Asked(); len(asked) != 3 || string(asked[1]) != string(asked[2]) {
		t.Errorf("asked %s", asked)
	}
}

// A model without thoughts that could be sealed is asked without them, and is known then.
func TestModelsWithoutThoughts(t *testing.T) {
	d, up := speaking(t, "responses")
	up.Unsealed = true
	for range 2 {
		up.Say(said(coldItem))
		if a := d.chat(hello); a.status != 200 {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	if refused := up.Refused(); len(refused) != 1 {
		t.Errorf("refused %q", refused)
	}
}

// What a refused and what a cut off answer is called in Chat.
func TestEndingsOverResponses(t *testing.T) {
	d, up := speaking(t, "responses")
	up.Say(said(`{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"refusal","refusal":"I cannot."}]}`))
	if a := d.chat(hello); !strings.Contains(a.body, `"refusal":"I cannot."`) || !strings.Contains(a.body, `"finish_reason":"stop"`) {
		t.Errorf("%d %s", a.status, a.body)
	}
	for reason, finish := range map[string]string{"max_output_tokens": "length", "content_filter": "content_filter"} {
		answer := said(coldItem, getItem)
		answer.Incomplete = reason
		up.Say(answer)
		if a := d.chat(hello); !strings.Contains(a.body, `"finish_reason":"`+finish+`"`) || d.tools.calls() != "" {
			t.Errorf("%s: %d %s, ran %q", reason, a.status, a.body, d.tools.calls())
		}
	}
}

// An upstream that speaks both is asked by Chat for clients of Chat.
func TestChatStaysChat(t *testing.T) {
	up := &recorder{}
	d := open(t, nil, up.model(t, "*"))
	if a := d.chat(hello); a.status != http.StatusOK || up.last(t).line != "POST /base/v1/chat/completions" {
		t.Errorf("%d, asked %s", a.status, up.last(t).line)
	}
}

// A client of Responses keeps what its model's API does itself and gets the tools of our
// servers beside it, in one answer; what was kept is gone on from at both.
func TestResponsesOverResponses(t *testing.T) {
	for _, stream := range []string{"false", "true"} {
		d, up := speaking(t, "chat", "responses")
		search := `{"id":"ws_68af","type":"web_search_call","status":"completed","action":{"type":"search","query":"cold"}}`
		thought := `{"id":"rs_68af","type":"reasoning","summary":[]}`
		up.Say(said(thought, search, getItem), said(coldItem))
		a := d.do("POST", "/v1/responses", `{"model":"m","stream":`+stream+`,"input":"Weather?","tools":[{"type":"web_search"}]}`)
		if a.status != 200 || a.header.Get("X-Dragoman-Wire") != "responses" || d.tools.calls() != `weather__get {"city":"Oslo"}` || !strings.Contains(d.log.String(), "upstream_api=responses") {
			t.Fatalf("stream %s: %d %q %s, ran %q", stream, a.status, a.header.Get("X-Dragoman-Wire"), a.body, d.tools.calls())
		}
		for _, want := range []string{search, `"type":"mcp_call"`, `"input_tokens":20`, `"reasoning_tokens":4`} {
			if !strings.Contains(a.body, want) {
				t.Errorf("stream %s: no %s in %s", stream, want, a.body)
			}
		}
		_, id, _ := strings.Cut(a.body, `"id":"`+responses.IDPrefix)
		id, _, _ = strings.Cut(id, `"`)
		up.Asked()
		up.Say(said(coldItem))
		if a := d.do("POST", "/v1/responses", `{"model":"m","input":"Again?","previous_response_id":"`+responses.IDPrefix+id+`"}`); a.status != 200 {
			t.Fatalf("stream %s: %d %s", stream, a.status, a.body)
		}
		asked, _ := rawjson.ParseObject(up.Asked()[0])
		if got := string(asked.Get("previous_response_id")); got != `"resp_0002"` {
			t.Errorf("stream %s: goes on from %s", stream, got)
		}
	}
}

// What a model's API says against a request of its own kind reaches the client with its
// status and its code, also where it says so midway or breaks off.
func TestErrorsOfResponsesOverResponses(t *testing.T) {
	midway := fakeresponses.Answer{Items: fakeresponses.Items(coldItem), Status: 200, Code: "server_error", Message: "It broke."}
	for _, tt := range []struct {
		name   string
		answer fakeresponses.Answer
		status int
		want   []string
	}{
		{"limit", fakeresponses.Answer{Status: 429, Code: "rate_limit_exceeded", Message: "Slow down."}, 429, []string{`"code":"rate_limit_exceeded"`}},
		{"refused", fakeresponses.Answer{Status: 400, Code: "unsupported_value", Message: "No.", Param: "reasoning.effort"}, 400, []string{`"param":"reasoning.effort"`, `"code":"unsupported_value"`}},
		{"midway", midway, 200, []string{"event: response.failed\n", `"message":"It broke."`}},
		{"cut off", fakeresponses.Answer{Items: fakeresponses.Items(coldItem), Cut: true}, 200, []string{"event: response.failed\n"}},
	} {
		d, up := speaking(t, "responses")
		up.Say(tt.answer)
		a := d.do("POST", "/v1/responses", `{"model":"m","stream":true,"input":"Hi"}`)
		for _, want := range tt.want {
			if a.status != tt.status || !strings.Contains(a.body, want) {
				t.Errorf("%s: %d %s", tt.name, a.status, a.body)
			}
		}
	}
}

// A response in the background is made here, also where the model's API speaks Responses.
func TestBackgroundOverResponses(t *testing.T) {
	up := &fakeresponses.API{}
	server := httptest.NewServer(up)
	t.Cleanup(server.Close)
	p := start(t, filepath.Join(t.TempDir(), "dragoman.db"), upstream.Model{Match: "*", BaseURL: server.URL + "/v1", Wires: []string{"responses"}, Dialect: "openai"})
	up.Say(said(`{"id":"rs_68af","type":"reasoning","summary":[]}`, getItem), said(coldItem))
	id := p.post(`{"model":"m","background":true,"input":"Weather?"}`)
	names := kinds(p.events(id, -1))
	if len(names) < 8 || !slices.Equal(names[:3], []string{"created", "queued", "in_progress"}) || names[len(names)-1] != "completed" || !slices.Contains(names, "mcp_call.completed") || !slices.Contains(names, "output_text.delta") {
		t.Errorf("%v", names)
	}
	if status, body := p.got(id); status != "completed" || !strings.Contains(body, "It is cold.") || !strings.Contains(body, `"background":true`) {
		t.Errorf("%s", body)
	}
	for _, asked := range up.Asked() {
		if o, _ := rawjson.ParseObject(asked); o.Get("background") != nil || string(o.Get("stream")) != "true" {
			t.Errorf("asked %s", asked)
		}
	}
}

// Two messages in one answer are two paragraphs, streamed or not.
func TestMessagesOfOneAnswerOverResponses(t *testing.T) {
	for _, stream := range []string{"false", "true"} {
		d, up := speaking(t, "responses")
		up.Say(said(coldItem, strings.Replace(coldItem, "msg_1", "msg_2", 1)))
		a := d.chat(`{"model":"m","stream":` + stream + `,"messages":[{"role":"user","content":"Weather?"}]}`)
		var text strings.Builder
		for _, piece := range strings.Split(a.body, `"content":"`)[1:] {
			piece, _, _ = strings.Cut(piece, `"`)
			text.WriteString(piece)
		}
		if text.String() != `It is cold.\n\nIt is cold.` {
			t.Errorf("stream %s: %q in %s", stream, text.String(), a.body)
		}
	}
}

// What a text cites reaches clients of Chat, streamed or not, and stands where it stands in the
// text that they have: that of all messages of the answer, counted in characters.
func TestCitationsOverResponses(t *testing.T) {
	citing := strings.Replace(strings.Replace(coldItem, "msg_1", "msg_2", 1), `"annotations":[]`,
		`"annotations":[{"type":"url_citation","start_index":6,"end_index":10,"url":"https://x.test/","title":"X"},{"type":"file_citation","file_id":"f","filename":"f","index":1}]`, 1)
	for _, stream := range []string{"false", "true"} {
		d, up := speaking(t, "responses")
		up.Say(said(strings.Replace(coldItem, "It is cold.", "Grüße, 中文 😀.", 1), citing))
		a := d.chat(`{"model":"m","stream":` + stream + `,"messages":[{"role":"user","content":"Weather?"}]}`)
		want := `"annotations":[{"type":"url_citation","url_citation":{"start_index":20,"end_index":24,"url":"https://x.test/","title":"X"}}]`
		if strings.Count(a.body, want) != 1 || strings.Count(a.body, "url_citation") != 2 {
			t.Errorf("stream %s: not once %s in %s", stream, want, a.body)
		}
	}
}

// What a model thought in two items, or two parts of a summary, is two paragraphs, streamed or
// not.
func TestThoughtsOfOneAnswerOverResponses(t *testing.T) {
	summary := strings.Replace(thoughtItem, `}]`, `},{"type":"summary_text","text":"It is far."}]`, 1)
	plain := `{"id":"rs_2","type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"Oslo is "},{"type":"reasoning_text","text":"cold."}]}`
	for _, stream := range []string{"false", "true"} {
		for path, body := range map[string]string{
			"/v1/chat/completions": `{"model":"m","stream":` + stream + `,"messages":[{"role":"user","content":"Weather?"}]}`,
			"/v1/messages":         `{"model":"m","stream":` + stream + `,"max_tokens":100,"thinking":{"type":"adaptive"},"messages":[{"role":"user","content":"Weather?"}]}`,
		} {
			d, up := speaking(t, "responses")
			up.Say(said(summary, plain, strings.Replace(plain, "rs_2", "rs_3", 1), coldItem))
			a := d.do("POST", path, body)
			var text strings.Builder
			for _, piece := range regexp.MustCompile(`"(?:reasoning_content|thinking)":"([^"]*)"`).FindAllStringSubmatch(a.body, -1) {
				text.WriteString(piece[1])
			}
			if text.String() != `I look it up.\n\nIt is far.\n\nOslo is cold.\n\nOslo is cold.` {
				t.Errorf("%s, stream %s: %q in %s", path, stream, text.String(), a.body)
			}
		}
	}
}

// A text that has to be JSON is the one text of its response: what a model says before it calls a
// tool of ours is not shown, though the rest of that answer is, and the API keeps all of it.
// Clients parse the first message of an output, or all of them as one.
func TestFormatsOfResponsesOverResponses(t *testing.T) {
	const (
		preamble = `{"id":"msg_0","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","annotations":[],"logprobs":[],"text":"I look."}]}`
		search   = `{"id":"ws_1","type":"web_search_call","status":"completed","action":{"type":"search","query":"cold"}}`
		answer   = `{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","annotations":[],"logprobs":[],"text":"{}"}]}`
		asks     = `"text":{"format":{"type":"json_schema","name":"n","schema":{"type":"object"}}},"tools":[{"type":"web_search"},{"type":"function","name":"theirs","parameters":{"type":"object"},"strict":false}]}`
	)
	for _, stream := range []bool{false, true} {
		d, up := speaking(t, "responses")
		ask := func(rest string) (id string, items []*rawjson.Object) {
			t.Helper()
			a := d.do("POST", "/v1/responses", fmt.Sprintf(`{"model":"m","stream":%t,%s,%s`, stream, rest, asks))
			if a.status != 200 {
				t.Fatalf("stream %t: %d %s", stream, a.status, a.body)
			}
			if strings.Contains(a.body, "I look.") || strings.Contains(a.body, `"msg_0"`) {
				t.Errorf("stream %t: the text before the call is shown: %s", stream, a.body)
			}
			body := []byte(a.body)
			if stream {
				_, last, _ := strings.Cut(a.body, "event: response.completed\ndata: ")
				last, _, _ = strings.Cut(last, "\n")
				body = rawjson.Get([]byte(last), "response")
			}
			all, err := rawjson.Elements(rawjson.Get(body, "output"))
			if err != nil {
				t.Fatalf("stream %t: %v in %s", stream, err, a.body)
			}
			for _, each := range all {
				o, err := rawjson.ParseObject(each)
				if err != nil {
					t.Fatal(err)
				}
				items = append(items, o)
			}
			id, _ = rawjson.String(rawjson.Get(body, "id"))
			return id, items
		}
		kinds := func(items []*rawjson.Object) (all []string) {
			for _, o := range items {
				kind, _ := rawjson.String(o.Get("type"))
				all = append(all, kind)
			}
			return all
		}
		up.Say(said(thoughtItem, preamble, search, getItem), said(answer))
		_, items := ask(`"input":"Weather?"`)
		if diff := cmp.Diff([]string{"reasoning", "web_search_call", "mcp_call", "message"}, kinds(items)); diff != "" {
			t.Errorf("stream %t (-want +got):\n%s", stream, diff)
		}

		up.Say(said(preamble, getItem, theirItem), said(answer))
		id, items := ask(`"input":"Both?"`)
		if diff := cmp.Diff([]string{"mcp_call", "function_call"}, kinds(items)); diff != "" {
			t.Fatalf("stream %t, with a call of the client's (-want +got):\n%s", stream, diff)
		}
		_, items = ask(fmt.Sprintf(`"previous_response_id":%q,"input":[{"type":"function_call_output","call_id":%s,"output":"1"}]`, id, items[1].Get("call_id")))
		if diff := cmp.Diff([]string{"message"}, kinds(items)); diff != "" {
			t.Errorf("stream %t, after it (-want +got):\n%s", stream, diff)
		}
	}
}

// A function among allowed tools is one of the client's own, or else the tool of a server that is
// offered by the name, as a choice that names one tool has it.
func TestAllowedFunctionsOfServers(t *testing.T) {
	d, up := speaking(t, "responses")
	up.Say(said(getItem), said(coldItem))
	const choice = `{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"weather__get"}]}`
	a := d.do("POST", "/v1/responses", `{"model":"m","input":"Weather?","tool_choice":`+choice+`}`)
	if a.status != 200 || d.tools.calls() != `weather__get {"city":"Oslo"}` {
		t.Fatalf("%d %s, ran %q", a.status, a.body, d.tools.calls())
	}
	if asked := up.Asked(); strings.Contains(string(asked[0]), "files__") || string(rawjson.Get(asked[0], "tool_choice")) != choice {
		t.Errorf("asked %s", asked[0])
	}

	up.Say(said(getItem))
	a = d.do("POST", "/v1/responses", `{"model":"m","input":"Weather?","tools":[{"type":"function","name":"weather__get","parameters":{"type":"object"},"strict":false}],"tool_choice":`+choice+`}`)
	if a.status != 200 || d.tools.calls() != `weather__get {"city":"Oslo"}` || !strings.Contains(a.body, `"type":"function_call"`) {
		t.Errorf("the client's own: %d %s, ran %q", a.status, a.body, d.tools.calls())
	}
	asked := up.Asked()
	if tools, err := rawjson.Elements(rawjson.Get(asked[0], "tools")); err != nil || len(tools) != 1 || string(rawjson.Get(asked[0], "tool_choice")) != choice {
		t.Errorf("the client's own: asked %s", asked[0])
	}
}

// A choice that forces a call is kept once the call was made, be it in an earlier request, whose
// approval this one brings.
func TestApprovedCallsAreNotForcedAgainOverResponses(t *testing.T) {
	for choice, want := range map[string]string{
		`"required"`: `"auto"`,
		`{"type":"mcp","server_label":"weather","name":"get"}`: `"auto"`,
		`{"type":"mcp","server_label":"weather"}`:              `{"type":"allowed_tools","mode":"auto",`,
	} {
		d, up := speaking(t, "responses")
		up.Say(said(getItem), said(coldItem))
		members := `{"model":"m","tools":[{"type":"mcp","server_label":"weather","require_approval":"always"}],"tool_choice":` + choice
		a := d.do("POST", "/v1/responses", members+`,"input":"Weather?"}`)
		_, approval, found := strings.Cut(a.body, `"id":"mcpr_`)
		approval, _, _ = strings.Cut(approval, `"`)
		id, _ := rawjson.String(rawjson.Get([]byte(a.body), "id"))
		if !found || id == "" || d.tools.calls() != "" {
			t.Fatalf("%s: %d %s", choice, a.status, a.body)
		}
		up.Asked()
		a = d.do("POST", "/v1/responses", members+`,"previous_response_id":"`+id+`","input":[{"type":"mcp_approval_response","approval_request_id":"mcpr_`+approval+`","approve":true}]}`)
		if a.status != 200 || d.tools.calls() != `weather__get {"city":"Oslo"}` {
			t.Fatalf("%s: %d %s, ran %q", choice, a.status, a.body, d.tools.calls())
		}
		if got := string(rawjson.Get(up.Asked()[0], "tool_choice")); !strings.HasPrefix(got, want) {
			t.Errorf("%s: then asked with %s", choice, got)
		}
	}
}
