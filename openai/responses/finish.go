package responses

import (
	"context"
	"encoding/json"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/internal/recall"
)

// finish ends the answer: with what the client has to do, or with the model's last words.
func (c *Conversation) finish(ctx context.Context) error {
	if c.pending != nil {
		if c.pending.Message.Waits() {
			if err := c.ask(ctx); err != nil {
				return err
			}
		}
		c.thread.KeepOpen(ctx, c.pending, c.text())
		if c.pending.Mixed() && !c.request.native {
			if err := c.handOver(); err != nil {
				return err
			}
		}
	}
	if c.request.native {
		c.letGo()
	}
	status, incomplete := "completed", null
	switch r := c.last; {
	case r != nil && r.CutOff() && r.Response != nil:
		status, incomplete = "incomplete", r.Response.Get("incomplete_details")
	case r != nil && r.CutOff():
		reason := "max_output_tokens"
		if r.Finish == "content_filter" {
			reason = "content_filter"
		}
		status, incomplete = "incomplete", object(text("reason", reason))
	}
	c.answer.final = c.answer.response(status, c.usage, incomplete, nil)
	c.thread.KeepFinal(ctx, recall.End{Seen: c.text(), Pending: c.pending, Last: c.last})
	if c.keeps() {
		input := withIDs(c.request.own, c.answer.namer(c.options.Begun, ofInput))
		if err := c.add(ctx, input); err != nil { // before the client is told: it may go on at once
			return err
		}
		if !c.keep(ctx, input) && !c.request.Background {
			// Its client reads that there is nothing to go on from by its id.
			c.request.store = false
			c.answer.final = c.answer.response(status, c.usage, incomplete, nil)
		}
	}
	if !c.request.Stream {
		return c.out.Body(append(c.answer.final, '\n'))
	}
	c.answer.event("response."+status, raw("response", c.answer.final))
	c.out.Event("", []byte("[DONE]"))
	return c.out.Flush()
}

// listTools shows the tools of each server that the request names, unless the client
// has a list of them.
func (c *Conversation) listTools() {
	shown := map[string]bool{}
	for _, s := range c.request.Servers {
		if c.history.listed[s.Label] || shown[s.Label] || s.DeferLoading || isSet(s.Label) {
			continue
		}
		shown[s.Label] = true
		id := c.answer.name("mcpl_")
		item := func(tools []json.RawMessage, failure json.RawMessage) json.RawMessage {
			members := []rawjson.Member{text("id", id), text("type", "mcp_list_tools"), text("server_label", s.Label), raw("tools", array(tools...))}
			if failure != nil { // the AI SDK takes no null here
				members = append(members, raw("error", failure))
			}
			return object(members...)
		}
		at := c.answer.add(item(nil, nil))
		place := []rawjson.Member{text("item_id", id), number("output_index", at)}
		c.answer.event("response.mcp_list_tools.in_progress", place...)
		if why := c.missing(s.Label); why != "" {
			c.answer.event("response.mcp_list_tools.failed", place...)
			c.answer.done(at, item(nil, rawjson.Quote(why)))
			continue
		}
		var tools []json.RawMessage
		for _, t := range c.list.Tools.All() {
			if t.Server == s.Label && t.Quarantined == nil {
				tools = append(tools, listed(&t))
			}
		}
		c.answer.event("response.mcp_list_tools.completed", place...)
		c.answer.done(at, item(tools, nil))
	}
}

// missing says why a server has nothing to offer; empty where it has.
func (c *Conversation) missing(label string) string {
	for _, s := range c.options.Missing {
		if s.Label == label {
			return "The server " + label + " is not there: it is " + string(s.State) + "."
		}
	}
	return ""
}

// listed returns a tool as an mcp_list_tools item has it.
func listed(t *dragoman.Tool) json.RawMessage {
	readOnly := json.RawMessage("false")
	if t.Hints.ReadOnly != nil && *t.Hints.ReadOnly {
		readOnly = json.RawMessage("true")
	}
	return object(text("name", t.Original), raw("description", quoteOrNull(t.Description)), raw("input_schema", t.Input()),
		raw("annotations", object(raw("read_only", readOnly))))
}

func isSet(label string) bool { return len(label) > 4 && label[:4] == "set:" }
