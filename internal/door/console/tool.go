package console

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/url"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/identity/permission"
	"github.com/dragoman-mcp/dragoman/internal/judge/policy"
	"github.com/dragoman-mcp/dragoman/internal/session"
	"github.com/dragoman-mcp/dragoman/internal/show"
	"github.com/dragoman-mcp/dragoman/result"
)

// A toolPage is a tool as its server sent it beside what a model gets of it.
type toolPage struct {
	Row      toolRow
	Pin      string
	Dialect  string
	Dialects []string
	Before   string // the dialects beside this one, for the keys [ and ]
	After    string
	// Beside is the schema, line to line; Rest the parts of the definition that are no
	// schema of arguments.
	Beside    []pair
	Changes   []dialect.Change
	Unchecked []string
	Problem   string // it cannot be offered in this dialect
	Strict    bool
	Function  []line
	Bytes     int // of the definition
	Tokens    int // of the function
	Rest      []line
	Book      []show.Definition
	Rights    []right
	Asked     string // the caller whose rights were asked for
	Mine      bool   // others' rights may be asked for
	Fields    []field
	Arguments string
	Called    *called
	Callable  bool
}

// A right is what a rule says about a caller and this tool.
type right struct {
	Who, Effect, Rule, Reason string
	Approvers                 []string
	Open                      []string // rules that arguments decide about
	Listed                    bool
}

// toolOf returns the tool that a request is about, in the caller's own list.
func toolOf(r *request, s *session.Session, q url.Values) (*dragoman.Tool, error) {
	list, err := s.Tools.List(r.Context())
	if err != nil {
		return nil, err
	}
	for i := range list.Tools.All() {
		if t := &list.Tools.All()[i]; t.Server == q.Get("server") && t.Original == q.Get("name") {
			return t, nil
		}
	}
	return nil, notFound("There is no such tool that you may use.")
}

func (c *Console) tool(r *request) error {
	s, t, err := c.about(r, r.URL.Query())
	if err != nil {
		return err
	}
	p, err := c.toolPage(r, s, t)
	if err != nil {
		return err
	}
	return c.show(r, "tool.html", view{Title: "Tool", Here: Root + "tools", Data: p})
}

// about opens a session in the dialect that a request names, and finds its tool.
func (c *Console) about(r *request, q url.Values) (*session.Session, *dragoman.Tool, error) {
	s, err := c.open(r, cmp.Or(q.Get("dialect"), "openai"))
	if errors.Is(err, session.ErrUnknownDialect) {
		return nil, nil, notFound("There is no such dialect.")
	}
	if err != nil {
		return nil, nil, err
	}
	t, err := toolOf(r, s, q)
	return s, t, err
}

func (c *Console) toolPage(r *request, s *session.Session, t *dragoman.Tool) (*toolPage, error) {
	names := c.o.Now().Dialects.Names()
	p := &toolPage{
		Row: rowOf(t), Pin: hex.EncodeToString(t.Pin[:]), Dialect: s.Dialect.Name(), Dialects: names,
		Bytes: len(t.Definition), Rest: lines(without(t.Definition, "inputSchema")), Arguments: "{}",
		Callable: t.Quarantined == nil, Mine: r.who.May(permission.Config),
	}
	for i, name := range names {
		if name == p.Dialect {
			p.Before, p.After = names[(i+len(names)-1)%len(names)], names[(i+1)%len(names)]
		}
	}
	p.convert(s.Dialect, t)
	p.Fields, p.Arguments = form(t.InputSchema)
	var err error
	if p.Book, err = c.bookOf(r, t); err != nil {
		return nil, err
	}
	p.Rights = append(p.Rights, rightOf(c.o.Now().Policy, r.who, t))
	if p.Asked = r.URL.Query().Get("caller"); p.Asked != "" && p.Mine {
		p.Rights = append(p.Rights, rightOf(c.o.Now().Policy, caller.Caller{ID: p.Asked, Name: p.Asked, Grants: []string{"*"}}, t))
	}
	return p, nil
}

// convert says what a model of the dialect gets of the tool.
func (p *toolPage) convert(d *dialect.Dialect, t *dragoman.Tool) {
	plain := *t
	plain.Quarantined = nil // what is held is shown as it would be
	plan, problem := d.Plan(plain)
	if problem != nil {
		p.Problem = problem.Message
		p.Beside = beside(t.InputSchema, nil, nil)
		return
	}
	p.Changes, p.Unchecked, p.Strict = plan.Report(), plan.Unchecked(), plan.Strict()
	p.Beside = beside(t.InputSchema, plan.Parameters(), p.Changes)
	p.Function, p.Tokens = lines(plan.Function()), result.EstimateTokens(string(plan.Function()))
}

// without returns a document without one of its members.
func without(document json.RawMessage, member string) json.RawMessage {
	var o map[string]json.RawMessage
	if json.Unmarshal(document, &o) != nil {
		return document
	}
	delete(o, member)
	rest, err := json.Marshal(o)
	if err != nil {
		return document
	}
	return rest
}

// bookOf returns what the book of pins has of a tool.
func (c *Console) bookOf(r *request, t *dragoman.Tool) (all []show.Definition, err error) {
	if c.o.Book == nil {
		return nil, nil
	}
	pins, err := c.o.Book.List(r.Context(), t.Server)
	if err != nil {
		return nil, err
	}
	for _, server := range show.Pins(pins) {
		for _, d := range server.Definitions {
			if d.Kind == "tool" && d.Key == spelledKey(t.Original) {
				all = append(all, d)
			}
		}
	}
	return all, nil
}

func rightOf(p *policy.Policy, who caller.Caller, t *dragoman.Tool) right {
	plain := *t
	plain.Quarantined = nil
	preview := p.Preview(policy.Request{Caller: who, Action: policy.Call, Tool: &plain})
	v := preview.Verdict
	return right{
		Who: cmp.Or(who.Name, who.ID), Effect: v.Effect.String(), Rule: v.Rule, Reason: v.Reason,
		Approvers: v.Approvers, Open: preview.Open, Listed: preview.Listed,
	}
}

// called is what came of a call by hand.
type called struct {
	Took      time.Duration
	Ran       string
	Failed    bool
	Problem   string
	Code      string
	Repairs   []dialect.Repair
	Sent      []line // the arguments as the server got them
	Came      []line // the result as it came
	Cut       int    // bytes of it that are not shown here
	Shown     string // what a model would read
	Tokens    int
	Questions int // that the server asks, and nobody here answers
	Images    []image
}

// An image is one in a result; a browser shows it after a click.
type image struct{ Type, Data string }

// Number is that of a change, as its line shows it.
func (p *toolPage) Number(i int) int { return i + 1 }
