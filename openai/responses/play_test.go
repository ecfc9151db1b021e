package responses

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/stage/fakeresponses"
	"github.com/dragoman-mcp/dragoman/internal/state/seal"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/internal/wire/sse"
	"github.com/dragoman-mcp/dragoman/openai/chat"
	"github.com/dragoman-mcp/dragoman/openai/hosted"
	"github.com/dragoman-mcp/dragoman/openai/memory"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// A player plays requests against an upstream whose answers are given.
type player struct {
	*testing.T
	memory  memory.Store
	store   Store
	seals   *seal.Ring
	caller  string
	dialect string
	retried bool
	missing []dragoman.Server
	running memory.Running
	search  bool               // a tool searches the web
	hidden  bool               // tools are searched for
	answers []string           // of the upstream, not yet used
	native  *fakeresponses.API // the upstream, where it speaks Responses itself
	guide   string

	unsealed sync.Map

	mu    sync.Mutex
	asked []*rawjson.Object
	ran   []string
}

func newPlayer(t *testing.T) *player {
	return &player{T: t, memory: &memory.Memory{}, store: &Memory{}, seals: seal.New(), caller: "alice", dialect: dialect.Conservative}
}

// A played request is what came of one.
type played struct {
	*testing.T
	status   int
	body     string
	response *rawjson.Object
	events   []*rawjson.Object
}

// say plays a request, for which the upstream has those answers.
func (p *player) say(body string, answers ...string) *played {
	p.Helper()
	p.answers, p.asked, p.ran = answers, nil, nil
	w := httptest.NewRecorder()
	parse, client := Parse, &model.Client{Post: p.post}
	if p.native != nil {
		parse, client = ParseNative, &model.Client{Post: p.postNative, API: model.ResponsesAPI, Unsealed: &p.unsealed}
	}
	request, err := parse([]byte(body))
	if err == nil {
		err = request.Resolve(p.Context(), p.store, p.caller)
	}
	if err == nil {
		client.Dialect, _ = dialect.For(p.dialect)
		when := model.Never
		if p.hidden {
			when = model.Always
		}
		var c *Conversation
		c, err = New(request, w, Options{
			Options: chat.Options{
				Model: client, Guide: p.guide, Memory: p.memory, Caller: p.caller, Running: &p.running, Retried: p.retried, Missing: p.missing, Search: model.Search{When: when}, ID: "req_1",
			},
			Store: p.store, Seals: p.seals,
		})
		if err == nil {
			loop := dragoman.Loop{Tools: shop{p}}
			_ = loop.Run(p.Context(), c)
		}
	}
	if e, ok := errors.AsType[*model.Error](err); ok {
		e.Write(w)
	} else if err != nil {
		p.Fatal(err)
	}
	if len(p.answers) > 0 && w.Code == 200 {
		p.Errorf("the upstream was not asked for its last %d answers", len(p.answers))
	}
	got := &played{T: p.T, status: w.Code, body: w.Body.String()}
	if strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream") {
		got.readStream()
		return got
	}
	if got.response, err = rawjson.ParseObject(bytes.TrimSpace(w.Body.Bytes())); err != nil {
		p.Fatalf("%v: %s", err, w.Body)
	}
	return got
}

// readStream reads a stream, and holds it to what holds for all of them: clients of
// OpenAI's throw otherwise.
func (g *played) readStream() {
	g.Helper()
	events := sse.NewReader(strings.NewReader(g.body), 1<<20)
	open, added, ended, closed := map[string]bool{}, -1, false, false
	for {
		e, err := events.Next()
		if err != nil {
			break
		}
		if e.Comment {
			continue
		}
		if string(e.Data) == "[DONE]" {
			if !ended {
				g.Errorf("[DONE] without an end:\n%s", g.body)
			}
			closed = true
			break
		}
		o, err := rawjson.ParseObject(bytes.Clone(e.Data))
		if err != nil {
			g.Fatalf("%v: %s", err, e.Data)
		}
		kind := stringOf(o, "type")
		if seq, ok := rawjson.Int(o.Get("sequence_number")); !ok || seq != len(g.events) || kind != e.Name || ended {
			g.Errorf("event %d is %s %s", len(g.events), e.Name, e.Data)
		}
		g.events = append(g.events, o)
		index := string(o.Get("output_index"))
		switch {
		case (kind == "response.created") != (len(g.events) == 1):
			g.Errorf("%s is event %d", kind, len(g.events))
		case kind == "response.output_item.added":
			at, _ := rawjson.Int(o.Get("output_index"))
			if at != added+1 {
				g.Errorf("item %d follows item %d", at, added)
			}
			added, open[index] = at, true
		case kind == "response.output_item.done":
			if !open[index] {
				g.Errorf("item %s ends and was not open", index)
			}
			delete(open, index)
		case index != "" && !open[index]:
			g.Errorf("%s is about item %s, which is not open", kind, index)
		case slices.Contains([]string{"response.completed", "response.incomplete", "response.failed"}, kind):
			ended = true
			g.response, _ = rawjson.ParseObject(o.Get("response"))
			if kind != "response.failed" && len(open) > 0 {
				g.Errorf("items are open at the end: %v", open)
			}
		}
	}
	if !ended || !closed {
		g.Errorf("the stream has no end:\n%s", g.body)
	}
}

// kinds are the types of the events, runs of the same one as one.
func (g *played) kinds() string {
	var all []string
	for _, e := range g.events {
		kind := strings.TrimPrefix(stringOf(e, "type"), "response.")
		if item, err := rawjson.ParseObject(e.Get("item")); err == nil {
			kind += " " + stringOf(item, "type")
		}
		if len(all) == 0 || all[len(all)-1] != kind {
			all = append(all, kind)
		}
	}
	return strings.Join(all, "\n")
}

// items are the items of the output.
func (g *played) items() []*rawjson.Object {
	var all []*rawjson.Object
	output, _ := rawjson.Elements(g.response.Get("output"))
	for _, item := range output {
		o, _ := rawjson.ParseObject(item)
		all = append(all, o)
	}
	return all
}

// item returns the first item of a type.
func (g *played) item(kind string) *rawjson.Object {
	g.Helper()
	for _, o := range g.items() {
		if stringOf(o, "type") == kind {
			return o
		}
	}
	g.Fatalf("no %s in %s", kind, g.response.Get("output"))
	return nil
}

// types are the types of the items of the output.
func (g *played) types() string {
	var all []string
	for _, o := range g.items() {
		all = append(all, stringOf(o, "type"))
	}
	return strings.Join(all, " ")
}

// raws are the items of the output as they are sent back, each with a comma before it.
func (g *played) raws(but ...string) string {
	var b strings.Builder
	for _, o := range g.items() {
		if !slices.Contains(but, stringOf(o, "type")) {
			b.WriteString("," + string(o.Bytes()))
		}
	}
	return b.String()
}

func (p *player) post(_ context.Context, parts [][]byte) (*http.Response, error) {
	body := bytes.Join(parts, nil)
	if err := rawjson.Check(body); err != nil {
		p.Errorf("the upstream was sent malformed JSON: %v\n%s", err, body)
	}
	o, _ := rawjson.ParseObject(body)
	p.asked = append(p.asked, o)
	if len(p.answers) == 0 {
		return nil, errors.New("no further answer")
	}
	answer := p.answers[0]
	p.answers = p.answers[1:]
	resp := &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}}
	if strings.HasPrefix(answer, "data:") {
		resp.Header.Set("Content-Type", "text/event-stream")
	}
	if status, rest, ok := strings.Cut(answer, " "); ok && len(status) == 3 {
		_, _ = fmt.Sscan(status, &resp.StatusCode)
		answer = rest
	}
	resp.Body = io.NopCloser(strings.NewReader(answer))
	return resp, nil
}

// messages are those that the upstream was sent last.
func (p *player) messages() string { return string(p.asked[len(p.asked)-1].Get("messages")) }

// spoken is an answer of the upstream with a text.
func spoken(content string) string { return answered(`"content":` + string(rawjson.Quote(content))) }

func answered(members string) string {
	return `{"id":"c","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant",` + members + `},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}`
}

// called is an answer of the upstream that calls tools: pairs of name and arguments.
func called(calls ...string) string {
	var all []json.RawMessage
	for i := 0; i < len(calls); i += 2 {
		all = append(all, object(text("id", fmt.Sprintf("call_%d", i/2+1)), text("type", "function"),
			raw("function", object(text("name", calls[i]), text("arguments", calls[i+1])))))
	}
	return answered(`"content":null,"tool_calls":` + string(array(all...)))
}

// shop is the toolset.
type shop struct{ p *player }

var shopList = &dragoman.List{Tools: dragoman.NewTools([]dragoman.Tool{
	shopTool("files", "save", dragoman.MayChange), shopTool("weather", "get", dragoman.ReadOnly), shopTool("weather", "warn", dragoman.MayChange),
})}

func shopTool(server, name string, effect dragoman.Effect) dragoman.Tool {
	schema := `{"type":"object","properties":{"city":{"type":"string"}}}`
	t := dragoman.Tool{
		Name: server + "__" + name, Description: "Something about " + name, InputSchema: json.RawMessage(schema),
		Server: server, Original: name, Declared: effect,
	}
	readOnly := effect == dragoman.ReadOnly
	t.Hints.ReadOnly = &readOnly
	t.Definition = json.RawMessage(`{"name":"` + name + `","inputSchema":` + schema + `}`)
	t.Pin = dragoman.Pin(t.Server, t.Original, t.Definition)
	return t
}

func (s shop) List(context.Context) (*dragoman.List, error) {
	if !s.p.search {
		return shopList, nil
	}
	does := shopTool("search", "web", dragoman.ReadOnly)
	return &dragoman.List{Tools: dragoman.NewTools(append(slices.Clone(shopList.Tools.All()), hosted.Search{}.Tool(&does, hosted.WebSearch)))}, nil
}

func (s shop) Call(_ context.Context, c dragoman.Call) (dragoman.Result, error) {
	s.p.mu.Lock()
	s.p.ran = append(s.p.ran, c.Tool.Name+" "+string(c.Arguments))
	s.p.mu.Unlock()
	if hosted.Is(c.Tool) {
		return searched(hosted.Query(c.Arguments)), nil
	}
	if c.Tool.Original == model.FindTools {
		return dragoman.Result{Ran: dragoman.RanYes, Content: json.RawMessage(`{"content":[],"structuredContent":{"tools":[{"name":"weather__get"}]}}`)}, nil
	}
	if strings.Contains(string(c.Arguments), "Nowhere") {
		return dragoman.Result{Ran: dragoman.RanYes, Failed: true, Content: json.RawMessage(`{"isError":true,"content":[{"type":"text","text":"no such city"}]}`)}, nil
	}
	return dragoman.Result{Ran: dragoman.RanYes, Content: json.RawMessage(`{"content":[],"structuredContent":{"degrees":22}}`)}, nil
}

// searched is what a search of the web finds.
func searched(query string) dragoman.Result {
	switch query {
	case "down":
		return dragoman.Result{Problem: &dragoman.Problem{Code: dragoman.CodeServerUnavailable, Message: "The server is down."}}
	case "nothing":
		return dragoman.Result{Ran: dragoman.RanYes, Content: hosted.Content(nil)}
	}
	return dragoman.Result{Ran: dragoman.RanYes, Content: hosted.Content([]hosted.Result{
		{URL: "https://cats.example/oslo", Title: "Cats in Oslo", Text: "There are many."},
		{URL: "https://cats.example/oslo/old", Title: "Old cats", Text: "There were more."},
	})}
}
