package terminal

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
	"github.com/dragoman-mcp/dragoman/internal/session"
	"github.com/dragoman-mcp/dragoman/openai/chat"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// turn sends a message with the history and prints the answer as it comes. What
// goes wrong has been told the person when it returns.
func (c *Chat) turn(ctx context.Context, message string) error {
	t := newTrace(c)
	answer := newAnswer(c.Out, t)
	err := c.converse(ctx, message, t, answer)
	answer.end()
	t.end()
	switch {
	case ctx.Err() != nil:
		c.Trace.Printf("%s\n", c.Trace.Warn("cancelled"))
		return ErrAnswer
	case err != nil:
		c.Trace.Error(err, "")
		return ErrAnswer
	}
	return nil
}

// converse is a turn: a session, as every door gets it, and its loop.
func (c *Chat) converse(ctx context.Context, message string, t *trace, answer *answer) error {
	s, err := c.Open(ctx, session.Want{Model: c.Model})
	if err != nil {
		return err
	}
	t.room()
	c.sayMissing(s)
	t.waiting("decide", c.Model)
	talk := c.conversation()
	talk.Model, talk.System = s.Model, c.system
	talk.Client = s.Client(upstream.Request{}, nil)
	talk.Guide, talk.Shape, talk.Search = s.Guide, s.Shape, s.Search
	talk.Said, talk.Progress = answer.say, t.progress
	var ask session.Ask
	if c.Attended {
		asker := &Asker{In: c.Questions, Screen: c.Trace, Before: func() { answer.end(); t.room() }}
		ask, talk.Can = asker.Ask, CanAsk
	}
	ask, talk.Can = s.Sampler(talk.Client, talk.Can, ask)
	loop := s.Loop(nil, t.observe, ask)
	loop.Tools = Approving(loop.Tools, c.Approve, s.Denies)
	err = loop.Run(ctx, talk.Say(message))
	answer.end()
	t.room()
	c.sayLeft(talk)
	if err == nil {
		c.sayEnd(talk)
	}
	if failure, ok := errors.AsType[*model.Error](err); ok && failure.Message != "" {
		return errors.New(failure.Message)
	}
	return err
}

// conversation returns the one that is going on.
func (c *Chat) conversation() *chat.Talk {
	if c.talk == nil {
		c.talk = &chat.Talk{Offers: &c.offers}
	}
	return c.talk
}

// sayMissing says which servers have nothing to offer now, when that changes.
func (c *Chat) sayMissing(s *session.Session) {
	var names []string
	for _, m := range s.Missing {
		names = append(names, m.Label+" ("+string(m.State)+")")
	}
	if text := strings.Join(names, ", "); text != c.missing {
		if c.missing = text; text != "" && !c.Quiet {
			c.Trace.Printf("%s not there: %s\n", c.Trace.Warn("warning:"), text)
		}
	}
}

// sayLeft says which tools the model was not offered, when that changes.
func (c *Chat) sayLeft(talk *chat.Talk) {
	left, why := talk.Left(), talk.Withheld()
	if why == "" && slices.Equal(left, c.left) && c.withheld == "" || c.Quiet {
		return
	}
	if c.withheld = why; why != "" {
		c.Trace.Printf("%s the model was offered no tools: %s\n", c.Trace.Warn("warning:"), why)
		return
	}
	if c.left = slices.Clone(left); len(left) > 0 {
		c.Trace.Printf("%s %s\n", c.Trace.Warn("warning:"), LeftOut(left))
	}
}

// sayEnd says that an answer is not whole, or that there is none, which nobody could tell
// from what stands there.
func (c *Chat) sayEnd(talk *chat.Talk) {
	var what string
	switch finish := talk.Finish(); {
	case finish == "length", finish == "model_length":
		what = "the answer is cut off: it has the length that the model may write"
	case finish == "content_filter":
		what = "the answer is cut off by the filter of the model's API"
	case finish != "" && talk.Text() == "":
		what = "the model gave no answer"
	default:
		return
	}
	c.Trace.Printf("%s %s\n", c.Trace.Warn("warning:"), what)
}

// maxDescribed is how much of a tool's description a list shows, in characters.
const maxDescribed = 240

// describeTool is a tool in the lines of a list.
func describeTool(s *Screen, t *dragoman.Tool) []string {
	text := someWords(OneLine(t.Description, 10*maxDescribed), maxDescribed)
	lines := wrapped(t.Name+"  "+text, s.Width()-7)
	for i, line := range lines {
		if rest, named := strings.CutPrefix(line, t.Name); i == 0 && named {
			lines[i] = s.Bold(t.Name) + s.Faint(rest)
		} else {
			lines[i] = s.Faint(line)
		}
	}
	return prefixed(lines, "  ", "      ")
}

// someWords returns the whole words at the beginning of a text, at most n characters of
// it.
func someWords(text string, n int) string {
	runes := []rune(text)
	if len(runes) <= n {
		return text
	}
	kept := string(runes[:n-2])
	if at := strings.LastIndexByte(kept, ' '); at > 0 && runes[n-2] != ' ' {
		kept = kept[:at]
	}
	return strings.TrimRight(kept, " ") + " …"
}
