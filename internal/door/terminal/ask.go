package terminal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/text/canonical"
	"github.com/dragoman-mcp/dragoman/internal/text/hostname"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// CanAsk is what a person at a terminal can be asked.
const CanAsk = dragoman.AskApproval | dragoman.AskForm | dragoman.AskURL

// The replies to a question (MCP 2025-11-25, "Elicitation", Response Actions).
var (
	accepted  = json.RawMessage(`{"action":"accept"}`)
	declined  = json.RawMessage(`{"action":"decline"}`)
	cancelled = json.RawMessage(`{"action":"cancel"}`)
)

// An Asker puts what calls ask to a person. Questions of calls that run side by
// side are asked one after the other.
type Asker struct {
	// In is where the person answers, and Screen where they are asked.
	In     Input
	Screen *Screen
	// Before is called before the first question is shown, so that what else is
	// on the screen can make room; it may be nil.
	Before func()

	mu sync.Mutex
}

// Ask asks the questions of a call, and returns the answers. It is a
// [dragoman.Loop.Ask]. Questions that are not for a person at a terminal are
// left without an answer, which cancels them.
func (a *Asker) Ask(ctx context.Context, call dragoman.Call, asks *dragoman.Asks) (*dragoman.Answers, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.Before != nil {
		a.Before()
	}
	answers := &dragoman.Answers{Replies: map[string]json.RawMessage{}}
	for _, q := range asks.Questions {
		reply, err := a.question(ctx, call, q)
		if errors.Is(err, io.EOF) || errors.Is(err, ErrInterrupted) {
			reply, err = cancelled, nil // nobody is there any more, or wants to say
		}
		if err != nil {
			return nil, err
		}
		if reply != nil {
			answers.Replies[q.Key] = reply
		}
	}
	return answers, nil
}

// question asks one question; nil means that it is not for a person here.
func (a *Asker) question(ctx context.Context, call dragoman.Call, q dragoman.Question) (json.RawMessage, error) {
	params, err := rawjson.ParseObject(q.Params)
	if err != nil {
		params = &rawjson.Object{}
	}
	message, _ := rawjson.String(params.Get("message"))
	switch q.Kind {
	case dragoman.AskApproval:
		return a.approval(ctx, call, message)
	case dragoman.AskURL:
		address, _ := rawjson.String(params.Get("url"))
		return a.visit(ctx, q.Server, message, address)
	case dragoman.AskForm:
		return a.form(ctx, q.Server, message, params.Get("requestedSchema"))
	}
	return nil, nil
}

// approval asks whether a call may run.
func (a *Asker) approval(ctx context.Context, call dragoman.Call, message string) (json.RawMessage, error) {
	name := call.Name
	if call.Tool != nil {
		name = call.Tool.Name
	}
	a.say("%s %s\n", a.Screen.Warn("approve?"), Quote(message))
	var pretty bytes.Buffer
	if json.Indent(&pretty, call.Arguments, "  ", "  ") != nil {
		pretty.Write(call.Arguments)
	}
	a.say("  %s %s\n", a.Screen.Bold(Visible(name)), Visible(canonical.Readable(pretty.Bytes())))
	yes, err := a.yes(ctx, "Run it?")
	if err != nil || !yes {
		return declined, err
	}
	return accepted, nil
}

// visit asks a person to go to an address. Its host is shown apart, since that
// is what tells a false address from a true one.
func (a *Asker) visit(ctx context.Context, server, message, address string) (json.RawMessage, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		a.say("%s %s wants you to visit an address that is none: %s\n", a.Screen.Warn("question"), Visible(server), OneLine(address, 200))
		return cancelled, nil
	}
	a.head(server, message)
	a.say("  It wants you to visit %s\n  %s\n", a.Screen.Bold(Visible(hostOf(u))), Visible(address))
	yes, err := a.yes(ctx, "Have you done what it asks for there?")
	if err != nil || !yes {
		return declined, err
	}
	return accepted, nil
}

// hostOf returns the host of an address, and where it has letters beyond ASCII, which look
// like others, the name by which it is looked up.
func hostOf(u *url.URL) string {
	host := u.Host
	if len(host) > hostname.Max {
		return host
	}
	if name, err := hostname.Lookup.ToASCII(u.Hostname()); err == nil && !isASCII(host) {
		host += " (" + name + ")"
	}
	return host
}

func isASCII(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf })
}

func (a *Asker) head(server, message string) {
	a.say("%s %s asks: %s\n", a.Screen.Warn("question"), a.Screen.Bold(Visible(server)), Quote(message))
}

// say shows a part of a question, in which servers and models have words.
func (a *Asker) say(format string, args ...any) {
	a.Screen.Printf("%s", a.Screen.Fold(fmt.Sprintf(format, args...)))
}

// yes asks a question that is answered with yes or no; anything but yes is no.
func (a *Asker) yes(ctx context.Context, question string) (bool, error) {
	line, err := a.line(ctx, "  "+question+" [y/N] ")
	answer := strings.ToLower(line)
	return err == nil && (answer == "y" || answer == "yes"), err
}

func (a *Asker) line(ctx context.Context, prompt string) (string, error) {
	line, err := a.In.Read(ctx, a.Screen.Fold(prompt))
	return strings.TrimSpace(line), err
}

// form asks for the values of a form, field by field.
func (a *Asker) form(ctx context.Context, server, message string, schema json.RawMessage) (json.RawMessage, error) {
	fields := readFields(schema)
	a.head(server, message)
	if len(fields) == 0 {
		yes, err := a.yes(ctx, "Accept?")
		if err != nil || !yes {
			return declined, err
		}
		return json.RawMessage(`{"action":"accept","content":{}}`), nil
	}
	a.Screen.Printf("  %s\n", a.Screen.Faint("/decline says no, /cancel or Ctrl-C leaves it open; a field that is left empty keeps its default"))
	content := rawjson.Object{}
	for _, f := range fields {
		for {
			line, err := a.line(ctx, "  "+f.prompt(a.Screen))
			if err != nil {
				return nil, err
			}
			switch line {
			case "/decline":
				return declined, nil
			case "/cancel":
				return cancelled, nil
			}
			value, err := f.read(line)
			if err != nil {
				a.Screen.Printf("  %s %s\n", a.Screen.Bad("✗"), err)
				continue
			}
			if value != nil {
				content.Set(f.name, value)
			}
			break
		}
	}
	return fmt.Appendf(nil, `{"action":"accept","content":%s}`, content.Bytes()), nil
}
