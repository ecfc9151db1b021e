package api

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/door"
	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
	"github.com/dragoman-mcp/dragoman/internal/state/run"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/model"
	"github.com/dragoman-mcp/dragoman/openai/responses"
)

// How a model ends is how the response ends, in the background as elsewhere.
func TestBackgroundEnds(t *testing.T) {
	for _, tt := range []struct{ delta, finish, status, words string }{
		{`{"role":"assistant","content":"Half a"}`, "length", "incomplete", `"incomplete_details":{"reason":"max_output_tokens"}`},
		{`{"role":"assistant","content":"Half a"}`, "content_filter", "incomplete", `"incomplete_details":{"reason":"content_filter"}`},
		{`{"role":"assistant","refusal":"I will not."}`, "stop", "completed", `"refusal":"I will not."`},
	} {
		model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = fmt.Fprintf(w, "data: {\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":%q}]}\n\ndata: [DONE]\n\n", tt.delta, tt.finish)
		}))
		t.Cleanup(model.Close)
		p := start(t, filepath.Join(t.TempDir(), "dragoman.db"), upstream.Model{Match: "*", BaseURL: model.URL + "/v1"})
		id := p.post(`{"model":"m","background":true,"input":"x"}`)
		names := kinds(p.events(id, -1))
		if status, body := p.got(id); status != tt.status || names[len(names)-1] != tt.status || !strings.Contains(body, tt.words) {
			t.Errorf("%s, %v: %s", status, names, body)
		}
		if now, err := p.runs.Get(t.Context(), "somebody", id); err != nil || now.Outcome != tt.status {
			t.Errorf("%+v, %v", now, err)
		}
	}
}

// A run whose request nobody can make anything of has failed, and says so; nobody tries it
// for ever.
func TestBackgroundIsNoRequest(t *testing.T) {
	p := start(t, filepath.Join(t.TempDir(), "dragoman.db"))
	id := p.post(askWeather + "}")
	p.events(id, -1)
	for _, document := range []string{"{", `{"body":{"model":7}}`} {
		held, err := p.runs.Begin(t.Context(), run.New{Owner: "somebody", ID: "resp_dg" + fmt.Sprint(len(document)), Document: []byte(document)})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.api.door.Load().work(held); err != nil {
			t.Error(err)
		}
		if now, err := p.runs.Get(t.Context(), "somebody", held.ID); err != nil || now.Outcome != run.Failed {
			t.Errorf("%+v, %v", now, err)
		}
	}
}

// Who hears of the end of a response goes on from it at once.
func TestBackgroundIsOverWhenItSaysSo(t *testing.T) {
	p := start(t, filepath.Join(t.TempDir(), "dragoman.db"))
	for range 10 {
		id := p.post(askWeather + "}")
		for e, err := range p.runs.Follow(t.Context(), "somebody", id, -1) {
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(e.Data), `"type":"response.completed"`) {
				if status, body := p.got(id); status != "completed" {
					t.Errorf("it is %s: %s", status, body)
				}
			}
		}
	}
}

// A client's approval belongs to a response in the background as to any other: its id stays
// the same when a process dies before the end is written, and what a process has spent of
// it before it died, its successor may use.
func TestBackgroundApprovals(t *testing.T) {
	for _, dies := range []string{"", "before the run is another's, or is over", "after spent"} {
		path := filepath.Join(t.TempDir(), "dragoman.db")
		held, let := make(chan struct{}), make(chan struct{})
		inSecond := strings.HasPrefix(dies, "after spent") // it dies with the second response
		var armed atomic.Bool
		armed.Store(dies != "" && !inSecond)
		config := run.Config{At: func(point string) {
			if strings.HasPrefix(point, dies) && armed.CompareAndSwap(true, false) {
				close(held)
				<-let
			}
		}}
		here, there := started(t, path, config), start(t, path)
		ours := `"tools":[{"type":"mcp","server_label":"weather"}]`
		id := here.post(askWeather + "," + ours + "}")
		if dies != "" && !inSecond {
			<-held
			there.takeFrom(here, id)
			close(let)
		}
		asked := ""
		for _, e := range there.events(id, -1) {
			if item, err := rawjson.ParseObject(e.Get("item")); err == nil {
				if kind, _ := rawjson.String(item.Get("type")); kind == "mcp_approval_request" {
					asked, _ = rawjson.String(item.Get("id"))
				}
			}
		}
		if _, body := there.got(id); asked == "" || !strings.Contains(body, asked) {
			t.Fatalf("%s: asked %q: %s", dies, asked, body)
		}
		armed.Store(inSecond)
		next := here.post(`{"model":"m","background":true,"previous_response_id":"` + id + `","input":[{"type":"mcp_approval_response","approval_request_id":"` + asked + `","approve":true}],` + ours + `}`)
		if inSecond {
			<-held
			there.takeFrom(here, next)
			close(let)
		}
		there.events(next, -1)
		if status, body := there.got(next); status != "completed" || !strings.Contains(body, "mcp_call") || strings.Contains(body, "used before") {
			t.Errorf("%s: %s %s", dies, status, body)
		}
		here.runs.Stop()
	}
}

// What is written down of a request has no credentials, and nothing that is named like them.
func TestBackgroundKeepsNoSecrets(t *testing.T) {
	kept := upstream.Lasting(http.Header{
		"Authorization": {"Bearer x"}, "X-Api-Key": {"x"}, "X-Goog-Api-Key": {"x"}, "Cookie": {"x"}, "X-My-Token": {"x"}, "Session-Id": {"x"}, "X-Forwarded-For": {"x"},
		"Idempotency-Key": {"x"}, "Openai-Beta": {"y"}, "User-Agent": {"y"},
	})
	if len(kept) != 2 || kept.Get("User-Agent") != "y" || kept.Get("Openai-Beta") != "y" {
		t.Errorf("%v", kept)
	}
}

// Where a limit does not let a response in that is taken up again, it waits.
func TestLaterThan(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want time.Duration
	}{
		{nil, 0}, {context.Canceled, 0},
		{door.Refused(&dragoman.Problem{Code: dragoman.CodeDenied}), 0},
		{door.Refused(&dragoman.Problem{Code: dragoman.CodeRateLimited, RetryAfter: 3 * time.Second}), 3 * time.Second},
		{door.Refused(&dragoman.Problem{Code: dragoman.CodeBudget, RetryAfter: time.Hour}), 0},
	} {
		if got := laterThan(tt.err); got != tt.want {
			t.Errorf("%v: %s", tt.err, got)
		}
	}
	asked := func(after string) time.Duration {
		return laterThan(&model.Error{Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {after}}})
	}
	for after, want := range map[string]time.Duration{"7": 7 * time.Second, "1.5": 1500 * time.Millisecond, "0": time.Second, "9999999999": longestWait, "soon": 0, "": 0} {
		if got := asked(after); got != want {
			t.Errorf("%q: %s, want %s", after, got, want)
		}
	}
	if got := asked(time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)); got < 59*time.Minute || got > time.Hour {
		t.Errorf("at a time: %s", got)
	}
}

// TestBackgroundEndsInMemory: a response that is not kept where runs are, as without a store,
// is there once anybody can hear of the end.
func TestBackgroundEndsInMemory(t *testing.T) {
	var p *process
	known, ended := make(chan string), make(chan string)
	p = startedWith(t, filepath.Join(t.TempDir(), "dragoman.db"), run.Config{At: func(point string) {
		if point == "after "+run.ErrLost.Error() { // the run is over, and what comes after that is yet to come
			_, body := p.got(<-known)
			ended <- body
		}
	}}, func(o *Options) {
		o.Kept.Responses, o.Kept.Conversations = &responses.Memory{}, &responses.MemoryConversations{}
	})
	known <- p.post(`{"model":"m","background":true,"input":"Say hello."}`)
	if body := <-ended; !strings.Contains(body, `"status":"completed"`) {
		t.Errorf("once the run was over: %s", body)
	}
}

// lostTalks are conversations of which one is deleted while a response is begun in it.
type lostTalks struct{ responses.MemoryConversations }

// Claim implements [responses.Conversations].
func (l *lostTalks) Claim(ctx context.Context, caller, id, holder string, life time.Duration) error {
	if life == runLife {
		_, _ = l.Delete(ctx, caller, id)
	}
	return l.MemoryConversations.Claim(ctx, caller, id, holder, life)
}

// A response of which its client is told that it cannot be begun is not made, and takes no
// room.
func TestBackgroundIsNotBegun(t *testing.T) {
	p := startedWith(t, filepath.Join(t.TempDir(), "dragoman.db"), run.Config{}, func(o *Options) {
		o.Kept.Responses, o.Kept.Conversations = &responses.Memory{}, &lostTalks{}
	})
	talk := idOf(p.ok("POST", "/v1/conversations", "{}").Bytes())
	p.checkError(p.do("POST", "/v1/responses", `{"model":"m","background":true,"input":"Say hello.","conversation":"`+talk+`"}`), 404, "not_found")
	if all, err := p.runs.List(t.Context(), run.Filter{}); err != nil || len(all) != 0 {
		t.Errorf("%+v, %v", all, err)
	}
}

// A moment in which the store keeps nothing ends no response: it is gone on with as where a
// process died at that point, and what may have changed something does not run again.
func TestBackgroundOutlivesTrouble(t *testing.T) {
	for _, tt := range []struct {
		step     string // what cannot be kept, and for which time
		nth      int
		patience time.Duration
		words    string
	}{
		{"model", 1, 1, "22 degrees."},
		{"call", 1, 1, "22 degrees."},                         // the result of what only reads
		{"call", 2, 1, "22 degrees."},                         // that a call begins which does not
		{"call", 3, 1, "It may or may not have taken effect"}, // its result
		{"call", 3, time.Minute, "22 degrees."},               // which is kept a second later
	} {
		s := &stage{}
		model := httptest.NewServer(s)
		t.Cleanup(model.Close)
		var p *process
		rename := func(from, to string) {
			if err := p.db.Write(context.Background(), func(tx *store.Tx) error {
				_, err := tx.Exec("ALTER TABLE " + from + " RENAME TO " + to)
				return err
			}); err != nil {
				t.Error(err)
			}
		}
		n := 0
		p = started(t, filepath.Join(t.TempDir(), "dragoman.db"), run.Config{Lease: 50 * time.Millisecond, Look: 10 * time.Millisecond, Patience: tt.patience, At: func(point string) {
			switch {
			case strings.HasPrefix(point, "before "+tt.step):
				if n++; n == tt.nth {
					rename("run_steps", "away")
				}
			case strings.HasPrefix(point, "after "+tt.step) && n == tt.nth:
				n++
				rename("away", "run_steps")
			}
		}}, upstream.Model{Match: "*", BaseURL: model.URL + "/v1"})
		p.tools.run = s.tool
		watching, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() { p.runs.Watch(watching, p.api.Work) })
		id := p.post(`{"model":"m","background":true,"input":"Warn Oslo"}`)
		p.events(id, -1)
		if status, body := p.got(id); status != "completed" || !strings.Contains(body, tt.words) {
			t.Errorf("%s %d: %s", tt.step, tt.nth, body)
		}
		stop()
		all.Wait()
		if s.wrote != 1 {
			t.Errorf("%s %d: it wrote %d times", tt.step, tt.nth, s.wrote)
		}
	}
}
