package chat

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/internal/recall"
	"github.com/dragoman-mcp/dragoman/openai/internal/transcript"
	"github.com/dragoman-mcp/dragoman/openai/memory"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// A shy toolset asks before it does anything, as often as it is told to, and then
// does it.
type shy struct {
	mu    sync.Mutex
	asks  int
	legs  []string
	tools *dragoman.List
}

func (s *shy) List(context.Context) (*dragoman.List, error) {
	if s.tools != nil {
		return s.tools, nil
	}
	return transcript.List, nil
}

func (s *shy) Call(_ context.Context, c dragoman.Call) (dragoman.Result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	leg := c.Tool.Original + " " + string(c.Arguments)
	if a := c.Answers; a != nil {
		leg += " " + string(a.State) + " " + string(a.Replies["q"])
		if a.Gone {
			leg += "gone"
		}
	}
	s.legs = append(s.legs, leg)
	switch {
	case c.Answers != nil && c.Answers.Gone:
		return dragoman.Result{Ran: dragoman.RanYes}, nil
	case s.asks > 0:
		s.asks--
		state := "s"
		if c.Answers != nil {
			state = string(c.Answers.State) + "s"
		}
		return dragoman.Result{Ran: dragoman.RanYes, Asks: &dragoman.Asks{State: []byte(state), Questions: []dragoman.Question{
			{Key: "q", Kind: dragoman.AskForm, Server: c.Tool.Server, Params: json.RawMessage(`{"message":"Sure?"}`)},
		}}}, nil
	}
	return dragoman.Result{Ran: dragoman.RanYes, Content: json.RawMessage(`{"content":[],"structuredContent":"done"}`)}, nil
}

// asker plays requests to a chat whose upstream answers in turn.
type asker struct {
	*testing.T
	tools  *shy
	store  memory.Memory
	asked  []string
	models []string
}

func (a *asker) request(body string) (answer *rawjson.Object, text string) {
	a.Helper()
	w := &client{}
	chat := newChat(a.T, w, body, Options{Memory: &a.store, Caller: "alice", Can: dragoman.AskForm, Model: &model.Client{
		Post: func(_ context.Context, parts [][]byte) (*http.Response, error) {
			a.asked = append(a.asked, transcript.Tidy(bytes.Join(parts, nil)))
			if len(a.models) == 0 {
				a.Fatal("the model was asked once more")
			}
			r := &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(a.models[0]))}
			a.models = a.models[1:]
			return r, nil
		},
	}})
	if err := (&dragoman.Loop{Tools: a.tools}).Run(a.Context(), chat); err != nil {
		a.Error(err)
	}
	got := w.String()
	if strings.HasPrefix(got, "data:") {
		checkCompletion(a.T, w)
		var last []byte
		for event := range strings.SplitSeq(got, "\n\n") {
			data := []byte(strings.TrimPrefix(event, "data: "))
			if chunk, err := rawjson.ParseObject(data); err == nil {
				choices, _ := rawjson.Elements(chunk.Get("choices"))
				choice, _ := rawjson.ParseObject(choices[0])
				delta, _ := rawjson.ParseObject(choice.Get("delta"))
				piece, _ := rawjson.String(delta.Get("content"))
				text, last = text+piece, data
			}
		}
		got = string(last)
	}
	answer, err := rawjson.ParseObject([]byte(strings.TrimSpace(got)))
	if err != nil {
		a.Fatalf("got %q: %v", got, err)
	}
	if text == "" {
		if choices, err := rawjson.Elements(answer.Get("choices")); err == nil {
			choice, _ := rawjson.ParseObject(choices[0])
			message, _ := rawjson.ParseObject(choice.Get("message"))
			text, _ = rawjson.String(message.Get("content"))
		}
	}
	return answer, text
}

// question returns the id of what an answer asks, and the call.
func question(t *testing.T, answer *rawjson.Object) (id, call string) {
	t.Helper()
	var own struct {
		Asks struct {
			ID        string
			Questions []struct {
				Call, Key, Kind, Server, Tool string
				Params                        struct{ Message string }
			}
		}
	}
	if err := json.Unmarshal(answer.Get("dragoman"), &own); err != nil {
		t.Fatalf("%s: %v", answer.Bytes(), err)
	}
	if q := own.Asks.Questions; len(q) != 1 || q[0].Key != "q" || q[0].Kind != "form" || q[0].Tool != "save" || q[0].Params.Message != "Sure?" || own.Asks.ID == "" {
		t.Fatalf("asks %+v in %s", own.Asks, answer.Bytes())
	}
	return own.Asks.ID, own.Asks.Questions[0].Call
}

const (
	saveBody = `{"id":"u","choices":[{"index":0,"message":{"role":"assistant","content":"Let me.","tool_calls":[{"id":"call_a","type":"function","function":{"name":"files__save","arguments":"{\"path\":\"/a\"}"}}]},"finish_reason":"tool_calls"}]}`
	bothBody = `{"id":"u","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"call_a","type":"function","function":{"name":"files__save","arguments":"{\"path\":\"/a\"}"}},{"id":"call_b","type":"function","function":{"name":"mine","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`
	doneBody = `{"id":"u","choices":[{"index":0,"message":{"role":"assistant","content":"Done."},"finish_reason":"stop"}]}`
	accept   = `{"action":"accept","content":{"sure":true}}`
)

func with(body, members string) string {
	return "{" + members + "," + strings.TrimPrefix(body, "{")
}

func reply(id, call string) string {
	return `"dragoman":{"answers":{"id":"` + id + `","replies":{"` + call + `":{"q":` + accept + `}}}}`
}

// A call that asks ends the turn; the request with the answers goes on with the same
// call, and asks the model only when it has its result. It may ask again.
func TestAsk(t *testing.T) {
	for _, body := range []string{streamBody, strings.Replace(streamBody, "true", "false", 1)} {
		a := &asker{T: t, tools: &shy{asks: 2}, models: []string{saveBody, doneBody}}
		answer, text := a.request(body)
		if want := "Let me.\n\nThe tool \"save\" of \"files\" needs an answer before it can go on: Sure?"; text != want {
			t.Errorf("got %q, want %q", text, want)
		}
		id, call := question(t, answer)
		again, _ := a.request(with(body, reply(id, call)))
		next, call := question(t, again)
		if next == id {
			t.Error("the same id for two questions")
		}
		// A client may as well send what it was told.
		told := strings.Replace(body, `"Go."}`, `"Go."},{"role":"assistant","content":"`+"The tool"+`"}`, 1)
		if _, text := a.request(with(told, reply(next, call))); text != "Done." {
			t.Errorf("got %q", text)
		}
		if diff := cmp.Diff([]string{`save {"path":"/a"}`, `save {"path":"/a"} s ` + accept, `save {"path":"/a"} ss ` + accept}, a.tools.legs); diff != "" {
			t.Errorf("legs (-want +got)\n%s", diff)
		}
		if len(a.asked) != 2 || strings.Count(a.asked[1], `"role":"tool"`) != 1 || strings.Count(a.asked[1], `"role":"assistant"`) != 1 ||
			!strings.Contains(a.asked[1], `\"done\"`) {
			t.Errorf("the model was asked %d times, last with %s", len(a.asked), a.asked[len(a.asked)-1])
		}
		if len(a.models) > 0 {
			t.Error("the model was not asked for its answer")
		}
	}
}

// What tells of progress is a chunk of the one completion though the model has not been
// asked yet, where a call goes on that had asked.
func TestAskProgress(t *testing.T) {
	for _, format := range []string{"text", "json_object"} {
		body := with(streamBody, `"response_format":{"type":"`+format+`"}`)
		a := &asker{T: t, tools: &shy{asks: 1}, models: []string{saveBody}}
		answer, _ := a.request(body)
		id, call := question(t, answer)
		w := &client{}
		answered := strings.Replace(reply(id, call), `{"answers"`, `{"progress":true,"answers"`, 1)
		chat := newChat(t, w, with(body, answered), Options{
			Memory: &a.store, Caller: "alice", Can: dragoman.AskForm, Model: asking(answers(fineStream)),
		})
		tools := calling(func(_ context.Context, c dragoman.Call) (dragoman.Result, error) {
			c.Progress(dragoman.Progress{Progress: 1, Total: 2})
			return done, nil
		})
		if err := (&dragoman.Loop{Tools: tools}).Run(t.Context(), chat); err != nil {
			t.Fatal(err)
		}
		checkCompletion(t, w)
		if !strings.Contains(w.String(), `"progress":{"tool":"files__save","progress":1,"total":2}`) || !strings.Contains(w.String(), "Fine.") {
			t.Errorf("%s: got %s", format, w)
		}
	}
}

// A message with calls of both kinds, ours asking: the client gets its call and the
// question, and brings both back.
func TestAskMixed(t *testing.T) {
	mine := `"tools":[{"type":"function","function":{"name":"mine","parameters":{"type":"object","properties":{}}}}]`
	body := with(strings.Replace(streamBody, "true", "false", 1), mine)
	a := &asker{T: t, tools: &shy{asks: 1}, models: []string{bothBody, doneBody, doneBody}}
	answer, _ := a.request(body)
	id, call := question(t, answer)
	choices, _ := rawjson.Elements(answer.Get("choices"))
	choice, _ := rawjson.ParseObject(choices[0])
	message, _ := rawjson.ParseObject(choice.Get("message"))
	calls, _ := rawjson.Elements(message.Get("tool_calls"))
	if len(calls) != 1 {
		t.Fatalf("the client got %s", choice.Bytes())
	}
	theirs, _ := rawjson.ParseObject(calls[0])
	theirID, _ := rawjson.String(theirs.Get("id"))
	if !strings.HasPrefix(theirID, recall.WroteID) {
		t.Errorf("the client's call %q does not say that something may have changed", theirID)
	}
	returned := strings.Replace(body, `"Go."}`, `"Go."},`+string(choice.Get("message"))+`,{"role":"tool","tool_call_id":"`+theirID+`","content":"one"}`, 1)
	if _, text := a.request(with(returned, reply(id, call))); text != "Done." {
		t.Errorf("got %q", text)
	}
	// The next turn, too, has both results.
	later := strings.Replace(returned, `"one"}`, `"one"},{"role":"assistant","content":"Done."},{"role":"user","content":"And?"}`, 1)
	a.request(later)
	for _, sent := range a.asked[1:] {
		o, _ := rawjson.ParseObject([]byte(sent))
		messages, _ := rawjson.Elements(o.Get("messages"))
		var roles []string
		for _, m := range messages {
			o, _ := rawjson.ParseObject(m)
			role, _ := rawjson.String(o.Get("role"))
			id, _ := rawjson.String(o.Get("tool_call_id"))
			roles = append(roles, strings.TrimSpace(role+" "+id))
		}
		if diff := cmp.Diff([]string{"user", "assistant", "tool call_a", "tool call_b"}, roles[:4]); diff != "" {
			t.Errorf("%s (-want +got)\n%s", sent, diff)
		}
		if !strings.Contains(sent, `\"done\"`) {
			t.Errorf("our result is missing in %s", sent)
		}
	}
}

// A client that comes back without answers gives the call up, and its server is told.
func TestAskGone(t *testing.T) {
	mine := `"tools":[{"type":"function","function":{"name":"mine","parameters":{"type":"object","properties":{}}}}]`
	body := with(strings.Replace(streamBody, "true", "false", 1), mine)
	a := &asker{T: t, tools: &shy{asks: 1}, models: []string{bothBody, doneBody}}
	answer, _ := a.request(body)
	choices, _ := rawjson.Elements(answer.Get("choices"))
	choice, _ := rawjson.ParseObject(choices[0])
	message, _ := rawjson.ParseObject(choice.Get("message"))
	calls, _ := rawjson.Elements(message.Get("tool_calls"))
	theirs, _ := rawjson.ParseObject(calls[0])
	theirID, _ := rawjson.String(theirs.Get("id"))
	a.request(strings.Replace(body, `"Go."}`, `"Go."},`+string(choice.Get("message"))+`,{"role":"tool","tool_call_id":"`+theirID+`","content":"one"}`, 1))
	if diff := cmp.Diff([]string{`save {"path":"/a"}`, `save {"path":"/a"} s gone`}, a.tools.legs); diff != "" {
		t.Errorf("legs (-want +got)\n%s", diff)
	}
	if !strings.Contains(a.asked[1], dragoman.CodeUnanswered) {
		t.Errorf("the model was told %s", a.asked[1])
	}
}

// A client that knows nothing of questions just goes on: the model is told that
// nobody answered, and what it called.
func TestAskIgnored(t *testing.T) {
	body := with(strings.Replace(streamBody, "true", "false", 1), `"user":"ann"`)
	a := &asker{T: t, tools: &shy{asks: 1}, models: []string{saveBody, doneBody}}
	_, text := a.request(body)
	a.request(strings.Replace(body, `"Go."}`, `"Go."},{"role":"assistant","content":`+string(rawjson.Quote(text))+`},{"role":"user","content":"Well?"}`, 1))
	if len(a.tools.legs) != 1 || !strings.Contains(a.asked[1], dragoman.CodeUnanswered) || !strings.Contains(a.asked[1], "files__save") || !strings.HasSuffix(strings.Split(a.asked[1], `],"tools"`)[0], `"Well?"}`) {
		t.Errorf("legs %q, the model was told %s", a.tools.legs, a.asked[1])
	}
}

// What was asked is answered by its owner alone, once it is known, and the call is
// not made where the tool has changed.
func TestAskRefused(t *testing.T) {
	body := strings.Replace(streamBody, "true", "false", 1)
	a := &asker{T: t, tools: &shy{asks: 1}, models: []string{saveBody, doneBody}}
	answer, _ := a.request(with(body, `"user":"ann"`))
	id, call := question(t, answer)
	for _, wrong := range []string{with(body, reply(id, call)), with(body, `"user":"bob",`+reply(id, call)), with(body, `"user":"ann",`+reply("call_dragoman1x", call))} {
		w := &client{}
		_ = (&dragoman.Loop{Tools: a.tools}).Run(t.Context(), newChat(t, w, wrong, Options{Memory: &a.store, Caller: "alice"}))
		if w.status != http.StatusBadRequest || !strings.Contains(w.String(), model.CodeTurnExpired) {
			t.Errorf("%d %s", w.status, w)
		}
	}
	changed := append([]dragoman.Tool(nil), transcript.Tools...)
	for i := range changed {
		changed[i].Pin[0]++
	}
	a.tools.tools = &dragoman.List{Tools: dragoman.NewTools(changed)}
	a.request(with(body, `"user":"ann",`+reply(id, call)))
	if len(a.tools.legs) != 1 || !strings.Contains(a.asked[1], dragoman.CodeInvalidTool) {
		t.Errorf("legs %q, the model was told %s", a.tools.legs, a.asked[1])
	}
	for _, wrong := range []string{`1`, `{}`, `{"id":"x"}`, `{"id":"x","replies":[]}`, `{"id":"x","replies":{"a":1}}`, `{"id":"x","replies":{"a":{"q":1}}}`} {
		if _, err := Parse([]byte(with(body, `"dragoman":{"answers":`+wrong+`}`))); err == nil {
			t.Errorf("answers %s were taken", wrong)
		}
	}
}
