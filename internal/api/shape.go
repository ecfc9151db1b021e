package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/bounded"
	"github.com/dragoman-mcp/dragoman/internal/caller"
	"github.com/dragoman-mcp/dragoman/internal/glob"
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

// guide returns the text about reading results; "" for none.
func (g *Guide) guide() string {
	switch {
	case g.Off:
		return ""
	case g.Text != "":
		return g.Text
	}
	return result.Guide
}

// A reader is who will read results: a model behind a dialect, on behalf of a
// caller.
type reader struct {
	dialect *dialect.Dialect
	model   string
	form    result.Form // what the model's entry in the configuration says
	who     caller.Caller
}

// shapes returns the shape of each tool's results for a reader.
func (a *API) shapes(r reader) func(*dragoman.Tool) *result.Shape {
	form := r.form.Or(a.Results.Form)
	form = form.Or(result.Form{Profile: result.Profile(r.dialect.Wire().Result)})
	form = form.Or(result.Form{Profile: result.ProfileFor(r.model)})
	return func(t *dragoman.Tool) *result.Shape {
		form := form
		if t != nil {
			for _, rule := range a.Results.Tools {
				if glob.Match(rule.Match, t.Server+"__"+t.Original) {
					form = rule.Form.Or(form)
					break
				}
			}
		}
		return &result.Shape{
			Profile: form.Profile, Limit: form.Limit, Tokens: form.Tokens,
			Images: true, Check: a.outputs.check, Shelf: a.Shelf, Caller: r.who.ID,
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
	if len(wrong) == 0 {
		return nil
	}
	if len(wrong) > 1 {
		return fmt.Errorf("%s, and %d more", wrong[0], len(wrong)-1)
	}
	return errors.New(wrong[0].String())
}
