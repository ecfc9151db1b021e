package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os/exec"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// A server as a child process: list its tools, call one.
func ExampleCommand() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	c, err := mcp.Connect(ctx, &mcp.Command{
		New:    func() *exec.Cmd { return exec.Command("npx", "-y", "@modelcontextprotocol/server-everything") },
		Stderr: func(line string) { log.Println("everything:", line) },
	}, &mcp.ClientOptions{Name: "example", Version: "1.0", Label: "everything"})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	list, err := c.List(ctx)
	if err != nil {
		log.Fatal(err)
	}
	res, err := c.Call(ctx, dragoman.Call{Tool: list.Tools.Find("echo"), Arguments: json.RawMessage(`{"message":"hi"}`)})
	if err != nil {
		log.Fatal(err) // ctx has ended
	}
	if res.Problem != nil {
		log.Fatal(res.Problem) // no result, and why
	}
	fmt.Printf("%s\n", res.Content)
}

// A server over HTTP that wants authorization says where to get it.
func ExampleHTTP() {
	c, err := mcp.Connect(context.Background(), &mcp.HTTP{
		URL:    "https://mcp.example.com/mcp",
		Header: http.Header{"Authorization": {"Bearer …"}},
	}, nil)
	if e, ok := errors.AsType[*mcp.AuthorizationError](err); ok {
		log.Fatalf("not authorized; the server says %q", e.Challenges)
	}
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	fmt.Println(c.Era(), c.ProtocolVersion())
}

// A server in the same process, here one that a few lines can be: over a Pipe,
// each message is a line.
func ExamplePipe() {
	theirIn, ourOut := io.Pipe()
	ourIn, theirOut := io.Pipe()
	go func() {
		lines := bufio.NewScanner(theirIn)
		for lines.Scan() {
			var m struct {
				ID     json.RawMessage
				Method string
			}
			if json.Unmarshal(lines.Bytes(), &m) != nil || m.ID == nil {
				continue
			}
			result := `{"resultType":"complete","tools":[{"name":"now","inputSchema":{"type":"object"}}]}`
			if m.Method == "server/discover" {
				result = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`
			}
			fmt.Fprintf(theirOut, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, result)
		}
		theirOut.Close()
	}()

	c, err := mcp.Connect(context.Background(), &mcp.Pipe{Reader: ourIn, Writer: ourOut}, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	list, err := c.List(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	tool := list.Tools.Find("now")
	fmt.Println(c.Era(), tool.Name, string(tool.InputSchema))
	// Output: modern now {"type":"object"}
}

// Prompts and resources are entries of the list; what is done with them are
// calls, too.
func ExampleClient_Call() {
	var c *mcp.Client // of Connect
	ctx := context.Background()

	list, err := c.List(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for i, e := range list.Entries {
		if e.Kind != dragoman.Resource {
			continue
		}
		res, err := c.Call(ctx, dragoman.Call{Method: "resources/read", Entry: &list.Entries[i]})
		fmt.Printf("%s: %s %v %v\n", e.URI, res.Content, res.Problem, err)
	}
}

// A call whose server asks something brings questions in place of a result. The
// Loop makes it again with the answers.
func ExampleClient_Call_asking() {
	ctx := context.Background()
	c, err := mcp.Connect(ctx, mcp.HTTP{URL: "https://mcp.example.com/mcp"}, &mcp.ClientOptions{Can: dragoman.AskForm})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	list, err := c.List(ctx)
	if err != nil {
		log.Fatal(err)
	}
	loop := dragoman.Loop{Tools: c, Ask: func(_ context.Context, _ dragoman.Call, asks *dragoman.Asks) (*dragoman.Answers, error) {
		replies := map[string]json.RawMessage{}
		for _, q := range asks.Questions {
			fmt.Printf("%s\n", q.Params)
			replies[q.Key] = json.RawMessage(`{"action":"decline"}`)
		}
		return &dragoman.Answers{Replies: replies}, nil
	}}
	res, err := loop.Call(ctx, dragoman.Call{Tool: list.Tools.Find("book"), Can: dragoman.AskForm})
	fmt.Printf("%s %v\n", res.Content, err)
}
