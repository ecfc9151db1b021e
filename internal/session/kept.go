package session

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// A Book keeps runs once they are over, where a process that ends does not take them along.
// It is safe for concurrent use.
type Book interface {
	// Wants reports whether a caller's runs are kept. It is asked at the beginning of each
	// and does not block.
	Wants(who caller.Caller) bool
	// Keep keeps a run that is over, soon. It does not block.
	Keep(Run)
}

// maxCalled bounds how many tools a list names of one run.
const maxCalled = 20

// runHead is what a list shows of a run that is kept.
type runHead struct {
	Request string    `json:"request,omitempty"`
	Name    string    `json:"name,omitempty"`
	Door    string    `json:"door,omitempty"`
	Model   string    `json:"model,omitempty"`
	Began   time.Time `json:"began"`
	Ended   time.Time `json:"ended"`
	Failed  string    `json:"failed,omitempty"`
	Cut     bool      `json:"cut,omitempty"`
	Called  []string  `json:"called,omitempty"`
}

// Encode returns a run as it is kept: what a list shows of it, and its steps.
func (r *Run) Encode() (head, steps []byte, err error) {
	head, err = json.Marshal(runHead{r.Request, r.Name, r.Door, r.Model, r.Began, r.Ended, r.Failed, r.Cut, r.Called()})
	if err == nil {
		steps, err = json.Marshal(r.Steps)
	}
	return head, steps, err
}

// DecodeRun returns the run of a caller that Encode wrote, under the key of its row. Without
// steps it is what a list shows.
func DecodeRun(key, caller string, head, steps []byte) (r Run, err error) {
	var h runHead
	if err = json.Unmarshal(head, &h); err == nil && steps != nil {
		err = json.Unmarshal(steps, &r.Steps)
	}
	r.Key, r.Caller, r.called = key, caller, h.Called
	r.Request, r.Name, r.Door, r.Model, r.Began, r.Ended, r.Failed, r.Cut = h.Request, h.Name, h.Door, h.Model, h.Began, h.Ended, h.Failed, h.Cut
	return r, err
}

// Called are the tools whose calls are over, the first of them.
func (r *Run) Called() []string {
	if r.called != nil {
		return r.called
	}
	var all []string
	for i := range r.Steps {
		if s := &r.Steps[i]; s.Tool != "" && !s.Running && len(all) < maxCalled {
			all = append(all, s.Tool)
		}
	}
	return all
}

// Hide has everything that people, models and tools said go through hide.
func (r *Run) Hide(hide func(string) string) {
	r.Failed = hide(r.Failed)
	for i := range r.Steps {
		s := &r.Steps[i]
		for _, text := range []*string{&s.Asked, &s.Said, &s.Arguments, &s.Came, &s.Shown, &s.Problem} {
			*text = hide(*text)
		}
		written := make([]Written, len(s.Written))
		for n, w := range s.Written {
			w.Raw = hide(w.Raw)
			written[n] = w
		}
		s.Written = written
		if s.Wrote != nil {
			wrote := *s.Wrote
			wrote.Raw = hide(wrote.Raw)
			s.Wrote = &wrote
		}
	}
}

// person is who of those behind a caller a run is of, as owners of content have it behind
// the caller's ID: what a client calls the user, and nothing that tells conversations apart.
// Empty for nobody in particular. Requests of the Messages API name their user alone.
func person(door, conversation string) string {
	if door == "messages" && conversation != "" && conversation[0] != 0 {
		return "\x00" + string(rawjson.Quote(conversation)) + "\x00\"\"\x00\"\"\x00"
	}
	parts := strings.Split(conversation, "\x00") // "", user, safety_identifier, prompt_cache_key, conversation
	if len(parts) < 5 || parts[0] != "" || parts[1]+parts[2] == `""""` {
		return ""
	}
	return "\x00" + parts[1] + "\x00" + parts[2] + "\x00\"\"\x00"
}
