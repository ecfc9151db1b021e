package prove

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/schema"
)

// A Prover searches for witnesses in one dialect. It is used by one goroutine at
// a time.
type Prover struct {
	Dialect *dialect.Dialect
	// Engine says what the model can write; nil means [Sent].
	Engine Engine
	// Effort multiplies how much is tried; zero means 1.
	Effort int
	// Seed makes other candidates; the same seed makes the same ones.
	Seed uint64
}

// What is tried with an effort of 1.
const (
	singles  = 4000    // candidates with one place changed
	pairs    = 400     // with two
	samples  = 24      // texts that the engine makes up
	keepEach = 6       // witnesses of a kind
	weight   = 4 << 20 // bytes of all candidates of a schema
)

// Tool searches for witnesses against one tool. The error says that the engine is
// in trouble; what is wrong with the tool is in the proof.
func (p *Prover) Tool(ctx context.Context, tool dragoman.Tool) (*Proof, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	engine := p.Engine
	if engine == nil {
		engine = Sent{}
	}
	proof := &Proof{Server: tool.Server, Tool: tool.Name, Dialect: p.Dialect.Name(), Engine: engine.Name(), Witnesses: []Witness{}}
	proof.Looked.Seed = p.Seed
	problem := tool.Quarantined
	var plan *dialect.Plan
	if problem == nil {
		plan, problem = p.Dialect.Plan(tool)
	}
	if problem != nil {
		proof.Unusable = problem.Message
		return proof, nil
	}
	proof.Strict, proof.Wide = plan.Strict(), plan.Wide()
	language, err := read(ctx, engine, plan)
	if errors.Is(err, ErrRefused) {
		proof.Unusable = err.Error()
		return proof, nil
	}
	if err != nil {
		return nil, fmt.Errorf("proving %s for %s: %w", tool.Name, p.Dialect.Name(), err)
	}
	s, err := newSearch(p, plan, tool, language)
	if err != nil {
		return nil, err
	}
	proof.Unchecked = s.server.Unchecked()
	if err := s.run(ctx, proof); err != nil {
		return nil, fmt.Errorf("proving %s for %s: %w", tool.Name, p.Dialect.Name(), err)
	}
	sortWitnesses(proof.Witnesses)
	return proof, nil
}

// read makes an engine read what is sent. One that takes the schema for the law
// gets what it means.
func read(ctx context.Context, engine Engine, plan *dialect.Plan) (Language, error) {
	if _, ok := engine.(Sent); ok {
		return engine.Read(ctx, plan.Meaning())
	}
	return engine.Read(ctx, plan.Parameters())
}

// A search is one tool's.
type search struct {
	plan     *dialect.Plan
	language Language
	server   *schema.Validator
	asked    *schema.Node // the server's schema
	shown    *schema.Node // what the model sees
	effort   int
	random   *rand.Rand
	told     bool

	looked Looked
	found  map[Kind][]Witness
	lost   map[Kind]map[string]int // of all calls that were tried, those lost in a place
	all    map[Kind]int
}

// tried counts a call, and where it is lost, if it is.
func (s *search) tried(kind Kind, at string, lost bool) {
	if s.lost[kind] == nil {
		s.lost[kind] = map[string]int{}
	}
	if s.all[kind]++; lost {
		s.lost[kind][at]++
	}
}

func newSearch(p *Prover, plan *dialect.Plan, tool dragoman.Tool, language Language) (*search, error) {
	doc, refusal := schema.Admit(tool.Input())
	if refusal != nil {
		return nil, fmt.Errorf("the schema of %s: %w", tool.Name, refusal) // the plan has admitted it
	}
	meant := language.Shown()
	if _, ok := language.(*shown); !ok {
		meant = plan.Meaning()
	}
	shown, err := schema.Parse(meant)
	if err != nil {
		return nil, fmt.Errorf("what the engine shows of %s: %w", tool.Name, err)
	}
	return &search{
		plan: plan, language: language, server: schema.NewValidator(tool.Input()), asked: doc.Root, shown: shown,
		effort: max(p.Effort, 1), random: rand.New(rand.NewPCG(p.Seed, 1)), found: map[Kind][]Witness{}, lost: map[Kind]map[string]int{}, all: map[Kind]int{},
		told: slices.ContainsFunc(plan.Report(), func(c dialect.Change) bool { return c.Narrows }),
	}, nil
}

// A candidate is a value with the place at which it was changed.
type candidate struct {
	value *schema.Node
	at    string
}

func (s *search) run(ctx context.Context, proof *Proof) error {
	all, exhausted := s.every()
	asked := all
	if !exhausted {
		asked = s.candidates(s.asked)
	}
	taken, beyond, err := s.judge(ctx, asked)
	if err != nil {
		return err
	}
	if err := s.unsaid(ctx, append(taken, s.undeclared()...)); err != nil {
		return err
	}
	// What the server refuses is worth writing; so is what the model's own schema
	// suggests.
	if err := s.refused(ctx, s.asWritten(beyond), s.candidates(s.shown)); err != nil {
		return err
	}
	if err := s.sampled(ctx, proof.Looked.Seed); err != nil {
		return err
	}
	for _, kind := range []Kind{Refused, Unsaid, Undeclared} {
		small, err := s.shrinkAll(ctx, kind)
		if err != nil {
			return err
		}
		proof.Witnesses = append(proof.Witnesses, small...)
	}
	seed := proof.Looked.Seed
	proof.Looked = s.looked
	proof.Looked.All, proof.Looked.Seed = exhausted, seed
	return nil
}

// candidates makes up values of a schema.
func (s *search) candidates(root *schema.Node) (all []candidate) {
	b := newBuilder(root)
	places := placesOf(root)
	s.looked.Places += len(places)
	seen := map[string]bool{}
	bytes := 0
	add := func(v *schema.Node, at string) {
		if v.Kind() != schema.Object || bytes > weight*s.effort {
			return
		}
		if key := string(v.Append(nil)); !seen[key] {
			seen[key] = true
			bytes += len(key)
			all = append(all, candidate{v, at})
		}
	}
	small, full := b.as(false).value(root, 0), b.as(true).value(root, 0)
	add(small, "")
	add(full, "")
	palettes := make([][]*schema.Node, len(places))
	for i, place := range places {
		palettes[i] = b.as(false).palette(place.node)
		for _, v := range palettes[i] {
			if len(all) >= singles*s.effort || bytes > weight*s.effort {
				break
			}
			add(b.as(false).set(root, small, place.steps, v), place.pointer)
			if len(v.Bytes()) < 400 {
				add(b.as(false).set(root, full, place.steps, v), place.pointer)
			}
		}
	}
	for range pairs * s.effort {
		i, j := s.random.IntN(len(places)), s.random.IntN(len(places))
		if len(palettes[i]) == 0 || len(palettes[j]) == 0 {
			continue
		}
		v := b.as(false).set(root, small, places[i].steps, palettes[i][s.random.IntN(len(palettes[i]))])
		v = b.as(false).set(root, v, places[j].steps, palettes[j][s.random.IntN(len(palettes[j]))])
		add(v, places[j].pointer)
	}
	s.looked.Candidates += len(all)
	return all
}

// judge parts what the server takes from what it does not.
func (s *search) judge(ctx context.Context, all []candidate) (taken, beyond []candidate, err error) {
	for _, c := range all {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		if len(s.server.ValidateNode(c.value)) == 0 {
			taken = append(taken, c)
		} else {
			beyond = append(beyond, c)
		}
	}
	s.looked.Taken += len(taken)
	return taken, beyond, nil
}

// undeclared are calls with a member that the server takes without declaring it.
func (s *search) undeclared() []candidate {
	b := newBuilder(s.asked)
	small := b.value(s.asked, 0)
	var all []candidate
	for _, place := range placesOf(s.asked) {
		if typeOf(place.node) != "object" || !place.node.Has("properties") || place.node.Get("additionalProperties").Kind() == schema.Object {
			continue
		}
		v := b.as(false).set(s.asked, small, place.steps, with(b.as(false).object(place.node, 0), freeName(place.node), schema.NewNumber("0")))
		if v.Kind() == schema.Object && len(s.server.ValidateNode(v)) == 0 {
			all = append(all, candidate{v, place.pointer})
		}
	}
	s.looked.Candidates += len(all)
	s.looked.Taken += len(all)
	return all
}

// asWritten are values in the form in which the model writes them. What cannot be
// encoded is left out.
func (s *search) asWritten(values []candidate) (written []candidate) {
	for _, c := range values {
		text, err := s.plan.Encode(c.value.Append(nil))
		if err != nil {
			continue
		}
		if v, err := schema.Parse(text); err == nil {
			written = append(written, candidate{v, c.at})
		}
	}
	return written
}

// keep remembers a witness: the shortest of each place.
func (s *search) keep(w Witness) {
	found := s.found[w.Kind]
	i := slices.IndexFunc(found, func(f Witness) bool { return f.At == w.At })
	if i < 0 {
		s.found[w.Kind] = append(found, w)
	} else if len(w.Call) < len(found[i].Call) {
		found[i] = w
	}
}
