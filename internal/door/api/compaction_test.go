package api

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/door"
	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// summaries starts a model that summarises as "short" what it is asked to, and says
// everything else again.
func summaries(t *testing.T) upstream.Model { return summariesUntil(t, "stop") }

// summariesUntil starts one whose summaries end for a reason.
func summariesUntil(t *testing.T, finish string) upstream.Model {
	t.Helper()
	e := newEcho()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		if strings.Contains(string(raw), "You write summaries") {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = fmt.Fprint(w, "data: {\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"short\"},\"finish_reason\":\""+finish+"\"}],\"usage\":{\"prompt_tokens\":100,\"completion_tokens\":1,\"total_tokens\":101}}\n\ndata: [DONE]\n\n")
			return
		}
		r.Body = door.ReadAgain(raw)
		e.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return upstream.Model{Match: "*", BaseURL: server.URL + "/v1"}
}

// shortened is what the model is told of a conversation that was compacted.
const shortened = "user (A summary of the conversation so far, in place of all but what people wrote in it:)\nshort"

// outputOf returns the items of a response.
func outputOf(o *rawjson.Object) []json.RawMessage {
	items, _ := rawjson.Elements(o.Get("output"))
	return items
}

// A conversation is compacted by a summary of the model's own, which goes back to it from
// its caller's items alone, in place of all but what people wrote.
func TestCompact(t *testing.T) {
	d := open(t, nil, summaries(t))
	history := message("user", "one") + `,{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a long answer"}]}`
	compacted := d.ok("POST", "/v1/responses/compact", `{"model":"m","input":[`+history+`]}`)
	output := outputOf(compacted)
	if string(compacted.Get("object")) != `"response.compaction"` || compacted.Get("created_at") == nil || len(output) != 2 || strings.Contains(string(compacted.Bytes()), "short") ||
		!strings.Contains(string(compacted.Get("usage")), `"total_tokens":101`) {
		t.Fatalf("%s", compacted.Bytes())
	}
	rest := `{"model":"m","store":false,"input":[` + string(output[0]) + "," + string(output[1]) + "," + message("user", "two") + `]}`
	if next := d.ok("POST", "/v1/responses", rest); told(next) != "<user one|"+shortened+"|user two>" {
		t.Errorf("%s", told(next))
	}
	mallory := d.do("POST", "/v1/responses", rest, "X-Test-Caller", "mallory")
	if mallory.status != 200 || strings.Contains(mallory.body, "short") || !strings.Contains(mallory.body, "kept by another provider") {
		t.Errorf("%d %s", mallory.status, mallory.body)
	}
	first := d.ok("POST", "/v1/responses", `{"model":"m","input":"one"}`)
	from := d.ok("POST", "/v1/responses/compact", `{"model":"m","previous_response_id":"`+idOf(first.Bytes())+`"}`)
	if output := outputOf(from); len(output) != 2 || !strings.Contains(string(output[0]), `"one"`) {
		t.Errorf("%s", from.Bytes())
	}
	d.checkError(d.do("POST", "/v1/responses/compact", `{"input":"x"}`), 400, "invalid_request")
	d.checkError(d.do("POST", "/v1/responses/compact", `{"model":"m"}`), 400, "invalid_request")
}

// A summary that was cut off says so to the model that goes on from it.
func TestCutSummary(t *testing.T) {
	for finish, cut := range map[string]bool{"stop": false, "length": true} {
		d := open(t, nil, summariesUntil(t, finish))
		output := outputOf(d.ok("POST", "/v1/responses/compact", `{"model":"m","input":[`+message("user", "one")+`]}`))
		next := d.ok("POST", "/v1/responses", `{"model":"m","store":false,"input":[`+string(output[1])+`,`+message("user", "two")+`]}`)
		if got := strings.Contains(told(next), shortened+"\n(The summary was cut off here"); got != cut {
			t.Errorf("%s: the model was told %s", finish, told(next))
		}
	}
}

// A response compacts what it goes on from where that is longer than the request wants, and
// those that go on from it have the summary; a trigger compacts at once and asks nothing
// else of the model.
func TestCompactInResponse(t *testing.T) {
	d := open(t, nil, summaries(t))
	said := func(s string) string {
		return `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"` + s + `"}]}`
	}
	long := strings.Repeat("many words ", 600)
	id := idOf(d.ok("POST", "/v1/conversations", `{"items":[`+message("user", "one")+","+said(long)+`]}`).Bytes())
	manage := `"context_management":[{"type":"compaction","compact_threshold":1000}],"conversation":"` + id + `"`
	streamed := d.do("POST", "/v1/responses", `{"model":"m","input":"two","stream":true,`+manage+`}`)
	if !strings.Contains(streamed.body, `"type":"response.compaction.compacting"`) || !strings.Contains(streamed.body, "response.completed") {
		t.Fatalf("%s", streamed.body)
	}
	next := d.ok("POST", "/v1/responses", `{"model":"m","input":"three",`+manage+`}`)
	if got, want := told(next), "<user one|user two|"+shortened+"|assistant <user one|user two|"+shortened+">|user three>"; got != want {
		t.Errorf("%s", got)
	}
	if items := outputOf(next); len(items) != 1 {
		t.Errorf("compacted again: %s", next.Bytes())
	}
	d.ok("POST", "/v1/conversations/"+id+"/items", `{"items":[`+said(long)+`]}`)
	d.ok("POST", "/v1/responses", `{"model":"m","input":"four",`+manage+`}`)
	if got := told(d.ok("POST", "/v1/responses", `{"model":"m","input":"five",`+manage+`}`)); strings.Count(got, "A summary of") != 2 || !strings.HasPrefix(got, "<user one|user two|user three|user four|"+shortened+"|assistant ") {
		t.Errorf("%s", got) // the one summary, and what the model said again of it
	}
	triggered := d.ok("POST", "/v1/responses", `{"model":"m","store":false,"input":[`+message("user", "one")+`,{"type":"compaction_trigger"}]}`)
	if items := outputOf(triggered); len(items) != 1 || !strings.Contains(string(items[0]), `"type":"compaction"`) || string(triggered.Get("status")) != `"completed"` {
		t.Errorf("%s", triggered.Bytes())
	}
	for _, bad := range []string{`"compaction"`, `[{"type":"forget"}]`, `[{"type":"compaction","compact_threshold":0}]`} {
		d.checkError(d.do("POST", "/v1/responses", `{"model":"m","input":"x","context_management":`+bad+`}`), 400, "invalid_request")
	}
}
