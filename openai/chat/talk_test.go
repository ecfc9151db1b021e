package chat

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/internal/transcript"
	"github.com/dragoman-mcp/dragoman/openai/model"
	"github.com/dragoman-mcp/dragoman/rehearsal"
	"github.com/dragoman-mcp/dragoman/result"
)

// A talk keeps its history, with what tools said, and forgets a turn that failed
// before anything was done.
func TestTalk(t *testing.T) {
	var asked []string
	streams := []string{getStream, fineStream, "broken", fineStream, saveStream, "broken", fineStream}
	var said strings.Builder
	talk := &Talk{
		Model: "m", Members: []byte(`{"temperature":0.5}`), Guide: "Read on.", Said: func(s string) { said.WriteString(s) },
		Client: &model.Client{Post: func(_ context.Context, parts [][]byte) (*http.Response, error) {
			body := ""
			for _, p := range parts {
				body += string(p)
			}
			asked = append(asked, transcript.Tidy([]byte(body)))
			s := streams[0]
			if streams = streams[1:]; s == "broken" {
				return nil, &model.Error{Status: 401, Message: s}
			}
			return streamed(strings.NewReader(s)), nil
		}},
	}
	loop := &dragoman.Loop{Tools: calling(func(context.Context, dragoman.Call) (dragoman.Result, error) { return done, nil })}
	for i, want := range []string{"Fine.", "", "Fine.", "", "Fine."} {
		err := loop.Run(t.Context(), talk.Say("Go."))
		if e, failed := errors.AsType[*model.Error](err); failed != (want == "") || failed && e.Message != "broken" {
			t.Errorf("turn %d: %v", i, err)
		}
		if talk.Text() != want {
			t.Errorf("turn %d: %q", i, talk.Text())
		}
	}
	if said.String() != "Fine.Fine.Fine." {
		t.Errorf("said %q", said.String())
	}
	last := asked[len(asked)-1]
	for what, n := range map[string]int{`"role":"user"`: 4, `"role":"tool"`: 2, `"content":"Fine."`: 2, `Read on.`: 1, `"temperature":0.5`: 1} {
		if strings.Count(last, what) != n {
			t.Errorf("%s is not %d times in %s", what, n, last)
		}
	}
	if err := loop.Run(t.Context(), (&Talk{}).Say("Go.")); err == nil {
		t.Error("a talk with nobody")
	}
}

// A call that asks when nobody can be asked ends the turn, and is in the history as
// given up: the next turn begins where this one ended, each call with its answer.
func TestTalkKeepsWhatNobodyAnswered(t *testing.T) {
	var asked []string
	streams := []string{saveStream, fineStream}
	talk := &Talk{Model: "m", Client: &model.Client{Post: func(_ context.Context, parts [][]byte) (*http.Response, error) {
		asked = append(asked, transcript.Tidy(bytes.Join(parts, nil)))
		s := streams[0]
		streams = streams[1:]
		return streamed(strings.NewReader(s)), nil
	}}}
	tools := &shy{asks: 1}
	loop := &dragoman.Loop{Tools: tools}
	for _, message := range []string{"Save it.", "And now?"} {
		if err := loop.Run(t.Context(), talk.Say(message)); err != nil {
			t.Fatal(err)
		}
	}
	if len(asked) != 2 || talk.Text() != "Fine." {
		t.Fatalf("the model was asked %d times and said %q", len(asked), talk.Text())
	}
	var roles []string
	for _, message := range talk.Messages() {
		o, err := rawjson.ParseObject(message)
		if err != nil {
			t.Fatal(err)
		}
		role, _ := rawjson.String(o.Get("role"))
		roles = append(roles, role)
		content, _ := rawjson.String(o.Get("content"))
		if role == "tool" && !strings.Contains(content, dragoman.CodeUnanswered) {
			t.Errorf("the call has the result %s", content)
		}
	}
	if diff := cmp.Diff([]string{"user", "assistant", "tool", "user", "assistant"}, roles); diff != "" {
		t.Errorf("history (-want +got)\n%s", diff)
	}
	if n := strings.Count(asked[1], dragoman.CodeUnanswered); n != 1 || !strings.Contains(asked[1], `"id":"call_a"`) {
		t.Errorf("the second turn began with %s", asked[1])
	}
}

// TestTalkUsage: a stream says its usage where it is asked, so a talk asks, but for an
// API that refuses the question, which it remembers, and for whoever says otherwise.
func TestTalkUsage(t *testing.T) {
	const asks = `"stream_options":{"include_usage":true}`
	used := strings.Replace(fineStream, "data: [DONE]", `data: {"id":"up2","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}`+"\n\ndata: [DONE]", 1)
	refusal := &model.Error{Status: 400, Message: "unknown stream_options"}
	for name, tt := range map[string]struct {
		members string
		refuses func(body string) bool
		asked   []bool // of each request: whether it asks
		fails   bool
		want    string
	}{
		"asked":             {asked: []bool{true, true}, want: `{"prompt_tokens":10,"completion_tokens":4,"total_tokens":14}`},
		"refused":           {refuses: func(body string) bool { return strings.Contains(body, asks) }, asked: []bool{true, false, false}},
		"refused otherwise": {refuses: func(string) bool { return true }, asked: []bool{true, false, true, true, false, true}, fails: true},
		"of one's own":      {members: `{"stream_options":{}}`, asked: []bool{false, false}},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []bool
			talk := &Talk{Model: "m", Members: []byte(tt.members), Client: &model.Client{Post: func(_ context.Context, parts [][]byte) (*http.Response, error) {
				body := string(bytes.Join(parts, nil))
				asked = append(asked, strings.Contains(body, asks))
				switch {
				case tt.refuses != nil && tt.refuses(body):
					return nil, refusal
				case strings.Contains(body, asks):
					return streamed(strings.NewReader(used)), nil
				}
				return streamed(strings.NewReader(fineStream)), nil
			}}}
			if tt.members == "" {
				talk.Members = nil
			}
			loop := &dragoman.Loop{Tools: calling(nil)}
			for range 2 {
				err := loop.Run(t.Context(), talk.Say("Go."))
				if (err != nil) != tt.fails || err == nil && talk.Text() != "Fine." {
					t.Fatalf("%v, said %q", err, talk.Text())
				}
			}
			if diff := cmp.Diff(tt.asked, asked); diff != "" {
				t.Errorf("asked (-want +got)\n%s", diff)
			}
			if got := string(talk.Usage()); got != tt.want {
				t.Errorf("usage %s, want %s", got, tt.want)
			}
		})
	}
}

// TestTalkGoesOn: whatever a turn ended with, text or none, a strict API takes the next
// one, and the talk says what the model said and why it ended.
func TestTalkGoesOn(t *testing.T) {
	const called = `"tool_calls":[{"id":"call_a","type":"function","function":{"name":"get","arguments":"{}"}}]`
	for name, tt := range map[string]struct {
		message, finish string
		text            string
	}{
		"whole":            {`{"role":"assistant","content":"Fine."}`, "stop", "Fine."},
		"cut off":          {`{"role":"assistant","content":"Fi"}`, "length", "Fi"},
		"refusal":          {`{"role":"assistant","content":null,"refusal":"No."}`, "stop", "No."},
		"nothing":          {`{"role":"assistant","content":null}`, "stop", ""},
		"an empty text":    {`{"role":"assistant","content":""}`, "content_filter", ""},
		"thoughts alone":   {`{"role":"assistant","content":null,"reasoning_content":"Hm."}`, "stop", ""},
		"a call cut off":   {`{"role":"assistant","content":null,` + called + `}`, "length", ""},
		"calls to the end": {`{"role":"assistant","content":null,` + called + `}`, "tool_calls", ""},
	} {
		t.Run(name, func(t *testing.T) {
			strict, begun := &http.Client{Transport: &rehearsal.Model{}}, false
			talk := &Talk{Model: "rehearsal", Client: &model.Client{Post: func(ctx context.Context, parts [][]byte) (*http.Response, error) {
				if begun {
					req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://rehearsal.invalid/v1/chat/completions", bytes.NewReader(bytes.Join(parts, nil)))
					if err != nil {
						return nil, err
					}
					return strict.Do(req)
				}
				body := `{"id":"a","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":` + tt.message + `,"finish_reason":"` + tt.finish + `"}]}`
				return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body))}, nil
			}}}
			loop := &dragoman.Loop{Rounds: 2, Tools: calling(func(context.Context, dragoman.Call) (dragoman.Result, error) { return done, nil })}
			if err := loop.Run(t.Context(), talk.Say("Go.")); err != nil || talk.Text() != tt.text || talk.Finish() != tt.finish {
				t.Errorf("%v, said %q, ended with %q", err, talk.Text(), talk.Finish())
			}
			begun = true
			if err := loop.Run(t.Context(), talk.Say("SAY And on.")); err != nil || talk.Text() != "And on." || talk.Finish() != "stop" {
				t.Errorf("then %v, said %q, ended with %q", err, talk.Text(), talk.Finish())
			}
		})
	}
}

// TestTalkReadsOn: what was cut in one turn can be read on in the next, also where a talk goes
// on from what another one left.
func TestTalkReadsOn(t *testing.T) {
	shelf := &result.Shelf{}
	shape := &result.Shape{Limit: result.MinLimit, Shelf: shelf, Caller: "ann"}
	talk := &Talk{
		Client: &model.Client{BaseURL: "http://rehearsal.invalid/v1", HTTP: &http.Client{Transport: &rehearsal.Model{}}},
		Model:  "rehearsal", Shape: func(*dragoman.Tool) *result.Shape { return shape },
	}
	long := dragoman.Result{Ran: dragoman.RanYes, Content: []byte(`{"content":[],"structuredContent":{"numbers":[` + strings.Repeat("7,", 999) + `8]}}`)}
	loop := &dragoman.Loop{Tools: shelf.Around("ann", calling(func(context.Context, dragoman.Call) (dragoman.Result, error) { return long, nil }))}
	if err := loop.Run(t.Context(), talk.Say("CALL weather__time {}\nTHEN\nSAY There are many.")); err != nil {
		t.Fatal(err)
	}
	told := string(bytes.Join(rawMessages(talk), nil))
	_, handle, _ := strings.Cut(told, `\"handle\":\"`)
	handle, _, _ = strings.Cut(handle, `\"`)
	ask := "SAY Here is the rest.\nCALL read_more {\"handle\":\"" + handle + "\",\"pointer\":\"/data/numbers\",\"offset\":998}\nTHEN\nSAY That is all."
	later := &Talk{Client: talk.Client, Model: talk.Model, Shape: talk.Shape}
	kept, err := json.Marshal(talk.Messages())
	if err != nil {
		t.Fatal(err)
	}
	for _, talk := range []*Talk{talk, later} {
		if talk == later {
			var messages []json.RawMessage
			if err := json.Unmarshal(kept, &messages); err != nil {
				t.Fatal(err)
			}
			if err := later.Resume(messages); err != nil {
				t.Fatal(err)
			}
		}
		if err := loop.Run(t.Context(), talk.Say(ask)); err != nil {
			t.Fatal(err)
		}
		if told := string(bytes.Join(rawMessages(talk), nil)); !strings.Contains(told, `There are many.`) || !strings.Contains(told, `\"items\":[7,8]`) {
			t.Errorf("the handle was %q; the model said %q and read %s", handle, talk.Text(), told)
		}
	}
	before := len(later.Messages())
	if err := later.Resume([]json.RawMessage{json.RawMessage(`{"role":"user","content":"Hi"}`), json.RawMessage(`"Hi"`)}); err == nil || !strings.Contains(err.Error(), "message 1") || len(later.Messages()) != before {
		t.Errorf("a text for a message: %v, and %d messages", err, len(later.Messages()))
	}
}

func rawMessages(talk *Talk) (messages [][]byte) {
	for _, m := range talk.Messages() {
		messages = append(messages, m)
	}
	return messages
}
