package prove

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/text/pattern"
	"github.com/dragoman-mcp/dragoman/schema"
)

// A Tally counts what becomes of calls that are made up at random, as a model may
// write them, and of those that a server may want.
type Tally struct {
	// Tools are those that were asked, and Unusable those that cannot be used:
	// quarantined, or with a schema that the engine refuses.
	Tools, Unusable int
	// Written are calls that a model can write by the schema that is sent;
	// Accepted those of them that arrive as the server's schema wants it.
	Written, Accepted int
	// Obedient are calls of a model that also keeps to what the conversion says in
	// descriptions; Kept those of them that are accepted.
	Obedient, Kept int
	// Wanted are calls that the server takes; Writable those of them that a model
	// can write, and that come back as they were.
	Wanted, Writable int
	// NoJSON are texts that an engine made up and that are no JSON.
	NoJSON int
	// Refusals are why calls were refused, and how often; Disobeyed those of the
	// obedient model; Unsaid why calls cannot be written.
	Refusals, Disobeyed, Unsaid map[string]int
	// Examples has one such call of each reason.
	Examples map[string]string
}

// NewTally returns an empty tally.
func NewTally() *Tally {
	return &Tally{Refusals: map[string]int{}, Disobeyed: map[string]int{}, Unsaid: map[string]int{}, Examples: map[string]string{}}
}

// Rate is how many of each hundred calls that can be written are accepted.
func (t *Tally) Rate() float64 { return percent(t.Accepted, t.Written) }

// KeptRate is that of a model that reads descriptions.
func (t *Tally) KeptRate() float64 { return percent(t.Kept, t.Obedient) }

// WritableRate is how many of each hundred calls that a server takes can be
// written.
func (t *Tally) WritableRate() float64 { return percent(t.Writable, t.Wanted) }

func percent(part, whole int) float64 {
	if whole == 0 {
		return 100
	}
	return 100 * float64(part) / float64(whole)
}

// chances is how often a value is made anew that the engine does not let a model
// write, or that the server does not take.
const chances = 12

// Count makes up calls of a tool and adds what becomes of them. The error says
// that the engine is in trouble.
func (p *Prover) Count(ctx context.Context, tool dragoman.Tool, calls int, t *Tally) error {
	engine := p.Engine
	if engine == nil {
		engine = Sent{}
	}
	t.Tools++
	plan, problem := p.Dialect.Plan(tool)
	if problem != nil {
		t.Unusable++
		return nil
	}
	language, err := read(ctx, engine, plan)
	if errors.Is(err, ErrRefused) {
		t.Unusable++
		return nil
	}
	if err != nil {
		return fmt.Errorf("counting %s for %s: %w", tool.Name, p.Dialect.Name(), err)
	}
	s, err := newSearch(p, plan, tool, language)
	if err != nil {
		return err
	}
	c := count{search: s, tally: t, tool: tool.Server + "/" + tool.Name, r: rand.New(rand.NewPCG(p.Seed, 5))}
	if err := c.written(ctx, calls); err != nil {
		return err
	}
	if err := c.obedient(ctx, calls); err != nil {
		return err
	}
	return c.wanted(ctx, calls)
}

// A count is one tool's.
type count struct {
	*search
	tally *Tally
	tool  string
	r     *rand.Rand
}

// written makes up calls by the schema that the model sees, and lets the engine
// make up others.
func (c *count) written(ctx context.Context, calls int) error {
	texts, err := c.random(ctx, calls, false)
	if err != nil {
		return err
	}
	own, err := c.language.Sample(ctx, calls, c.r.Uint64())
	if err != nil {
		return err
	}
	for _, text := range append(texts, own...) {
		c.tally.Written++
		if _, err := schema.Parse([]byte(text)); err != nil {
			c.tally.NoJSON++
		}
		if c.accepted(text, c.tally.Refusals) {
			c.tally.Accepted++
		}
	}
	return nil
}

// obedient makes up calls by schema and descriptions.
func (c *count) obedient(ctx context.Context, calls int) error {
	texts, err := c.random(ctx, calls, true)
	for _, text := range texts {
		c.tally.Obedient++
		if c.accepted(text, c.tally.Disobeyed) {
			c.tally.Kept++
		}
	}
	return err
}

// random are texts that the engine lets a model write.
func (c *count) random(ctx context.Context, calls int, obey bool) (made []string, err error) {
	for range chances {
		var texts []string
		var owner []int
		for i := range calls - len(made) {
			for _, text := range c.spellings(chanceOf(c.r, c.shown, obey)) {
				texts, owner = append(texts, text), append(owner, i)
			}
		}
		writes, err := c.writes(ctx, texts)
		if err != nil {
			return nil, err
		}
		last := -1
		for t, ok := range writes {
			if ok && owner[t] != last {
				last = owner[t]
				made = append(made, texts[t])
			}
		}
	}
	return made, nil
}

// accepted judges a text that the model can write, and notes why it is refused.
func (c *count) accepted(text string, refusals map[string]int) bool {
	why, _ := c.refusal(text)
	if why != "" {
		c.tally.note(refusals, why, c.tool+" "+text)
	}
	return why == ""
}

// wanted makes up calls by the server's schema.
func (c *count) wanted(ctx context.Context, calls int) error {
	var made []candidate
	for range calls * chances {
		if v := chanceOf(c.r, c.asked, false); len(made) < calls && v.Kind() == schema.Object && len(c.server.ValidateNode(v)) == 0 {
			made = append(made, candidate{v, ""})
		}
	}
	whys, err := c.cannotSay(ctx, made)
	if err != nil {
		return err
	}
	for i, why := range whys {
		c.tally.Wanted++
		if why == "" {
			c.tally.Writable++
			continue
		}
		c.tally.note(c.tally.Unsaid, why, c.tool+" "+string(made[i].value.Bytes()))
	}
	return nil
}

var particulars = []struct {
	of *pattern.Pattern
	by string
}{
	{pattern.Of(`^The arguments do not fit the tool's input schema: `), ""},
	{pattern.Of(`;.*`), ""},
	{pattern.Of(`'.*'`), "…"},
	{pattern.Of(`".*"`), "…"},
	{pattern.Of(` as \{.*`), ""},
	{pattern.Of(`\^.*`), "…"},
	{pattern.Of(`^/[^:]*`), "/…"},
	{pattern.Of(`-?[0-9][0-9.]*`), "N"},
}

// note counts a reason without what is particular in it.
func (t *Tally) note(reasons map[string]int, why, example string) {
	kind := why
	for _, p := range particulars {
		kind = p.of.ReplaceAllString(kind, p.by)
	}
	if reasons[kind]++; t.Examples[kind] == "" {
		t.Examples[kind] = fmt.Sprintf("%.900s | %.300s", example, why)
	}
}
