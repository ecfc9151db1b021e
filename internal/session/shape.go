package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/state/bounded"
	"github.com/dragoman-mcp/dragoman/internal/text/glob"
	"github.com/dragoman-mcp/dragoman/internal/text/qualified"
	"github.com/dragoman-mcp/dragoman/result"
	"github.com/dragoman-mcp/dragoman/schema"
)

// Results says how results look to a model.
type Results struct {
	result.Form
	Tools      []ToolResults `yaml:"tools" doc:"Exceptions for some tools. The first that matches wins, also over what models say."`
	Guide      Guide         `yaml:"guide" doc:"The short system text about reading results."`
	MaxMessage int64         `yaml:"max_message" unit:"bytes" min:"65536" doc:"Largest message that is accepted from a server or from a model's API."`
}

// ToolResults is an exception for the results of some tools.
type ToolResults struct {
	Match string `yaml:"match" need:"true" doc:"Tools, as label__name; a pattern with * and ?."`
	result.Form
}

// Guide is the system text about reading results.
type Guide struct {
	Off  bool   `yaml:"off" doc:"Leaves the text out."`
	Text string `yaml:"text" doc:"A text to take its place."`
}

// text returns the text about reading results; "" for none.
func (g *Guide) text() string {
	switch {
	case g.Off:
		return ""
	case g.Text != "":
		return g.Text
	}
	return result.Guide
}

// form returns the form of results for the reader of a session, as long as neither
// the request nor a tool has one of its own: what the configuration says of the
// model and of all, then what suits the dialect and the model.
func (o *Opener) form(s *Session) (form result.Form) {
	if s.Upstream != nil {
		form = s.Upstream.Results
	}
	form = form.Or(o.o.Results.Form)
	form = form.Or(result.Form{Profile: result.Profile(s.Dialect.Wire().Result)})
	return form.Or(result.Form{Profile: result.ProfileFor(s.Model)})
}

// offered returns the dialect as tools are offered in it. Whoever reads structured
// content in any case is not given the choice of another form, which costs tokens
// in each tool.
func (o *Opener) offered(d *dialect.Dialect, form result.Form, profile result.Profile) *dialect.Dialect {
	raw := result.Form{Profile: profile}.Or(form).Profile == result.Raw ||
		slices.ContainsFunc(o.o.Results.Tools, func(r ToolResults) bool { return r.Profile == result.Raw })
	if o.o.KeepFormatChoice || raw {
		return d
	}
	return d.With(dialect.Options{NoFormatChoice: true})
}

// shapes returns the shape of each tool's results for the reader of a session:
// what the request asks for, then what the configuration says of the tool, then
// form.
func (o *Opener) shapes(s *Session, form result.Form, profile result.Profile) func(*dragoman.Tool) *result.Shape {
	return func(t *dragoman.Tool) *result.Shape {
		form := form
		if t != nil {
			for _, rule := range o.o.Results.Tools {
				if glob.Match(rule.Match, qualified.Name(t.Server, t.Original)) {
					form = rule.Form.Or(form)
					break
				}
			}
		}
		form = result.Form{Profile: profile}.Or(form)
		return &result.Shape{
			Profile: form.Profile, Limit: form.Limit, Tokens: form.Tokens,
			Images: true, Check: o.outputs.check, Shelf: &o.state.shelf, Caller: s.Caller.ID,
		}
	}
}

// outputs checks structured results against the output schemas of their tools.
type outputs struct {
	once       sync.Once
	validators bounded.Map[*schema.Validator] // by the schema itself
}

// check reports how a structured result does not fit its schema.
func (o *outputs) check(t *dragoman.Tool, structured json.RawMessage) error {
	if t == nil || len(t.OutputSchema) == 0 {
		return nil
	}
	o.once.Do(func() { o.validators.Bytes, o.validators.Age = 32<<20, time.Hour })
	key := string(t.OutputSchema)
	v, ok := o.validators.Get("", key)
	if !ok {
		v = schema.NewValidator(t.OutputSchema)
		o.validators.Put("", key, v, int64(20*len(key))) // compiled, it is that much larger
	}
	wrong := v.Validate(structured)
	if len(wrong) == 0 || wrong[0].Keyword == schema.CostKeyword { // what is too dear to judge is not judged
		return nil
	}
	if len(wrong) > 1 {
		return fmt.Errorf("%s, and %d more", wrong[0], len(wrong)-1)
	}
	return errors.New(wrong[0].String())
}
