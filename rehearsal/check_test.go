package rehearsal_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/rehearsal"
)

type apiError struct {
	Error struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    *string `json:"code"`
	} `json:"error"`
}

// messages is a body with these messages and a tool.
func messages(list string) string {
	return `{"model":"rehearsal","messages":[` + list + `],"tools":[{"type":"function","function":{"name":"f"}}]}`
}

// parameters is a body with one function of this schema.
func parameters(schema, more string) string {
	return `{"model":"rehearsal","messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"f","parameters":` + schema + more + `}}]}`
}

const (
	ask  = `{"role":"user","content":"x"}`
	call = `{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}`
)

// TestRefusals has one body for each reason to refuse, with a part of the
// message and the parameter. Those marked strict pass when Lenient is set.
func TestRefusals(t *testing.T) {
	manyTools := func(n int) string {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf(`{"type":"function","function":{"name":"f%d"}}`, i))
		}
		return `{"model":"rehearsal","messages":[` + ask + `],"tools":[` + strings.Join(list, ",") + `]}`
	}
	named := func(name string) string {
		return `{"model":"rehearsal","messages":[` + ask + `],"tools":[{"type":"function","function":{"name":"` + name + `"}}]}`
	}
	with := func(more string) string {
		return `{"model":"rehearsal","messages":[` + ask + `],` + more + `}`
	}
	for _, tt := range []struct {
		name, body, message, param string
		strict                     bool
	}{
		{"no JSON", `{"model":`, "could not parse the JSON body", "", false},
		{"trailing data", `{} {}`, "could not parse the JSON body", "", false},
		{"no object", `[]`, "must be an object", "", false},
		{"no model", `{"messages":[` + ask + `]}`, "must provide a model", "model", false},
		{"model is no string", `{"model":1,"messages":[` + ask + `]}`, "expected a string, but got a number", "model", false},
		{"no messages", `{"model":"rehearsal"}`, "Missing required parameter: 'messages'", "messages", false},
		{"messages is a string", `{"model":"rehearsal","messages":"hi"}`, "expected an array of objects, but got a string", "messages", false},
		{"empty messages", `{"model":"rehearsal","messages":[]}`, "empty array", "messages", false},
		{"message is a string", messages(`"hi"`), "expected an object", "messages[0]", false},
		{"empty tools", with(`"tools":[]`), "empty array", "tools", false},
		{"tools is an object", with(`"tools":{}`), "expected an array", "tools", false},
		{"tool is a string", with(`"tools":["f"]`), "expected an object", "tools[0]", false},
		{"mcp tool", with(`"tools":[{"type":"mcp","server_label":"x"}]`), "Invalid value: 'mcp'", "tools[0].type", false},
		{"tool without name", with(`"tools":[{"type":"function","function":{}}]`), "tools[0].function.name", "tools[0].function.name", false},
		{"tools and functions", with(`"tools":[],"functions":[]`), "cannot be used in the same request", "functions", false},
		{"choice without tools", with(`"tool_choice":"auto"`), "only allowed when 'tools'", "tool_choice", false},
		{"parallel without tools", with(`"parallel_tool_calls":false`), "only allowed when 'tools'", "parallel_tool_calls", false},
		{"unknown choice", strings.Replace(messages(ask), `"tools"`, `"tool_choice":"any","tools"`, 1), "Invalid value: 'any'", "tool_choice", false},
		{"choice of a wrong type", strings.Replace(messages(ask), `"tools"`, `"tool_choice":1,"tools"`, 1), "expected a string or an object", "tool_choice", false},
		{"choice of an unknown kind", strings.Replace(messages(ask), `"tools"`, `"tool_choice":{"type":"mcp"},"tools"`, 1), "Invalid value: 'mcp'", "tool_choice.type", false},
		{"choice of an unknown tool", strings.Replace(messages(ask), `"tools"`, `"tool_choice":{"type":"function","function":{"name":"g"}},"tools"`, 1), "no function named 'g'", "tool_choice", false},
		{"allowed tools in no mode", strings.Replace(messages(ask), `"tools"`, `"tool_choice":{"type":"allowed_tools","allowed_tools":{"tools":[]}},"tools"`, 1), "'auto' and 'required'", "tool_choice", false},
		{"n is zero", with(`"n":0`), "below minimum", "n", false},
		{"n is large", with(`"n":129`), "above maximum", "n", false},
		{"max_tokens is text", with(`"max_tokens":"9"`), "expected an integer", "max_tokens", false},
		{"five stops", with(`"stop":["a","b","c","d","e"]`), "array too long", "stop", false},
		{"stop is a number", with(`"stop":1`), "expected a string or an array", "stop", false},
		{"stop holds a number", with(`"stop":[1]`), "expected a string or an array", "stop", false},
		{"unknown format", with(`"response_format":{"type":"xml"}`), "Invalid value: 'xml'", "response_format.type", false},
		{"format without schema", with(`"response_format":{"type":"json_schema"}`), "response_format.json_schema.schema", "response_format.json_schema.schema", false},
		{"unknown misbehaviour", strings.Replace(with(`"n":1`), "rehearsal", "rehearsal:dance", 1), "no misbehaviour 'dance'", "model", false},

		{"format without the word", with(`"response_format":{"type":"json_object"}`), "must contain the word 'json'", "messages", true},
		{"129 tools", manyTools(129), "maximum length 128", "tools", true},
		{"dot in a name", named("a.b"), "does not match pattern", "tools[0].function.name", true},
		{"long name", named(strings.Repeat("a", 65)), "maximum length 64", "tools[0].function.name", true},
		{"name twice", with(`"tools":[{"type":"function","function":{"name":"f"}},{"type":"function","function":{"name":"f"}}]`), "must be unique", "tools[1].function.name", true},
		{"schema without type", parameters(`{"properties":{}}`, ""), `got 'type: "None"'`, "tools[0].function.parameters", true},
		{"schema of another type", parameters(`{"type":["object"]}`, ""), `got 'type: ["object"]'`, "tools[0].function.parameters", true},
		{"schema without properties", parameters(`{"type":"object"}`, ""), "object schema missing properties", "tools[0].function.parameters", true},
		{"schema with a union at the top", parameters(`{"type":"object","properties":{},"anyOf":[]}`, ""), "must not have 'anyOf'", "tools[0].function.parameters", true},
		{"array without items", parameters(`{"type":"object","properties":{"o":{"anyOf":[{"type":["array","null"]}]}}}`, ""), "In context=('properties', 'o', 'anyOf', '0'), array schema missing items", "tools[0].function.parameters", true},
		{"tuple of old", parameters(`{"type":"object","properties":{"o":{"type":"array","items":[{}]}}}`, ""), "In context=('properties', 'o', 'items'), a schema must be an object", "tools[0].function.parameters", true},
		{"strict and open", parameters(`{"type":"object","properties":{}}`, `,"strict":true`), "'additionalProperties' is required", "tools[0].function.parameters", true},
		{"strict and optional", parameters(`{"type":"object","properties":{"b":{"type":"string"}},"required":[],"additionalProperties":false}`, `,"strict":true`), "Missing 'b'", "tools[0].function.parameters", true},
		{"strict without schema", with(`"tools":[{"type":"function","function":{"name":"f","strict":true}}]`), "needs 'parameters'", "tools[0].function.parameters", true},
		{"unknown role", messages(`{"role":"robot","content":"x"}`), "Invalid value: 'robot'", "messages[0].role", true},
		{"user without content", messages(`{"role":"user"}`), "but got nothing", "messages[0].content", true},
		{"picture of a tool", messages(ask + "," + call + `,{"role":"tool","tool_call_id":"a","content":[{"type":"image_url"}]}`), "text parts only", "messages[2].content", true},
		{"assistant without anything", messages(`{"role":"assistant","content":null}`), "but got null", "messages[0].content", true},
		{"empty calls", messages(`{"role":"assistant","content":"x","tool_calls":[]}`), "empty array", "messages[0].tool_calls", true},
		{"call without id", messages(strings.Replace(call, `"id":"a"`, `"id":""`, 1)), "tool_calls[0].id", "messages[0].tool_calls[0].id", true},
		{"long call id", messages(strings.Replace(call, `"a"`, `"`+strings.Repeat("a", 41)+`"`, 1)), "maximum length 40", "messages[0].tool_calls[0].id", true},
		{"call of another type", messages(strings.Replace(call, `"function",`, `"custom",`, 1)), "Invalid value: 'custom'", "messages[0].tool_calls[0].type", true},
		{"call with a dot in its name", messages(strings.Replace(call, `"f"`, `"f.g"`, 1)), "does not match pattern", "messages[0].tool_calls[0].function.name", true},
		{"arguments are an object", messages(strings.Replace(call, `"{}"`, `{}`, 1)), "expected a string, but got an object", "messages[0].tool_calls[0].function.arguments", true},
		{"arguments are a list", messages(strings.Replace(call, `"{}"`, `"[]"`, 1)), "must be the text of a JSON object", "messages[0].tool_calls[0].function.arguments", true},
		{"arguments are cut", messages(strings.Replace(call, `"{}"`, `"{\"a\":"`, 1)), "must be the text of a JSON object", "messages[0].tool_calls[0].function.arguments", true},
		{"no result at the end", messages(ask + "," + call), "have no response: a", "messages", true},
		{"no result before the user", messages(ask + "," + call + "," + ask), "have no response: a", "messages[2].role", true},
		{"result of nothing", messages(ask + `,{"role":"tool","tool_call_id":"a","content":""}`), "must be a response to a preceding message", "messages[1].role", true},
		{"result of another call", messages(ask + "," + call + `,{"role":"tool","tool_call_id":"b","content":""}`), "has the id 'b'", "messages[2].role", true},
		{"result twice", messages(ask + "," + call + strings.Repeat(`,{"role":"tool","tool_call_id":"a","content":""}`, 2)), "has the id 'a'", "messages[3].role", true},
		{"id twice", messages(ask + "," + strings.Replace(call, `}]`, `},{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]`, 1)), "is used twice", "messages[1].tool_calls", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			status, data := send(t, &rehearsal.Model{}, tt.body)
			e := decode[apiError](t, data).Error
			want := http.StatusBadRequest
			if e.Code != nil && *e.Code == "model_not_found" {
				want = http.StatusNotFound
			}
			if status != want || e.Type != "invalid_request_error" || !strings.Contains(e.Message, tt.message) {
				t.Errorf("%d %s", status, data)
			}
			if got := e.Param; (got == nil) != (tt.param == "") || got != nil && *got != tt.param {
				t.Errorf("param %v, want %q", decode[map[string]any](t, data), tt.param)
			}
			if status, data := send(t, &rehearsal.Model{Lenient: true}, tt.body); tt.strict != (status == http.StatusOK) {
				t.Errorf("lenient: %d %s", status, data)
			}
		})
	}
}

// TestAccepted holds what must not be refused although it is unusual.
func TestAccepted(t *testing.T) {
	for _, tt := range []struct{ name, body string }{
		{"unknown fields and nulls", `{"model":"x","messages":[{"role":"user","content":"hi","x":1}],"tools":null,"tool_choice":null,"stop":null,"n":null,"enable_thinking":true}`},
		{"a whole history", messages(ask + "," + call + `,{"role":"tool","tool_call_id":"a","content":[{"type":"text","text":"1"}]},{"role":"assistant","content":"done"},` + ask)},
		{"results in another order", messages(ask + "," + strings.Replace(call, `}]`, `},{"id":"b","type":"function","function":{"name":"f","arguments":" {} "}}]`, 1) + `,{"role":"tool","tool_call_id":"b","content":""},{"role":"tool","tool_call_id":"a","content":""}`)},
		{"a call of a tool that is gone", messages(ask + "," + strings.Replace(call, `"f"`, `"g"`, 1) + `,{"role":"tool","tool_call_id":"a","content":""}`)},
		{"refusal", messages(ask + `,{"role":"assistant","content":null,"refusal":"no"},` + ask)},
		{"no user", messages(`{"role":"system","content":"x"}`)},
		{"tuples of now", parameters(`{"type":"object","properties":{"o":{"type":"array","prefixItems":[{"type":"string"},true]}}}`, "")},
		{"strict and closed", parameters(`{"type":"object","properties":{"b":{"type":["string","null"]}},"required":["b"],"additionalProperties":false}`, `,"strict":true`)},
		{"legacy history", `{"model":"rehearsal","messages":[` + ask + `,{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}},{"role":"function","name":"f","content":"7"}],"functions":[{"name":"f"}]}`},
		{"longest id and name", messages(ask + "," + strings.NewReplacer(`"id":"a"`, `"id":"`+strings.Repeat("a", 40)+`"`, `"f"`, `"`+strings.Repeat("n", 64)+`"`).Replace(call) + `,{"role":"tool","tool_call_id":"` + strings.Repeat("a", 40) + `","content":""}`)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if !json.Valid([]byte(tt.body)) {
				t.Fatalf("the test's own body is no JSON: %s", tt.body)
			}
			complete(t, &rehearsal.Model{}, tt.body)
		})
	}
}

// FuzzRequest sends any body: the answer is always a completion or an error,
// always JSON, and always the same.
func FuzzRequest(f *testing.F) {
	f.Add([]byte(messages(ask)))
	f.Add([]byte(messages(ask + "," + call + `,{"role":"tool","tool_call_id":"a","content":"{\"x\":[1,{}]}"}`)))
	f.Add([]byte(request{"messages": user("weather in \"Rome\" 1+2 北京 x=3"), "tools": toolset(weatherTool, sumTool), "n": 2, "max_tokens": 3}.String()))
	f.Add([]byte(`{"model":"rehearsal:reasoning","messages":[{"role":"user","content":"json"}],"response_format":{"type":"json_schema","json_schema":{"schema":{"$ref":"#"}}}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if strings.Contains(string(body), "slow") || strings.Contains(string(body), "stream") || strings.Contains(string(body), "html") || strings.Contains(string(body), "429") {
			t.Skip("waits, or is not one JSON body")
		}
		m := &rehearsal.Model{Now: fixed, Lenient: true}
		status, data := send(t, m, string(body))
		if !json.Valid(data) || status >= 500 && !strings.Contains(string(body), "500") {
			t.Fatalf("%d %s", status, data)
		}
		if again, same := send(t, m, string(body)); again != status || string(same) != string(data) {
			t.Fatalf("second answer differs: %s, %s", data, same)
		}
	})
}
