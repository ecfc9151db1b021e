package terminal

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/session"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// slashCommands are the commands of an interactive chat.
var slashCommands = []struct{ name, what string }{
	{"/help", "this list"},
	{"/tools", "[WORD] the tools that the model has, or those with a word in them"},
	{"/model", "[NAME] which model answers, and which there are; or another one from now on"},
	{"/system", "[TEXT] the system message, or another one; \"/system none\" for none"},
	{"/clear", "forget the conversation"},
	{"/save", "FILE save the conversation: as JSON where the name ends in .json, else as Markdown"},
	{"/quit", "leave; so does Ctrl-D"},
}

// isCommand reports whether a line is meant for us: a slash and a word. A path has
// more slashes, and a second line is no part of a command but of /system.
func isCommand(line string) bool {
	name, _, _ := strings.Cut(line, " ")
	return strings.HasPrefix(name, "/") && len(name) > 1 && !strings.ContainsAny(name[1:], "/\n.") && !strings.HasPrefix(line, "//")
}

// command does what a command says. leave ends the chat.
func (c *Chat) command(ctx context.Context, line string) (leave bool, err error) {
	name, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	switch name {
	case "/quit", "/exit":
		return true, nil
	case "/help":
		c.help()
	case "/clear", "/new":
		c.talk = nil
		c.Trace.Printf("%s\n", c.Trace.Faint("The conversation is forgotten."))
	case "/tools":
		c.listTools(ctx, rest)
	case "/model":
		c.chooseModel(ctx, rest)
	case "/system":
		c.chooseSystem(rest)
	case "/save":
		c.save(rest)
	default:
		names := make([]string, len(slashCommands))
		for i, h := range slashCommands {
			names[i] = h.name
		}
		c.Trace.Printf("%s there is no %s; there are %s\n", c.Trace.Warn("!"), OneLine(name, 40), strings.Join(names, ", "))
	}
	return false, nil
}

// help lists the commands, and says what the keys do.
func (c *Chat) help() {
	const column = 11
	width := max(c.Trace.Width()-column-1, narrowest)
	for _, h := range slashCommands {
		lines := prefixed(wrapped(h.what, width), fmt.Sprintf("  %s ", c.Trace.Bold(fmt.Sprintf("%-*s", column-3, h.name))), strings.Repeat(" ", column))
		c.Trace.Printf("%s\n", strings.Join(lines, "\n"))
	}
	for _, line := range wrapped("Alt-Enter or Ctrl-J begins a new line, Tab completes, ↑ brings back what was typed, Ctrl-C interrupts.", c.Trace.Width()-3) {
		c.Trace.Printf("  %s\n", c.Trace.Faint(line))
	}
}

// listTools prints the tools that the model has.
func (c *Chat) listTools(ctx context.Context, word string) {
	s, err := c.Open(ctx, session.Want{Model: c.Model})
	if err != nil {
		c.Trace.Error(err, "")
		return
	}
	list, err := s.Tools.List(ctx)
	if err != nil {
		c.Trace.Error(err, "")
		return
	}
	shown := 0
	for _, t := range list.Tools.All() {
		text := strings.ToLower(t.Name + " " + t.Description)
		if t.Quarantined == nil && strings.Contains(text, strings.ToLower(word)) {
			c.Trace.Printf("%s\n", strings.Join(describeTool(c.Trace, &t), "\n"))
			shown++
		}
	}
	c.Trace.Printf("  %s\n", c.Trace.Faint(fmt.Sprintf("%d of %d tools", shown, list.Tools.Len())))
}

// chooseModel changes the model, or says which there are.
func (c *Chat) chooseModel(ctx context.Context, name string) {
	if name != "" {
		if _, err := c.Open(ctx, session.Want{Model: name, NoTools: true}); err != nil {
			c.Trace.Error(err, "")
			return
		}
		c.Model = name
		c.Trace.Printf("%s\n", c.Trace.Faint("From now on "+OneLine(name, 100)+" answers."))
		return
	}
	c.Trace.Printf("  %s\n", c.Trace.Bold(Visible(c.Model)))
	if c.Models != nil {
		for _, m := range c.Models(ctx) {
			if m != c.Model {
				c.Trace.Printf("  %s\n", OneLine(m, 100))
			}
		}
	}
}

// chooseSystem changes the system message, or shows it.
func (c *Chat) chooseSystem(text string) {
	switch text {
	case "":
		text := c.system
		if text == "" {
			text = "There is no system message."
		}
		c.Trace.Printf("  %s\n", Visible(text))
	case "none":
		c.system = ""
	default:
		c.system = text
	}
}

// save writes the conversation to a file that does not exist yet.
func (c *Chat) save(path string) {
	if path == "" {
		c.Trace.Error(fmt.Errorf("/save needs the name of a file"), "")
		return
	}
	messages := c.conversation().Messages()
	if c.system != "" {
		messages = slices.Insert(messages, 0, json.RawMessage(`{"role":"system","content":`+string(rawjson.Quote(c.system))+`}`))
	}
	text := append(rawjson.AppendArray(nil, messages), '\n')
	if !strings.HasSuffix(path, ".json") {
		text = []byte(transcript(c.Model, messages))
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		_, err = f.Write(text)
		if closed := f.Close(); err == nil {
			err = closed
		}
	}
	if err != nil {
		c.Trace.Error(err, "")
		return
	}
	c.Trace.Printf("%s\n", c.Trace.Faint(fmt.Sprintf("%d messages are in %s.", len(messages), path)))
}

// transcript is a conversation for people.
func transcript(model string, messages []json.RawMessage) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# A conversation with %s\n", model)
	for _, raw := range messages {
		var m struct {
			Role      string
			Content   json.RawMessage
			ToolCalls []struct {
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		}
		if json.Unmarshal(raw, &m) != nil {
			continue
		}
		text, isText := rawjson.String(m.Content)
		if !isText && !rawjson.IsNull(m.Content) {
			text = string(m.Content)
		}
		if m.Role == "tool" {
			text = fencedText(text)
		}
		for _, call := range m.ToolCalls {
			text += "\n\n" + fencedText(call.Function.Name+" "+call.Function.Arguments)
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", m.Role, strings.TrimSpace(text))
	}
	return b.String()
}

// fencedText is text that Markdown leaves alone.
func fencedText(text string) string {
	mark := "```"
	for strings.Contains(text, mark) {
		mark += "`"
	}
	return mark + "\n" + text + "\n" + mark
}

// Complete returns what the last word of a text may become: a command at the
// beginning, a model behind /model, and the name of a tool elsewhere.
func (c *Chat) Complete(text string) (candidates []string) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	word := text[strings.LastIndexAny(text, " \n\t")+1:]
	var all []string
	switch {
	case strings.HasPrefix(word, "/") && word == text:
		for _, h := range slashCommands {
			all = append(all, h.name)
		}
	case strings.HasPrefix(text, "/model ") && c.Models != nil:
		all = c.Models(ctx)
	case word != "":
		all = c.toolNames(ctx)
	}
	for _, name := range all {
		if strings.HasPrefix(name, word) {
			candidates = append(candidates, Visible(name))
		}
	}
	return candidates
}

// toolNames returns the names of the tools there are now.
func (c *Chat) toolNames(ctx context.Context) (names []string) {
	s, err := c.Open(ctx, session.Want{Model: c.Model, NoTools: true})
	if err != nil {
		return nil
	}
	list, err := s.Tools.List(ctx)
	if err != nil {
		return nil
	}
	for _, t := range list.Tools.All() {
		if t.Quarantined == nil {
			names = append(names, t.Name)
		}
	}
	return names
}
