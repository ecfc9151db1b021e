package api

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/judge/gate"
	"github.com/dragoman-mcp/dragoman/internal/judge/policy"
	"github.com/dragoman-mcp/dragoman/internal/session"
)

// ruled opens the door to a recorder for somebody to whom rules apply.
func ruled(t *testing.T, rules ...policy.Rule) (*tested, *recorder) {
	t.Helper()
	p, err := policy.New(policy.Config{Rules: rules})
	if err != nil {
		t.Fatal(err)
	}
	up := &recorder{}
	d := open(t, func(o *Options) {
		o.Sessions = session.New(session.Options{
			Tools: session.Shared(&toolset{}), Upstreams: o.Upstreams, Dialects: dialect.Builtin(), Gate: gate.New(gate.Options{Policy: p}),
		})
	}, up.model(t, "*"))
	return d, up
}

// A rule about a route is no matter of how its path is spelled: what can be read as another
// path is refused, and other cases are judged as the same.
func TestRoutesAreJudgedAsTheyAreRead(t *testing.T) {
	d, up := ruled(t, policy.Rule{Allow: []string{"*"}}, policy.Rule{Deny: []string{"route:/v1/files*"}})
	for path, status := range map[string]int{
		"/v1/files":                      403,
		"/v1/files/f-1":                  403,
		"/v1/FILES":                      403,
		"/v1/Files/":                     403,
		"/v1/f%69les":                    403,
		"/v1/%2Ffiles":                   400,
		"/v1/%2ffiles":                   400,
		"/v1//files":                     400,
		"/v1/.%2Ffiles":                  400,
		"/v1/%2e/files":                  400,
		"/v1/x/%2e%2e/files":             400,
		"/v1/x/../files":                 400,
		"/v1/./files":                    400,
		"/v1/%5Cfiles":                   400,
		"/v1/%2566iles":                  400,
		"/v1/x;/../files":                400,
		"/v1/embeddings;a=b":             400,
		"/v1/files%00":                   400,
		"/v1/models/..%2Ffiles":          400,
		"/v1/models/%2Ffiles":            400,
		"/v1/models/..;%2f..%2ffiles%2f": 400,
		"/v1/models/org%2Fm":             200,
		"/v1/vector_stores/a%20b":        200,
	} {
		if a := d.do("GET", path, ""); a.status != status {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	for _, sent := range up.taken() {
		if strings.Contains(strings.ToLower(sent.line), "files") {
			t.Errorf("the upstream got %s", sent.line)
		}
	}
}

const small = `{"model":"small","messages":[{"role":"user","content":"Hello"}]}`

// Whoever may use some models only names them where their use is judged, and nowhere else:
// not in nested members, and on no route of which it is not known what it uses.
func TestSomeModelsOnly(t *testing.T) {
	d, up := ruled(t, policy.Rule{Allow: []string{"route:*", "model:small"}})
	for _, tt := range []struct {
		line, body string
		status     int
	}{
		{"POST /v1/responses", `{"model":"small","input":"hi"}`, 200},
		{"POST /v1/responses", `{"model":"small","tools":[{"type":"image_generation","model":"small"}]}`, 200},
		{"POST /v1/responses", `{"model":"small","tools":[{"type":"function","name":"f","parameters":{"properties":{"model":{"default":"large","models":["large"]}},"model":"large"}}]}`, 200},
		{"POST /v1/responses", `{"model":"small","input":[{"role":"user","content":"x","model":"large"}],"metadata":{"model":"large"},"reasoning":{"model":null}}`, 200},
		{"POST /v1/messages", `{"model":"small","messages":[{"role":"assistant","content":[{"type":"tool_use","input":{"model":"large"}}]}],"tools":[{"name":"t","input_schema":{"model":"large"}}]}`, 200},
		{"POST /v1/messages/count_tokens", `{"model":"small"}`, 200},
		{"POST /v1/embeddings", `{"model":"small","input":"x"}`, 200},
		{"GET /v1/files", "", 200},
		{"GET /v1/responses/resp_1", "", 200},
		{"DELETE /v1/responses/resp_1", "", 200},
		{"POST /v1/responses/resp_1/cancel", "", 200},
		{"GET /v1/models/small", "", 200},

		{"GET /v1/models/large", "", 403},
		{"POST /v1/responses", `{"input":"hi"}`, 403},
		{"POST /v1/responses", `{"model":null,"prompt":{"id":"p"}}`, 403},
		{"POST /v1/responses", `["large"]`, 403},
		{"POST /v1/responses", ``, 403},
		{"POST /v1/responses", `{"model":"small","tools":[{"type":"image_generation","model":"large"}]}`, 403},
		{"POST /v1/responses", `{"model":"small","tools":[[{"Model":"large"}]]}`, 403},
		{"POST /v1/responses", `{"model":"small","session":{"model":"large"}}`, 403},
		{"POST /v1/responses", `{"model":"small","session":{"audio":{"input":{"transcription":{"model":"large"}}}}}`, 403},
		{"POST /v1/responses", `{"model":"small","grader":{"model":"large"}}`, 403},
		{"POST /v1/responses", `{"model":"small","x":{"fallback_models":["small","large"]}}`, 403},
		{"POST /v1/responses", `{"model":"small","x":{"models":[{"id":"small"}]}}`, 403},
		{"POST /v1/responses", `{"model":"small","aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa":{"b":{"modelId":"large"}}}`, 403},
		{"POST /v1/chat/completions", strings.Replace(small, "{", `{"plugins":[{"id":"web","model":"large"}],`, 1), 403},
		{"POST /v1/batches", `{"endpoint":"/v1/chat/completions","input_file_id":"f"}`, 403},
		{"POST /v1/batches", `{"model":"small"}`, 403},
		{"POST /v1/fine_tuning/jobs", `{"model":"small"}`, 403},
		{"POST /v1/evals/e/runs", `{"data_source":{"model":"small"}}`, 403},
		{"POST /v1/threads/t/runs", `{"assistant_id":"a"}`, 403},
		{"POST /v1/realtime/client_secrets", `{"session":{"model":"large"}}`, 403},
		{"POST /v1/realtime/calls?model=small", `{"sdp":"v=0"}`, 403},
		{"POST /v1/engines/large/completions", `{"model":"small"}`, 403},
		{"POST /v1/RESPONSES", `{"model":"small"}`, 403},
		{"PUT /v1/responses", `{"model":"small"}`, 403},
	} {
		method, path, _ := strings.Cut(tt.line, " ")
		if a := d.do(method, path, tt.body); a.status != tt.status && (tt.status != 200 || a.status == 403) {
			t.Errorf("%s %s: %d %s", tt.line, tt.body, a.status, a.body)
		}
		if passed := len(up.taken()) > 0; passed && tt.status != 200 {
			t.Errorf("%s %s was passed on", tt.line, tt.body)
		}
	}
}

// What JSON may not name beside its model, a form may not, either: some APIs read a form as if
// it was JSON, and take fallbacks[] for a list.
func TestSomeModelsOnlyInForms(t *testing.T) {
	limited, up := ruled(t, policy.Rule{Allow: []string{"route:*", "model:small"}})
	free, _ := ruled(t, policy.Rule{Allow: []string{"*"}})
	for field, status := range map[string]int{
		"fallbacks": 403, "fallbacks[]": 403, "fallbacks[0][large]": 403, "Models": 403, "engine": 403, "session[model]": 403, "fallback_model": 403,
		"prompt": 200, "timestamp_granularities[]": 200, "language": 200,
	} {
		part := "--x\r\nContent-Disposition: form-data; name=\"%s\"\r\n\r\n%s\r\n"
		form := fmt.Sprintf(part+part+"--x--\r\n", "model", "small", field, "large")
		kind := []string{"Content-Type", "multipart/form-data; boundary=x"}
		if a := limited.do("POST", "/v1/audio/transcriptions", form, kind...); a.status != status {
			t.Errorf("%s: %d %s", field, a.status, a.body)
		}
		if a := free.do("POST", "/v1/audio/transcriptions", form, kind...); a.status != 200 {
			t.Errorf("%s, for somebody who may use every model: %d %s", field, a.status, a.body)
		}
	}
	if n := len(up.taken()); n != 3 {
		t.Errorf("%d forms were passed on, want 3", n)
	}
}

// Behind a WebSocket that is passed on each message can name a model: who may use some only
// gets none, be a model of theirs in its address. One of /v1/responses is not passed on, and
// each message is judged.
func TestSomeModelsOnlyAndWebSockets(t *testing.T) {
	limited, up := ruled(t, policy.Rule{Allow: []string{"route:*", "model:small"}})
	free, upFree := ruled(t, policy.Rule{Allow: []string{"*"}})
	for _, path := range []string{"/v1/realtime", "/v1/realtime?model=small"} {
		if a := limited.do("GET", path, "", "Upgrade", "websocket", "Connection", "Upgrade"); a.status != http.StatusForbidden || len(up.taken()) != 0 {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
		if a := free.do("GET", path, "", "Upgrade", "websocket", "Connection", "Upgrade"); a.status == http.StatusForbidden || len(upFree.taken()) == 0 {
			t.Errorf("%s: %d for somebody who may use every model", path, a.status)
		}
	}
}

// Over plain HTTP some clients, such as the one of Java, ask with each request for HTTP/2.
// Nobody switches to that: it is a request like any other, with an end of its own.
func TestSomeModelsOnlyAndUpgradesToHTTP2(t *testing.T) {
	d, up := ruled(t, policy.Rule{Allow: []string{"route:*", "model:small"}})
	for line, body := range map[string]string{"POST /v1/embeddings": `{"model":"small","input":"x"}`, "GET /v1/files": ""} {
		method, path, _ := strings.Cut(line, " ")
		a := d.do(method, path, body, "Connection", "Upgrade, HTTP2-Settings", "Upgrade", "h2c", "Http2-Settings", "AAMAAABkAAQAAP__")
		if a.status != http.StatusOK || len(up.taken()) != 1 {
			t.Errorf("%s: %d %s", line, a.status, a.body)
		}
	}
}

func TestSomeModelsOnlyInMessages(t *testing.T) {
	limited, up := ruled(t, policy.Rule{Allow: []string{"route:*", "model:small"}})
	w := limited.dial()
	if code, _ := w.refused(`{"type":"response.create","model":"large","input":"x"}`); code != "denied" || len(up.taken()) > 0 {
		t.Errorf("%s", code)
	}
	if code, _ := w.refused(`{"type":"response.create","prompt":{"id":"x"}}`); code != codeModelNotKnown || len(up.taken()) > 0 {
		t.Errorf("%s", code)
	}
	if w.send(`{"type":"response.create","model":"small","input":"x"}`); w.next() == nil || len(up.taken()) == 0 {
		t.Error("the model that may be used was not asked")
	}
}

// What a relayed request may change is written down before it is sent: all but questions
// and the use of a model.
func TestChanges(t *testing.T) {
	for request, want := range map[string]bool{
		"GET /v1/files": false, "HEAD /v1/files": false, "OPTIONS /v1/files": false,
		"POST /v1/embeddings": false, "POST /v1/chat/completions": false, "POST /v1/rerank": false,
		"POST /v1/files": true, "POST /v1/fine_tuning/jobs": true, "POST /v1/embeddings/": true,
		"DELETE /v1/files/f": true, "PUT /v1/embeddings": true, "PATCH /v1/files/f": true, "PURGE /v1/models": true,
	} {
		method, path, _ := strings.Cut(request, " ")
		if got := changes(method, path); got != want {
			t.Errorf("%s: %t, want %t", request, got, want)
		}
	}
}
