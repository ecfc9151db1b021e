package toolsettest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"

	"github.com/dragoman-mcp/dragoman"
)

// Server is the label of the server that an [Inner]'s tools belong to.
const Server = "inner"

// The tools of an [Inner], by their original names.
const (
	// Echo changes nothing, and says so. It answers its arguments.
	Echo = "echo"
	// Write may change something. It answers how often it ran.
	Write = "write"
	// Fail answers that it failed.
	Fail = "fail"
	// Steps reports progress three times and answers nothing.
	Steps = "steps"
	// Wait runs until its context ends.
	Wait = "wait"
	// Ask asks one question with a form, and answers the reply. It keeps the call
	// until the reply, or [dragoman.Answers.Gone], comes.
	Ask = "ask"
	// Lost has a problem, and nobody knows whether it ran.
	Lost = "lost"
)

// An Inner is a toolset in memory. It counts what is done to it.
type Inner struct {
	mu      sync.Mutex
	list    *dragoman.List
	changed chan struct{}
	added   int
	ran     map[string]int
	started chan string // by each Wait that began
	ended   int         // Waits that heard of the end
	gone    int         // Asks that nobody answered
	held    map[string]bool
	states  int
}

// NewInner returns an Inner with the tools above.
func NewInner() *Inner {
	i := &Inner{ran: map[string]int{}, started: make(chan string, 100), held: map[string]bool{}}
	i.publish()
	return i
}

// publish makes another list. mu is held, or nobody else has i yet.
func (i *Inner) publish() {
	tools := make([]dragoman.Tool, 0, 10)
	for _, name := range []string{Echo, Write, Fail, Steps, Wait, Ask, Lost} {
		tools = append(tools, tool(name))
	}
	for n := range i.added {
		tools = append(tools, tool("added_"+strconv.Itoa(n)))
	}
	next := dragoman.NewTools(tools)
	if i.list != nil && next.Equal(i.list.Tools) {
		next = i.list.Tools
	}
	changed := make(chan struct{})
	i.list = &dragoman.List{Tools: next, Servers: []dragoman.Server{{Label: Server, State: dragoman.Connected, Tools: len(tools)}}, Changed: changed}
	if i.changed != nil {
		close(i.changed)
	}
	i.changed = changed
}

func tool(name string) dragoman.Tool {
	schema := `{"type":"object"}`
	annotations := `{}`
	t := dragoman.Tool{Name: name, Original: name, Server: Server, Description: "The tool " + name + "."}
	if name == Echo {
		annotations = `{"readOnlyHint":true}`
		t.Hints.ReadOnly = new(true)
	}
	t.Definition = fmt.Appendf(nil, `{"name":%q,"description":%q,"inputSchema":%s,"annotations":%s}`, name, t.Description, schema, annotations)
	at := bytes.Index(t.Definition, []byte(schema))
	t.InputSchema = t.Definition[at : at+len(schema)]
	t.Pin = dragoman.Pin(t.Server, t.Original, t.Definition)
	return t
}

// Change adds a tool.
func (i *Inner) Change() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.added++
	i.publish()
}

// Touch makes another list of the same tools.
func (i *Inner) Touch() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.publish()
}

// Ran returns how often a tool ran.
func (i *Inner) Ran(name string) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.ran[name]
}

// Gone returns how many calls of Ask were told that nobody will answer, or that
// the question was cancelled, which is the same, and Ended
// how many of Wait that nobody waits.
func (i *Inner) Gone() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.gone
}

// Ended is described at [Inner.Gone].
func (i *Inner) Ended() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.ended
}

// List returns the list.
func (i *Inner) List(context.Context) (*dragoman.List, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.list, nil
}

// Call runs a call of one of the tools.
func (i *Inner) Call(ctx context.Context, call dragoman.Call) (dragoman.Result, error) {
	if call.Tool == nil {
		return dragoman.Failure(dragoman.CodeUnknownTool, "There is no such tool."), nil
	}
	if call.Answers != nil {
		return i.goOn(&call), nil
	}
	if ctx.Err() != nil {
		return dragoman.Result{Ran: dragoman.RanNot}, context.Cause(ctx)
	}
	name := call.Tool.Original
	i.mu.Lock()
	i.ran[name]++
	n := i.ran[name]
	i.mu.Unlock()
	switch name {
	case Write:
		return text(strconv.Itoa(n)), nil
	case Fail:
		res := text("it failed")
		res.Failed = true
		return res, nil
	case Steps:
		for step := range 3 {
			if call.Progress != nil {
				call.Progress(dragoman.Progress{Progress: float64(step + 1), Total: 3})
			}
		}
		return text("done"), nil
	case Wait:
		i.started <- name
		<-ctx.Done()
		i.mu.Lock()
		i.ended++
		i.mu.Unlock()
		return dragoman.Result{}, context.Cause(ctx)
	case Ask:
		return i.ask(&call), nil
	case Lost:
		return dragoman.Result{Problem: dragoman.Unanswered(call.Tool, "The server fell over.")}, nil
	}
	arguments := call.Arguments
	if arguments == nil {
		arguments = json.RawMessage(`{}`)
	}
	return dragoman.Result{Content: fmt.Appendf(nil, `{"content":[],"structuredContent":%s}`, arguments), Ran: dragoman.RanYes}, nil
}

// question is what Ask asks.
const question = `{"message":"How many?","requestedSchema":{"type":"object","properties":{"n":{"type":"integer"}}}}`

func (i *Inner) ask(call *dragoman.Call) dragoman.Result {
	if call.Can&dragoman.AskForm == 0 {
		return text("nobody can be asked")
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.states++
	state := "state " + strconv.Itoa(i.states)
	i.held[state] = true
	return dragoman.Result{Asks: &dragoman.Asks{
		Questions: []dragoman.Question{{Key: "how many", Kind: dragoman.AskForm, Server: Server, Params: json.RawMessage(question)}},
		State:     []byte(state), Held: true,
	}}
}

// goOn continues a call of Ask.
func (i *Inner) goOn(call *dragoman.Call) dragoman.Result {
	i.mu.Lock()
	defer i.mu.Unlock()
	a := call.Answers
	if !i.held[string(a.State)] {
		return dragoman.Result{Problem: &dragoman.Problem{Code: dragoman.CodeDenied, Message: "The answers belong to no call."}, Ran: dragoman.RanNot.After(a)}
	}
	delete(i.held, string(a.State))
	if a.Gone {
		i.gone++
		return dragoman.Result{Problem: &dragoman.Problem{Code: dragoman.CodeCanceled, Message: "The call was given up."}}
	}
	reply := a.Replies["how many"]
	if reply == nil {
		reply = json.RawMessage(`null`)
	}
	var said struct{ Action string }
	if json.Unmarshal(reply, &said) != nil || said.Action == "" || said.Action == "cancel" {
		i.gone++ // so a wire of the legacy era says it
	}
	return dragoman.Result{Content: fmt.Appendf(nil, `{"content":[],"structuredContent":{"reply":%s}}`, reply), Ran: dragoman.RanYes}
}

func text(s string) dragoman.Result {
	return dragoman.Result{Content: fmt.Appendf(nil, `{"content":[{"type":"text","text":%q}]}`, s), Ran: dragoman.RanYes}
}
