package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/door/terminal"
	"github.com/dragoman-mcp/dragoman/internal/prove"
	"github.com/dragoman-mcp/dragoman/lint"
)

const proveSource = "docs/prove.md: a search for the shortest call, with the grammar engine of the dialect where it is installed"

// proofRules are rules whose findings come from the search of dragoman prove. They
// are added to those of package lint, which lies below the search.
func proofRules(s *proofSource) []lint.Rule {
	return []lint.Rule{
		{
			ID: "V001", Severity: lint.Warning, Title: "a call that the server takes and the model cannot write",
			Why:    "The model is held to a schema that says less than the server's, so this call cannot be made at all.",
			Advice: "Say it in a form that survives: dragoman prove shows the call, dragoman convert --explain what was changed.",
			Source: proveSource, Gateway: "The gateway sends the narrower form and says so.",
			Tool: func(t *lint.Tool, say lint.Say) { s.say(t, prove.Unsaid, say) },
		},
		{
			ID: "V002", Severity: lint.Info, Title: "a call that the model can write and the server refuses",
			Why:    "What is sent to the model says less than the server's own schema, so the model learns of the rule from an error, and pays with a round.",
			Advice: "Say the rule in the description, too, and let the error name the argument and what it is to be.",
			Source: proveSource, Gateway: "The gateway refuses the call before it reaches the server, and tells the model why.",
			Tool: func(t *lint.Tool, say lint.Say) { s.say(t, prove.Refused, say) },
		},
	}
}

// A proofSource searches once for each tool and dialect. Rules of different
// servers ask it at the same time; engines answer one question at a time.
type proofSource struct {
	ctx     context.Context // the rules get none
	showing func(server, doing string)

	mu      sync.Mutex
	provers []*prove.Prover
	engines prove.Engines
	missing []string // dialects whose engine is not here, and why
	found   map[*lint.Tool][]*prove.Proof
	err     error // the first trouble with an engine
}

// newProofSource starts the engines of the dialects. Where one is not installed,
// the schema that is sent stands in for it, and missing says so.
func newProofSource(ctx context.Context, dir string, dialects []string, showing func(server, doing string)) (*proofSource, error) {
	s := &proofSource{ctx: ctx, showing: showing, engines: prove.Engines{Dir: dir}, found: map[*lint.Tool][]*prove.Proof{}}
	for _, name := range dialects {
		d, err := dialect.For(name)
		if err != nil {
			return nil, err
		}
		engine, err := s.engines.For(ctx, name)
		switch {
		case errors.Is(err, prove.ErrMissing):
			s.missing = append(s.missing, fmt.Sprintf("%s is held by %s", name, err))
			engine = prove.Sent{}
		case err != nil:
			s.engines.Close()
			return nil, err
		}
		s.provers = append(s.provers, &prove.Prover{Dialect: d, Engine: engine})
	}
	return s, nil
}

// say reports the smallest witness of a kind, and the dialects that have one.
func (s *proofSource) say(t *lint.Tool, kind prove.Kind, say lint.Say) {
	var where []string
	var smallest *prove.Witness
	for _, p := range s.proofs(t) {
		if w := p.First(kind); w != nil {
			where = append(where, fmt.Sprintf("%s (%s)", p.Dialect, p.Engine))
			if smallest == nil || len(w.Call) < len(smallest.Call) {
				smallest = w
			}
		}
	}
	if smallest != nil {
		say(lint.At{Pointer: pointerOf(kind, smallest)}, "for %s: %s, since %s", strings.Join(where, ", "), terminal.OneLine(string(smallest.Call), longestCall), terminal.OneLine(smallest.Why, longestCall))
	}
}

// pointerOf is where the server's own schema says what the witness is about. That
// of a refused call is in the schema that is sent, which the server's author does
// not have.
func pointerOf(kind prove.Kind, w *prove.Witness) string {
	if kind == prove.Unsaid && (w.At == "" || strings.HasPrefix(w.At, "/")) {
		return "/inputSchema" + w.At
	}
	return "/inputSchema"
}

// proofs searches for a tool, unless that was done.
func (s *proofSource) proofs(t *lint.Tool) []*prove.Proof {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found, done := s.found[t]; done || s.err != nil || t.Malformed != nil || t.Refusal != nil || t.Name == "" {
		return found
	}
	s.showing(t.Server.Label, "proving "+t.Name)
	tool := dragoman.Tool{Server: t.Server.Label, Definition: t.Definition, Name: t.Name, Original: t.Name, Description: t.Description}
	if t.Input != nil {
		tool.InputSchema = t.Input.Bytes()
	}
	if t.Output != nil {
		tool.OutputSchema = t.Output.Bytes()
	}
	var found []*prove.Proof
	for _, p := range s.provers {
		proof, err := p.Tool(s.ctx, tool)
		if err != nil {
			s.err = fmt.Errorf("proving %s for %s: %w", t.Name, p.Dialect.Name(), err)
			return nil
		}
		found = append(found, proof)
	}
	s.found[t] = found
	return slices.Clip(found)
}

// Close ends the engines.
func (s *proofSource) Close() { s.engines.Close() }
