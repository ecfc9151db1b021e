package dragoman_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/dragoman-mcp/dragoman"
)

// adder is a toolset of one tool.
type adder struct{}

var add = dragoman.Tool{
	Definition:  json.RawMessage(`{"name":"add","inputSchema":{"type":"object"}}`),
	Name:        "add",
	Original:    "add",
	InputSchema: json.RawMessage(`{"type":"object"}`),
	Declared:    dragoman.ReadOnly,
}

var list = &dragoman.List{Tools: dragoman.NewTools([]dragoman.Tool{add})}

func (adder) List(context.Context) (*dragoman.List, error) { return list, nil }

func (adder) Call(_ context.Context, c dragoman.Call) (dragoman.Result, error) {
	var in struct{ A, B int }
	if err := json.Unmarshal(c.Arguments, &in); err != nil {
		return dragoman.Failure(dragoman.CodeInvalidArguments, err.Error()), nil
	}
	return dragoman.Result{Content: fmt.Appendf(nil, `{"structuredContent":{"sum":%d}}`, in.A+in.B)}, nil
}

// A politician answers every question with a sum.
type politician struct {
	tools *dragoman.Tools
	sum   json.RawMessage
}

func (p *politician) Offer(list *dragoman.List) error {
	p.tools = list.Tools
	return nil
}

func (p *politician) Next(_ context.Context, last bool) ([]dragoman.Call, error) {
	if p.sum != nil || last {
		return nil, nil
	}
	return []dragoman.Call{{ID: "call_1", Tool: p.tools.Find("add"), Arguments: json.RawMessage(`{"a":22,"b":20}`)}}, nil
}

func (p *politician) Answer(_ context.Context, results []dragoman.Result) error {
	p.sum = results[0].Content
	return nil
}

func (p *politician) Close(err error) error {
	fmt.Printf("answered with %s, error %v\n", p.sum, err)
	return nil
}

// A toolset and a conversation, joined by a loop.
func ExampleLoop() {
	loop := &dragoman.Loop{
		Tools: adder{},
		Observe: func(e dragoman.Event) {
			if e.Phase != dragoman.Execute || e.Result != nil {
				fmt.Println(e.Round, e.Phase)
			}
		},
	}
	if err := loop.Run(context.Background(), &politician{}); err != nil {
		fmt.Println("the conversation failed:", err)
	}
	// Output:
	// 1 decide
	// 1 execute
	// 2 summarise
	// answered with {"structuredContent":{"sum":42}}, error <nil>
}

// logged is what a rule looks like: a toolset around a toolset.
type logged struct{ dragoman.Toolset }

func (l logged) Call(ctx context.Context, c dragoman.Call) (dragoman.Result, error) {
	res, err := l.Toolset.Call(ctx, c)
	fmt.Printf("%s took part, problem: %v\n", c.Tool.Name, res.Problem != nil)
	return res, err
}

func ExampleToolset() {
	loop := &dragoman.Loop{Tools: logged{adder{}}}
	res, err := loop.Call(context.Background(), dragoman.Call{Tool: &add, Arguments: json.RawMessage(`{"a":1,"b":2}`)})
	fmt.Printf("%s %v\n", res.Content, err)
	// Output:
	// add took part, problem: false
	// {"structuredContent":{"sum":3}} <nil>
}

func ExampleTools_Find() {
	tools := dragoman.NewTools([]dragoman.Tool{
		{Name: "files__read", Original: "read"},
		{Name: "files__list", Original: "list"},
		{Name: "git__list", Original: "list"},
	})
	for _, name := range []string{"files__read", "Read", "list"} {
		if tool := tools.Find(name); tool != nil {
			fmt.Println(name, "is", tool.Name)
		} else {
			fmt.Println(name, "is nobody's name, or of too many")
		}
	}
	// Output:
	// files__read is files__read
	// Read is files__read
	// list is nobody's name, or of too many
}
