package chat_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/openai/chat"
	"github.com/dragoman-mcp/dragoman/openai/model"
	"github.com/dragoman-mcp/dragoman/rehearsal"
)

// sky is a toolset of one tool; a server of package mcp is one, too.
type sky struct{}

func (sky) List(context.Context) (*dragoman.List, error) {
	return &dragoman.List{Tools: dragoman.NewTools([]dragoman.Tool{{
		Name: "get_weather", Original: "get_weather", Server: "sky", Description: "Tells the weather of a city.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`),
	}})}, nil
}

func (sky) Call(context.Context, dragoman.Call) (dragoman.Result, error) {
	return dragoman.Result{Ran: dragoman.RanYes, Content: json.RawMessage(`{"content":[],"structuredContent":{"sky":"blue"}}`)}, nil
}

// A program talks to a model that uses tools. The model here is one that needs no
// key and no network.
func ExampleTalk() {
	talk := &chat.Talk{
		Client: &model.Client{
			BaseURL: "http://rehearsal.invalid/v1",
			HTTP:    &http.Client{Transport: &rehearsal.Model{}},
		},
		Model: "rehearsal",
	}
	loop := dragoman.Loop{Tools: sky{}, Observe: func(e dragoman.Event) {
		if e.Phase == dragoman.Execute && e.Result != nil {
			fmt.Printf("%s said %s\n", e.Call.Tool.Name, e.Result.Content)
		}
	}}
	if err := loop.Run(context.Background(), talk.Say("CALL get_weather {\"city\":\"Oslo\"}\nTHEN\nSAY It is blue.")); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(talk.Text())
	// Output:
	// get_weather said {"content":[],"structuredContent":{"sky":"blue"}}
	// It is blue.
}
