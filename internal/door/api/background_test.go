package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
	"github.com/dragoman-mcp/dragoman/internal/session"
	"github.com/dragoman-mcp/dragoman/internal/stage/pgtest"
	"github.com/dragoman-mcp/dragoman/internal/stage/storetest"
	"github.com/dragoman-mcp/dragoman/internal/state/run"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
	kept "github.com/dragoman-mcp/dragoman/internal/state/stored"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// TestBackgroundOnPostgres: all of it, in PostgreSQL.
func TestBackgroundOnPostgres(t *testing.T) {
	pgtest.Again(t, "^Test(Background|Cancel|Conversation)")
}

// TestDiesOnPostgres: and every death.
func TestDiesOnPostgres(t *testing.T) {
	pgtest.Again(t, "^TestDies(WithAResponse|WhileTheModelSpeaks)$")
}

// A process is a door whose runs are in a store that others share.
type process struct {
	*tested
	db   *store.DB
	runs *run.Runs
	api  *State
}

// start starts a process on the store at a path, in front of a model.
func start(t *testing.T, path string, models ...upstream.Model) *process {
	t.Helper()
	return started(t, path, run.Config{}, models...)
}

func started(t *testing.T, path string, config run.Config, models ...upstream.Model) *process {
	t.Helper()
	return startedWith(t, path, config, func(*Options) {}, models...)
}

// startedWith is started with other options.
func startedWith(t *testing.T, path string, config run.Config, change func(*Options), models ...upstream.Model) *process {
	t.Helper()
	db, keys := storetest.OpenSealed(t, storetest.At(t, path))
	p := &process{db: db, runs: run.Open(db, keys, config)}
	p.tested = open(t, func(o *Options) {
		o.Kept.Responses, o.Kept.Runs = kept.New(db, keys, 0), func() (*run.Runs, error) { return p.runs, nil }
		o.Kept.Conversations = kept.NewConversations(db, keys, 0)
		o.Kept.Seals = keys.Ring()
		change(o)
		o.State = NewState(o.Kept)
		p.api = o.State
	}, models...)
	p.runs.Work(p.api.Work)
	t.Cleanup(p.runs.Stop)
	return p
}

// post sends a request and returns the response's id.
func (p *process) post(body string) string {
	p.Helper()
	a := p.do("POST", "/v1/responses", body)
	o, err := rawjson.ParseObject([]byte(a.body))
	if err != nil || a.status != 200 {
		p.Fatalf("%d %s", a.status, a.body)
	}
	if status, _ := rawjson.String(o.Get("status")); status != "queued" || string(o.Get("background")) != "true" {
		p.Errorf("%s", a.body)
	}
	return idOf(o.Bytes())
}

// events follows a response to its end.
func (p *process) events(id string, after int) (all []*rawjson.Object) {
	p.Helper()
	a := p.do("GET", fmt.Sprintf("/v1/responses/%s?stream=true&starting_after=%d", id, after), "")
	return p.parse(a.body, after)
}

func (p *process) parse(body string, after int) (all []*rawjson.Object) {
	p.Helper()
	for line := range strings.Lines(body) {
		data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: ")
		if !ok || data == "[DONE]" {
			continue
		}
		o, err := rawjson.ParseObject([]byte(data))
		if err != nil {
			p.Fatal(err)
		}
		after++
		if n, _ := rawjson.Int(o.Get("sequence_number")); n != after {
			p.Errorf("event %d where %d was to come: %s", n, after, data)
		}
		all = append(all, o)
	}
	if !strings.HasSuffix(body, "data: [DONE]\n\n") {
		p.Errorf("no end: %s", body)
	}
	return all
}

func kinds(events []*rawjson.Object) (all []string) {
	for _, e := range events {
		kind, _ := rawjson.String(e.Get("type"))
		all = append(all, strings.TrimPrefix(kind, "response."))
	}
	return all
}

// got returns a response as it is now, and its status.
func (p *process) got(id string) (status, body string) {
	p.Helper()
	a := p.do("GET", "/v1/responses/"+id, "")
	o, err := rawjson.ParseObject([]byte(a.body))
	if err != nil || a.status != 200 {
		p.Fatalf("%d %s", a.status, a.body)
	}
	status, _ = rawjson.String(o.Get("status"))
	return status, a.body
}

// takeFrom takes a response from a process that is taken for dead, which may still write
// what it has said a moment ago.
func (p *process) takeFrom(dead *process, id string) {
	p.Helper()
	for {
		if err := dead.db.Write(p.Context(), func(tx *store.Tx) error {
			_, err := tx.Exec("UPDATE runs SET lease = 1 WHERE state = 'running' AND attempt = 0")
			return err
		}); err != nil {
			p.Fatal(err)
		}
		if err := p.runs.Look(p.Context()); err != nil {
			p.Fatal(err)
		}
		if now, err := p.runs.Get(p.Context(), "somebody", id); err != nil || now.Attempt > 0 || now.State == run.Done {
			if err != nil {
				p.Fatal(err)
			}
			return
		}
	}
}

const askWeather = `{"model":"m","background":true,"input":"Call weather__get with {\"city\":\"Oslo\"}"`

// A response in the background is answered at once and made whoever waits: it can be asked
// for, followed from every event on, by every process that shares the store, also when it
// is over, and gone on from.
func TestBackground(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dragoman.db")
	here, there := start(t, path), start(t, path)
	id := here.post(askWeather + `,"metadata":{"a":"b"}}`)
	all := there.events(id, -1)
	names := kinds(all)
	if len(names) < 8 || !slices.Equal(names[:3], []string{"created", "queued", "in_progress"}) || names[len(names)-1] != "completed" || !slices.Contains(names, "mcp_call.completed") {
		t.Errorf("%v", names)
	}
	for after := range all {
		if rest := there.events(id, after); !slices.Equal(kinds(rest), names[after+1:]) {
			t.Errorf("behind %d: %v", after, kinds(rest))
		}
	}
	status, body := there.got(id)
	if last := all[len(all)-1].Get("response"); status != "completed" || strings.TrimSpace(body) != string(last) || !strings.Contains(body, `"metadata":{"a":"b"}`) {
		t.Errorf("%s: %s\n%s", status, body, last)
	}
	if items := there.do("GET", "/v1/responses/"+id+"/input_items", ""); !strings.Contains(items.body, "Oslo") {
		t.Errorf("%s", items.body)
	}
	next := there.post(`{"model":"m","background":true,"input":"Thanks","previous_response_id":"` + id + `"}`)
	here.events(next, -1)
	if status, body := here.got(next); status != "completed" || !strings.Contains(body, `"previous_response_id":"`+id+`"`) {
		t.Errorf("%s", body)
	}
	streamed := here.do("POST", "/v1/responses", askWeather+`,"stream":true}`)
	if got := kinds(here.parse(streamed.body, -1)); !slices.Equal(got, names) {
		t.Errorf("streamed: %v", got)
	}
	if again := here.do("POST", "/v1/responses/"+id+"/cancel", ""); !strings.Contains(again.body, `"status":"completed"`) {
		t.Errorf("cancelled when it was over: %s", again.body)
	}
	here.checkError(here.do("POST", "/v1/responses", `{"model":"m","background":true,"store":false,"input":"x"}`), 400, "invalid_request")
	here.checkError(here.do("POST", "/v1/responses", `{"model":"m","background":true,"input":"x","tools":[{"type":"mcp","server_label":"weather","server_url":"https://example.com"}]}`), 400, "invalid_request")
	for _, way := range []string{"", "?stream=true"} {
		here.checkError(here.do("GET", "/v1/responses/"+id+way, "", "X-Test-Caller", "mallory"), 404, "not_found")
	}
	here.checkError(here.do("POST", "/v1/responses/"+id+"/cancel", "", "X-Test-Caller", "mallory"), 404, "not_found")
}

// A response that cannot be made has failed, and says why, in its events as well.
func TestBackgroundFails(t *testing.T) {
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(400)
		_, _ = w.Write([]byte(`{"error":{"message":"No such thing.","type":"invalid_request_error","code":"odd"}}`))
	}))
	t.Cleanup(model.Close)
	p := start(t, filepath.Join(t.TempDir(), "dragoman.db"), upstream.Model{Match: "*", BaseURL: model.URL + "/v1"})
	id := p.post(`{"model":"m","background":true,"input":"x"}`)
	if names := kinds(p.events(id, -1)); !slices.Equal(names, []string{"created", "queued", "error", "failed"}) {
		t.Errorf("%v", names)
	}
	if status, body := p.got(id); status != "failed" || !strings.Contains(body, `"code":"odd","message":"No such thing."`) {
		t.Errorf("%s", body)
	}
}

// Who cancels gets the response as it is, twice the same; its tools end, and what was said
// stays. Who deletes one that is made ends it.
func TestCancelBackground(t *testing.T) {
	p := start(t, filepath.Join(t.TempDir(), "dragoman.db"))
	begun, ended := make(chan struct{}), make(chan error, 1)
	p.tools.run = func(ctx context.Context, _ dragoman.Call) (dragoman.Result, error) {
		begun <- struct{}{}
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return dragoman.Result{}, ctx.Err()
	}
	id := p.post(askWeather + "}")
	<-begun
	if status, _ := p.got(id); status != "in_progress" {
		t.Errorf("it is %s", status)
	}
	p.checkError(p.do("POST", "/v1/responses", `{"model":"m","input":"x","previous_response_id":"`+id+`"}`), 400, "invalid_request")
	first := p.do("POST", "/v1/responses/"+id+"/cancel", "")
	second := p.do("POST", "/v1/responses/"+id+"/cancel", "")
	if !strings.Contains(first.body, `"status":"cancelled"`) || first.body != second.body {
		t.Errorf("%s\n%s", first.body, second.body)
	}
	if why := <-ended; !errors.Is(why, run.ErrCancelled) {
		t.Errorf("the tool ended with %v", why)
	}
	if names := kinds(p.events(id, -1)); slices.Contains(names, "completed") || slices.Contains(names, "failed") {
		t.Errorf("%v", names)
	}
	if status, _ := p.got(id); status != "cancelled" {
		t.Errorf("it is %s", status)
	}
	id = p.post(askWeather + "}")
	<-begun
	if gone := p.do("DELETE", "/v1/responses/"+id, ""); !strings.Contains(gone.body, `"deleted":true`) {
		t.Errorf("%s", gone.body)
	}
	<-ended
	p.checkError(p.do("GET", "/v1/responses/"+id, ""), 404, "not_found")
}

// A stage is a model that calls a tool that reads, one that writes, and then speaks; it can
// be held at each point of that.
type stage struct {
	mu    sync.Mutex
	hold  string        // the point
	held  chan struct{} // closed when it is reached
	let   chan struct{} // closed when it may go on
	asked int           // of the model
	odd   bool          // the model says each time something else
	wrote int           // calls that write
}

// at holds the first who comes to a point.
func (s *stage) at(ctx context.Context, point string) {
	s.mu.Lock()
	mine := s.hold == point
	if mine {
		s.hold = ""
		close(s.held)
	}
	s.mu.Unlock()
	if mine {
		select {
		case <-s.let:
		case <-ctx.Done():
		}
	}
}

func (s *stage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Messages []struct{ Role string }
	}
	_ = json.NewDecoder(r.Body).Decode(&body)
	results := 0
	for _, m := range body.Messages {
		if m.Role == "tool" {
			results++
		}
	}
	s.mu.Lock()
	s.asked++
	s.mu.Unlock()
	s.at(r.Context(), fmt.Sprint("before model ", results))
	say := func(delta, finish string) {
		_, _ = fmt.Fprintf(w, "data: {\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":%s}]}\n\n", delta, finish)
		_ = http.NewResponseController(w).Flush()
	}
	w.Header().Set("Content-Type", "text/event-stream")
	call := func(id, name string) {
		say(`{"role":"assistant","tool_calls":[{"index":0,"id":"`+id+`","type":"function","function":{"name":"`+name+`","arguments":"{\"city\":\"Oslo\"}"}}]}`, `"tool_calls"`)
	}
	switch results {
	case 0:
		call("call_1", "weather__get")
	case 1:
		call("call_2", "weather__warn")
	default:
		first := "It is "
		if s.odd {
			first += fmt.Sprint(s.asked, ": ")
		}
		say(`{"role":"assistant","content":"`+first+`"}`, "null")
		s.at(r.Context(), "within model 2")
		say(`{"content":"22 degrees."}`, `"stop"`)
	}
	_, _ = w.Write([]byte("data: [DONE]\n\n"))
}

// written returns what holds a process before and after it writes something down.
func (s *stage) written() func(string) {
	var mu sync.Mutex
	calls := 0
	return func(point string) {
		when, what, _ := strings.Cut(point, " ")
		mu.Lock()
		switch {
		case strings.HasPrefix(what, "model"):
			what = "keeping " + what
		case strings.HasPrefix(what, "call"):
			// The one that reads is kept with its result; the one that writes before that, too.
			if what = []string{"read", "intent", "result"}[calls]; when == "after" {
				calls++
			}
		default:
			what = "end"
		}
		mu.Unlock()
		s.at(context.Background(), when+" "+what)
	}
}

// tool makes the calls of a process.
func (s *stage) tool(ctx context.Context, c dragoman.Call) (dragoman.Result, error) {
	s.at(ctx, "before "+c.Tool.Original)
	if c.Tool.Original == "warn" {
		s.mu.Lock()
		s.wrote++
		s.mu.Unlock()
	}
	s.at(ctx, "after "+c.Tool.Original)
	if ctx.Err() != nil {
		return dragoman.Result{Problem: &dragoman.Problem{Code: dragoman.CodeCanceled}}, ctx.Err()
	}
	return dragoman.Result{Content: json.RawMessage(`{"content":[{"type":"text","text":"22"}]}`), Ran: dragoman.RanYes}, nil
}

// A process that dies at any point of a response loses nothing: another one goes on, or
// says that it cannot; no call that writes is made twice, and who follows misses no event
// and has none twice.
func TestDiesWithAResponse(t *testing.T) {
	for _, tt := range []struct {
		point  string
		status string
		words  string // in the response
		wrote  int    // calls that write, by both
	}{
		{"before model 0", "completed", "22 degrees.", 1},
		{"before get", "completed", "22 degrees.", 1},
		{"after get", "completed", "22 degrees.", 1},
		{"before model 1", "completed", "22 degrees.", 1},
		{"before warn", "completed", "It may or may not have taken effect", 1}, // the dead one makes it, once it comes back
		{"after warn", "completed", "It may or may not have taken effect", 1},
		{"before model 2", "completed", "22 degrees.", 1},
		{"within model 2", "completed", "22 degrees.", 1},
		{"before keeping model 0", "completed", "22 degrees.", 1},
		{"after keeping model 0", "completed", "22 degrees.", 1},
		{"before keeping model 1", "completed", "22 degrees.", 1},
		{"after keeping model 1", "completed", "22 degrees.", 1},
		{"before intent", "completed", "22 degrees.", 1},
		{"after intent", "completed", "It may or may not have taken effect", 1},
		{"before result", "completed", "It may or may not have taken effect", 1},
		{"after result", "completed", "22 degrees.", 1},
		{"before keeping model 2", "completed", "22 degrees.", 1},
		{"after keeping model 2", "completed", "22 degrees.", 1},
		{"before end", "completed", "22 degrees.", 1},
		{"after end", "completed", "22 degrees.", 1},
	} {
		t.Run(strings.ReplaceAll(tt.point, " ", "-"), func(t *testing.T) {
			s := &stage{hold: tt.point, held: make(chan struct{}), let: make(chan struct{})}
			model := httptest.NewServer(s)
			t.Cleanup(model.Close)
			path := filepath.Join(t.TempDir(), "dragoman.db")
			at := upstream.Model{Match: "*", BaseURL: model.URL + "/v1"}
			here, there := started(t, path, run.Config{At: s.written()}, at), start(t, path, at)
			here.tools.run, there.tools.run = s.tool, s.tool
			id := here.post(`{"model":"m","background":true,"input":"Warn Oslo"}`)
			followed := make(chan []string)
			go func() { followed <- kinds(there.events(id, -1)) }()
			<-s.held
			there.takeFrom(here, id)
			names := <-followed
			close(s.let) // the dead one comes back
			here.runs.Stop()
			status, body := there.got(id)
			if status != tt.status || !strings.Contains(body, tt.words) {
				t.Errorf("%s: %s", status, body)
			}
			s.mu.Lock()
			if s.wrote > tt.wrote {
				t.Errorf("it wrote %d times", s.wrote)
			}
			s.mu.Unlock()
			if again := kinds(here.events(id, -1)); !slices.Equal(names, again) || names[len(names)-1] != status {
				t.Errorf("%v\n%v", names, again)
			}
			seen := map[string]int{}
			for _, e := range here.events(id, -1) {
				if kind, _ := rawjson.String(e.Get("type")); kind == "response.output_item.added" {
					seen[string(e.Get("output_index"))]++
				}
			}
			for index, n := range seen {
				if n != 1 {
					t.Errorf("item %s was added %d times", index, n)
				}
			}
		})
	}
}

// A process that ends gives back what it makes, and the next one goes on at once.
func TestBackgroundStops(t *testing.T) {
	s := &stage{hold: "before model 1", held: make(chan struct{}), let: make(chan struct{})}
	model := httptest.NewServer(s)
	t.Cleanup(model.Close)
	path := filepath.Join(t.TempDir(), "dragoman.db")
	at := upstream.Model{Match: "*", BaseURL: model.URL + "/v1"}
	here, there := start(t, path, at), start(t, path, at)
	here.tools.run, there.tools.run = s.tool, s.tool
	id := here.post(`{"model":"m","background":true,"input":"Warn Oslo"}`)
	<-s.held
	here.runs.Stop()
	if err := there.runs.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	there.events(id, -1)
	if status, body := there.got(id); status != "completed" || s.wrote != 1 || strings.Count(there.tools.calls(), "weather__get") != 0 {
		t.Errorf("%s, wrote %d, ran %q: %s", status, s.wrote, there.tools.calls(), body)
	}
	close(s.let)
}

// Where a process dies while the model speaks, and the model says something else when it is
// asked again, the response fails: what was said stays as it is.
func TestDiesWhileTheModelSpeaks(t *testing.T) {
	s := &stage{hold: "within model 2", held: make(chan struct{}), let: make(chan struct{}), odd: true}
	model := httptest.NewServer(s)
	t.Cleanup(model.Close)
	path := filepath.Join(t.TempDir(), "dragoman.db")
	at := upstream.Model{Match: "*", BaseURL: model.URL + "/v1"}
	here, there := start(t, path, at), start(t, path, at)
	here.tools.run, there.tools.run = s.tool, s.tool
	id := here.post(`{"model":"m","background":true,"input":"Warn Oslo"}`)
	<-s.held
	for e, err := range here.runs.Follow(t.Context(), "somebody", id, -1) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(e.Data), "response.output_text.delta") {
			break
		}
	}
	there.takeFrom(here, id)
	names := kinds(there.events(id, -1))
	close(s.let)
	status, body := there.got(id)
	if status != "failed" || !strings.Contains(body, "while a model was speaking") || !strings.Contains(body, "mcp_call") || s.wrote != 1 {
		t.Errorf("%s, wrote %d: %s", status, s.wrote, body)
	}
	if n := len(names); names[n-1] != "failed" || names[n-2] != "error" || names[n-3] != "output_text.delta" {
		t.Errorf("%v", names)
	}
}

// unlisted has tools that cannot be listed.
type unlisted struct{ toolset }

func (*unlisted) List(context.Context) (*dragoman.List, error) {
	return nil, errors.New("the list is torn")
}

// TestBackgroundTellsTheLogMore: what went wrong in us is told to the log, and not to clients.
func TestBackgroundTellsTheLogMore(t *testing.T) {
	p := startedWith(t, filepath.Join(t.TempDir(), "d.db"), run.Config{}, func(o *Options) {
		o.Sessions = session.New(session.Options{Tools: session.Shared(&unlisted{}), Upstreams: o.Upstreams, Dialects: dialect.Builtin()})
	})
	id := p.post(`{"model":"m","background":true,"input":"Hi"}`)
	p.events(id, -1)
	if _, body := p.got(id); strings.Contains(body, "torn") {
		t.Errorf("the client is told %s", body)
	}
	if said := p.log.String(); !strings.Contains(said, "the list is torn") {
		t.Errorf("the log: %s", said)
	}
}
