package responses

import (
	"encoding/json"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/hosted"
	"github.com/dragoman-mcp/dragoman/openai/memory"
)

// An ourCall is a call of ours that is being made, as its client sees it.
type ourCall struct {
	id, server, name, tool string
	arguments              string
	approval               string // the request for approval that was granted; empty for none
	at                     int
}

// own is the label of tools that are of no server.
const own = "dragoman"

// announce shows the calls of ours that are about to be made.
func (c *Conversation) announce() {
	for i := range c.pending.Run {
		run := &c.pending.Run[i]
		if run.Tool == nil {
			continue // nobody offered it: there is nothing to be shown
		}
		if hosted.Is(run.Tool) {
			c.search(run)
			continue
		}
		call := &ourCall{id: c.answer.name("mcp_"), server: run.Tool.Server, name: run.Tool.Original, tool: run.Tool.Name, arguments: string(run.Arguments)}
		if call.server == "" {
			call.server = own
		}
		if call.arguments == "" {
			call.arguments = "{}"
		}
		if d := c.given[run.ID]; d != nil {
			call.approval = d.id
		}
		enter(&c.running, run.ID, call)
		call.at = c.answer.add(call.item("in_progress", "", nil, nil, ""))
		place := []rawjson.Member{text("item_id", call.id), number("output_index", call.at)}
		c.answer.event("response.mcp_call.in_progress", place...)
		c.answer.event("response.mcp_call_arguments.delta", append(place[:2:2], text("delta", call.arguments))...)
		c.answer.event("response.mcp_call_arguments.done", append(place[:2:2], text("arguments", call.arguments))...)
	}
}

// item returns the call as an item.
func (call *ourCall) item(status, arguments string, output, failure json.RawMessage, seal string) json.RawMessage {
	o := rawjson.Object{Members: []rawjson.Member{
		text("id", call.id), text("type", "mcp_call"), text("status", status), raw("approval_request_id", quoteOrNull(call.approval)),
		text("arguments", arguments), raw("error", failure), text("name", call.name), raw("output", output), text("server_label", call.server),
	}}
	if seal != "" {
		o.Set("dragoman", object(text("tool", call.tool), text("seal", seal)))
	}
	return o.Bytes()
}

// result shows what came of a call of ours.
func (c *Conversation) result(run *dragoman.Call, res *dragoman.Result) {
	if s := c.searches[run.ID]; s != nil {
		c.found(s, run, res)
		return
	}
	call := c.running[run.ID]
	if call == nil {
		return
	}
	delete(c.running, run.ID)
	said := c.told(run.ID)
	status, output, failure := "completed", rawjson.Quote(said), null
	switch {
	case res.Problem != nil || run.Problem != nil || res.Asks != nil:
		code := -32000
		if run.Problem != nil && run.Problem.Code == dragoman.CodeInvalidArguments {
			code = -32602
		}
		status, output = "failed", null
		failure = object(text("type", "mcp_protocol_error"), number("code", code), text("message", said))
	case res.Failed:
		status, output = "failed", null
		failure = object(text("type", "mcp_tool_execution_error"), raw1("content", object(text("type", "text"), text("text", said))))
	}
	c.answer.event("response.mcp_call."+status, text("item_id", call.id), number("output_index", call.at))
	sealed := c.seals.call(call.server, call.name, call.arguments, said)
	c.answer.done(call.at, call.item(status, call.arguments, output, failure, sealed))
}

// told returns what the model is told came of a call.
func (c *Conversation) told(id string) string {
	for i := range c.pending.Message.Calls {
		call := &c.pending.Message.Calls[i]
		if call.ID != id || call.Result == nil {
			continue
		}
		o, err := rawjson.ParseObject(call.Result)
		if err != nil {
			return ""
		}
		if s, ok := rawjson.String(o.Get("content")); ok {
			return s
		}
		parts, _ := rawjson.Elements(o.Get("content"))
		for _, part := range parts {
			if p, err := rawjson.ParseObject(part); err == nil && stringOf(p, "type") == "text" {
				return stringOf(p, "text")
			}
		}
	}
	return ""
}

// theirs returns what shows a call of the client's own. Its error is of one that cannot be shown:
// nothing of its message is then, since a client may do at once what it sees.
func (c *Conversation) theirs(call *memory.Call) (show func(), _ error) {
	o, err := rawjson.ParseObject(call.Raw)
	if err != nil {
		return nil, err // we made it
	}
	f, err := rawjson.ParseObject(o.Get("function"))
	if err != nil {
		f = &rawjson.Object{}
	}
	name, arguments := stringOf(f, "name"), stringOf(f, "arguments")
	tool, ok := c.tools.byName[name]
	if !ok {
		tool = clientTool{kind: "function", name: name}
	}
	if clientRuns[tool.kind] != nil {
		members, err := runMembers(tool.kind, arguments)
		if err != nil {
			return nil, err
		}
		return func() { c.runCall(call.Client, tool.kind, members) }, nil
	}
	return func() {
		switch tool.kind {
		case "custom":
			c.customCall(call.Client, tool, inputOf(arguments))
		case "tool_search":
			if rawjson.Kind([]byte(arguments)) != '{' {
				arguments = "{}"
			}
			id := c.answer.name("tsc_")
			c.answer.whole(object(text("id", id), text("type", "tool_search_call"), text("status", "completed"), text("execution", "client"),
				text("call_id", call.Client), raw("arguments", json.RawMessage(arguments))))
		default:
			c.functionCall(call.Client, tool, arguments)
		}
	}, nil
}

// handOver gives the client its calls.
func (c *Conversation) handOver() error {
	var shows []func()
	for i := range c.pending.Message.Calls {
		call := &c.pending.Message.Calls[i]
		if call.Ours() {
			continue
		}
		show, err := c.theirs(call)
		if err != nil {
			return err
		}
		shows = append(shows, show)
	}
	for _, show := range shows {
		show()
	}
	return nil
}

func (c *Conversation) functionCall(callID string, tool clientTool, arguments string) {
	id := c.answer.name("fc_")
	item := func(status, arguments string) json.RawMessage {
		return tool.item(text("id", id), text("type", "function_call"), text("status", status), text("arguments", arguments), text("call_id", callID))
	}
	at := c.answer.add(item("in_progress", ""))
	place := []rawjson.Member{text("item_id", id), number("output_index", at)}
	c.answer.event("response.function_call_arguments.delta", append(place[:2:2], text("delta", arguments))...)
	c.answer.event("response.function_call_arguments.done", append(place[:2:2], text("arguments", arguments), text("name", tool.name))...)
	c.answer.done(at, item("completed", arguments))
}

func (c *Conversation) customCall(callID string, tool clientTool, input string) {
	id := c.answer.name("ctc_")
	item := func(status, input string) json.RawMessage {
		return tool.item(text("id", id), text("type", "custom_tool_call"), text("status", status), text("call_id", callID), text("input", input))
	}
	at := c.answer.add(item("in_progress", ""))
	place := []rawjson.Member{text("item_id", id), number("output_index", at)}
	c.answer.event("response.custom_tool_call_input.delta", append(place[:2:2], text("delta", input))...)
	c.answer.event("response.custom_tool_call_input.done", append(place[:2:2], text("input", input))...)
	c.answer.done(at, item("completed", input))
}

// item returns an item of a call of the tool.
func (t clientTool) item(members ...rawjson.Member) json.RawMessage {
	members = append(members, text("name", t.name))
	if t.namespace != "" {
		members = append(members, text("namespace", t.namespace))
	}
	if t.async {
		members = append(members, raw("async", json.RawMessage("true")))
	}
	return object(members...)
}
