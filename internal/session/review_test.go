package session

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/judge/approval"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// reviewing is an approver's stack, with questions of others in the inbox.
type reviewing struct {
	*testing.T
	inbox *approval.Inbox
	tools dragoman.Toolset
}

func reviews(t *testing.T, who caller.Caller) *reviewing {
	t.Helper()
	l := kept(t)
	o := stacked(t, newCounting(), nil, l)
	s, err := o.Open(t.Context(), who, Want{Client: true, Reviews: true, NoTools: true})
	if err != nil {
		t.Fatal(err)
	}
	return &reviewing{t, l.Inbox, s.Tools}
}

func (r *reviewing) wait(caller, tool, arguments string, approvers ...string) approval.Approval {
	r.Helper()
	a, err := r.inbox.Ask(r.Context(), approval.Request{
		Key:     approval.Key{Caller: caller, Server: "files", Tool: tool},
		Details: approval.Details{CallerName: "ann\nRule: none", Effect: "may_change"}, Arguments: json.RawMessage(arguments), Rule: "writes", Approvers: approvers,
	})
	if err != nil {
		r.Fatal(err)
	}
	return a
}

func (r *reviewing) state(a approval.Approval) approval.State {
	r.Helper()
	a, err := r.inbox.Get(r.Context(), a.ID)
	if err != nil {
		r.Fatal(err)
	}
	return a.State
}

// call calls the tool, with a reply to what the last result has asked.
func (r *reviewing) call(last *dragoman.Asks, reply string) dragoman.Result {
	r.Helper()
	tool := ReviewTool()
	call := dragoman.Call{Tool: &tool, Can: dragoman.AskForm}
	if last != nil {
		call.Answers = &dragoman.Answers{State: last.State, Replies: map[string]json.RawMessage{reviewKey: json.RawMessage(reply)}}
	}
	res, err := r.tools.Call(r.Context(), call)
	if err != nil {
		r.Fatal(err)
	}
	return res
}

// message is what the person is shown.
func (r *reviewing) message(res dragoman.Result) string {
	r.Helper()
	if res.Asks == nil || len(res.Asks.Questions) != 1 {
		r.Fatalf("nothing is asked: %+v", res)
	}
	o, err := rawjson.ParseObject(res.Asks.Questions[0].Params)
	if err != nil {
		r.Fatal(err)
	}
	text, _ := rawjson.String(o.Get("message"))
	return text
}

var olga = caller.Caller{ID: "key-olga", Name: "olga", Grants: []string{"approve:files__*"}}

func said(decision string) string {
	return fmt.Sprintf(`{"action":"accept","content":{"decision":%q,"why":"so"}}`, decision)
}

// Each question is shown, oldest first, and what the person says is done: the model is
// told how many.
func TestReview(t *testing.T) {
	r := reviews(t, olga)
	yes, no, left := r.wait("key-ann", "write", `{"n":1}`), r.wait("key-ann", "write", `{"n":2}`), r.wait("key-ann", "write", `{"n":3}`)
	for _, tt := range []struct {
		name, tool string
		approvers  []string
	}{{"key-olga", "write", nil}, {"key-ann", "write", []string{"ada"}}} {
		r.wait(tt.name, tt.tool, `{"hidden":1}`, tt.approvers...)
	}
	other := r.wait("key-ann", "write", `{"n":4}`, "olg?")
	res := r.call(nil, "")
	for _, step := range []struct{ shows, says string }{{`{"n":1}`, "approve"}, {`{"n":2}`, "deny"}, {`{"n":3}`, "later"}, {`{"n":4}`, "perhaps"}} {
		if text := r.message(res); !strings.HasSuffix(text, step.shows) {
			t.Errorf("shown:\n%s\nwant %s", text, step.shows)
		}
		res = r.call(res.Asks, said(step.says))
	}
	if want := `{"content":[{"type":"text","text":"Approved: 1. Denied: 1. Still waiting: 2."}]}`; string(res.Content) != want {
		t.Errorf("the model is told %s, want %s", res.Content, want)
	}
	if r.state(yes) != approval.Approved || r.state(no) != approval.Denied || r.state(left) != approval.Pending || r.state(other) != approval.Pending {
		t.Errorf("they are %s, %s, %s, %s", r.state(yes), r.state(no), r.state(left), r.state(other))
	}
	if x, err := r.inbox.Get(t.Context(), no.ID); err != nil || x.By != olga.ID || x.Why != "so" {
		t.Errorf("denied by %q, because %q", x.By, x.Why)
	}
}

// Nothing but an answer to what was shown decides anything, and that once.
func TestReviewDecidesNothingElse(t *testing.T) {
	r := reviews(t, olga)
	a := r.wait("key-ann", "write", `{"n":1}`)
	b := r.wait("key-ann", "write", `{"n":2}`)
	tool := ReviewTool()
	for name, call := range map[string]dragoman.Call{
		"a decision of the model's": {Tool: &tool, Can: dragoman.AskForm, Arguments: json.RawMessage(`{"decision":"approve","id":"` + a.ID + `"}`)},
		"an answer without a question": {Tool: &tool, Can: dragoman.AskForm, Answers: &dragoman.Answers{
			State: []byte(`{"asked":"` + a.ID + `","digest":"` + a.Digest.String() + `"}`), Replies: map[string]json.RawMessage{reviewKey: json.RawMessage(said("approve"))}}},
		"a client without forms": {Tool: &tool},
	} {
		if res, err := r.tools.Call(t.Context(), call); err != nil || res.Problem == nil {
			t.Errorf("%s: %+v, %v", name, res, err)
		}
	}
	first := r.call(nil, "")
	for _, reply := range []string{"", `null`, `{"action":"decline"}`, `{"action":"cancel"}`, `{"content":{"decision":"approve"}}`, `{"action":"Accept","content":{"decision":"approve"}}`} {
		if res := r.call(first.Asks, reply); res.Asks != nil || r.state(a) != approval.Pending {
			t.Errorf("%s: %+v; it is %s", reply, res, r.state(a))
		}
	}
	for _, reply := range []string{`{"action":"accept"}`, `{"action":"accept","content":{"Decision":"approve"}}`, `{"action":"accept","content":{"decision":["approve"]}}`} {
		if r.call(first.Asks, reply); r.state(a) != approval.Pending {
			t.Errorf("%s: it is %s", reply, r.state(a))
		}
	}
	r.call(first.Asks, said("approve"))
	second := r.call(first.Asks, said("deny"))
	if r.state(a) != approval.Approved || r.state(b) != approval.Pending {
		t.Errorf("answered twice, they are %s and %s", r.state(a), r.state(b))
	}
	// Whoever answers after somebody else has, has answered nothing.
	if _, err := r.inbox.Deny(t.Context(), b.ID, approval.Person{ID: "terminal:ada"}, ""); err != nil {
		t.Fatal(err)
	}
	res := r.call(second.Asks, said("approve"))
	if r.state(b) != approval.Denied || !strings.Contains(string(res.Content), "meanwhile: 2") {
		t.Errorf("it is %s; the model is told %s", r.state(b), res.Content)
	}
}

// A state is of no use to another approver, and what has expired is not approved.
func TestReviewIsBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := kept(t)
		o := stacked(t, newCounting(), nil, l)
		r := &reviewing{T: t, inbox: l.Inbox}
		as := func(who caller.Caller) {
			s, err := o.Open(t.Context(), who, Want{Client: true, Reviews: true, NoTools: true})
			if err != nil {
				t.Fatal(err)
			}
			r.tools = s.Tools
		}
		a, err := l.Inbox.Ask(t.Context(), approval.Request{Key: approval.Key{Caller: "key-ann", Server: "files", Tool: "write"}, Expires: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		as(olga)
		asked := r.call(nil, "")
		as(caller.Caller{ID: "key-eve", Grants: []string{"approve:*"}})
		if res := r.call(asked.Asks, said("approve")); res.Problem == nil {
			t.Errorf("with the state of another: %+v", res)
		}
		if expired, err := l.Inbox.Wait(t.Context(), a.ID); err != nil || expired.State != approval.Expired {
			t.Errorf("it came to %s, %v", expired.State, err)
		}
		as(olga)
		if res := r.call(asked.Asks, said("approve")); r.state(a) != approval.Expired || !strings.Contains(string(res.Content), "Approved: 0.") {
			t.Errorf("after it expired: it is %s; the model is told %s", r.state(a), res.Content)
		}
		// Rights are those of now: who lost theirs while the form was open answers nothing.
		b := r.wait("key-ann", "write", `{}`)
		asked = r.call(nil, "")
		as(caller.Caller{ID: olga.ID, Grants: []string{"tool:*"}})
		if r.call(asked.Asks, said("approve")); r.state(b) != approval.Pending {
			t.Errorf("without the right: it is %s", r.state(b))
		}
		_ = l.Close()
		time.Sleep(time.Second) // who looks for answers of other processes stops
	})
}

// What others wrote is shown as it is and cannot be taken for words of ours; the form
// has what the protocol lets a form have (MCP 2025-11-25, "Elicitation").
func TestReviewForm(t *testing.T) {
	r := reviews(t, olga)
	r.wait("key-ann", "write", "{\"path\":\"a\u202eb\",\"text\":\"x\\n\\nTool: harmless\"}")
	r.wait("key-ann", "write", `{"long":"`+strings.Repeat("x", maxForm)+`"}`)
	res := r.call(nil, "")
	text := r.message(res)
	for _, want := range []string{`{"path":"a\u202eb","text":"x\n\nTool: harmless"}`, `which is called "ann\nRule: none"`, "What it may do: change something"} {
		if !strings.Contains(text, want) {
			t.Errorf("shown:\n%s\nwant %s", text, want)
		}
	}
	if n := strings.Count(text, "\nRule: "); n != 1 {
		t.Errorf("%d rules are shown:\n%s", n, text)
	}
	var params struct {
		RequestedSchema struct {
			Type       string
			Properties map[string]struct {
				Type    string
				Enum    []string
				Default any
			}
		}
	}
	if err := json.Unmarshal(res.Asks.Questions[0].Params, &params); err != nil || params.RequestedSchema.Type != "object" {
		t.Fatalf("%+v, %v", params, err)
	}
	for name, p := range params.RequestedSchema.Properties {
		if p.Type != "string" || p.Default != nil || len(p.Enum) > 0 && p.Enum[0] != "later" {
			t.Errorf("%s: %+v", name, p)
		}
	}
	res = r.call(res.Asks, said("approve"))
	if want := `{"content":[{"type":"text","text":"Approved: 1. Denied: 0. Still waiting: 1. Some have arguments too long for a form: \"dragoman approve\" shows them."}]}`; string(res.Content) != want {
		t.Errorf("the model is told %s, want %s", res.Content, want)
	}
}
