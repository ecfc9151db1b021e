package rehearsal_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/rehearsal"
)

// completion is what the tests read of an answer, streamed or not.
type completion struct {
	ID                string `json:"id"`
	Object            string `json:"object"`
	Created           int64  `json:"created"`
	Model             string `json:"model"`
	SystemFingerprint string `json:"system_fingerprint"`
	Choices           []struct {
		Index        int     `json:"index"`
		Message      message `json:"message"`
		Delta        message `json:"delta"`
		FinishReason *string `json:"finish_reason"`
	} `json:"choices"`
	Usage *struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Total      int `json:"total_tokens"`
	} `json:"usage"`
	Dragoman *struct {
		Note string `json:"note"`
	} `json:"dragoman"`
}

type message struct {
	Role             string     `json:"role"`
	Content          *string    `json:"content"`
	ReasoningContent string     `json:"reasoning_content,omitempty"`
	ToolCalls        []toolCall `json:"tool_calls,omitempty"`
	FunctionCall     *function  `json:"function_call,omitempty"`
}

type toolCall struct {
	Index        *int            `json:"index,omitempty"`
	ID           *string         `json:"id,omitempty"`
	Type         string          `json:"type,omitempty"`
	Function     function        `json:"function"`
	ExtraContent json.RawMessage `json:"extra_content,omitempty"`
}

type function struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

func (m message) text() string {
	if m.Content == nil {
		return ""
	}
	return *m.Content
}

// calls writes the calls of a message one to a line.
func (m message) calls() string {
	var lines []string
	for _, c := range m.ToolCalls {
		lines = append(lines, c.Function.Name+" "+c.Function.Arguments)
	}
	return strings.Join(lines, "\n")
}

var fixed = func() time.Time { return time.Unix(1700000000, 0) }

// send posts a body to the model in process and returns status and body.
func send(t *testing.T, m *rehearsal.Model, body string) (int, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://rehearsal/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	res, err := m.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, data
}

// complete posts a body and expects a completion.
func complete(t *testing.T, m *rehearsal.Model, body string) completion {
	t.Helper()
	status, data := send(t, m, body)
	if status != http.StatusOK {
		t.Fatalf("status %d: %s", status, data)
	}
	return decode[completion](t, data)
}

func decode[T any](t *testing.T, data []byte) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	return v
}

// chunks reads the events of a stream up to [DONE], which must be there.
func chunks(t *testing.T, data []byte) []completion {
	t.Helper()
	var list []completion
	events := strings.Split(strings.TrimSuffix(string(data), "\n\n"), "\n\n")
	for i, event := range events {
		payload, found := strings.CutPrefix(event, "data: ")
		if !found {
			t.Fatalf("event %q is no data", event)
		}
		if payload == "[DONE]" {
			if i != len(events)-1 {
				t.Fatal("[DONE] is not the end")
			}
			return list
		}
		list = append(list, decode[completion](t, []byte(payload)))
	}
	t.Fatalf("no [DONE] in %s", data)
	return nil
}

// request builds a body.
type request map[string]any

func (r request) String() string {
	if r["model"] == nil {
		r["model"] = "rehearsal"
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(map[string]any(r)); err != nil {
		panic(err)
	}
	return b.String()
}

func user(text string) []any { return []any{map[string]any{"role": "user", "content": text}} }

// toolset returns function tools from lines of "name | description | schema".
func toolset(lines ...string) []any {
	var list []any
	for _, line := range lines {
		parts := strings.SplitN(line, "|", 3)
		f := map[string]any{"name": strings.TrimSpace(parts[0]), "description": strings.TrimSpace(parts[1])}
		if schema := strings.TrimSpace(parts[2]); schema != "" {
			f["parameters"] = json.RawMessage(schema)
		}
		list = append(list, map[string]any{"type": "function", "function": f})
	}
	return list
}

const (
	weatherTool    = `get_weather | Current weather of a city | {"type":"object","properties":{"city":{"type":"string","description":"Name of the city"}},"required":["city"]}`
	weatherChinese = `get_weather | 查询某个城市此刻的天气 | {"type":"object","properties":{"city":{"type":"string","description":"城市名，例如 '杭州'"}},"required":["city"]}`
	restaurantTool = `find_restaurant | Looks for restaurants in a city | {"type":"object","properties":{"city":{"type":"string","description":"Where to look"},"cuisine":{"type":"string","description":"Kind of food (e.g. Italian, Thai)"}},"required":["city"]}`
	sumTool        = `calculate_sum | Adds two numbers | {"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}},"required":["a","b"]}`
)

// after appends an assistant message and the results of its calls.
func after(messages []any, m message, results ...string) []any {
	m.Role = "assistant"
	messages = append(messages, m)
	for i, r := range results {
		messages = append(messages, map[string]any{"role": "tool", "tool_call_id": *m.ToolCalls[i].ID, "content": r})
	}
	return messages
}

// TestWeather is the conversation of the project's first example, from the
// question to the answer.
func TestWeather(t *testing.T) {
	for _, tt := range []struct{ name, question, tool, arguments, envelope string }{
		{"chinese", "北京今天天气怎么样?", weatherChinese, `{"city":"北京"}`, `{"status":"success","data":{"temperature":22,"unit":"Celsius","condition":"多云","humidity":65},"meta":{"tool":"get_weather"}}`},
		{"english", "What is the weather in Beijing?", weatherTool, `{"city":"Beijing"}`, `{"temperature":22,"unit":"Celsius","condition":"多云","humidity":65}`},
		{"prefixed", "What's the weather in Beijing today?", "demo__" + weatherTool, `{"city":"Beijing"}`, `{"temperature":22,"unit":"Celsius","condition":"多云","humidity":65}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := &rehearsal.Model{Now: fixed}
			tools := toolset(sumTool, tt.tool, restaurantTool)
			first := complete(t, m, request{"messages": user(tt.question), "tools": tools}.String()).Choices[0]
			if got := first.Message.calls(); !strings.HasSuffix(got, "get_weather "+tt.arguments) {
				t.Fatalf("calls %q, want get_weather %s", got, tt.arguments)
			}
			if *first.FinishReason != "tool_calls" || first.Message.Content != nil {
				t.Fatalf("finish_reason %s, content %q", *first.FinishReason, first.Message.text())
			}
			messages := after(user(tt.question), first.Message, tt.envelope)
			last := complete(t, m, request{"messages": messages, "tools": tools}.String()).Choices[0]
			for _, want := range []string{"22 °C", "多云", "65 %"} {
				if !strings.Contains(last.Message.text(), want) {
					t.Errorf("answer %q lacks %q", last.Message.text(), want)
				}
			}
			if strings.Contains(last.Message.text(), "Celsius") || *last.FinishReason != "stop" {
				t.Errorf("answer %q, finish_reason %s", last.Message.text(), *last.FinishReason)
			}
			t.Log(last.Message.text())
		})
	}
}

// TestStream holds a stream against the same answer in one body.
func TestStream(t *testing.T) {
	for _, tt := range []struct{ name, text string }{
		{"text", "SAY The quick brown fox — 敏捷的棕色狐狸 — jumps."},
		{"calls", "SAY Wait.\nCALL weather {\"city\": \"Beijing\"}\nCALL sum {\"a\":1,\"b\":2}"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := &rehearsal.Model{Now: fixed}
			body := request{"messages": user(tt.text), "tools": toolset(weatherTool, sumTool)}
			whole := complete(t, m, body.String())
			body["stream"] = true
			body["stream_options"] = map[string]any{"include_usage": true}
			_, data := send(t, m, body.String())
			list := chunks(t, data)

			var text, finish string
			var calls []toolCall
			for i, c := range list {
				if c.Object != "chat.completion.chunk" || c.ID != list[0].ID || c.Created != 1700000000 {
					t.Fatalf("chunk %d: %+v", i, c)
				}
				if i == len(list)-1 {
					if len(c.Choices) != 0 || c.Usage == nil || c.Usage.Completion != whole.Usage.Completion {
						t.Fatalf("last chunk: %+v", c)
					}
					break
				}
				d := c.Choices[0].Delta
				if (d.Role == "assistant") != (i == 0) {
					t.Fatalf("chunk %d has role %q", i, d.Role)
				}
				text += d.text()
				for _, piece := range d.ToolCalls {
					if *piece.Index == len(calls) {
						if piece.ID == nil || piece.Type != "function" || piece.Function.Arguments != "" {
							t.Fatalf("first delta of a call: %+v", piece)
						}
						calls = append(calls, piece)
						continue
					}
					if piece.ID != nil || piece.Function.Name != "" {
						t.Fatalf("later delta of a call: %+v", piece)
					}
					calls[*piece.Index].Function.Arguments += piece.Function.Arguments
				}
				if reason := c.Choices[0].FinishReason; reason != nil {
					finish = *reason
					if c.Dragoman == nil || c.Dragoman.Note != rehearsal.Note {
						t.Errorf("no note beside finish_reason")
					}
				}
			}
			want := whole.Choices[0]
			if got := (message{ToolCalls: calls}).calls(); text != want.Message.text() || got != want.Message.calls() || finish != *want.FinishReason {
				t.Errorf("stream: %q, %q, %s; body: %q, %q, %s", text, got, finish, want.Message.text(), want.Message.calls(), *want.FinishReason)
			}
		})
	}
}
