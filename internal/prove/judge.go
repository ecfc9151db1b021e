package prove

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/dragoman-mcp/dragoman/schema"
)

// unsaid looks for calls that the server takes and the model cannot write.
func (s *search) unsaid(ctx context.Context, taken []candidate) error {
	whys, err := s.cannotSay(ctx, taken)
	if err != nil {
		return err
	}
	for i, why := range whys {
		kind := s.kindOf(taken[i].value)
		s.tried(kind, taken[i].at, why != "")
		if why == "" {
			s.looked.Writable++
			continue
		}
		s.keep(Witness{Kind: kind, Call: taken[i].value.Append(nil), At: taken[i].at, Why: why, Told: s.told})
	}
	return nil
}

// kindOf is what it means that a call cannot be written.
func (s *search) kindOf(call *schema.Node) Kind {
	if strays(s.asked, call) {
		return Undeclared
	}
	return Unsaid
}

// cannotSay says for each call of the server why the model cannot make it; "" where
// it can.
func (s *search) cannotSay(ctx context.Context, calls []candidate) ([]string, error) {
	whys := make([]string, len(calls))
	var texts []string
	owner := map[int]int{} // of each text, the call
	for i, c := range calls {
		call := c.value.Append(nil)
		s.looked.Longest = max(s.looked.Longest, len(call))
		wrote, err := s.plan.Encode(call)
		if err != nil {
			whys[i] = "it has no place in the form that is sent: " + err.Error()
			continue
		}
		back, _, problem := s.plan.Decode(string(wrote), "tool_calls")
		switch {
		case problem != nil:
			whys[i] = fmt.Sprintf("written as %.200s it does not come back: %s", wrote, problem.Message)
			continue
		case !sameJSON(back, c.value):
			whys[i] = fmt.Sprintf("written as %.200s it comes back as %.200s", wrote, back)
			continue
		}
		v, err := schema.Parse(wrote)
		if err != nil {
			return nil, fmt.Errorf("encoding %s: %w", call, err)
		}
		whys[i] = "the model is held to a form in which this cannot be written"
		for _, text := range s.spellings(v) {
			owner[len(texts)] = i
			texts = append(texts, text)
		}
	}
	writes, err := s.writes(ctx, texts)
	if err != nil {
		return nil, err
	}
	for t, ok := range writes {
		if ok {
			whys[owner[t]] = ""
		}
	}
	return whys, nil
}

// refused looks for what the model can write and the server does not take: among
// calls that were made up to be refused, and among those that the model's own schema
// suggests, which alone say how many calls of a place are lost.
func (s *search) refused(ctx context.Context, beyond, suggested []candidate) error {
	written := append(slices.Clone(beyond), suggested...)
	var texts []string
	var owner []candidate
	counted := 0
	for i, c := range written {
		for _, text := range s.spellings(c.value) {
			texts, owner = append(texts, text), append(owner, c)
		}
		if i < len(beyond) {
			counted = len(texts)
		}
	}
	writes, err := s.writes(ctx, texts)
	if err != nil {
		return err
	}
	for i, ok := range writes {
		if !ok {
			continue
		}
		if at, lost := s.writable(texts[i], owner[i].at); i >= counted {
			s.tried(Refused, at, lost)
		}
	}
	return nil
}

// writable judges a text that the model can write, and reports whether it is lost, and
// at which place.
func (s *search) writable(text, at string) (place string, lost bool) {
	s.looked.Writable++
	s.looked.Longest = max(s.looked.Longest, len(text))
	why, named := s.refusal(text)
	if why == "" {
		return at, false
	}
	if named != "" {
		at = named
	}
	s.keep(Witness{Kind: Refused, Call: asJSON(text), At: at, Why: why})
	return at, true
}

// refusal says why what a model wrote does not run, "" where it does, and the place in
// the schema that it is shown which that names, "" for none.
func (s *search) refusal(text string) (why, at string) {
	arguments, _, problem := s.plan.Decode(text, "tool_calls")
	if problem != nil {
		return problem.Message, namedIn(s.shown, problem)
	}
	if wrong := s.server.Validate(arguments); len(wrong) > 0 {
		return fmt.Sprintf("it runs as %s, which the server's schema refuses: %v", arguments, wrong), ""
	}
	return "", ""
}

// made is the place of what an engine made up by itself.
const made = "(made up by the engine)"

// sampled judges what the engine itself makes up.
func (s *search) sampled(ctx context.Context, seed uint64) error {
	texts, err := s.language.Sample(ctx, samples*s.effort, seed)
	if err != nil {
		return err
	}
	s.looked.Candidates += len(texts)
	for _, text := range texts {
		at, lost := s.writable(text, made)
		s.tried(Refused, at, lost)
	}
	return nil
}

// spellings are the texts to ask about. A schema, other than a grammar, does not
// care how a value is spelled.
func (s *search) spellings(v *schema.Node) []string {
	if _, ok := s.language.(*shown); ok {
		return []string{string(v.Append(nil))}
	}
	return spellings(s.shown, v)
}

// batch is how many texts an engine is asked about at a time.
const batch = 500

func (s *search) writes(ctx context.Context, texts []string) ([]bool, error) {
	all := make([]bool, 0, len(texts))
	for len(texts) > 0 {
		n := min(len(texts), batch)
		writes, err := s.language.Writes(ctx, texts[:n])
		if err != nil {
			return nil, err
		}
		if len(writes) != n {
			return nil, fmt.Errorf("the engine judged %d of %d texts", len(writes), n)
		}
		all, texts = append(all, writes...), texts[n:]
	}
	return all, nil
}

func sameJSON(a json.RawMessage, b *schema.Node) bool {
	n, err := schema.Parse(a)
	return err == nil && schema.Equal(n, b)
}

// asJSON is a text as a JSON document: itself, or where an engine lets a model
// write what is no JSON, a string that holds it.
func asJSON(text string) json.RawMessage {
	if _, err := schema.Parse([]byte(text)); err == nil {
		return json.RawMessage(text)
	}
	return schema.NewString(text).Bytes()
}
