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
func ExampleConnect_command() {
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

	tools, err := c.Tools(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for i := range tools {
		if tools[i].Name != "echo" {
			continue
		}
		res, err := c.Call(ctx, dragoman.Call{Tool: &tools[i], Arguments: json.RawMessage(`{"message":"hi"}`)})
		if err != nil {
			log.Fatal(err) // ctx has ended
		}
		if res.Problem != nil {
			log.Fatal(res.Problem) // no result, and why
		}
		fmt.Printf("%s\n", res.Content)
	}
}

// A server over HTTP that wants authorization says where to get it.
func ExampleConnect_http() {
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
	tools, err := c.Tools(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(c.Era(), tools[0].Name, string(tools[0].InputSchema))
	// Output: modern now {"type":"object"}
}

// Prompts, resources and completion go through List and Request, or, with their
// problems told apart like those of tools, through Call.
func ExampleClient_Request() {
	var c *mcp.Client // of Connect
	ctx := context.Background()

	prompts, err := c.List(ctx, "prompts/list")
	if err != nil {
		log.Fatal(err)
	}
	for _, p := range prompts.Items {
		fmt.Printf("%s\n", p)
	}
	raw, err := c.Request(ctx, "prompts/get", json.RawMessage(`{"name":"greet","arguments":{"who":"Ada"}}`))
	if e, ok := errors.AsType[*mcp.RPCError](err); ok {
		log.Fatalf("the server refused with %d", e.Code)
	}
	fmt.Printf("%s %v\n", raw, err)

	res, err := c.Call(ctx, dragoman.Call{Method: "resources/read", Arguments: json.RawMessage(`{"uri":"file:///notes"}`)})
	fmt.Println(res.Problem, err)
}
