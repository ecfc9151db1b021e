package api

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
	"github.com/dragoman-mcp/dragoman/internal/session"
)

// A talk is a conversation in the words of each of the three APIs.
type talk struct{ chat, responses, messages []any }

type object = map[string]any

const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="

// person has the user say one or two texts, with a picture or without.
func (c *talk) person(random *rand.Rand, n int) {
	var chat, responses, messages []any
	for i := range 1 + random.IntN(2) {
		text := fmt.Sprintf("Text %d.%d \"é\n", n, i)
		chat = append(chat, object{"type": "text", "text": text})
		responses = append(responses, object{"type": "input_text", "text": text})
		messages = append(messages, object{"type": "text", "text": text})
	}
	if random.IntN(3) == 0 {
		url := "data:image/png;base64," + pixel
		chat = append(chat, object{"type": "image_url", "image_url": object{"url": url}})
		responses = append(responses, object{"type": "input_image", "image_url": url})
		messages = append(messages, object{"type": "image", "source": object{"type": "base64", "media_type": "image/png", "data": pixel}})
	}
	c.chat = append(c.chat, object{"role": "user", "content": chat})
	c.responses = append(c.responses, object{"role": "user", "content": responses})
	c.messages = append(c.messages, object{"role": "user", "content": messages})
}

// model has the model say a text, or make calls with or without one, which are answered.
func (c *talk) model(random *rand.Rand, n int) {
	calls := random.IntN(3)
	text := ""
	if calls == 0 || random.IntN(2) == 0 {
		text = fmt.Sprintf("Answer %d.", n)
	}
	said := object{"role": "assistant", "content": nil}
	var blocks, made, chat, responses, messages []any
	if text != "" {
		said["content"] = text
		c.responses = append(c.responses, object{"type": "message", "role": "assistant", "content": []any{object{"type": "output_text", "text": text, "annotations": []any{}}}})
		blocks = append(blocks, object{"type": "text", "text": text})
	}
	for i := range calls {
		id, input, result := fmt.Sprintf("call_%d_%d", n, i), object{"at": fmt.Sprintf("%d\n", i)}, fmt.Sprintf("Result %d.%d", n, i)
		if random.IntN(4) == 0 {
			input = object{}
		}
		arguments, _ := json.Marshal(input)
		made = append(made, object{"id": id, "type": "function", "function": object{"name": "look", "arguments": string(arguments)}})
		c.responses = append(c.responses, object{"type": "function_call", "call_id": id, "name": "look", "arguments": string(arguments)})
		blocks = append(blocks, object{"type": "tool_use", "id": id, "name": "look", "input": input})
		chat = append(chat, object{"role": "tool", "tool_call_id": id, "content": result})
		responses = append(responses, object{"type": "function_call_output", "call_id": id, "output": result})
		messages = append(messages, object{"type": "tool_result", "tool_use_id": id, "content": result})
	}
	if calls > 0 {
		said["tool_calls"] = made
	}
	c.chat = append(append(c.chat, said), chat...)
	c.responses = append(c.responses, responses...)
	c.messages = append(c.messages, object{"role": "assistant", "content": blocks})
	if calls > 0 {
		c.messages = append(c.messages, object{"role": "user", "content": messages})
	}
}

// meant is what a request to a Chat API means: what may be spelled in two ways is spelled in
// one of them.
func meant(t *testing.T, body []byte) object {
	var o object
	if err := json.Unmarshal(body, &o); err != nil {
		t.Fatal(err)
	}
	for _, raw := range o["messages"].([]any) {
		m := raw.(object)
		if text, ok := m["content"].(string); ok {
			m["content"] = []any{object{"type": "text", "text": text}}
		}
		parts, _ := m["content"].([]any)
		var texts []string
		var rest []any
		for _, part := range parts {
			if text, ok := part.(object)["text"].(string); ok {
				texts = append(texts, text)
				continue
			}
			if image, ok := part.(object)["image_url"].(object); ok && image["detail"] == "auto" {
				delete(image, "detail") // which is the default
			}
			rest = append(rest, part)
		}
		m["content"] = []any{strings.ReplaceAll(strings.Join(texts, ""), "\n", ""), rest}
	}
	for _, one := range []string{"max_completion_tokens", "max_tokens"} {
		if limit, ok := o[one]; ok {
			delete(o, one)
			o["limit"] = limit
		}
	}
	delete(o, "stream")
	return o
}

// TestWiresAskAlike: the same conversation asks the model's API for the same, whichever API
// its client speaks: texts, pictures, calls and their results, tools, what is to be called,
// and limits.
func TestWiresAskAlike(t *testing.T) {
	var got atomic.Pointer[[]byte]
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got.Store(&body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Fine."},"finish_reason":"stop"}]}`)
	}))
	t.Cleanup(model.Close)
	// The guide about results goes with no request of Chat that is passed on as it is, as those are
	// in which nothing is to be called.
	d := openFor(t, session.Results{Guide: session.Guide{Off: true}}, nil, upstream.Model{Match: "*", BaseURL: model.URL + "/v1", Dialect: "openai"})
	schema := object{"type": "object", "properties": object{"at": object{"type": "string"}}}
	// Of Messages, a format is strict where it can be.
	format := object{"type": "object", "properties": object{"at": object{"type": "string"}}, "required": []any{"at"}, "additionalProperties": false}
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 2))
		c := &talk{}
		for n := range random.IntN(5) {
			c.person(random, n)
			c.model(random, n)
		}
		c.person(random, 9)
		chat := object{"model": "m", "messages": append([]any{object{"role": "system", "content": "Be kind."}}, c.chat...), "max_completion_tokens": 99, "temperature": 0.5,
			"tools": []any{object{"type": "function", "function": object{"name": "look", "description": "Looks.", "parameters": schema}}}}
		responses := object{"model": "m", "instructions": "Be kind.", "input": c.responses, "max_output_tokens": 99, "temperature": 0.5, "store": false,
			"tools": []any{object{"type": "function", "name": "look", "description": "Looks.", "parameters": schema, "strict": nil}}}
		messages := object{"model": "m", "system": "Be kind.", "messages": c.messages, "max_tokens": 99, "temperature": 0.5,
			"tools": []any{object{"name": "look", "description": "Looks.", "input_schema": schema}}}
		switch random.IntN(5) {
		case 0:
			chat["tool_choice"], responses["tool_choice"], messages["tool_choice"] = "required", "required", object{"type": "any"}
		case 1:
			chat["tool_choice"], responses["tool_choice"], messages["tool_choice"] = object{"type": "function", "function": object{"name": "look"}}, object{"type": "function", "name": "look"}, object{"type": "tool", "name": "look"}
		case 2:
			chat["tool_choice"], responses["tool_choice"], messages["tool_choice"] = "none", "none", object{"type": "none"}
		case 3:
			chat["tool_choice"], responses["tool_choice"], messages["tool_choice"] = "auto", "auto", object{"type": "auto", "disable_parallel_tool_use": true}
			chat["parallel_tool_calls"], responses["parallel_tool_calls"] = false, false
		}
		if random.IntN(4) == 0 {
			chat["response_format"] = object{"type": "json_schema", "json_schema": object{"name": "answer", "schema": format, "strict": true}}
			responses["text"] = object{"format": object{"type": "json_schema", "name": "answer", "schema": format, "strict": true}}
			messages["output_config"] = object{"format": object{"type": "json_schema", "schema": format}}
		}
		ask := func(path string, body object) object {
			data, err := json.Marshal(body)
			if err != nil {
				t.Fatal(err)
			}
			got.Store(nil)
			if a := d.do("POST", path, string(data)); a.status != 200 {
				t.Fatalf("seed %d: %s: %d %s", seed, path, a.status, a.body)
			}
			return meant(t, *got.Load())
		}
		want := ask("/v1/chat/completions", chat)
		for path, body := range map[string]object{"/v1/responses": responses, "/v1/messages": messages} {
			if diff := cmp.Diff(want, ask(path, body)); diff != "" {
				t.Fatalf("seed %d: %s asks for something else (-chat +%s):\n%s", seed, path, path, diff)
			}
		}
	}
}
