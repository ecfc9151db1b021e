package recall

import (
	"context"
	"encoding/json"
	"fmt"
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

// TestKeepBegunOfTheSlow: of one request at two processes, the slow one is at its model while the
// quick one makes two calls, and is given up by its person, or runs on. It is refused before its
// first call, and what the quick one did stays what the model is told. So is one that had read
// something before; one that comes behind the quick one goes on from that.
func TestKeepBegunOfTheSlow(t *testing.T) {
	for _, tt := range []struct{ reads, over bool }{{false, true}, {true, true}, {false, false}} {
		kept := &memory.Memory{}
		thread := func(digest string, says ...string) *Thread {
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
		begin := func(r *Thread, name string) (memory.Message, error) {
			m := memory.Message{Message: json.RawMessage(`{"role":"assistant","content":null}`), Calls: []memory.Call{{ID: name, Raw: json.RawMessage(fmt.Sprintf(`{"id":%q,"type":"function","function":{"name":%[1]q,"arguments":"{}"}}`, name))}}}
			return m, r.KeepBegun(t.Context(), &model.Round{Message: &m, Run: []dragoman.Call{{ID: name, Tool: &dragoman.Tool{Name: name}}}}, "")
		}
		slow, quick := thread("d", "Save it."), thread("d", "Save it.")
		for _, name := range []string{"write1", "write2"} {
			m, err := begin(quick, name)
			if err != nil {
				t.Fatal(err)
			}
			m.Calls[0].Result = json.RawMessage(fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"content":"done"}`, name))
			quick.Dialogue.AddHidden(model.Documents(&m)...)
			quick.Dialogue.Wrote = true
		}
		if tt.over {
			quick.Remember(End{Err: context.Canceled})
		}
		if tt.reads {
			slow.Dialogue.AddHidden(json.RawMessage(`{"role":"assistant","content":"I have read."}`))
		}
		_, err := begin(slow, "write1")
		if e, ok := model.AsError(err); !ok || e.Code != model.CodeInProgress {
			t.Errorf("%+v: the slow one: %v", tt, err)
		}
		slow.Remember(End{Err: err})
		sent := fmt.Sprintf("%s", thread("e", "Save it.", "And now?").Dialogue.History())
		if !strings.Contains(sent, "write2") || strings.Contains(sent, "I have read.") {
			t.Errorf("%+v: the model is told %s", tt, sent)
		}
		if _, err := begin(thread("d", "Save it."), "write3"); err != nil {
			t.Errorf("%+v: one that comes behind it: %v", tt, err)
		}
	}
}
