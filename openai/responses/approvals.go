package responses

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/hosted"
	"github.com/dragoman-mcp/dragoman/openai/internal/recall"
	"github.com/dragoman-mcp/dragoman/openai/memory"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// A decision is what a client says to a request for approval of a call.
type decision struct {
	approval
	about consent
}

// codeApproval is the code of the error for an approval that cannot be used. It is
// stable.
const codeApproval = "invalid_approval"

func badApproval(message string) error {
	return &model.Error{Status: http.StatusBadRequest, Type: model.TypeInvalidRequest, Code: codeApproval, Param: "input", Message: message}
}

// readApprovals reads the answers to requests for approval at the end of the input.
// What they are about is in their ids, so that they are good where nothing else is
// remembered.
func (c *Conversation) readApprovals(t *recall.Thread) error {
	if len(c.history.answered) == 0 {
		return nil
	}
	c.given = map[string]*decision{}
	answers := &recall.Answers{Param: "input"}
	turn := &memory.Turn{Open: &memory.Message{Message: model.ChatAnswer(nil, nil)}}
	for _, said := range c.history.answered {
		about, ok := c.seals.consent(said.id)
		if !ok {
			return badApproval("An approval_request_id is of no request for approval that was made here, to you, in the last 30 days.")
		}
		c.given[about.Call] = &decision{said, about}
		answers.IDs = append(answers.IDs, said.id)
		if item := c.history.asked[said.id]; item != nil {
			call, err := about.call(stringOf(item, "arguments"))
			if err != nil {
				return err
			}
			turn.Open.Calls = append(turn.Open.Calls, call)
		}
	}
	if len(turn.Open.Calls) == len(c.history.answered) {
		known := map[string]*memory.Turn{}
		turn.Hidden = c.history.heldBack()
		for _, id := range answers.IDs {
			known[recall.AskKey(id)] = turn
		}
		maps.Copy(known, c.request.known)
		t.Request.Known = known
	}
	t.Request.Answers = answers
	return nil
}

// call returns the call that a consent is about, with the arguments that its item has.
func (about consent) call(arguments string) (memory.Call, error) {
	if sum := sha256.Sum256([]byte(arguments)); !slices.Equal(sum[:], about.Digest) {
		return memory.Call{}, badApproval("The arguments of a request for approval are not those that were shown.")
	}
	return memory.Call{
		ID:      about.Call,
		Raw:     model.ChatCall(about.Call, about.Tool, rawjson.Quote(arguments)),
		Waiting: &memory.Waiting{Server: about.Server, Original: about.Name, Pin: about.Pin, Arguments: json.RawMessage(arguments), Ran: dragoman.RanNot},
	}, nil
}

// decide gives the calls of an earlier turn what the client said of them. An approval
// is good for one run of its call, with the arguments that were shown.
func (c *Conversation) decide(ctx context.Context) error {
	for i := range c.pending.Run {
		run := &c.pending.Run[i]
		d := c.given[run.ID]
		switch {
		case run.Problem != nil:
		case d == nil:
			run.Problem = &dragoman.Problem{Code: dragoman.CodeUnanswered, Message: "The user was asked whether this call may run, and did not say, so it was not made."}
		case !d.approve:
			message := "The user did not allow this call, so it was not made."
			if d.reason != "" {
				message += " They said: " + d.reason
			}
			run.Problem = &dragoman.Problem{Code: dragoman.CodeDenied, Message: message}
		case c.over():
			run.Problem = tooMany()
		default:
			c.capped++
			if err := c.spend(ctx, run, d); err != nil {
				return err
			}
		}
	}
	return nil
}

// spend uses an approval.
func (c *Conversation) spend(ctx context.Context, run *dragoman.Call, d *decision) error {
	sum := sha256.Sum256(run.Arguments)
	if !slices.Equal(sum[:], d.about.Digest) || run.Tool == nil || !slices.Equal(run.Tool.Pin[:], d.about.Pin) {
		return badApproval("An approval is for another call than the one that waits.")
	}
	if c.options.Store == nil {
		return nil
	}
	first, err := c.options.Store.Spend(ctx, c.options.Caller, d.id)
	switch {
	case err != nil:
		return err
	case first:
		return nil
	case c.options.Retried || c.options.Again:
		run.Problem = &dragoman.Problem{Code: dragoman.CodeUnknownOutcome, Message: "The approval of this call was used before: the call may have run. Check before you repeat it."}
		return nil
	}
	return badApproval("An approval was used before. Each is good for one call.")
}

// holdBack holds those calls of a round back that the client has to approve, and
// refuses those for which the request leaves no room. What is denied in any case is not
// asked: it comes to nothing where it is made.
func (c *Conversation) holdBack(ctx context.Context, round *model.Round) {
	round.Run = slices.Clone(round.Run)
	for i := range round.Run {
		run := &round.Run[i]
		if run.Tool == nil || run.Tool.Server == "" && !hosted.Is(run.Tool) || run.Problem != nil {
			continue
		}
		if c.over() {
			run.Problem = tooMany()
			continue
		}
		c.capped++
	}
	c.dialogue.Hold(round, func(run *dragoman.Call) bool {
		if !c.needsApproval(run.Tool) || c.options.Denies != nil && c.options.Denies(ctx, run) {
			return false
		}
		enter(&c.held, run.ID, true)
		return true
	})
}

// tooMany is why a call beyond max_tool_calls is not made.
func tooMany() *dragoman.Problem {
	return &dragoman.Problem{Code: dragoman.CodeBudget, Message: "The request allows no further calls, so this one was not made."}
}

// needsApproval reports whether the client wants to be asked before a tool is called.
// OpenAI's default for a server that a request names is to ask always.
func (c *Conversation) needsApproval(t *dragoman.Tool) bool {
	if t == nil || t.Server == "" {
		return false
	}
	for _, s := range c.request.Servers {
		if s.Label == t.Server {
			return asks(s.RequireApproval, t)
		}
	}
	for _, s := range c.request.Servers { // it came with a set
		if isSet(s.Label) && asks(s.RequireApproval, t) {
			return true
		}
	}
	return false
}

// asks reports whether require_approval wants a tool to be asked for.
func asks(rule json.RawMessage, t *dragoman.Tool) bool {
	if mode, ok := rawjson.String(rule); ok {
		return mode != "never"
	}
	o, err := rawjson.ParseObject(rule)
	if err != nil {
		return true
	}
	return matches(o.Get("always"), t) || !matches(o.Get("never"), t)
}

// matches reports whether a tool is one of those that a filter names.
func matches(filter json.RawMessage, t *dragoman.Tool) bool {
	names := filter
	if o, err := rawjson.ParseObject(filter); err == nil {
		if string(o.Get("read_only")) == "true" && t.Hints.ReadOnly != nil && *t.Hints.ReadOnly && rawjson.IsNull(o.Get("tool_names")) {
			return true
		}
		names = o.Get("tool_names")
	}
	all, err := rawjson.Elements(names)
	return err == nil && slices.ContainsFunc(all, func(raw json.RawMessage) bool {
		name, _ := rawjson.String(raw)
		return name == t.Original
	})
}

// ask shows the calls that wait for the client's approval.
func (c *Conversation) ask(ctx context.Context) error {
	m := c.pending.Message
	for i := range m.Calls {
		call := &m.Calls[i]
		if call.Waiting == nil {
			continue
		}
		id := c.seals.ask(call, calledName(call))
		if c.options.Once != nil {
			var err error
			if id, err = c.options.Once(ctx, fmt.Sprint("consent ", i), id); err != nil {
				return err
			}
		}
		c.thread.Consents = append(c.thread.Consents, id)
		c.answer.whole(object(text("id", id), text("type", "mcp_approval_request"), text("arguments", string(call.Waiting.Arguments)),
			text("name", call.Waiting.Original), text("server_label", call.Waiting.Server)))
	}
	return nil
}

// calledName returns the name by which the model called a tool.
func calledName(call *memory.Call) string {
	if o, err := rawjson.ParseObject(call.Raw); err == nil {
		if f, err := rawjson.ParseObject(o.Get("function")); err == nil {
			return stringOf(f, "name")
		}
	}
	return ""
}
