// Conformance is the client that the official MCP conformance suite drives. The
// suite starts it once for each scenario, with the server's URL as the last
// argument and the scenario in the environment:
//
//	MCP_CONFORMANCE_SCENARIO          what to do
//	MCP_CONFORMANCE_CONTEXT           JSON with what the scenario needs, if anything
//	MCP_CONFORMANCE_PROTOCOL_VERSION  the revision that is tested
//
// It does what any client does, with package mcp: it lists what there is and
// calls what it was told to; see authorized.go for scenarios about authorization.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/mcp"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: conformance URL")
		os.Exit(2)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 110*time.Second)
	defer cancel()
	if err := run(ctx, os.Args[1], os.Getenv("MCP_CONFORMANCE_SCENARIO")); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

// A scenario is done on a connected client; tools are those that it may call.
type scenario func(ctx context.Context, c *mcp.Client, tools []dragoman.Tool) error

var scenarios = map[string]scenario{
	"initialize":                          nothing,
	"tools_call":                          call("add_numbers", `{"a":5,"b":3}`),
	"elicitation-sep1034-client-defaults": call("test_client_elicitation_defaults", `{}`),
	"sse-retry":                           call("test_reconnection", `{}`),
	"request-metadata":                    nothing,
	"json-schema-ref-no-deref":            nothing,
	"json-schema-2020-12-preservation":    echoSchema,
	"sep-2322-client-request-state":       callAll(`{}`),
	"http-standard-headers":               useEverything,
	"http-custom-headers":                 callAsTold,
	"http-invalid-tool-headers":           callAll(`{"region":"us-west1"}`),
}

func run(ctx context.Context, url, name string) error {
	do, ok := scenarios[name]
	if !ok && !authorized(name) {
		return fmt.Errorf("no such scenario: %q", name)
	}
	o := &mcp.ClientOptions{
		Name: "dragoman-conformance", Version: "1", Passive: true,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	if v := os.Getenv("MCP_CONFORMANCE_PROTOCOL_VERSION"); v != "" && v < "2026-07-28" {
		o.Era = mcp.Legacy
	}
	if authorized(name) {
		return authorize(ctx, url, o)
	}
	switch name {
	case "elicitation-sep1034-client-defaults":
		o.Can, reply = dragoman.AskForm, `{"action":"accept"}`
	case "sep-2322-client-request-state":
		o.Can, reply = dragoman.AskForm, `{"action":"accept","content":{"confirmed":true}}`
	}
	c, err := mcp.Connect(ctx, &mcp.HTTP{URL: url}, o)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.Refresh(ctx); err != nil { // prompts and resources, too
		return err
	}
	list, err := c.List(ctx)
	if err != nil {
		return err
	}
	var usable []dragoman.Tool
	for _, t := range list.Tools.All() {
		if t.Quarantined == nil {
			usable = append(usable, t)
		}
	}
	return do(ctx, c, usable)
}

// reply is the answer to every question.
var reply string

func answer(_ context.Context, _ dragoman.Call, asks *dragoman.Asks) (*dragoman.Answers, error) {
	replies := map[string]json.RawMessage{}
	for _, q := range asks.Questions {
		replies[q.Key] = json.RawMessage(reply)
	}
	return &dragoman.Answers{Replies: replies}, nil
}

func nothing(context.Context, *mcp.Client, []dragoman.Tool) error { return nil }

func call(name, arguments string) scenario {
	return func(ctx context.Context, c *mcp.Client, tools []dragoman.Tool) error {
		for i := range tools {
			if tools[i].Name == name {
				return callOne(ctx, c, &tools[i], json.RawMessage(arguments))
			}
		}
		return fmt.Errorf("no tool %q", name)
	}
}

func callOne(ctx context.Context, c *mcp.Client, t *dragoman.Tool, arguments json.RawMessage) error {
	loop := dragoman.Loop{Tools: c, Ask: answer}
	res, err := loop.Call(ctx, dragoman.Call{Tool: t, Arguments: arguments, Can: dragoman.AskForm})
	if err != nil {
		return err
	}
	if res.Problem != nil {
		return fmt.Errorf("calling %s: %w", t.Name, res.Problem)
	}
	return nil
}

// callAll calls every tool; some answer with errors on purpose.
func callAll(arguments string) scenario {
	return func(ctx context.Context, c *mcp.Client, tools []dragoman.Tool) error {
		for i := range tools {
			if err := callOne(ctx, c, &tools[i], json.RawMessage(arguments)); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}
		return ctx.Err()
	}
}

// callAsTold makes the calls of the scenario's context.
func callAsTold(ctx context.Context, c *mcp.Client, tools []dragoman.Tool) error {
	o, err := rawjson.ParseObject([]byte(os.Getenv("MCP_CONFORMANCE_CONTEXT")))
	if err != nil {
		return err
	}
	calls, err := rawjson.Elements(o.Get("toolCalls"))
	if err != nil {
		return err
	}
	for _, raw := range calls {
		o, err := rawjson.ParseObject(raw)
		if err != nil {
			return err
		}
		name, _ := rawjson.String(o.Get("name"))
		if err := call(name, string(o.Get("arguments")))(ctx, c, tools); err != nil {
			return err
		}
	}
	return nil
}

// echoSchema sends a tool's input schema back to the suite.
func echoSchema(ctx context.Context, c *mcp.Client, tools []dragoman.Tool) error {
	for i := range tools {
		if tools[i].Name == "json_schema_2020_12_tool" {
			var arguments rawjson.Object
			arguments.Set("schema", tools[i].InputSchema)
			return call("json_schema_echo", string(arguments.Bytes()))(ctx, c, tools)
		}
	}
	return fmt.Errorf("no tool to echo")
}

// useEverything uses one of each kind of thing.
func useEverything(ctx context.Context, c *mcp.Client, tools []dragoman.Tool) error {
	if len(tools) > 0 {
		if err := callOne(ctx, c, &tools[0], nil); err != nil {
			return err
		}
	}
	list, err := c.List(ctx)
	if err != nil {
		return err
	}
	done := map[string]bool{}
	for i, e := range list.Entries {
		method := map[dragoman.EntryKind]string{dragoman.Resource: "resources/read", dragoman.Prompt: "prompts/get"}[e.Kind]
		if method == "" || done[method] {
			continue
		}
		done[method] = true
		res, err := c.Call(ctx, dragoman.Call{Method: method, Entry: &list.Entries[i]})
		if err == nil && res.Problem != nil {
			err = res.Problem
		}
		if err != nil {
			return fmt.Errorf("%s: %w", method, err)
		}
	}
	return nil
}
