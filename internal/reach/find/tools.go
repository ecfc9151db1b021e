package find

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// Bounds of what a search answers. The matches that come first are shown whole, as
// far as they fit into a message; of those behind them there is a line.
const (
	wholeMatches = 5
	briefMatches = 15
	wholeBytes   = 12 << 10 // the first match is shown whole in any case
	briefLength  = 120      // characters of a description
)

// Name is the tool that [Tools] runs.
const Name = "find_tools"

// Tools is a toolset that also runs find_tools. It does not list it: the
// conversation, or the door for clients of MCP, offers it where tools are searched for.
type Tools struct {
	// Toolset has the tools: what is found is what it lists.
	dragoman.Toolset
	// All lists those that the index is of, which may be more: the index of all tools of
	// all callers is made once for each list.
	All dragoman.Toolset
	// Searches keeps the indexes.
	Searches *Searches
	// Dialect is that of the model that reads what is found.
	Dialect *dialect.Dialect
	// Client says that a client of MCP reads it, in place of a model, and OwnNames that
	// it knows tools by the names that their server gave them.
	Client, OwnNames bool
	// Hides reports of a tool that it is not to be found; nil of none.
	Hides func(*dragoman.Tool) bool
}

func (s *Tools) Call(ctx context.Context, call dragoman.Call) (dragoman.Result, error) {
	if t := call.Tool; t != nil && t.Server == "" && t.Original == Name {
		return s.find(ctx, call)
	}
	return s.Toolset.Call(ctx, call)
}

// find runs find_tools.
func (s *Tools) find(ctx context.Context, call dragoman.Call) (dragoman.Result, error) {
	var wanted struct {
		Query string `json:"query"`
	}
	if err := json.Unmarshal(call.Arguments, &wanted); err != nil || strings.TrimSpace(wanted.Query) == "" {
		return dragoman.Result{Ran: dragoman.RanNot, Problem: &dragoman.Problem{
			Code: dragoman.CodeInvalidArguments, Message: "The query is empty. Say in a few words what the tool should do.",
		}}, nil
	}
	whole, err := s.All.List(ctx)
	if err != nil {
		return dragoman.Result{}, err
	}
	mine, err := s.List(ctx)
	if err != nil {
		return dragoman.Result{}, err
	}
	index := s.Searches.Of(whole)
	keep := func(t *dragoman.Tool) bool {
		own := mine.Tools.Exact(t.Name)
		return t.Quarantined == nil && own != nil && own.Pin == t.Pin && own.Quarantined == nil && (s.Hides == nil || !s.Hides(t))
	}
	shown := s.shown(index.Search(wanted.Query, wholeMatches+briefMatches, keep))
	shown.Hint = hint(shown, index.Unknown(wanted.Query, keep))
	answer, err := json.Marshal(shown)
	if err != nil {
		return dragoman.Result{}, err
	}
	content := append(append([]byte(`{"content":[],"structuredContent":`), answer...), '}')
	if s.Client { // which may read one or both, and pays for both
		content = append(append([]byte(`{"content":[{"type":"text","text":`), rawjson.Quote(string(answer))...), `}]}`...)
	}
	return dragoman.Result{Ran: dragoman.RanYes, Content: content}, nil
}

// shown returns what a model, or a client, is shown of the matches.
func (s *Tools) shown(matches []*dragoman.Tool) findings {
	answer, size := findings{Tools: []json.RawMessage{}}, 0
	for _, t := range matches {
		name, entry := t.Name, json.RawMessage(nil)
		if s.OwnNames {
			name = t.Original
		}
		if s.Client {
			entry = asListed(name, t)
		} else {
			plan, problem := s.Dialect.Plan(*t)
			if problem != nil {
				continue // nor can it be called
			}
			entry = asOffered(name, plan)
		}
		if n := len(answer.Tools); n == 0 || n < wholeMatches && size+len(entry) <= wholeBytes {
			answer.Tools = append(answer.Tools, entry)
			size += len(entry)
			continue
		}
		answer.More = append(answer.More, brief{name, firstWords(t.Description)})
	}
	return answer
}

// hint says how to go on from what was found. Words that no tool knows are said, since the
// others alone may have found something else.
func hint(answer findings, unknown []string) string {
	var hints []string
	switch {
	case len(answer.Tools) == 0:
		hints = append(hints, "No tool matches. Search again with other words, such as what the tool works on or the verb for it, in the language of the tools, mostly English.")
	case len(unknown) > 0:
		hints = append(hints, fmt.Sprintf("No tool knows the words %s: these match the others alone. If none fits, search again with other words, in the language of the tools, mostly English.", strings.Join(unknown, ", ")))
	}
	if len(answer.More) > 0 {
		hints = append(hints, "To see the input schema of one of more, search for its name.")
	}
	return strings.Join(hints, " ")
}

// findings are what find_tools answers.
type findings struct {
	Tools []json.RawMessage `json:"tools"`
	More  []brief           `json:"more,omitempty"`
	Hint  string            `json:"hint,omitempty"`
}

type brief struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

// asOffered returns a tool as a model is shown it: with the description and the
// schema in the form that its arguments are read in.
func asOffered(name string, plan *dialect.Plan) json.RawMessage {
	entry := &rawjson.Object{}
	entry.Set("name", rawjson.Quote(name))
	if whole, err := rawjson.ParseObject(plan.Function()); err == nil {
		if function, err := rawjson.ParseObject(whole.Get("function")); err == nil && function.Get("description") != nil {
			entry.Set("description", function.Get("description"))
		}
	}
	entry.Set("input_schema", plan.Parameters())
	return entry.Bytes()
}

// asListed returns a tool as a client of MCP is shown it: with the schema of its
// server, as in a list, or one that takes anything where there is none.
func asListed(name string, t *dragoman.Tool) json.RawMessage {
	entry := &rawjson.Object{}
	entry.Set("name", rawjson.Quote(name))
	if t.Description != "" {
		entry.Set("description", rawjson.Quote(t.Description))
	}
	entry.Set("inputSchema", t.Input())
	return entry.Bytes()
}

// firstWords returns the beginning of a description as one line.
func firstWords(text string) string {
	text = strings.Join(strings.Fields(text[:min(len(text), 4*briefLength)]), " ")
	if utf8.RuneCountInString(text) <= briefLength {
		return strings.ToValidUTF8(text, "")
	}
	return string([]rune(text)[:briefLength-1]) + "…"
}
