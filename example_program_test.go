package dragoman_test

import (
	"context"
	"fmt"
	"log"
	"net/http"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/mcp"
	"github.com/dragoman-mcp/dragoman/openai/chat"
	"github.com/dragoman-mcp/dragoman/openai/model"
	"github.com/dragoman-mcp/dragoman/rehearsal"
	"github.com/dragoman-mcp/dragoman/servers"
	"github.com/dragoman-mcp/dragoman/toolkit"
)

type place struct {
	City string `json:"city" desc:"The city"`
}

type sky struct {
	Celsius int `json:"celsius"`
}

// weather is an MCP server in this process. A program would name a command or an address
// instead: servers.Server{Command: []string{"npx", "-y", "…"}}, or URL.
func weather(ctx context.Context) mcp.Transport {
	s := toolkit.NewServer(toolkit.Options{Service: "weather"})
	toolkit.Add(s, toolkit.Tool{
		Name: "weather_get_city", Description: "Tells the weather of a city.",
		Hints:    toolkit.Hints{ReadOnly: toolkit.Yes, Destructive: toolkit.No, Idempotent: toolkit.Yes, OpenWorld: toolkit.No},
		Examples: []toolkit.Example{{Ask: "What is the weather in Oslo?", Arguments: `{"city":"Oslo"}`}},
	}, func(context.Context, place) (sky, error) { return sky{22}, nil })
	r, w := s.Pipe(ctx)
	return &mcp.Pipe{Reader: r, Writer: w}
}

// A program with MCP servers and a model: the servers are started, and the loop lets the
// model use their tools until it has an answer. The model here is one for tests, which
// needs no key and no network.
func Example() {
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
		Client: &model.Client{
			BaseURL: "http://rehearsal.invalid/v1", // such as https://api.openai.com/v1
			HTTP:    &http.Client{Transport: &rehearsal.Model{}},
		},
		Model: "rehearsal",
	}
	loop := dragoman.Loop{Tools: tools}
	question := "CALL weather_get_city {\"city\":\"Oslo\"}\nTHEN\nSAY It is 22 degrees in Oslo."
	if err := loop.Run(ctx, talk.Say(question)); err != nil {
		log.Fatal(err)
	}
	fmt.Println(talk.Text())
	// Output: It is 22 degrees in Oslo.
}
