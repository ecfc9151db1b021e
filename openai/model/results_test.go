package model

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/openai/memory"
)

// A client answers what it was asked, and nothing that only an operator may answer.
func TestAnswered(t *testing.T) {
	mine, also, theirs := memory.Question{Key: "a"}, memory.Question{Key: "b"}, memory.Question{Key: "op", Operator: true}
	type replies = map[string]json.RawMessage
	yes := json.RawMessage(`{"action":"accept"}`)
	for _, tc := range []struct {
		name      string
		questions []memory.Question
		given     replies
		want      dragoman.Answers
	}{
		{"answered", []memory.Question{mine}, replies{"a": yes}, dragoman.Answers{Replies: replies{"a": yes}}},
		{"one of two", []memory.Question{mine, also}, replies{"b": yes}, dragoman.Answers{Replies: replies{"b": yes}}},
		{"the other of two", []memory.Question{mine, also}, replies{"a": yes}, dragoman.Answers{Replies: replies{"a": yes}}},
		{"none", []memory.Question{mine, also}, nil, dragoman.Answers{Gone: true}},
		{"not asked", []memory.Question{mine}, replies{"x": yes}, dragoman.Answers{Gone: true}},
		{"for an operator", []memory.Question{theirs}, replies{"op": yes}, dragoman.Answers{}},
		{"both kinds", []memory.Question{mine, theirs}, replies{"a": yes, "op": yes}, dragoman.Answers{Replies: replies{"a": yes}}},
		{"only time", nil, nil, dragoman.Answers{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.want.State, tc.want.Ran = []byte("s"), dragoman.RanYes
			got := answered(&memory.Waiting{Questions: tc.questions, State: []byte("s"), Ran: dragoman.RanYes}, tc.given)
			if diff := cmp.Diff(&tc.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// A call counts once, whether it is answered at once, asks first, or waits for one that asks.
func TestCallsThatAskAreCounted(t *testing.T) {
	tools := numbered(3)
	d := searching(t, dialect.Conservative, tools)
	round := &Round{Reply: &Reply{}, Message: &memory.Message{}}
	for i, tool := range tools.All() {
		id := fmt.Sprint("call_", i)
		round.Run = append(round.Run, dragoman.Call{ID: id, Tool: &tool, Arguments: json.RawMessage(`{"path":"/a"}`)})
		round.Message.Calls = append(round.Message.Calls, memory.Call{ID: id})
	}
	done := dragoman.Result{Ran: dragoman.RanYes, Content: json.RawMessage(`{"content":[]}`)}
	d.Answer(round, []dragoman.Result{done, {Asks: &dragoman.Asks{State: []byte("s"), Questions: []dragoman.Question{{Key: "q"}}}}, {Asks: &dragoman.Asks{}, Ran: dragoman.RanNot}})
	if d.Spent.Calls != 2 {
		t.Errorf("%d calls are counted while one asks, want 2", d.Spent.Calls)
	}
	next := d.Resume(round.Message, map[string]map[string]json.RawMessage{"call_1": {"q": json.RawMessage(`{}`)}})
	d.Answer(next, []dragoman.Result{done, done})
	if d.Spent.Calls != 3 {
		t.Errorf("%d calls are counted, want 3", d.Spent.Calls)
	}
}
