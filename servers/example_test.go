package servers_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/mcp"
	"github.com/dragoman-mcp/dragoman/result"
	"github.com/dragoman-mcp/dragoman/servers"
	"github.com/dragoman-mcp/dragoman/toolkit"
)

type (
	city struct {
		City string `json:"city" desc:"The city"`
	}
	weather struct {
		Celsius int `json:"celsius"`
	}
	hotels struct {
		Hotels []string `json:"hotels"`
	}
)

// here serves a tool in this process; a program would say Command or URL instead.
func here[Out any](service, tool string, answer Out) servers.Server {
	s := toolkit.NewServer(toolkit.Options{Service: service})
	toolkit.Add(s, toolkit.Tool{
		Name: tool, Description: "Looks something up in a city.",
		Hints:    toolkit.Hints{ReadOnly: toolkit.Yes, Destructive: toolkit.No, Idempotent: toolkit.Yes, OpenWorld: toolkit.No},
		Examples: []toolkit.Example{{Ask: "What about Oslo?", Arguments: `{"city":"Oslo"}`}},
	}, func(context.Context, city) (Out, error) { return answer, nil })
	return servers.Server{Connect: func(ctx context.Context) mcp.Transport {
		r, w := s.Pipe(ctx)
		return &mcp.Pipe{Reader: r, Writer: w}
	}}
}

// Two servers, as the tools of a model behind OpenAI's API: what goes into the
// request, and what is done with a call that the model wrote.
func Example() {
	ctx := context.Background()
	set, err := servers.Start(map[string]servers.Server{
		"weather": here("weather", "weather_get_city", weather{22}),
		"travel":  here("travel", "travel_find_hotels", hotels{[]string{"Lakeside"}}),
		"broken":  {Command: []string{"/no/such/program"}},
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer set.Close()
	if err := set.Wait(ctx); err != nil {
		log.Fatal(err)
	}
	list, err := set.List(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, server := range list.Servers {
		fmt.Println(server.Label, server.State)
	}

	d := dialect.ForHost("https://api.openai.com/v1")
	doc := d.ConvertTools(list.Tools.All())
	doc.Fit(d, dialect.Budget{})
	fmt.Println(len(doc.Tools), "tools in the request")

	// The model calls a tool, with a slip in its arguments, and one that there is not.
	loop := dragoman.Loop{Tools: set} // answers what cannot be run, bounds what can
	for _, name := range []string{"weather__weather_get_city", "weather__no_such_tool"} {
		tool, plan := doc.Find(name)
		call := dragoman.Call{ID: "call_1", Name: name, Tool: tool}
		call.Arguments, _, call.Problem = plan.DecodeAs(`{"City":"Oslo",}`, "tool_calls", dialect.GradeOf(tool))
		res, err := loop.Call(ctx, call)
		if err != nil {
			log.Fatal(err)
		}
		res.Info.Duration = 0 // for the sake of this example
		fmt.Println((&result.Shape{}).Message(call, res).Text)
	}
	// Output:
	// broken failed
	// travel connected
	// weather connected
	// 2 tools in the request
	// {"status":"success","data":{"celsius":22},"meta":{"tool":"weather_get_city","server":"weather","duration_ms":0,"cached":false}}
	// {"status":"error","data":{"error":"unknown_tool","message":"There is no such tool."},"meta":{"tool":"weather__no_such_tool","server":"","duration_ms":0,"cached":false}}
}

// A server over HTTP that is shown the token of the moment, by a client of one's own: that of
// golang.org/x/oauth2 is made so, too.
func ExampleServer_Connect() {
	client := &http.Client{Transport: bearer(func() string { return "the token of the moment" })}
	set, err := servers.Start(map[string]servers.Server{
		"tickets": {Connect: func(context.Context) mcp.Transport {
			return mcp.HTTP{URL: "https://tickets.example.com/mcp", Client: client}
		}},
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer set.Close()
	err = set.Wait(context.Background())
	if e, ok := errors.AsType[*mcp.AuthorizationError](err); ok {
		log.Fatalf("another token is wanted: %q", e.Challenges)
	}
}

// bearer shows a token with each request.
type bearer func() string

func (token bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+token())
	return http.DefaultTransport.RoundTrip(r)
}
