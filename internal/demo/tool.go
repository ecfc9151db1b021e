package demo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// A tool is what a client is told about one tool. The schemas are JSON text and
// keep their order on the wire; white space is taken out.
type tool struct {
	name, title, description string
	input, output            string
	hints                    hints
}

// hints are the four annotations. Unlike MCP's they have no defaults to
// remember: each is said as it is.
type hints struct{ readOnly, destructive, idempotent, openWorld bool }

// lookup are the hints of a tool that only reads bundled data. The server
// ignores destructive and idempotent there; they are stated all the same.
var lookup = hints{readOnly: true, idempotent: true}

// A refusal is an error that the model should read: what is wrong with the call
// and how to do better. All other errors are ours and stay inside.
type refusal string

func (r refusal) Error() string { return string(r) }

func refuse(format string, args ...any) error { return refusal(fmt.Sprintf(format, args...)) }

// A reply is what a tool found. Data is sent as structuredContent; the text
// block beside it is the same JSON unless summary says something better.
type reply struct {
	data    any
	summary string
}

// A progress reports how much of a call is done. It is never nil.
type progress func(done, total int, message string)

// add registers t with d. A is the Go form of the arguments: run sees them after
// they were found valid against t.input, so it checks only what a schema cannot
// say.
func add[A any](d *Demo, t tool, run func(context.Context, A, progress) (reply, error)) {
	check := sync.OnceValues(func() (*contract, error) { return newContract(t.input) })

	d.server.AddTool(t.definition(), func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		r, err := func() (reply, error) {
			c, err := check()
			if err != nil {
				return reply{}, err
			}
			raw := jsontext.Value(req.Params.Arguments)
			if len(raw) == 0 {
				raw = jsontext.Value("{}")
			}
			if err := c.accept(raw); err != nil {
				return reply{}, refuse("Invalid arguments for %s: %v.", t.name, err)
			}
			var args A
			if err := json.Unmarshal(raw, &args); err != nil {
				return reply{}, fmt.Errorf("decode valid arguments: %w", err)
			}
			return run(ctx, args, reporter(ctx, req))
		}()
		if err == nil {
			return structured(r)
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		said, ok := errors.AsType[refusal](err)
		if !ok {
			d.log.ErrorContext(ctx, "demo tool failed", "tool", t.name, "error", err)
			said = refusal("Internal error in " + t.name + "; trying again with other arguments may help.")
		}
		return &sdk.CallToolResult{
			Content: []sdk.Content{&sdk.TextContent{Text: said.Error()}},
			IsError: true,
		}, nil
	})
}

// definition is the entry of t in tools/list. It panics on a schema that is not
// JSON, which only a change of this package can cause.
func (t tool) definition() *sdk.Tool {
	return &sdk.Tool{
		Name:         t.name,
		Title:        t.title,
		Description:  strings.Join(strings.Fields(t.description), " "),
		InputSchema:  compact(t.input),
		OutputSchema: compact(t.output),
		Annotations: &sdk.ToolAnnotations{
			Title:           t.title,
			ReadOnlyHint:    t.hints.readOnly,
			DestructiveHint: new(t.hints.destructive),
			IdempotentHint:  t.hints.idempotent,
			OpenWorldHint:   new(t.hints.openWorld),
		},
	}
}

func compact(schema string) jsontext.Value {
	v := jsontext.Value(schema)
	if err := v.Compact(); err != nil {
		panic(fmt.Sprintf("demo: schema: %v", err))
	}
	return v
}

// reporter sends progress to the caller if the call carries a token for it. A
// report that cannot be delivered is dropped: the result matters, not the report.
func reporter(ctx context.Context, req *sdk.CallToolRequest) progress {
	token := req.Params.GetProgressToken()
	if token == nil {
		return func(int, int, string) {}
	}
	return func(done, total int, message string) {
		_ = req.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{
			ProgressToken: token,
			Progress:      float64(done),
			Total:         float64(total),
			Message:       message,
		})
	}
}

func structured(r reply) (*sdk.CallToolResult, error) {
	data, err := json.Marshal(r.data)
	if err != nil {
		return nil, fmt.Errorf("encode result: %w", err)
	}
	text := r.summary
	if text == "" {
		text = string(data)
	}
	return &sdk.CallToolResult{
		Content:           []sdk.Content{&sdk.TextContent{Text: text}},
		StructuredContent: jsontext.Value(data),
	}, nil
}
