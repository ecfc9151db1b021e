package model_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/openai/model"
	"github.com/dragoman-mcp/dragoman/rehearsal"
)

// A half is a client half of one's own: here one whose client writes a line and reads one.
// It keeps nothing for a client that answers later, so what a tool asks is unanswered.
type half struct {
	line     string
	dialogue *model.Dialogue
	round    *model.Round
}

// Offer begins the dialogue, with the client's request and the tools.
func (h *half) Offer(list *dragoman.List) error {
	request := &model.Object{}
	request.Set("model", json.RawMessage(`"rehearsal"`))
	h.dialogue = &model.Dialogue{
		Client:  &model.Client{BaseURL: "http://rehearsal.invalid/v1", HTTP: &http.Client{Transport: &rehearsal.Model{}}},
		Request: model.Request{Object: request},
	}
	line, err := json.Marshal(h.line)
	if err != nil {
		return err
	}
	message := json.RawMessage(`{"role":"user","content":` + string(line) + `}`)
	o, err := model.ParseObject(message)
	if err != nil {
		return err
	}
	h.dialogue.Add(message, o)
	h.dialogue.Begin("")
	h.dialogue.Offer(list)
	return nil
}

// Next asks for one message and returns the calls in it.
func (h *half) Next(ctx context.Context, last bool) (calls []dragoman.Call, err error) {
	if h.round, err = h.dialogue.Next(ctx, last, model.Listener{}); err != nil {
		return nil, err
	}
	return h.round.Run, nil
}

// Answer puts the results where they belong.
func (h *half) Answer(_ context.Context, results []dragoman.Result) error {
	h.dialogue.Answer(h.round, results)
	return nil
}

// Close says what the model said last.
func (h *half) Close(err error) error {
	if err == nil {
		fmt.Printf("%s\n", h.round.Reply.Message.Get("content"))
	}
	return err
}

// shelf is a toolset of one tool.
type shelf struct{}

func (shelf) List(context.Context) (*dragoman.List, error) {
	return &dragoman.List{Tools: dragoman.NewTools([]dragoman.Tool{{
		Name: "count", Original: "count", Server: "shelf", InputSchema: json.RawMessage(`{"type":"object","properties":{}}`),
	}})}, nil
}

func (shelf) Call(context.Context, dragoman.Call) (dragoman.Result, error) {
	fmt.Println("counting")
	return dragoman.Result{Ran: dragoman.RanYes, Content: json.RawMessage(`{"content":[{"type":"text","text":"12"}]}`)}, nil
}

// A client half of one's own, for a wire that this module does not have.
func ExampleDialogue() {
	loop := dragoman.Loop{Tools: shelf{}}
	if err := loop.Run(context.Background(), &half{line: "CALL count {}\nTHEN\nSAY There are twelve."}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// counting
	// "There are twelve."
}
