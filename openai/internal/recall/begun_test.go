package recall

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/memory"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// TestKeepBegun: a process dies while a call runs, or behind it, and its client sends the request
// again to another one. The call is not made once more, and the model reads that nobody knows what
// became of it. Where the request ended that is known, also of a call that was not made after all;
// a client that does not say that it comes again is not taken for one.
func TestKeepBegun(t *testing.T) {
	const unknown, known = "may or may not have taken effect", "It was not made."
	for _, tt := range []struct {
		name                   string
		retries, ends, readsIt bool
		want                   string
	}{
		{"dies", true, false, false, unknown},
		{"ends", true, true, false, known},
		{"dies while it reads", true, false, true, ""},
		{"says nothing of itself", false, false, false, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			kept := &memory.Memory{}
			thread := func() *Thread {
				return &Thread{
					Request:  Request{Owner: "alice", Identified: true, Retried: tt.retries, Digest: "d", Messages: []json.RawMessage{json.RawMessage(`{"role":"user","content":"Save it."}`)}},
					Memory:   kept,
					Running:  &memory.Running{},
					Dialogue: &model.Dialogue{Client: &model.Client{}, Request: model.Request{Object: &rawjson.Object{}}},
				}
			}
			first := thread()
			if err := first.Restore(t.Context()); err != nil {
				t.Fatal(err)
			}
			tool := &dragoman.Tool{Name: "save"}
			if tt.readsIt {
				tool.Declared = dragoman.ReadOnly
			}
			call := memory.Call{ID: "1", Raw: json.RawMessage(`{"id":"1","type":"function","function":{"name":"save","arguments":"{}"}}`)}
			theirs := memory.Call{ID: "2", Client: "2", Raw: json.RawMessage(`{"id":"2","type":"function","function":{"name":"theirs","arguments":"{}"}}`)}
			if err := first.KeepBegun(t.Context(), &model.Round{
				Message: &memory.Message{Message: json.RawMessage(`{"role":"assistant","content":null}`), Calls: []memory.Call{call, theirs}},
				Run:     []dragoman.Call{{ID: "1", Tool: tool}},
			}, ""); err != nil {
				t.Fatal(err)
			}
			if tt.ends {
				call.Result = json.RawMessage(`{"role":"tool","tool_call_id":"1","content":"` + known + `"}`)
				first.Dialogue.AddHidden(model.Documents(&memory.Message{Message: json.RawMessage(`{"role":"assistant","content":null}`), Calls: []memory.Call{call}})...)
				first.Remember(End{Err: context.Canceled})
			}
			again := thread()
			if err := again.Restore(t.Context()); err != nil {
				t.Fatal(err)
			}
			sent := fmt.Sprintf("%s", again.Dialogue.History())
			if strings.Contains(sent, unknown) != (tt.want == unknown) || strings.Contains(sent, known) != (tt.want == known) || strings.Contains(sent, "theirs") {
				t.Errorf("the model is told %s", sent)
			}
		})
	}
}

// TestKeepBegunBehindAText: the same where the model said something beside the call, which the
// client keeps and sends behind its message, and where a person goes on with something else.
func TestKeepBegunBehindAText(t *testing.T) {
	const task = `{"role":"user","content":"Save it."}`
	for _, behind := range []string{`{"role":"assistant","content":"I save."}`, `{"role":"user","content":"Are you there?"}`} {
		kept := &memory.Memory{}
		thread := func(digest string, messages ...string) *Thread {
			thread := &Thread{
				Request: Request{Owner: "alice", Identified: true, Retried: true, Joins: true, Digest: digest}, Memory: kept,
				Dialogue: &model.Dialogue{Client: &model.Client{}, Request: model.Request{Object: &rawjson.Object{}}},
			}
			for _, m := range messages {
				thread.Request.Messages = append(thread.Request.Messages, json.RawMessage(m))
			}
			if err := thread.Restore(t.Context()); err != nil {
				t.Fatal(err)
			}
			return thread
		}
		if err := thread("d", task).KeepBegun(t.Context(), &model.Round{
			Message: &memory.Message{Message: json.RawMessage(`{"role":"assistant","content":"I save."}`), Calls: []memory.Call{{ID: "1", Raw: json.RawMessage(`{"id":"1","type":"function","function":{"name":"save","arguments":"{}"}}`)}}},
			Run:     []dragoman.Call{{ID: "1", Tool: &dragoman.Tool{Name: "save"}}},
		}, "I save."); err != nil {
			t.Fatal(err)
		}
		sent := fmt.Sprintf("%s", thread("e", task, behind).Dialogue.History())
		if strings.Count(sent, "may or may not have taken effect") != 1 || strings.Count(sent, "I save.") != 1 {
			t.Errorf("behind %s the model is told %s", behind, sent)
		}
	}
}

// elsewhere returns a request as a process of its own that shares a memory restores it.
func elsewhere(t *testing.T, kept *memory.Memory, digest string, says ...string) *Thread {
	t.Helper()
	r := &Thread{
		Request: Request{Owner: "alice", Identified: true, Retried: true, Joins: true, Digest: digest}, Memory: kept, Running: &memory.Running{},
		Dialogue: &model.Dialogue{Client: &model.Client{}, Request: model.Request{Object: &rawjson.Object{}}},
	}
	for _, s := range says {
		r.Request.Messages = append(r.Request.Messages, model.ChatMessage("user", rawjson.Quote(s)))
	}
	if err := r.Restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	return r
}

// does makes a call that may change something, unless it may not be made.
func does(t *testing.T, r *Thread, name string) error {
	m := memory.Message{Message: json.RawMessage(`{"role":"assistant","content":null}`), Calls: []memory.Call{{ID: name, Raw: json.RawMessage(fmt.Sprintf(`{"id":%q,"type":"function","function":{"name":%[1]q,"arguments":"{}"}}`, name))}}}
	if err := r.KeepBegun(t.Context(), &model.Round{Message: &m, Run: []dragoman.Call{{ID: name, Tool: &dragoman.Tool{Name: name}}}}, ""); err != nil {
		return err
	}
	m.Calls[0].Result = json.RawMessage(fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"content":"done"}`, name))
	r.Dialogue.AddHidden(model.Documents(&m)...)
	r.Dialogue.Wrote = true
	return nil
}

// TestKeepBegunOfTheSlow: of one request at two processes, the slow one is at its model while the
// quick one makes two calls, and is given up by its person, or runs on. It is refused before its
// first call, and what the quick one did stays what the model is told. So is one that had read
// something before; one that comes behind the quick one goes on from that.
func TestKeepBegunOfTheSlow(t *testing.T) {
	for _, tt := range []struct{ reads, over bool }{{false, true}, {true, true}, {false, false}} {
		kept := &memory.Memory{}
		slow, quick := elsewhere(t, kept, "d", "Save it."), elsewhere(t, kept, "d", "Save it.")
		for _, name := range []string{"write1", "write2"} {
			if err := does(t, quick, name); err != nil {
				t.Fatal(err)
			}
		}
		if tt.over {
			quick.Remember(End{Err: context.Canceled})
		}
		if tt.reads {
			slow.Dialogue.AddHidden(json.RawMessage(`{"role":"assistant","content":"I have read."}`))
		}
		err := does(t, slow, "write1")
		if e, ok := model.AsError(err); !ok || e.Code != model.CodeInProgress {
			t.Errorf("%+v: the slow one: %v", tt, err)
		}
		slow.Remember(End{Err: err})
		sent := fmt.Sprintf("%s", elsewhere(t, kept, "e", "Save it.", "And now?").Dialogue.History())
		if !strings.Contains(sent, "write2") || strings.Contains(sent, "I have read.") {
			t.Errorf("%+v: the model is told %s", tt, sent)
		}
		if err := does(t, elsewhere(t, kept, "d", "Save it."), "write3"); err != nil {
			t.Errorf("%+v: one that comes behind it: %v", tt, err)
		}
	}
}

// TestKeepBegunOfThePaused: a process has made a call, is paused, and taken for dead; another one
// goes on in its place from what is kept, and makes the next call. What that did stays what the
// model is told, whether the paused one then has a further call to make, ends, or breaks off. Who
// reads the answer of the paused one all the same is known by it.
func TestKeepBegunOfThePaused(t *testing.T) {
	replaced := &model.Error{Status: http.StatusConflict, Code: model.CodeInProgress}
	for name, goesOn := range map[string]func(t *testing.T, r *Thread){
		"a call": func(t *testing.T, r *Thread) {
			if err := does(t, r, "write3"); !errors.Is(err, replaced) {
				t.Errorf("its next call: %v", err)
			}
			r.Remember(End{Err: replaced})
		},
		"an end": func(t *testing.T, r *Thread) {
			var known []string
			r.Kept = func(keys []string, _ *memory.Turn) { known = append(known, keys...) }
			r.Remember(End{Seen: "Done.", Last: &model.Reply{Message: object(t, `{"role":"assistant","content":"Done."}`)}})
			if len(known) == 0 {
				t.Error("nobody who reads its answer can go on from it")
			}
		},
		"a cut": func(_ *testing.T, r *Thread) { r.Remember(End{Err: context.Canceled, Seen: "I am"}) },
	} {
		t.Run(name, func(t *testing.T) {
			kept := &memory.Memory{}
			paused := elsewhere(t, kept, "d", "Save it.")
			var taken bool
			paused.Held = func(context.Context) error {
				if taken {
					return replaced
				}
				return errors.New("the store is away") // which is for who makes the calls
			}
			if err := does(t, paused, "write1"); err != nil {
				t.Fatal(err)
			}
			taken = true
			if err := does(t, elsewhere(t, kept, "d", "Save it."), "write2"); err != nil {
				t.Fatal(err)
			}
			goesOn(t, paused)
			if sent := fmt.Sprintf("%s", elsewhere(t, kept, "d", "Save it.").Dialogue.History()); !strings.Contains(sent, "write2") || strings.Contains(sent, "write3") {
				t.Errorf("the model is told %s", sent)
			}
		})
	}
}
