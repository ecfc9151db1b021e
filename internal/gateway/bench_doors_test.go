package gateway

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/reach/servers"
	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
)

// BenchmarkDoors is what an answer, one in a stream of 20 pieces, one after a history of 1,000
// messages, one to a client with 40 tools of its own, and one after the same history to a
// caller for whom a call of ours is remembered costs at each door at which a model is asked,
// with a tool of ours offered and nothing stored. The model speaks Chat. It is in this process,
// so that what one door costs more than another is what counts.
//
//	go test ./internal/gateway -run - -bench Doors
func BenchmarkDoors(b *testing.B) {
	h := gatewayOver(b, weather())
	for _, what := range []string{"answer", "stream", "history", "tools", "remembered"} {
		for _, door := range benchDoors {
			b.Run(door.name+"/"+what, func(b *testing.B) {
				members := door.members
				if what == "remembered" { // from here on, for all doors
					askDoor(b, h, door.path, fmt.Sprintf(`{"model":"m",%s}`, strings.Replace(members, "What is", lookUp, 1)))
				}
				switch what {
				case "history", "remembered":
					members = strings.Replace(members, `[`, `[`+history(250, door.name), 1)
				case "tools":
					members += `,"tools":[` + ownTools(40, door.name) + `]`
				}
				body := fmt.Sprintf(`{"model":"m","stream":%t,%s}`, what == "stream", members)
				b.SetBytes(int64(len(body)))
				b.ReportAllocs()
				for b.Loop() {
					askDoor(b, h, door.path, body)
				}
			})
		}
	}
}

// benchDoors are those at which a model is asked, each with a request as it has it.
var benchDoors = []struct{ name, path, members string }{
	{"chat", "/v1/chat/completions", `"messages":[{"role":"user","content":"What is the weather?"}]`},
	{"responses", "/v1/responses", `"store":false,"input":[{"role":"user","content":"What is the weather?"}]`},
	{"messages", "/v1/messages", `"max_tokens":100,"messages":[{"role":"user","content":"What is the weather?"}]`},
}

// lookUp is what the model is to be told so that it calls the tool first.
const lookUp = "Look up"

// weather returns a model that says what the weather is, in a stream of 20 pieces where it is
// asked for one. It speaks Chat and Responses.
func weather() http.HandlerFunc {
	const piece = `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{%s},"finish_reason":%s}]}` + "\n\n"
	stream := fmt.Sprintf(piece, `"role":"assistant","content":""`, "null") + strings.Repeat(fmt.Sprintf(piece, `"content":"sunny "`, "null"), 20) +
		fmt.Sprintf(piece, "", `"stop"`) + `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}` + "\n\ndata: [DONE]\n\n"
	return func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), lookUp) && !strings.Contains(string(body), `"role":"tool"`) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"lookup","arguments":"{}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}`)
			return
		}
		if strings.Contains(string(body), `"stream":true`) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, stream)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(r.URL.Path, "/responses") {
			_, _ = io.WriteString(w, `{"id":"r","object":"response","status":"completed","model":"m","output":[{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"It is sunny.","annotations":[]}]}],"usage":{"input_tokens":10,"output_tokens":5,"total_tokens":15}}`)
			return
		}
		_, _ = io.WriteString(w, `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"It is sunny."},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}`)
	}
}

// gatewayOver returns a gateway with a server of one tool, and a model behind it, to which it
// speaks Chat, but for the one called "responses".
func gatewayOver(tb testing.TB, handler http.Handler) http.Handler {
	model := httptest.NewServer(handler)
	tb.Cleanup(model.Close)
	tools := httptest.NewServer(fakemcp.New(fakemcp.Config{Keep: -1, Tools: []fakemcp.Tool{{Name: "lookup"}}}))
	tb.Cleanup(tools.Close)
	file := config.Default()
	file.MCPServers = map[string]servers.Config{"bench": {URL: tools.URL + "/mcp"}}
	file.Models = []upstream.Model{
		{Match: "responses", BaseURL: model.URL + "/v1", Wires: []string{"responses"}}, {Match: "*", BaseURL: model.URL + "/v1"},
	}
	g, err := New(file, Options{Lookup: func(string) (string, bool) { return "", false }, Version: "test"})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { g.Close() })
	if err := g.Wait(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	return g.Handler()
}

// askDoor sends a request that is answered.
func askDoor(tb testing.TB, h http.Handler, path, body string) {
	req := httptest.NewRequest("POST", "http://localhost"+path, strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	w := &discards{header: http.Header{}}
	h.ServeHTTP(w, req)
	if w.status > http.StatusOK || w.size < 100 {
		tb.Fatal(w.status, w.size)
	}
}

// ownTools are that many tools of a client's own as a door has them, of 1 KB each.
func ownTools(n int, door string) string {
	schema := `{"type":"object","properties":{"path":{"type":"string","description":"` + strings.Repeat("Where the file stands. ", 10) + `"},"limit":{"type":"integer","minimum":1}},"required":["path"],"additionalProperties":false}`
	description := `"` + strings.Repeat(`Reads a file.\nSays \"nothing\" of what it cannot read. `, 12) + `"`
	format := map[string]string{
		"chat":      `{"type":"function","function":{"name":"own_%d","description":%s,"parameters":%s}}`,
		"responses": `{"type":"function","name":"own_%d","description":%s,"strict":false,"parameters":%s}`,
		"messages":  `{"name":"own_%d","description":%s,"input_schema":%s}`,
	}[door]
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(format, i, description, schema)
	}
	return strings.Join(all, ",")
}

// history is that many rounds of an agent as a door has them, with a comma behind each: a
// question, a call, its result and an answer.
func history(rounds int, door string) string {
	question, answer := `"What is the weather in town %[1]d, and why?"`, `"Answer %[1]d: %[2]s"`
	format := map[string]string{
		"chat": `{"role":"user","content":` + question + `},` +
			`{"role":"assistant","content":null,"tool_calls":[{"id":"call_%[1]d","type":"function","function":{"name":"look","arguments":"{\"town\":%[1]d}"}}]},` +
			`{"role":"tool","tool_call_id":"call_%[1]d","content":"%[2]s"},{"role":"assistant","content":` + answer + `},`,
		"responses": `{"type":"message","role":"user","content":[{"type":"input_text","text":` + question + `}]},` +
			`{"type":"function_call","call_id":"call_%[1]d","name":"look","arguments":"{\"town\":%[1]d}"},{"type":"function_call_output","call_id":"call_%[1]d","output":"%[2]s"},` +
			`{"type":"message","role":"assistant","content":[{"type":"output_text","text":` + answer + `}]},`,
		"messages": `{"role":"user","content":[{"type":"text","text":` + question + `}]},` +
			`{"role":"assistant","content":[{"type":"tool_use","id":"call_%[1]d","name":"look","input":{"town":%[1]d}}]},` +
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_%[1]d","content":"%[2]s"}]},{"role":"assistant","content":[{"type":"text","text":` + answer + `}]},`,
	}[door]
	var b strings.Builder
	for n := range rounds {
		fmt.Fprintf(&b, format, n, strings.Repeat(`it is sunny, and \"nobody\" knows why. `, 7))
	}
	return b.String()
}
