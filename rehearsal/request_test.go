package rehearsal_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-mcp/dragoman/rehearsal"
)

// TestScript plays a script to its end and records what each message was.
func TestScript(t *testing.T) {
	const script = "SAY Let me see.\nCALL weather {\"city\":\"Rome\"}\nCALL weather {\"city\":\"Oslo\"}\nTHEN\nCALL sum {\"a\":1,\"b\":2}"
	for _, tt := range []struct {
		name string
		more request
		text string
		want []string
	}{
		{"as written", nil, script + "\nSAY All done.", []string{
			"Let me see. [tool_calls]\nget_weather {\"city\":\"Rome\"}\nget_weather {\"city\":\"Oslo\"}",
			" [tool_calls]\ncalculate_sum {\"a\":1,\"b\":2}",
			"All done. [stop]\n",
		}},
		{"results last", nil, script, []string{
			"Let me see. [tool_calls]\nget_weather {\"city\":\"Rome\"}\nget_weather {\"city\":\"Oslo\"}",
			" [tool_calls]\ncalculate_sum {\"a\":1,\"b\":2}",
			"According to get_weather (city: Rome): n: 0.\nAccording to get_weather (city: Oslo): n: 1.\nAccording to calculate_sum (a: 1, b: 2): n: 0. [stop]\n",
		}},
		{"one by one", request{"parallel_tool_calls": false}, script + "\nSAY All done.", []string{
			"Let me see. [tool_calls]\nget_weather {\"city\":\"Rome\"}",
			" [tool_calls]\nget_weather {\"city\":\"Oslo\"}",
			" [tool_calls]\ncalculate_sum {\"a\":1,\"b\":2}",
			"All done. [stop]\n",
		}},
		{"no calls allowed", request{"tool_choice": "none"}, script, []string{"Let me see.\nCALL weather fits no tool: the request offers none. [stop]\n"}},
		{"unknown tool", nil, "CALL mail {}", []string{"CALL mail fits no tool. The request offers: get_weather, calculate_sum. [stop]\n"}},
		{"ambiguous tool", nil, "CALL a {}", []string{"CALL a fits several tools: get_weather, calculate_sum. Write more of the name. [stop]\n"}},
		{"named tool goes behind", request{"tool_choice": json.RawMessage(`{"type":"function","function":{"name":"get_weather"}}`)}, "CALL get_weather {\"x\":1}", []string{
			" [tool_calls]\nget_weather {\"x\":1}", "According to get_weather: n: 0. [stop]\n",
		}},
		{"text is no call", request{"tool_choice": "required"}, "SAY The weather in Rome, please.", []string{
			" [tool_calls]\nget_weather {\"city\":\"Rome\"}", "The weather in Rome, please. [stop]\n",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := &rehearsal.Model{}
			body := request{"tools": toolset(weatherTool, sumTool), "messages": user(tt.text)}
			maps.Copy(body, tt.more)
			var got []string
			for range 9 {
				c := complete(t, m, body.String()).Choices[0]
				got = append(got, c.Message.text()+" ["+*c.FinishReason+"]\n"+c.Message.calls())
				if len(c.Message.ToolCalls) == 0 {
					break
				}
				var results []string
				for i := range c.Message.ToolCalls {
					results = append(results, `{"n":`+string(rune('0'+i))+`}`)
				}
				body["messages"] = after(body["messages"].([]any), c.Message, results...)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("want -, got +\n%s", diff)
			}
		})
	}
}

// TestLastRound takes the tools away, as a loop does when its rounds are used
// up: the script cannot go on, so the answer is what the results say.
func TestLastRound(t *testing.T) {
	m := &rehearsal.Model{}
	question := user("CALL sum {\"a\":1,\"b\":2}\nTHEN\nCALL sum {\"a\":3,\"b\":4}")
	body := request{"tools": toolset(sumTool), "messages": question}
	first := complete(t, m, body.String()).Choices[0].Message
	body["messages"] = after(question, first, `{"status":"success","data":{"sum":3},"meta":{}}`)
	delete(body, "tools")
	if got := complete(t, m, body.String()).Choices[0].Message.text(); got != "According to calculate_sum: sum: 3." {
		t.Errorf("answer %q", got)
	}
}

// TestPictures hands over a picture in a user message after the results; the
// directives stay those of the message before.
func TestPictures(t *testing.T) {
	m := &rehearsal.Model{}
	question := user("CALL sum {}\nTHEN\nCALL weather {}")
	body := request{"tools": toolset(sumTool, weatherTool), "messages": question}
	first := complete(t, m, body.String()).Choices[0].Message
	picture := json.RawMessage(`{"role":"user","content":[{"type":"text","text":"The picture of call 1:"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]}`)
	body["messages"] = append(after(question, first, `"see picture"`), picture, picture)
	second := complete(t, m, body.String()).Choices[0].Message
	if second.calls() != "get_weather {}" {
		t.Fatalf("second round: %+v", second)
	}
	body["messages"] = after(body["messages"].([]any), second, "fine")
	want := "According to calculate_sum: see picture (with an attachment that I cannot see).\nAccording to get_weather: fine."
	if got := complete(t, m, body.String()).Choices[0].Message.text(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestParameters has a request for each parameter that changes the answer.
func TestParameters(t *testing.T) {
	schema := func(s string) json.RawMessage {
		return json.RawMessage(`{"type":"json_schema","json_schema":{"name":"x","schema":` + s + `}}`)
	}
	for _, tt := range []struct {
		name string
		body request
		want string
	}{
		{"max_tokens", request{"messages": user("SAY one two three four"), "max_tokens": 2}, "one two  [length]\n"},
		{"max_tokens, exactly", request{"messages": user("SAY one two"), "max_completion_tokens": 2}, "one two [stop]\n"},
		{"max_tokens in arguments", request{"messages": user(`CALL sum {"a":1234567,"b":2}`), "tools": toolset(sumTool), "max_tokens": 2}, " [length]\ncalculate_sum {\"a\":1234567"},
		{"max_tokens before a call", request{"messages": user("SAY one\nCALL sum {}"), "tools": toolset(sumTool), "max_tokens": 1}, "one [length]\n"},
		{"stop", request{"messages": user("SAY one two three"), "stop": "two"}, "one  [stop]\n"},
		{"stops", request{"messages": user("SAY one two three"), "stop": []string{"", "three", "e"}}, "on [stop]\n"},
		{"json_object", request{"messages": user("SAY in json"), "response_format": json.RawMessage(`{"type":"json_object"}`)}, `{"answer":"in json","results":[]} [stop]` + "\n"},
		{"json_object said", request{"messages": user(`SAY {"json":1}`), "response_format": json.RawMessage(`{"type":"json_object"}`)}, `{"json":1} [stop]` + "\n"},
		{"json_schema", request{"messages": user("SAY hi"), "response_format": schema(`{"type":"object","properties":{"kind":{"enum":["x","y"]},"n":{"type":"integer","minimum":3},"text":{"type":"string"},"more":{"type":"string"},"list":{"type":"array","items":{"type":"string"}},"maybe":{"type":["null","boolean"]},"not":{"type":"string"}},"required":["kind","n","text","more","list","maybe"]}`)},
			`{"kind":"x","n":3,"text":"hi","more":"","list":[],"maybe":false} [stop]` + "\n"},
		{"required", request{"messages": user("hello"), "tools": toolset(sumTool, weatherTool), "tool_choice": "required"}, " [tool_calls]\ncalculate_sum {\"a\":0,\"b\":0}"},
		{"named", request{"messages": user("hello"), "tools": toolset(sumTool, weatherTool), "tool_choice": json.RawMessage(`{"type":"function","function":{"name":"get_weather"}}`)}, " [tool_calls]\nget_weather {\"city\":\"hello\"}"},
		{"allowed, and required", request{"messages": user("sum of 1 and 2"), "tools": toolset(sumTool, weatherTool), "tool_choice": json.RawMessage(`{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[{"type":"function","function":{"name":"get_weather"}}]}}`)}, " [tool_calls]\nget_weather {\"city\":\"1\"}"},
		{"allowed, but unfit", request{"messages": user("sum of 1 and 2"), "tools": toolset(sumTool, weatherTool), "tool_choice": json.RawMessage(`{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"get_weather"}}]}}`)}, "I am rehearsal, a deterministic stand-in, not a language model. None of the 1 tools I see fits what you wrote: get_weather. [stop]\n"},
		{"none", request{"messages": user("sum of 1 and 2"), "tools": toolset(sumTool), "tool_choice": "none"}, "I am rehearsal, a deterministic stand-in, not a language model, and this request offers no tools. You wrote: sum of 1 and 2 [stop]\n"},
		{"no tools, Chinese", request{"messages": user("你好")}, "我是 rehearsal，一个确定性的替身，不是语言模型；这次请求没有提供工具。您说的是：你好 [stop]\n"},
		{"parts", request{"messages": []any{json.RawMessage(`{"role":"user","content":[{"type":"text","text":"SAY a"},{"type":"text","text":"SAY b"}]}`)}}, "a\nb [stop]\n"},
		{"the last user counts", request{"messages": append(user("SAY a"), message{Role: "assistant", Content: new("a")}, user("SAY b")[0])}, "b [stop]\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := complete(t, &rehearsal.Model{}, tt.body.String())
			got := c.Choices[0].Message.text() + " [" + *c.Choices[0].FinishReason + "]\n" + c.Choices[0].Message.calls()
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if limit, ok := tt.body["max_tokens"].(int); ok && c.Usage.Completion > limit {
				t.Errorf("%d tokens of %d", c.Usage.Completion, limit)
			}
			if c.Usage.Total != c.Usage.Prompt+c.Usage.Completion || c.Usage.Prompt == 0 {
				t.Errorf("usage %+v", c.Usage)
			}
		})
	}
}

// TestSchemaFromResults fills a response_format from what a tool returned.
func TestSchemaFromResults(t *testing.T) {
	m := &rehearsal.Model{}
	question := user("weather in Rome")
	body := request{
		"tools": toolset(weatherTool), "messages": question,
		"response_format": json.RawMessage(`{"type":"json_schema","json_schema":{"name":"x","schema":{"type":"object","properties":{"place":{"$ref":"#/$defs/place"},"temperature":{"type":"number"},"summary":{"type":"string"}},"required":["place","temperature","summary"],"$defs":{"place":{"type":"object","properties":{"city":{"type":"string"},"big":{"type":"boolean"}},"required":["city","big"]}}}}}`),
	}
	first := complete(t, m, body.String()).Choices[0].Message
	body["messages"] = after(question, first, `{"status":"success","data":{"where":{"city":"Rome"},"temperature":1.50,"big":"very"},"meta":{}}`)
	want := `{"place":{"city":"Rome","big":false},"temperature":1.50,"summary":"According to get_weather: where: (city: Rome), temperature: 1.50, big: very."}`
	if got := complete(t, m, body.String()).Choices[0].Message.text(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestChoices(t *testing.T) {
	m := &rehearsal.Model{}
	body := request{"messages": user("SAY two words\nCALL sum {}"), "tools": toolset(sumTool), "n": 3}
	c := complete(t, m, body.String())
	ids := make(map[string]bool)
	for i, choice := range c.Choices {
		if choice.Index != i || choice.Message.text() != "two words" || choice.Message.calls() != "calculate_sum {}" {
			t.Errorf("choice %d: %+v", i, choice)
		}
		ids[*choice.Message.ToolCalls[0].ID] = true
	}
	if len(c.Choices) != 3 || len(ids) != 3 || c.Usage.Completion != 3*4 {
		t.Errorf("%d choices, ids %v, %d tokens", len(c.Choices), ids, c.Usage.Completion)
	}
	body["stream"] = true
	_, data := send(t, m, body.String())
	finished := make(map[int]int)
	for _, chunk := range chunks(t, data) {
		if chunk.Choices[0].FinishReason != nil {
			finished[chunk.Choices[0].Index]++
		}
	}
	if diff := cmp.Diff(map[int]int{0: 1, 1: 1, 2: 1}, finished); diff != "" {
		t.Error(diff)
	}
}

// TestFunctions is a conversation in the API's old form.
func TestFunctions(t *testing.T) {
	m := &rehearsal.Model{}
	functions := json.RawMessage(`[{"name":"add","parameters":{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}},"required":["a","b"]}}]`)
	body := request{"messages": user("CALL add {\"a\":1}\nCALL add {\"b\":2}"), "functions": functions}
	list := body["messages"].([]any)
	for _, want := range []string{`{"a":1}`, `{"b":2}`} {
		c := complete(t, m, body.String()).Choices[0]
		if c.Message.FunctionCall == nil || c.Message.FunctionCall.Arguments != want || *c.FinishReason != "function_call" || c.Message.ToolCalls != nil {
			t.Fatalf("message %+v", c.Message)
		}
		streamed := request{"messages": list, "functions": functions, "stream": true}
		_, data := send(t, m, streamed.String())
		var name, arguments string
		for _, chunk := range chunks(t, data) {
			if f := chunk.Choices[0].Delta.FunctionCall; f != nil {
				name, arguments = name+f.Name, arguments+f.Arguments
			}
		}
		if name != "add" || arguments != want {
			t.Errorf("stream: %s %s", name, arguments)
		}
		c.Message.Role = "assistant"
		list = append(list, c.Message, map[string]any{"role": "function", "name": "add", "content": "3"})
		body["messages"] = list
	}
	if got := complete(t, m, body.String()).Choices[0].Message.text(); !strings.Contains(got, "According to add (b: 2): 3.") {
		t.Errorf("answer %q", got)
	}
	body = request{"messages": user("x"), "functions": functions, "function_call": json.RawMessage(`{"name":"add"}`)}
	if c := complete(t, m, body.String()).Choices[0]; c.Message.FunctionCall == nil {
		t.Errorf("named function was not called: %+v", c.Message)
	}
}

// TestSame holds the promise of the package: the same bytes for the same
// request, other ids for another.
func TestSame(t *testing.T) {
	m := &rehearsal.Model{Now: fixed}
	_, a := send(t, m, twoCalls("rehearsal", true))
	_, b := send(t, &rehearsal.Model{Now: fixed}, twoCalls("rehearsal", true))
	if string(a) != string(b) {
		t.Errorf("%s\n%s", a, b)
	}
	one, two := complete(t, m, twoCalls("x", false)), complete(t, m, twoCalls("y", false))
	if one.ID == two.ID || *one.Choices[0].Message.ToolCalls[0].ID == *two.Choices[0].Message.ToolCalls[0].ID || one.Model != "x" || two.Model != "y" {
		t.Errorf("%+v\n%+v", one, two)
	}
	if one.SystemFingerprint != rehearsal.Fingerprint || one.Dragoman.Note != rehearsal.Note || one.Created != 1700000000 || one.Object != "chat.completion" {
		t.Errorf("%+v", one)
	}
	if id := *one.Choices[0].Message.ToolCalls[0].ID; len(id) > 40 || !strings.HasPrefix(id, "call_") || !strings.HasPrefix(one.ID, "chatcmpl-") {
		t.Errorf("ids %s, %s", id, one.ID)
	}
}

func TestRoutes(t *testing.T) {
	m := &rehearsal.Model{Name: "actor"}
	for _, tt := range []struct {
		method, path string
		status       int
		contains     string
	}{
		{"GET", "/v1/models", 200, `{"object":"list","data":[{"id":"actor","object":"model","created":0,"owned_by":"dragoman"}]}`},
		{"GET", "/models/", 200, `"id":"actor"`},
		{"GET", "/v1/models/actor", 200, `"id":"actor"`},
		{"GET", "/v1/models/actor:slow+crlf", 200, `"id":"actor:slow+crlf"`},
		{"GET", "/v1/models/actor:dance", 404, `"code":"model_not_found"`},
		{"GET", "/v1/models/gpt-4o", 404, `this server has 'actor'`},
		{"POST", "/v1/models", 405, `"code":"method_not_supported"`},
		{"DELETE", "/v1/models/actor", 405, `Not allowed to DELETE`},
		{"GET", "/v1/chat/completions", 405, `Not allowed to GET`},
		{"POST", "/v1/responses", 404, `rehearsal speaks Chat Completions only`},
		{"POST", "/v1/embeddings", 404, `Invalid URL (POST /v1/embeddings).`},
	} {
		w := httptest.NewRecorder()
		m.ServeHTTP(w, httptest.NewRequest(tt.method, tt.path, http.NoBody))
		if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.contains) || w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%s %s: %d %s", tt.method, tt.path, w.Code, w.Body)
		}
		if (w.Code == 405) != (w.Header().Get("Allow") != "") {
			t.Errorf("%s %s: Allow %q", tt.method, tt.path, w.Header().Get("Allow"))
		}
	}
}
