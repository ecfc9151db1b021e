package recall

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/memory"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// A request of an agent that takes back what was not answered.
type taking struct {
	agent, digest string
	says          []string // in turn a person, of whom a message may have parts, and the model
	calls         string   // that it makes: of a tool that writes, reads, or is cut
	answer        string   // what the client sees; empty for one who left before
	want          string   // what the model is told: names of calls that ran, and of those of which nobody knows
}

// TestTakenBack: a person takes a turn back before anything was said, and says something else in its
// place, or the same. The model is told of calls that may have changed something, once, then and
// later; not where the turn was answered, and no other agent.
func TestTakenBack(t *testing.T) {
	const agent = "session "
	gone := taking{agent, "p1", []string{"Save it."}, "write", "", ""}
	for name, requests := range map[string][]taking{
		"other words": {
			gone,
			{agent, "p2", []string{"Save it.\nBriefly."}, "", "Yes.", "Save it.|write|Save it.\nBriefly."},
			{agent, "p3", []string{"Save it.\nBriefly.", "Yes.", "And?"}, "write2", "", "Save it.|write|Save it.\nBriefly.|Yes.|And?"},
			{agent, "p4", []string{"Save it.\nBriefly.", "Yes.", "So?"}, "", "Done.", "Save it.|write|Save it.\nBriefly.|Yes.|And?|write2|So?"},
			{agent, "p5", []string{"Save it.\nBriefly.", "Yes.", "So?", "Done.", "Bye."}, "", "Bye.", "Save it.|write|Save it.\nBriefly.|Yes.|And?|write2|So?|Done.|Bye."},
		},
		"the same words": {
			gone,
			{agent, "p2", []string{"Save it."}, "", "Yes.", "Save it.|write|Save it."},
			{agent, "p3", []string{"Save it.", "Yes.", "And?"}, "", "Yes.", "Save it.|write|Save it.|Yes.|And?"},
		},
		"the same words, and more in the message": {
			gone,
			{agent, "p2", []string{"Save it."}, "", "", "Save it.|write|Save it."},
			{agent, "p3", []string{"Save it.+And?"}, "", "Yes.", "Save it.|write|Save it.+And?"},
			{agent, "p4", []string{"Save it.+And?", "Yes.", "Bye."}, "", "Yes.", "Save it.|write|Save it.+And?|Yes.|Bye."},
		},
		"twice": {
			gone,
			{agent, "p2", []string{"Now."}, "write2", "", "Save it.|write|Now."},
			{agent, "p3", []string{"Now."}, "", "", "Save it.|write|Now.|write2|Now."},
			{agent, "p4", []string{"Then."}, "", "Yes.", "Save it.|write|Now.|write2|Then."},
			{agent, "p5", []string{"Then.", "Yes.", "Bye."}, "", "Yes.", "Save it.|write|Now.|write2|Then.|Yes.|Bye."},
		},
		"with parts, and back": {
			gone,
			{agent, "p2", []string{"Save it.+Now."}, "write2", "", "Save it.|write|Now."},
			{agent, "p3", []string{"Then."}, "", "Yes.", "Save it.|write|Now.|write2|Then."},
		},
		"the same request again": {
			gone,
			{agent, "p1", []string{"Save it."}, "write2", "", "Save it.|write"},
			{agent, "p2", []string{"Then."}, "write3", "", "Save it.|write|write2|Then."},
			{agent, "p2", []string{"Then."}, "", "Yes.", "Save it.|write|write2|Then.|write3"},
			{agent, "p3", []string{"Then.", "Yes.", "Bye."}, "", "Yes.", "Save it.|write|write2|Then.|write3|Yes.|Bye."},
		},
		"within the message": {
			gone,
			{agent, "p2", []string{"Save it.+Now."}, "", "Yes.", "Save it.|write|Now."},
			{agent, "p3", []string{"Else."}, "", "Yes.", "Else."},
		},
		"who goes back behind an answer": {
			gone,
			{agent, "p2", []string{"Now."}, "", "Yes.", "Save it.|write|Now."},
			{agent, "p3", []string{"Else."}, "", "Yes.", "Else."},
		},
		"an answer":             {{agent, "p1", []string{"Save it."}, "write", "Yes.", ""}, {agent, "p2", []string{"Now."}, "", "Yes.", "Now."}},
		"an answer in the end":  {gone, {agent, "p1", []string{"Save it."}, "", "Yes.", "Save it.|write"}, {agent, "p2", []string{"Now."}, "", "Yes.", "Now."}},
		"half of one":           {{agent, "p1", []string{"Save it."}, "write", "Yes...", ""}, {agent, "p2", []string{"Now."}, "", "Yes.", "Now."}},
		"what only reads":       {{agent, "p1", []string{"Save it."}, "read", "", ""}, {agent, "p2", []string{"Now."}, "", "Yes.", "Now."}},
		"a process that dies":   {{agent, "p1", []string{"Save it."}, "dies", "", ""}, {agent, "p2", []string{"Now."}, "", "Yes.", "Save it.|may or may not|Now."}},
		"another agent":         {gone, {agent + "a", "p2", []string{"Now."}, "", "Yes.", "Now."}},
		"another conversation":  {gone, {"other ", "p2", []string{"Now."}, "", "Yes.", "Now."}},
		"what is asked beside":  {gone, {"", "p2", []string{"Now."}, "", "Yes.", "Now."}},
		"another place":         {gone, {agent, "p2", []string{"Now.", "Yes.", "Then."}, "", "Yes.", "Now.|Yes.|Then."}},
		"nothing is taken back": {{"", "p1", []string{"Save it."}, "write", "", ""}, {agent, "p2", []string{"Now."}, "", "Yes.", "Now."}},
	} {
		t.Run(name, func(t *testing.T) {
			kept, running := &memory.Memory{}, &memory.Running{}
			for n, r := range requests {
				thread := r.thread(kept, running)
				if err := thread.Restore(t.Context()); err != nil {
					t.Fatal(err)
				}
				if got := told(thread); r.want != "" && got != r.want {
					t.Errorf("of request %d the model is told %q, want %q", n, got, r.want)
				}
				r.end(t, thread)
			}
		})
	}
}

// told is what the model is told, in words.
func told(thread *Thread) string {
	var told []string
	for _, m := range thread.Dialogue.History() {
		text := contentText(rawjson.Get(m, "content"))
		if strings.Contains(text, "may or may not") {
			text = "may or may not"
		}
		if text != "" {
			told = append(told, text)
		}
	}
	return strings.Join(told, "|")
}

// thread is the request.
func (r taking) thread(kept *memory.Memory, running *memory.Running) *Thread {
	thread := &Thread{
		Request: Request{Owner: "alice", Identified: true, Retried: true, Digest: r.digest, TakesBack: r.agent, Pieces: map[int]Pieces{}}, Memory: kept, Running: running,
		Dialogue: &model.Dialogue{Client: &model.Client{}, Request: model.Request{Object: &rawjson.Object{}}},
	}
	for i, says := range r.says {
		role := []string{"user", "assistant"}[i%2]
		if role == "user" {
			thread.Request.Pieces[i] = parts(strings.Split(says, "+"))
		}
		thread.Request.Messages = append(thread.Request.Messages, model.ChatMessage(role, rawjson.Quote(says)))
	}
	return thread
}

// TestTakenBackAtOnce: who sends something else at once waits for what was done for the prompt that
// was taken back.
func TestTakenBackAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept, running := &memory.Memory{}, &memory.Running{}
		ctx, leave := context.WithCancel(t.Context())
		gone := taking{agent: "session ", digest: "p1", says: []string{"Save it."}, calls: "write"}
		first := gone.thread(kept, running)
		if err := first.Restore(ctx); err != nil {
			t.Fatal(err)
		}
		if err := first.KeepBegun(ctx, &model.Round{}, ""); err != nil { // it calls something
			t.Fatal(err)
		}
		leave()
		next, restored := taking{agent: "session ", digest: "p2", says: []string{"Now."}}.thread(kept, running), false
		go func() {
			if err := next.Restore(t.Context()); err != nil {
				t.Error(err)
			}
			restored = true
		}()
		if synctest.Wait(); restored {
			t.Error("it does not wait")
		}
		gone.end(t, first)
		if synctest.Wait(); !restored || !strings.Contains(fmt.Sprintf("%s", next.Dialogue.History()), "Save it.") {
			t.Errorf("restored: %t, the model is told %s", restored, next.Dialogue.History())
		}
	})
}

// parts are texts as parts of a message.
func parts(texts []string) Pieces {
	p := Pieces{}
	for _, text := range texts {
		p.Parts = append(p.Parts, rawjson.Quote(text))
	}
	p.Messages = func(from, to int) []json.RawMessage {
		return []json.RawMessage{model.ChatMessage("user", rawjson.Quote(strings.Join(texts[from:to], "+")))}
	}
	return p
}

// end does what the model calls, and answers.
func (r taking) end(t *testing.T, thread *Thread) {
	t.Helper()
	if r.does(t, thread); r.calls == "dies" {
		return
	}
	end := End{Seen: r.answer}
	if end.Err = context.Canceled; r.answer != "" && !strings.HasSuffix(r.answer, "...") {
		end.Err, end.Last = nil, &model.Reply{Message: object(t, string(model.ChatMessage("assistant", rawjson.Quote(r.answer))))}
	}
	thread.Remember(end)
}

// does does what the model calls.
func (r taking) does(t *testing.T, thread *Thread) {
	t.Helper()
	if r.calls != "" {
		tool := &dragoman.Tool{Name: r.calls}
		if r.calls == "read" {
			tool.Declared = dragoman.ReadOnly
		}
		call := memory.Call{ID: r.calls, Raw: json.RawMessage(fmt.Sprintf(`{"id":%q,"type":"function","function":{"name":%[1]q,"arguments":"{}"}}`, r.calls))}
		message := memory.Message{Message: json.RawMessage(`{"role":"assistant","content":null}`), Calls: []memory.Call{call}}
		if err := thread.KeepBegun(t.Context(), &model.Round{Message: &message, Run: []dragoman.Call{{ID: r.calls, Tool: tool}}}, ""); err != nil {
			t.Fatal(err)
		}
		if r.calls == "dies" {
			return
		}
		call.Result = json.RawMessage(fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"content":%[1]q}`, r.calls))
		thread.Dialogue.AddHidden(model.Documents(&memory.Message{Message: message.Message, Calls: []memory.Call{call}})...)
		thread.Dialogue.Wrote = thread.Dialogue.Wrote || r.calls != "read"
	}
}
