package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// An echo is a model that says what it was told, message by message. A request with the
// word wait at its end says that it came, and waits until one is let go.
type echo struct{ came, let chan struct{} }

func newEcho() *echo { return &echo{make(chan struct{}, 10), make(chan struct{}, 10)} }

func (e *echo) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Stream   bool
		Messages []struct{ Role, Content string }
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		http.Error(w, err.Error(), 400)
		return
	}
	var heard []string
	for _, m := range asked.Messages {
		text, _, guided := strings.Cut(m.Content, "[Reading tool results")
		if text = strings.TrimSpace(text); text != "" || !guided {
			heard = append(heard, m.Role+" "+text)
		}
	}
	said := "<" + strings.Join(heard, "|") + ">"
	if n := len(asked.Messages); n > 0 && strings.Contains(asked.Messages[n-1].Content, "wait") {
		e.came <- struct{}{}
		select {
		case <-e.let:
		case <-r.Context().Done():
		}
	}
	if !asked.Stream {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"id":"x","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":%s},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}`, rawjson.Quote(said))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = fmt.Fprintf(w, "data: {\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":%s},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":5,\"total_tokens\":15}}\n\ndata: [DONE]\n\n", rawjson.Quote(said))
}

// echoes starts an echo.
func echoes(t *testing.T, e *echo) upstream.Model {
	t.Helper()
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	return upstream.Model{Match: "*", BaseURL: server.URL + "/v1"}
}

// ok sends a request that has to go well, and returns the answer.
func (d *tested) ok(method, path, body string) *rawjson.Object {
	d.Helper()
	a := d.do(method, path, body)
	o, err := rawjson.ParseObject([]byte(a.body))
	if err != nil || a.status != 200 {
		d.Fatalf("%s %s: %d %s", method, path, a.status, a.body)
	}
	return o
}

// told returns the text of a response.
func told(o *rawjson.Object) (all string) {
	items, _ := rawjson.Elements(o.Get("output"))
	return strings.Join(textsOf(items), "|")
}

// textsOf returns the texts of items that are messages.
func textsOf(items []json.RawMessage) (all []string) {
	for _, item := range items {
		var message struct{ Content []struct{ Text string } }
		_ = json.Unmarshal(item, &message)
		for _, part := range message.Content {
			all = append(all, part.Text)
		}
	}
	return all
}

// items returns the texts of a conversation's items, the oldest first.
func (d *tested) items(id, query string) (texts, ids []string, more bool) {
	d.Helper()
	o := d.ok("GET", "/v1/conversations/"+id+"/items"+query, "")
	data, _ := rawjson.Elements(o.Get("data"))
	for _, item := range data {
		ids = append(ids, idOf(item))
	}
	return textsOf(data), ids, string(o.Get("has_more")) == "true"
}

func message(role, content string) string {
	return `{"type":"message","role":"` + role + `","content":[{"type":"input_text","text":"` + content + `"}]}`
}

// everywhere runs a test with conversations in this process, and in a store.
func everywhere(t *testing.T, test func(t *testing.T, e *echo, d *tested)) {
	t.Run("memory", func(t *testing.T) {
		e := newEcho()
		test(t, e, open(t, nil, echoes(t, e)))
	})
	t.Run("store", func(t *testing.T) {
		e := newEcho()
		test(t, e, start(t, filepath.Join(t.TempDir(), "dragoman.db"), echoes(t, e)).tested)
	})
}

// A conversation can be made, read, changed and deleted, and so can its items, by its
// caller alone.
func TestConversations(t *testing.T) {
	everywhere(t, func(t *testing.T, _ *echo, d *tested) {
		made := d.ok("POST", "/v1/conversations", `{"metadata":{"topic":"demo"},"items":[`+message("user", "one")+`]}`)
		id := idOf(made.Bytes())
		if !strings.HasPrefix(id, "conv_dg") || string(made.Get("object")) != `"conversation"` || string(made.Get("metadata")) != `{"topic":"demo"}` || made.Get("created_at") == nil {
			t.Errorf("%s", made.Bytes())
		}
		at := "/v1/conversations/" + id
		if got := d.ok("GET", at, ""); string(got.Bytes()) != string(made.Bytes()) {
			t.Errorf("%s", got.Bytes())
		}
		if got := d.ok("POST", at, `{"metadata":{"topic":"other"}}`); string(got.Get("metadata")) != `{"topic":"other"}` {
			t.Errorf("%s", got.Bytes())
		}
		added := d.ok("POST", at+"/items", `{"items":[`+message("user", "two")+","+message("user", "three")+`]}`)
		if data, _ := rawjson.Elements(added.Get("data")); !slices.Equal(textsOf(data), []string{"two", "three"}) || string(added.Get("object")) != `"list"` {
			t.Errorf("%s", added.Bytes())
		}
		texts, ids, more := d.items(id, "")
		if !slices.Equal(texts, []string{"three", "two", "one"}) || more {
			t.Errorf("%v %v", texts, more)
		}
		if texts, _, more := d.items(id, "?order=asc&limit=1&after="+ids[2]); !slices.Equal(texts, []string{"two"}) || !more {
			t.Errorf("%v %v", texts, more)
		}
		if one := d.ok("GET", at+"/items/"+ids[1]+"?include=reasoning.encrypted_content", ""); !strings.Contains(string(one.Bytes()), `"two"`) {
			t.Errorf("%s", one.Bytes())
		}
		if got := d.ok("DELETE", at+"/items/"+ids[1], ""); idOf(got.Bytes()) != id {
			t.Errorf("%s", got.Bytes())
		}
		if texts, _, _ := d.items(id, ""); !slices.Equal(texts, []string{"three", "one"}) {
			t.Errorf("%v", texts)
		}
		for _, bad := range []struct {
			method, path, body string
			status             int
			code               string
		}{
			{"POST", "/v1/conversations", `{"items":[{"type":"odd"}]}`, 400, "invalid_request"},
			{"POST", "/v1/conversations", `{"items":[` + strings.Repeat(message("user", "x")+",", 20) + message("user", "x") + `]}`, 400, "invalid_request"},
			{"POST", "/v1/conversations", `{"metadata":{"a":1}}`, 400, "invalid_request"},
			{"POST", at, `{}`, 400, "invalid_request"},
			{"POST", at + "/items", `{"items":[]}`, 400, "invalid_request"},
			{"POST", at + "/items", `{"items":[{"type":"message","role":"user","content":"x","id":"` + ids[0] + `"}]}`, 400, "invalid_request"},
			{"POST", at + "/items", `{"items":[{"type":"message","role":"user","content":"x","id":"msg_twice"},{"type":"message","role":"user","content":"y","id":"msg_twice"}]}`, 400, "invalid_request"},
			{"POST", "/v1/conversations", `{"items":[{"type":"message","role":"user","content":"x","id":"msg_twice"},{"type":"message","role":"user","content":"y","id":"msg_twice"}]}`, 400, "invalid_request"},
			{"GET", at + "/items?limit=0", "", 400, "invalid_request"},
			{"GET", at + "/items?order=up", "", 400, "invalid_request"},
			{"GET", at + "/items?after=" + ids[1], "", 400, "invalid_request"},
			{"GET", at + "/items?include[]=everything", "", 400, "invalid_request"},
			{"GET", at + "/items/" + ids[1], "", 404, "not_found"},
			{"DELETE", at + "/items/" + ids[1], "", 404, "not_found"},
			{"GET", "/v1/conversations/conv_123", "", 404, "not_found"},
			{"POST", "/v1/responses", `{"model":"m","input":"x","conversation":"conv_123"}`, 404, "not_found"},
			{"POST", "/v1/responses", `{"model":"m","input":"x","conversation":{"name":"x"}}`, 400, "invalid_request"},
			{"POST", "/v1/responses", `{"model":"m","input":"x","conversation":"` + id + `","previous_response_id":"resp_dg1"}`, 400, "invalid_request"},
		} {
			d.checkError(d.do(bad.method, bad.path, bad.body), bad.status, bad.code)
		}
		for _, path := range []string{at, at + "/items", at + "/items/" + ids[0]} {
			d.checkError(d.do("GET", path, "", "X-Test-Caller", "mallory"), 404, "not_found")
		}
		if gone := d.ok("DELETE", at, ""); string(gone.Bytes()) != `{"id":"`+id+`","object":"conversation.deleted","deleted":true}` {
			t.Errorf("%s", gone.Bytes())
		}
		d.checkError(d.do("GET", at, ""), 404, "not_found")
		d.checkError(d.do("GET", at+"/items", ""), 404, "not_found")
	})
}

// A client that reads items page by page comes to their end, though some were sent with the
// same id.
func TestItemsSentWithTheSameID(t *testing.T) {
	everywhere(t, func(t *testing.T, _ *echo, d *tested) {
		var items []string
		for _, text := range []string{"one", "two", "three"} {
			items = append(items, strings.Replace(message("user", text), "{", `{"id":"msg_x",`, 1))
		}
		id := idOf(d.ok("POST", "/v1/conversations", "").Bytes())
		r := idOf(d.ok("POST", "/v1/responses", `{"model":"m","conversation":"`+id+`","input":[`+strings.Join(items, ",")+`]}`).Bytes())
		for at, want := range map[string][]string{
			"/v1/responses/" + r + "/input_items": {"one", "two", "three"},
			"/v1/conversations/" + id + "/items":  {"one", "two", "three", "<user one|user two|user three>"},
		} {
			var texts []string
			for after := ""; len(texts) <= len(want); {
				page := d.ok("GET", at+"?order=asc&limit=1"+after, "")
				data, _ := rawjson.Elements(page.Get("data"))
				texts = append(texts, textsOf(data)...)
				if string(page.Get("has_more")) == "false" {
					break
				}
				last, _ := rawjson.String(page.Get("last_id"))
				after = "&after=" + last
			}
			if !slices.Equal(texts, want) {
				t.Errorf("%s: %v", at, texts)
			}
		}
	})
}

// A response goes on from its conversation and adds to it: however it is sent, stored or
// not, streamed or not.
func TestConversationOfResponses(t *testing.T) {
	everywhere(t, func(t *testing.T, _ *echo, d *tested) {
		id := idOf(d.ok("POST", "/v1/conversations", `{"items":[`+message("developer", "be brief")+`]}`).Bytes())
		first := d.ok("POST", "/v1/responses", `{"model":"m","input":"one","conversation":"`+id+`"}`)
		if told(first) != "<system be brief|user one>" || string(first.Get("conversation")) != `{"id":"`+id+`"}` {
			t.Errorf("%s", first.Bytes())
		}
		second := d.ok("POST", "/v1/responses", `{"model":"m","input":"one","store":false,"conversation":{"id":"`+id+`"}}`)
		heard := "system be brief|user one|assistant " + told(first) + "|user one"
		if told(second) != "<"+heard+">" {
			t.Errorf("%s", told(second))
		}
		if streamed := d.do("POST", "/v1/responses", `{"model":"m","input":"three","stream":true,"conversation":"`+id+`"}`); !strings.Contains(streamed.body, "response.completed") {
			t.Errorf("%s", streamed.body)
		}
		texts, _, _ := d.items(id, "?order=asc")
		if want := []string{"be brief", "one", told(first), "one", told(second), "three"}; len(texts) != 7 || !slices.Equal(texts[:6], want) {
			t.Errorf("%q", texts)
		}
		d.checkError(d.do("POST", "/v1/responses", `{"model":"m","input":"x","previous_response_id":"`+idOf(first.Bytes())+`"}`), 400, "invalid_request")
		counted := d.ok("POST", "/v1/responses/input_tokens", `{"model":"m","input":"x","conversation":"`+id+`"}`)
		if n, _ := rawjson.Int(counted.Get("input_tokens")); n < 20 {
			t.Errorf("%s", counted.Bytes())
		}
		if named := d.ok("POST", "/v1/responses", `{"model":"m","input":"four","user":"ada","conversation":"`+id+`"}`); told(named) == "" {
			t.Errorf("%s", named.Bytes())
		}
		d.checkError(d.do("POST", "/v1/responses", `{"model":"m","input":"x","user":"eve","conversation":"`+id+`"}`), 404, "not_found")
	})
}

// A response in the background has its conversation to itself until it is over, at whichever
// process; what it says is there when it is said to be over.
func TestConversationInBackground(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dragoman.db")
	e := newEcho()
	here, there := start(t, path, echoes(t, e)), start(t, path, echoes(t, e))
	id := idOf(here.ok("POST", "/v1/conversations", `{}`).Bytes())
	made := here.post(`{"model":"m","background":true,"input":"wait","conversation":"` + id + `"}`)
	if err := there.api.Conversations.Claim(t.Context(), "somebody", id, "another", claimLife); err == nil {
		t.Error("another one may add meanwhile")
	}
	e.let <- struct{}{}
	here.events(made, -1)
	if texts, _, _ := there.items(id, "?order=asc"); !slices.Equal(texts, []string{"wait", "<user wait>"}) {
		t.Errorf("%q", texts)
	}
	next := there.ok("POST", "/v1/responses", `{"model":"m","input":"two","conversation":"`+id+`"}`)
	if told(next) != "<user wait|assistant <user wait>|user two>" {
		t.Errorf("%s", told(next))
	}
	// One that is cancelled adds nothing, and lets the next one in.
	defer close(e.let)
	cancelled := here.post(`{"model":"m","background":true,"input":"wait more","conversation":"` + id + `"}`)
	here.ok("POST", "/v1/responses/"+cancelled+"/cancel", "")
	if err := there.api.Conversations.Claim(t.Context(), "somebody", id, "another", claimLife); err != nil {
		t.Error(err)
	}
	if texts, _, _ := there.items(id, "?order=asc"); len(texts) != 4 {
		t.Errorf("%q", texts)
	}
}

// A response in the background goes on from what was there when it was asked for, also where
// that is deleted before another process makes it.
func TestBackgroundGoesOnFromWhatWasThere(t *testing.T) {
	for what, begin := range map[string]func(*process) (at, goesOn string){
		"response": func(p *process) (string, string) {
			id := idOf(p.ok("POST", "/v1/responses", `{"model":"m","input":"one"}`).Bytes())
			return "/v1/responses/" + id, `"previous_response_id":"` + id + `"`
		},
		"conversation": func(p *process) (string, string) {
			id := idOf(p.ok("POST", "/v1/conversations", `{"items":[`+message("user", "one")+`]}`).Bytes())
			return "/v1/conversations/" + id, `"conversation":"` + id + `"`
		},
	} {
		t.Run(what, func(t *testing.T) {
			path, e := filepath.Join(t.TempDir(), "dragoman.db"), newEcho()
			here, there := start(t, path, echoes(t, e)), start(t, path, echoes(t, e))
			at, goesOn := begin(here)
			made := here.post(`{"model":"m","background":true,"input":"wait",` + goesOn + `}`)
			<-e.came
			here.ok("DELETE", at, "")
			there.takeFrom(here, made)
			<-e.came
			close(e.let)
			there.events(made, -1)
			if status, body := there.got(made); status != "completed" || !strings.Contains(body, "<user one|") || !strings.Contains(body, "|user wait>") {
				t.Errorf("%s", body)
			}
		})
	}
}

// Of two requests to one conversation the second waits for the first, and finds all of it.
func TestConversationOneAtATime(t *testing.T) {
	everywhere(t, func(t *testing.T, e *echo, d *tested) {
		id := idOf(d.ok("POST", "/v1/conversations", `{}`).Bytes())
		answers := make(chan answer)
		go func() {
			answers <- d.do("POST", "/v1/responses", `{"model":"m","input":"wait","conversation":"`+id+`"}`)
		}()
		<-e.came
		go func() {
			answers <- d.do("POST", "/v1/responses", `{"model":"m","input":"two","conversation":"`+id+`"}`)
		}()
		e.let <- struct{}{}
		for range 2 {
			if a := <-answers; a.status != 200 {
				t.Errorf("%d %s", a.status, a.body)
			}
		}
		texts, _, _ := d.items(id, "?order=asc")
		if want := []string{"wait", "<user wait>", "two", "<user wait|assistant <user wait>|user two>"}; !slices.Equal(texts, want) {
			t.Errorf("%q", texts)
		}
	})
}
