package toolkit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dragoman-mcp/dragoman/schema"
)

// A Tool says what one tool is. Name, Description, Hints and, for tools with
// arguments, Examples must be given.
type Tool struct {
	// Name is {service}_{action}_{resource} in lower case, such as
	// "github_create_issue"; the action is a verb.
	Name string
	// Title is the name that people see. Empty: none.
	Title string
	// Description tells a model what the tool does, when to use it and what comes
	// back. Line breaks are folded, so a raw string may be indented.
	Description string
	// Hints say what the tool does to the world, all four of them.
	Hints Hints
	// Examples are calls as a model should make them. They are checked against
	// the input schema and added to the description.
	Examples []Example

	// Timeout is the time limit of a call. Zero: that of the server.
	Timeout time.Duration
	// Requires are the rights that a caller must have, such as "tickets:write".
	// Who lacks one is not shown the tool, and denied if they call it.
	Requires []string
	// Rate limits the calls of this tool, besides the server's own limit.
	Rate Rate
	// UserRate limits the calls of this tool by any one caller.
	UserRate Rate
	// Characters is the length limit of a result's text and of its data, and Total
	// that of both together. Zero: those of the server.
	Characters, Total int
	// Advice tells how to get less, when a result had to be cut. Empty: made
	// from the names of the arguments.
	Advice string
	// Cursor makes a tool of [AddList] page by an opaque cursor instead of an
	// offset.
	Cursor bool
	// Markdown adds the parameter response_format, with which a call can have the
	// text of the result as Markdown, to be shown to people. It costs tokens in
	// every request of every model that is offered the tool, and clients that read
	// structuredContent do not need it.
	Markdown bool
	// SummaryOnly leaves the JSON out of the text when the result has a Summary
	// method. For results that are long, and clients known to read
	// structuredContent.
	SummaryOnly bool
}

// An Example is one call, and the wish that it answers.
type Example struct {
	// Ask is what a user says, in any language.
	Ask string
	// Arguments is the JSON object of the arguments.
	Arguments string
}

// Add adds a tool whose arguments are an In and whose result is an Out.
//
// In is a struct; its tags make the input schema (see the package comment), and
// the function sees arguments only when they fit it, with defaults filled in.
// Out is a struct or a map, or one of [Text], [Content] and [*sdk.CallToolResult]
// for results without a schema. A struct or map goes out as structuredContent,
// and as the same JSON in a text block or, with [Tool.Markdown] and when the call
// says so, as Markdown.
//
// The function's context ends when the caller cancels, at the time limit, and
// with the server.
func Add[In, Out any](s *Server, t Tool, f func(context.Context, In) (Out, error)) {
	b := newBinding(s, t, reflect.TypeFor[In](), reflect.TypeFor[Out]())
	if f == nil {
		b.fail("no function")
	}
	b.register(func(ctx context.Context, a arguments) (reply, error) {
		var in In
		if err := a.decode(&in); err != nil {
			return reply{}, err
		}
		out, err := f(ctx, in)
		if err != nil {
			return reply{}, err
		}
		return reply{value: out}, nil
	})
}

// A binding is a tool on its way to the SDK's server.
type binding struct {
	server     *Server
	tool       Tool
	in, out    *shape // out is nil for results without a schema
	plain      bool   // the result is Text, Content or the SDK's own
	raw        bool   // the result is the SDK's own
	input      json.RawMessage
	read       *schema.Node // input, read
	output     json.RawMessage
	accepts    *schema.Validator
	delivers   *schema.Validator // nil where the Go type cannot break the schema
	budget     *budget
	timeout    time.Duration
	characters int
	total      int
	page       pageKind
	problems   []error
}

var (
	textType    = reflect.TypeFor[Text]()
	contentType = reflect.TypeFor[Content]()
	resultType  = reflect.TypeFor[*sdk.CallToolResult]()
)

func newBinding(s *Server, t Tool, in, out reflect.Type) *binding {
	b := &binding{server: s, tool: t, budget: newBudget(t.Rate, t.UserRate)}
	b.timeout = cmp.Or(t.Timeout, s.opts.Timeout)
	b.characters = cmp.Or(t.Characters, s.opts.Characters)
	b.total = cmp.Or(t.Total, s.opts.Total, 2*b.characters)
	if t.Timeout < 0 {
		b.fail("Timeout is negative")
	}
	if err := t.Rate.check(); err != nil {
		b.fail("Rate: %w", err)
	}
	if err := t.UserRate.check(); err != nil {
		b.fail("UserRate: %w", err)
	}
	if t.Total != 0 && t.Total < 2*minCharacters {
		b.fail("Total is %d; text and data together need at least %d", t.Total, 2*minCharacters)
	}
	if t.Characters != 0 && t.Characters < minCharacters {
		b.fail("Characters is %d; results need at least %d", t.Characters, minCharacters)
	}
	var err error
	if b.in, err = shapeOf(in, true); err != nil {
		b.problems = append(b.problems, each("arguments", err)...)
	} else if b.in.kind != kindObject && b.in.kind != kindCustom {
		b.fail("arguments must be a struct, not %s", in)
	}
	switch out {
	case textType, contentType:
		b.plain = true
	case resultType:
		b.plain, b.raw = true, true
	default:
		if b.out, err = shapeOf(out, false); err != nil {
			b.problems = append(b.problems, each("result", err)...)
		} else if b.out.kind != kindObject && b.out.kind != kindDict && b.out.kind != kindCustom {
			b.fail("the result must be a struct or a map (clients before 2026-07-28 take nothing else), not %s", out)
		}
	}
	return b
}

func (b *binding) fail(format string, args ...any) {
	b.problems = append(b.problems, fmt.Errorf(format, args...))
}

// register completes the schemas, checks everything, and hands the tool over.
func (b *binding) register(run func(context.Context, arguments) (reply, error)) {
	if len(b.problems) == 0 {
		b.schemas()
	}
	b.checkHeld()
	for _, err := range []error{b.tool.Hints.check(), checkRequires(b.tool.Requires)} {
		if err != nil {
			b.problems = append(b.problems, err)
		}
	}
	if b.accepts != nil {
		b.checkExamples()
	}
	err := errors.Join(b.problems...)
	if err != nil {
		b.server.register(registration{kind: "tool", name: b.tool.Name}, err)
		return
	}
	definition := b.definition()
	b.server.register(registration{kind: "tool", name: b.tool.Name, requires: b.tool.Requires, put: func(server *sdk.Server) {
		server.AddTool(definition, func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return b.call(ctx, req, run)
		})
	}}, nil)
}

// schemas writes both schemas, with what the toolkit adds to them.
func (b *binding) schemas() {
	if b.in.kind == kindObject {
		in := b.in.unnamed()
		in.fields = append(in.fields[:len(in.fields):len(in.fields)], b.page.fields(b.in)...)
		if b.out != nil && b.tool.Markdown && b.in.field(formatField.name) == nil {
			in.fields = append(in.fields, formatField)
		}
		b.in = in
	}
	b.input = b.in.schema(true)
	b.accepts = b.validator("arguments", b.in, b.input)
	if b.out == nil {
		return
	}
	if b.out.kind != kindCustom {
		out := b.out.unnamed()
		out.fields = out.fields[:len(out.fields):len(out.fields)]
		for _, f := range truncationFields {
			switch own := out.field(f.name); {
			case own == nil:
				out.fields = append(out.fields, f)
			case own.at.of.kind != f.at.of.kind && own.at.of.kind != kindAnything:
				b.fail("result: %q is how a result says that it was cut, so it is a %s, not %s; name the field otherwise", f.name, typeWords[f.at.of.kind], own.at.of.goType)
			}
		}
		b.out = out
	}
	b.output = b.out.schema(false)
	if b.out.constrained(map[*shape]bool{}) {
		b.delivers = b.validator("result", b.out, b.output)
	}
}

// largeSchema is the length from which a schema is tried at once: it may be beyond
// what a validator takes.
const largeSchema = 16 << 10

// validator judges by a schema. It is compiled when it is first needed, since that
// takes longer than everything else about a tool. One that an author wrote, or
// that is large, is tried at once. Should another turn out not to compile, every
// call is refused: see fit.
func (b *binding) validator(what string, s *shape, text json.RawMessage) *schema.Validator {
	v := schema.NewValidator(text)
	if (len(text) > largeSchema || s.handwritten(map[*shape]bool{})) && !v.Compiles() {
		b.fail("%s: %s", what, strings.Join(v.Unchecked(), "; "))
	}
	return v
}

// handwritten reports whether an author wrote part of a schema.
func (s *shape) handwritten(seen map[*shape]bool) bool {
	if seen[s] {
		return false
	}
	seen[s] = true
	if s.kind == kindCustom || s.item != nil && s.item.of.handwritten(seen) {
		return true
	}
	return slices.ContainsFunc(s.fields, func(f *field) bool { return f.at.of.handwritten(seen) })
}

// plainly reports whether an example fits for certain.
func (b *binding) plainly(n *schema.Node) bool {
	if b.in.kind != kindObject || !schema.Plainly(b.read, n) {
		return false
	}
	finer := true
	b.in.finer(n, "arguments", func(string, string) { finer = false })
	return finer
}

// unnamed is a copy of a root that gets more members than its type has. A type
// that contains itself still stands in $defs, as it is, and under its name alone.
func (s *shape) unnamed() *shape {
	root := *s
	root.name = ""
	return &root
}

// call runs one call, from the arguments as they came to the result. Where it asks, a
// client of the modern era gets the questions as its result, and makes the call again
// with the answers; one of the legacy era is asked here, and the call made again.
func (b *binding) call(ctx context.Context, req *sdk.CallToolRequest, run func(context.Context, arguments) (reply, error)) (*sdk.CallToolResult, error) {
	questions := asksOf(req)
	for leg := 0; ; leg++ {
		result, err := b.leg(ctx, req, questions, leg > 0, run)
		if _, asking := errors.AsType[unasked](err); !asking {
			return b.told(result, err)
		}
		switch {
		case req.ProtocolVersion() >= asksInResults:
			return b.told(questions.wants())
		case leg == maxAsks:
			return b.told(nil, Refuse("The user was asked %d times, and each answer led to another question.", maxAsks))
		}
		warn := func(err error) {
			b.server.logger().WarnContext(ctx, "a client could not ask its user", "server", b.server.name, "tool", b.tool.Name, "error", err)
		}
		if err := questions.put(ctx, req.Session, warn); err != nil {
			return nil, err
		}
	}
}

// leg is one run of the function.
func (b *binding) leg(ctx context.Context, req *sdk.CallToolRequest, questions *asks, again bool, run func(context.Context, arguments) (reply, error)) (*sdk.CallToolResult, error) {
	questions.begin()
	r := newRequest(ctx, "tool", b.tool.Name, req.ClientInfo(), req.Session, req.Extra)
	r.SDK = req
	var a arguments
	j := job{
		request: r, session: req.Session, token: req.Params.GetProgressToken(), name: b.tool.Name, arguments: req.Params.Arguments,
		requires: b.tool.Requires, own: b.budget,
		timeout: b.timeout, changes: b.tool.Hints.ReadOnly == No, raw: b.raw, asks: questions, again: again,
		prepare: func(r *Request) (err error) {
			if a, err = b.accept(req.Params.Arguments); err == nil {
				r.Arguments = a.node.Bytes()
			}
			return err
		},
	}
	return do(ctx, b.server, j, func(ctx context.Context) (*sdk.CallToolResult, error) {
		questions.enter()
		defer questions.anew()
		r, err := run(ctx, a)
		if questions.waits() {
			return nil, unasked{} // whatever the function made of it
		}
		if err != nil {
			return nil, err
		}
		return b.deliver(r, a.markdown)
	})
}

// told makes a result of a refusal, whose text is as long as any other at most.
func (b *binding) told(result *sdk.CallToolResult, err error) (*sdk.CallToolResult, error) {
	if refusal, ok := errors.AsType[*Refusal](err); ok {
		text := refusal.Error()
		if refusal.Code == codeInvalid {
			text = fmt.Sprintf("Invalid arguments for %s: %s", b.tool.Name, text)
		}
		text = cutText(text, b.characters, "The rest of the error was left out.")
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}, IsError: true}, nil
	}
	return result, err
}
