// Command ownloop joins mcp, dialect and result for a program that has a loop of
// its own: the tools of a server become functions for a provider, a call that a
// model wrote runs at the server, and its result becomes the message to append.
//
// For several servers, [github.com/dragoman-mcp/dragoman/servers.Start] takes the
// place of mcp.Connect, and the rest stays as it is.
//
//	go run ./examples/ownloop gemini echo '{"message":"hi"}' -- npx -y @modelcontextprotocol/server-everything
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/mcp"
	"github.com/dragoman-mcp/dragoman/result"
)

func main() {
	if len(os.Args) < 6 || os.Args[4] != "--" {
		log.Fatal("usage: ownloop DIALECT TOOL ARGUMENTS -- SERVER-COMMAND …")
	}
	server := &mcp.Command{New: func() *exec.Cmd { return exec.Command(os.Args[5], os.Args[6:]...) }}
	if err := run(context.Background(), os.Stdout, server, os.Args[1], os.Args[2], os.Args[3]); err != nil {
		log.Fatal(err)
	}
}

// run does for one call what a loop does for each.
func run(ctx context.Context, out io.Writer, server mcp.Transport, provider, name, written string) error {
	client, err := mcp.Connect(ctx, server, &mcp.ClientOptions{Label: "server"})
	if err != nil {
		return err
	}
	defer client.Close()
	list, err := client.List(ctx)
	if err != nil {
		return err
	}
	d, err := dialect.For(provider)
	if err != nil {
		return err
	}

	// What goes into the request: the functions, as many as the provider takes.
	functions := d.ConvertTools(list.Tools.All())
	functions.Fit(d, dialect.Budget{})
	for _, function := range functions.Tools {
		fmt.Fprintf(out, "%s\n", function)
	}

	// What comes out of the model's message: a name, and arguments as it wrote them.
	tool, plan := functions.Find(name)
	call := dragoman.Call{ID: "call_1", Tool: tool}
	call.Arguments, _, call.Problem = plan.DecodeAs(written, "tool_calls", dialect.GradeOf(tool))
	res, err := (&dragoman.Loop{Tools: client}).Call(ctx, call)
	if err != nil {
		return err
	}
	message := (&result.Shape{}).Message(call, res)
	return json.NewEncoder(out).Encode(map[string]string{"role": "tool", "tool_call_id": call.ID, "content": message.Text})
}
