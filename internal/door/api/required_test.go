package api

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
	"github.com/dragoman-mcp/dragoman/internal/session"
	"github.com/dragoman-mcp/dragoman/internal/stage/fakeresponses"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// TestRequiredIsACallOfTheClients: a client with tools of its own that wants a call gets one of
// those, at each API, also where the model calls tools of servers first, as often as the loop
// lets it. Where the client asked for those, one call of theirs is what it wanted.
func TestRequiredIsACallOfTheClients(t *testing.T) {
	var asked []string
	looks := 0 // how often the model calls the server's tool, where it may
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Choice string `json:"tool_choice"`
			Tools  []struct {
				Function struct{ Name string }
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		offered := slices.ContainsFunc(body.Tools, func(tool struct{ Function struct{ Name string } }) bool { return tool.Function.Name == "weather__get" })
		message, finish := `"content":"Fine."`, "stop"
		call := func(name string) {
			message, finish = fmt.Sprintf(`"content":null,"tool_calls":[{"id":"call_%d","type":"function","function":{"name":%q,"arguments":"{}"}}]`, len(asked), name), "tool_calls"
		}
		switch asked = append(asked, body.Choice); {
		case offered && len(asked) <= looks:
			call("weather__get")
		case body.Choice == "required":
			call("answer")
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant",`+message+`},"finish_reason":"`+finish+`"}]}`)
	}))
	t.Cleanup(model.Close)
	d := openFor(t, session.Results{}, nil, upstream.Model{Match: "*", BaseURL: model.URL + "/v1", Dialect: "openai"})
	const (
		chat   = `{"type":"function","function":{"name":"answer","parameters":{"type":"object","properties":{}}}}`
		server = `{"type":"mcp","server_label":"weather","require_approval":"never"}`
	)
	for _, c := range []struct {
		path, body string
		looks      int
		asked      string // what became of the choice
		answered   bool   // by a call of the client's tool
	}{
		{"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"Weather?"}],"tool_choice":"required","tools":[` + chat + `]}`, 2, "required required required", true},
		{"/v1/responses", `{"model":"m","input":"Weather?","tool_choice":"required","tools":[{"type":"function","name":"answer","parameters":{"type":"object","properties":{}},"strict":false}]}`, 2, "required required required", true},
		{"/v1/messages", `{"model":"m","max_tokens":99,"messages":[{"role":"user","content":"Weather?"}],"tool_choice":{"type":"any"},"tools":[{"name":"answer","input_schema":{"type":"object"}}]}`, 2, "required required required", true},
		{"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"Weather?"}],"tool_choice":"required","tools":[` + chat + `]}`, 99, strings.TrimSpace(strings.Repeat("required ", 17)), true},
		{"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"Weather?"}],"tool_choice":"required"}`, 1, "required auto", false},
		{"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"Weather?"}],"tool_choice":"required","tools":[` + chat + `,` + server + `]}`, 1, "required auto", false},
		{"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"Weather?"}],"tool_choice":{"type":"mcp","server_label":"weather"},"tools":[` + chat + `]}`, 1, "required auto", false},
		{"/v1/responses", `{"model":"m","input":"Weather?","tool_choice":{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"weather__get"},{"type":"function","name":"answer"}]},"tools":[{"type":"function","name":"answer","parameters":{"type":"object","properties":{}},"strict":false}]}`, 1, "required auto", false},
	} {
		asked, looks = nil, c.looks
		a := d.do("POST", c.path, c.body)
		if got := strings.Join(asked, " "); a.status != http.StatusOK || got != c.asked || strings.Contains(a.body, "Fine.") == c.answered {
			t.Errorf("%s %s: asked with %s\n%d %s", c.path, c.body, got, a.status, a.body)
		}
	}
}

// TestRequiredOverResponses is the same where the model's API speaks Responses.
func TestRequiredOverResponses(t *testing.T) {
	const own = `{"type":"function_call","id":"fc_9","call_id":"call_9","name":"answer","arguments":"{}","status":"completed"}`
	for path, body := range map[string]string{
		"/v1/responses":        `{"model":"m","input":"Weather?","tool_choice":"required","tools":[{"type":"function","name":"answer","parameters":{"type":"object"},"strict":false}]}`,
		"/v1/chat/completions": `{"model":"m","messages":[{"role":"user","content":"Weather?"}],"tool_choice":"required","tools":[{"type":"function","function":{"name":"answer","parameters":{"type":"object"}}}]}`,
	} {
		d, up := speaking(t, "responses")
		up.Say(said(getItem), said(own))
		a := d.do("POST", path, body)
		if a.status != http.StatusOK || d.tools.calls() == "" || !strings.Contains(a.body, `"answer"`) {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
		for _, request := range up.Asked() {
			if got := string(rawjson.Get(request, "tool_choice")); got != `"required"` {
				t.Errorf("%s: asked with %s", path, got)
			}
		}
	}
}

// TestNamedToolIsOfferedAlone: where the model's API cannot be told which tool to call, the one
// that the client names, of its own or of a server, is the only one that can be called. Nothing
// changes where the API takes names.
func TestNamedToolIsOfferedAlone(t *testing.T) {
	const (
		ask  = `"model":"m","messages":[{"role":"user","content":"Weather?"}]`
		chat = `{` + ask + `,"tools":[{"type":"function","function":{"name":"show","parameters":{"type":"object","properties":{}}}},{"type":"function","function":{"name":"answer","parameters":{"type":"object","properties":{}}}}],"tool_choice":{"type":"function","function":{"name":"%s"}}}`
		flat = `{"model":"m","input":"Weather?","tools":[{"type":"function","name":"show","parameters":{"type":"object"},"strict":false},{"type":"function","name":"answer","parameters":{"type":"object"},"strict":false}],"tool_choice":{"type":"function","name":"%s"}}`
		said = `{` + ask + `,"max_tokens":99,"tools":[{"name":"show","input_schema":{"type":"object"}},{"name":"answer","input_schema":{"type":"object"}}],"tool_choice":{"type":"tool","name":"%s"}}`
	)
	for _, c := range []struct{ dialect, name, choice, tools string }{
		{"llamacpp", "answer", `"required"`, "answer"},
		{"ollama", "answer", "", "answer"},
		{"llamacpp", "weather__get", `"required"`, "weather__get"},
		{"ollama", "weather__get", "", "weather__get"},
		{"openai", "weather__get", `{"type":"function","function":{"name":"weather__get"}}`, "show answer files__delete weather__get weather__warn"},
		{"openai", "answer", `{"type":"function","function":{"name":"answer"}}`, "show answer files__delete weather__get weather__warn"},
	} {
		for path, body := range map[string]string{"/v1/chat/completions": chat, "/v1/responses": flat, "/v1/messages": said} {
			up := &recorder{}
			model := up.model(t, "*")
			model.Dialect, model.Wires = c.dialect, []string{"chat"}
			d := openFor(t, session.Results{}, nil, model)
			a := d.do("POST", path, fmt.Sprintf(body, c.name))
			var asked struct {
				Choice json.RawMessage `json:"tool_choice"`
				Tools  []struct {
					Function struct{ Name string }
				}
			}
			if err := json.Unmarshal([]byte(up.taken()[0].body), &asked); err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, tool := range asked.Tools {
				names = append(names, tool.Function.Name)
			}
			if got := strings.Join(names, " "); a.status != http.StatusOK || got != c.tools || string(asked.Choice) != c.choice {
				t.Errorf("%s %s %s: %d, asked with %s of %s", c.dialect, path, c.name, a.status, asked.Choice, got)
			}
		}
	}
}

// TestNamedToolIsOfferedAloneOverResponses is the same where the model's API speaks Responses. Once
// a server's has run, the others are offered, too.
func TestNamedToolIsOfferedAloneOverResponses(t *testing.T) {
	for path, body := range map[string]string{
		"/v1/chat/completions": `{"model":"m","messages":[{"role":"user","content":"Weather?"}],"tools":[{"type":"function","function":{"name":"show"}},{"type":"function","function":{"name":"answer"}}],"tool_choice":{"type":"function","function":{"name":"%s"}}}`,
		"/v1/messages":         `{"model":"m","max_tokens":99,"messages":[{"role":"user","content":"Weather?"}],"tools":[{"name":"show","input_schema":{"type":"object"}},{"name":"answer","input_schema":{"type":"object"}}],"tool_choice":{"type":"tool","name":"%s"}}`,
	} {
		for _, name := range []string{"answer", "weather__get"} {
			up := &fakeresponses.API{}
			model := httptest.NewServer(up)
			t.Cleanup(model.Close)
			d := open(t, nil, upstream.Model{Match: "*", BaseURL: model.URL + "/v1", Wires: []string{"responses"}, Dialect: "lmstudio"})
			own := said(`{"id":"fc_9","type":"function_call","call_id":"call_9","name":"answer","arguments":"{}","status":"completed"}`)
			says := map[string][]fakeresponses.Answer{"answer": {own}, "weather__get": {said(getItem), own}}[name]
			up.Say(says...)
			a := d.do("POST", path, fmt.Sprintf(body, name))
			asked := up.Asked()
			if a.status != http.StatusOK || len(asked) != len(says) {
				t.Fatalf("%s %s: %d %s", path, name, a.status, a.body)
			}
			tools, err := rawjson.Elements(rawjson.Get(asked[0], "tools"))
			if choice := string(rawjson.Get(asked[0], "tool_choice")); err != nil || choice != `"required"` || len(tools) != 1 || string(rawjson.Get(tools[0], "name")) != strconv.Quote(name) {
				t.Errorf("%s %s: asked with %s of %s", path, name, choice, tools)
			}
			for _, later := range asked[1:] {
				if tools, _ := rawjson.Elements(rawjson.Get(later, "tools")); len(tools) != 5 {
					t.Errorf("%s %s: asked again with %s", path, name, tools)
				}
			}
		}
	}
}

// TestAllowedToolsAreOfferedAlone: where the model's API can be told no names, those that a Chat
// client allows are offered alone, in the mode that it says, and no other tool of a server is run.
// Elsewhere the choice goes as it came, with all tools.
func TestAllowedToolsAreOfferedAlone(t *testing.T) {
	const (
		chat = `{"model":"m","messages":[{"role":"user","content":"Weather?"}],"tools":[{"type":"function","function":{"name":"show"}},{"type":"function","function":{"name":"answer"}}],"tool_choice":%s}`
		some = `{"type":"allowed_tools","allowed_tools":{"mode":"%s","tools":[{"type":"function","function":{"name":"%s"}}]}}`
	)
	answer, weather := fmt.Sprintf(some, "required", "answer"), fmt.Sprintf(some, "auto", "weather__get")
	for _, c := range []struct{ dialect, given, choice, tools, ran string }{
		{"llamacpp", answer, `"required"`, "answer", ""},
		{"ollama", answer, "", "answer", ""},
		{"openai", answer, answer, "show answer files__delete weather__get weather__warn", ""},
		{"openai", weather, weather, "show answer files__delete weather__get weather__warn", "weather__get {}"},
		{"llamacpp", weather, `"auto"`, "weather__get", "weather__get {}"},
		{"llamacpp", `{"type":"allowed_tools"}`, `{"type":"allowed_tools"}`, "show answer files__delete weather__get weather__warn", "weather__get {}"},
	} {
		var asked [][]byte
		model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			message := `"content":"Fine."`
			if asked = append(asked, body); len(asked) == 1 {
				message = `"content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"weather__get","arguments":"{}"}}]`
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant",`+message+`},"finish_reason":"stop"}]}`)
		}))
		t.Cleanup(model.Close)
		d := open(t, nil, upstream.Model{Match: "*", BaseURL: model.URL + "/v1", Dialect: c.dialect, Wires: []string{"chat"}})
		a := d.do("POST", "/v1/chat/completions", fmt.Sprintf(chat, c.given))
		var names []string
		tools, _ := rawjson.Elements(rawjson.Get(asked[0], "tools"))
		for _, tool := range tools {
			name, _ := rawjson.String(rawjson.Get(rawjson.Get(tool, "function"), "name"))
			names = append(names, name)
		}
		if got, choice := strings.Join(names, " "), string(rawjson.Get(asked[0], "tool_choice")); a.status != http.StatusOK || got != c.tools || choice != c.choice || d.tools.calls() != c.ran {
			t.Errorf("%s %s: %d, asked with %s of %s, ran %q", c.dialect, c.given, a.status, choice, got, d.tools.calls())
		}
	}
}
