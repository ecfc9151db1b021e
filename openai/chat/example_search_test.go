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

// crowd is a toolset of 300 tools; a set of package servers is one, too.
type crowd struct{}

var crowded = func() *dragoman.List {
	tools := make([]dragoman.Tool, 300)
	for i := range tools {
		name := fmt.Sprintf("open_door_%d", i)
		tools[i] = dragoman.Tool{
			Name: name, Original: name, Server: "house", Description: fmt.Sprintf("Opens door number %d.", i),
			InputSchema: json.RawMessage(`{"type":"object","properties":{"wide":{"type":"boolean"}}}`),
		}
	}
	return &dragoman.List{Tools: dragoman.NewTools(tools)}
}()

func (crowd) List(context.Context) (*dragoman.List, error) { return crowded, nil }

func (crowd) Call(_ context.Context, call dragoman.Call) (dragoman.Result, error) {
	return dragoman.Result{Ran: dragoman.RanYes, Content: json.RawMessage(`{"content":[],"structuredContent":{"opened":"` + call.Tool.Name + `"}}`)}, nil
}

// A model that has too many tools searches for the one that it needs. Here it is told to.
func ExampleTalk_search() {
	client := &model.Client{
		BaseURL: "http://rehearsal.invalid/v1",
		HTTP:    &http.Client{Transport: &rehearsal.Model{}},
	}
	talk := &chat.Talk{Client: client, Model: "rehearsal", Search: model.Search{When: model.Always}}
	var finder model.Finder
	loop := dragoman.Loop{Tools: finder.Around(client, crowd{}), Observe: func(e dragoman.Event) {
		if e.Phase == dragoman.Execute && e.Result != nil {
			fmt.Printf("%s said %.80s…\n", e.Call.Tool.Name, e.Result.Content)
		}
	}}
	script := "CALL find_tools {\"query\":\"open door 217\"}\nTHEN\n" +
		"CALL call_tool {\"name\":\"open_door_217\",\"arguments\":{\"wide\":true}}\nTHEN\nSAY It is open."
	if err := loop.Run(context.Background(), talk.Say(script)); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(talk.Text())
	// Output:
	// find_tools said {"content":[],"structuredContent":{"tools":[{"name":"open_door_217","description…
	// open_door_217 said {"content":[],"structuredContent":{"opened":"open_door_217"}}…
	// It is open.
}
