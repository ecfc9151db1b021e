package chat

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/openai/model"
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
			asked = append(asked, tidy([]byte(body)))
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
