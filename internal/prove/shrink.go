package prove

import (
	"cmp"
	"context"
	"slices"

	"github.com/dragoman-mcp/dragoman/schema"
)

// Bounds of making one witness small.
const (
	shrinkRounds = 60
	shrinkWidth  = 120 // candidates of a round
)

// shrinkAll makes the witnesses of a kind small, the worst ones of those that were
// found.
func (s *search) shrinkAll(ctx context.Context, kind Kind) ([]Witness, error) {
	found := s.found[kind]
	for i := range found {
		if lost := s.lost[kind][found[i].At]; lost > 0 {
			found[i].Lost, found[i].Of = lost, s.all[kind]
		}
	}
	sortWitnesses(found)
	found = found[:min(len(found), keepEach)]
	small := make([]Witness, 0, len(found))
	for _, w := range found {
		shrunk, err := s.shrink(ctx, w)
		if err != nil {
			return nil, err
		}
		shrunk.At = s.named(shrunk)
		// Witnesses of one place may be those of another with something beside it.
		if !slices.ContainsFunc(small, func(o Witness) bool {
			return string(o.Call) == string(shrunk.Call) || kind == Refused && o.Why == shrunk.Why
		}) {
			small = append(small, shrunk)
		}
	}
	return small, nil
}

// shrink takes from a witness whatever it can do without. No single part of what
// is left can be taken away, or made plainer, without the witness being lost.
func (s *search) shrink(ctx context.Context, w Witness) (Witness, error) {
	value, err := schema.Parse(w.Call)
	if err != nil || value.Kind() != schema.Object {
		return w, nil // text that is no JSON: as the engine wrote it
	}
	for range shrinkRounds {
		smaller := smallerThan(value)
		slices.SortStableFunc(smaller, func(a, b *schema.Node) int { return cmp.Compare(len(a.Bytes()), len(b.Bytes())) })
		next, why, err := s.firstWitness(ctx, w, smaller[:min(len(smaller), shrinkWidth)])
		if err != nil {
			return w, err
		}
		if next == nil {
			break
		}
		value, w.Why = next, why
	}
	w.Call = value.Append(nil)
	return w, nil
}

// firstWitness returns the first of the values that is a witness of the same kind.
func (s *search) firstWitness(ctx context.Context, w Witness, values []*schema.Node) (*schema.Node, string, error) {
	if w.Kind == Refused {
		var texts []string
		for _, v := range values {
			texts = append(texts, string(v.Append(nil)))
		}
		writes, err := s.writes(ctx, texts)
		if err != nil {
			return nil, "", err
		}
		for i, ok := range writes {
			if ok {
				if why, _ := s.refusal(texts[i]); why != "" {
					return values[i], why, nil
				}
			}
		}
		return nil, "", nil
	}
	var taken []candidate
	for _, v := range values {
		if len(s.server.ValidateNode(v)) == 0 && s.kindOf(v) == w.Kind {
			taken = append(taken, candidate{v, w.At})
		}
	}
	whys, err := s.cannotSay(ctx, taken)
	if err != nil {
		return nil, "", err
	}
	for i, why := range whys {
		if why != "" {
			return taken[i].value, why, nil
		}
	}
	return nil, "", nil
}

// smallerThan returns the values that differ from v in one part that is gone or
// plainer.
func smallerThan(v *schema.Node) (values []*schema.Node) {
	switch v.Kind() {
	case schema.Object:
		for i, m := range v.Members() {
			rest := slices.Delete(slices.Clone(v.Members()), i, i+1)
			values = append(values, schema.NewObject(rest...))
			for _, inner := range smallerThan(m.Value) {
				values = append(values, with(v, m.Name, inner))
			}
		}
	case schema.Array:
		items := v.Items()
		if len(items) > 4 {
			values = append(values, schema.NewArray(items[:len(items)/2]...), schema.NewArray(items[len(items)/2:]...))
		}
		for i := range min(len(items), 20) {
			values = append(values, schema.NewArray(slices.Delete(slices.Clone(items), i, i+1)...))
			for _, inner := range smallerThan(items[i]) {
				changed := slices.Clone(items)
				changed[i] = inner
				values = append(values, schema.NewArray(changed...))
			}
		}
	case schema.String:
		values = append(values, smallerTexts(v.Text())...)
	case schema.Number:
		for _, plain := range []string{"0", "1", "-1", "0.5"} {
			if len(plain) < len(v.Text()) {
				values = append(values, schema.NewNumber(plain))
			}
		}
	}
	return values
}

func smallerTexts(s string) (values []*schema.Node) {
	r := []rune(s)
	if len(r) == 0 {
		return nil
	}
	add := func(s string) { values = append(values, schema.NewString(s)) }
	add("")
	if len(r) > 1 {
		add(string(r[:len(r)/2]))
		add(string(r[len(r)/2:]))
		add(string(r[:len(r)-1]))
		add(string(r[1:]))
	}
	for i := range min(len(r), 12) {
		add(string(r[:i]) + string(r[i+1:]))
	}
	return values
}
