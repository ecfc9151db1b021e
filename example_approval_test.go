package dragoman_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"testing"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/openai/chat"
	"github.com/dragoman-mcp/dragoman/openai/model"
	"github.com/dragoman-mcp/dragoman/rehearsal"
	"github.com/dragoman-mcp/dragoman/servers"
)

// approved is a rule: what may change something runs when a person has approved it.
type approved struct{ dragoman.Toolset }

// approval is the state of a call that asked, which comes back with the answers: what was
// asked by the layer below is in it, too, since a tool may ask once its call is approved.
type approval struct {
	Given bool
	Below []byte
}

func (a approved) Call(ctx context.Context, c dragoman.Call) (dragoman.Result, error) {
	if c.Tool == nil || c.Tool.Effect() == dragoman.ReadOnly {
		return a.Toolset.Call(ctx, c)
	}
	if c.Answers == nil {
		if c.Can&dragoman.AskApproval == 0 {
			return dragoman.Failure(dragoman.CodeDenied, "Nobody is there who could approve this call."), nil
		}
		return put(&dragoman.Asks{Questions: []dragoman.Question{{Key: "approval", Kind: dragoman.AskApproval, Server: c.Tool.Server}}}, approval{})
	}
	var was approval
	if err := json.Unmarshal(c.Answers.State, &was); err != nil {
		return dragoman.Result{}, err
	}
	if was.Given { // these are answers to the layer below
		answers := *c.Answers
		answers.State = was.Below
		c.Answers = &answers
	} else {
		var reply struct{ Action string }
		if err := json.Unmarshal(c.Answers.Replies["approval"], &reply); err != nil || reply.Action != "accept" {
			return dragoman.Failure(dragoman.CodeDenied, "A person did not allow this call."), nil
		}
		c.Answers = nil
	}
	result, err := a.Toolset.Call(ctx, c)
	if err != nil || result.Asks == nil {
		return result, err
	}
	if result.Asks.Deferred() {
		return result, nil // it was not made, and is made again as it is
	}
	return put(result.Asks, approval{Given: true, Below: result.Asks.State})
}

// put is the result that puts questions, with a state of ours around that of the layer below.
func put(asks *dragoman.Asks, state approval) (dragoman.Result, error) {
	data, err := json.Marshal(state)
	ours := *asks
	ours.State = data
	return dragoman.Result{Asks: &ours, Ran: dragoman.RanNot}, err
}

// A rule that has a person approve what may change something: it asks, and [Loop.Ask]
// brings the answer. Nothing waits in the toolset, so the time of the loop stands still.
func ExampleAsks() {
	ctx := context.Background()
	tools, err := servers.Start(map[string]servers.Server{"weather": {Connect: weather}}, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer tools.Close()
	if err := tools.Wait(ctx); err != nil {
		log.Fatal(err)
	}
	talk := &chat.Talk{
		Client: &model.Client{BaseURL: "http://rehearsal.invalid/v1", HTTP: &http.Client{Transport: &rehearsal.Model{}}},
		Model:  "rehearsal",
		Can:    dragoman.AskApproval,
	}
	loop := dragoman.Loop{Tools: approved{tools}, Ask: func(_ context.Context, c dragoman.Call, asks *dragoman.Asks) (*dragoman.Answers, error) {
		replies := make(map[string]json.RawMessage)
		for _, q := range asks.Questions {
			fmt.Printf("%s %s %s?\n", q.Kind, c.Tool.Name, c.Arguments)
			replies[q.Key] = json.RawMessage(`{"action":"accept"}`)
		}
		return &dragoman.Answers{State: asks.State, Replies: replies}, nil
	}}
	if err := loop.Run(ctx, talk.Say("CALL weather_get_city {\"city\":\"Oslo\"}\nTHEN\nSAY It is 22 degrees in Oslo.")); err != nil {
		log.Fatal(err)
	}
	fmt.Println(talk.Text())
	// Output:
	// approval weather__weather_get_city {"city":"Oslo"}?
	// It is 22 degrees in Oslo.
}

// asker is a tool that asks for a word, and says it.
type asker struct{}

func (asker) List(context.Context) (*dragoman.List, error) {
	return &dragoman.List{Tools: dragoman.NewTools([]dragoman.Tool{word})}, nil
}

func (asker) Call(_ context.Context, c dragoman.Call) (dragoman.Result, error) {
	if c.Answers == nil {
		return dragoman.Result{Asks: &dragoman.Asks{State: []byte("word?"), Questions: []dragoman.Question{{Key: "form", Kind: dragoman.AskForm}}}}, nil
	}
	return dragoman.Result{Content: json.RawMessage(fmt.Sprintf(`{"state":%q,"reply":%s}`, c.Answers.State, c.Answers.Replies["form"]))}, nil
}

var word = dragoman.Tool{Name: "word", Original: "word", InputSchema: json.RawMessage(`{"type":"object"}`)}

// A call that is approved may ask on: the answers to that are the tool's, with its own state.
func TestApprovedCallAsks(t *testing.T) {
	var kinds []dragoman.Kind
	loop := dragoman.Loop{Tools: approved{asker{}}, Ask: func(_ context.Context, _ dragoman.Call, asks *dragoman.Asks) (*dragoman.Answers, error) {
		kinds = append(kinds, asks.Questions[0].Kind)
		return &dragoman.Answers{State: asks.State, Replies: map[string]json.RawMessage{asks.Questions[0].Key: json.RawMessage(`{"action":"accept"}`)}}, nil
	}}
	result, err := loop.Call(t.Context(), dragoman.Call{Tool: &word, Can: dragoman.AskApproval | dragoman.AskForm})
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"state":"word?","reply":{"action":"accept"}}`; string(result.Content) != want || len(kinds) != 2 {
		t.Errorf("asked %v, got %s %v, want %s", kinds, result.Content, result.Problem, want)
	}
}
