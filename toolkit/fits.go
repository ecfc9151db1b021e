package toolkit

import (
	"encoding/json"
	"math/big"
	"regexp"
	"unicode/utf8"

	"github.com/dragoman-mcp/dragoman/schema"
)

// A verdict is what can be said of a value without compiling its schema.
type verdict int

const (
	wrong   verdict = iota // it does not fit
	unknown                // only a validator can tell
	fine                   // it fits
)

// fits judges the defaults and examples that an author wrote, of which there are
// several for each tool: to compile a schema for each would make up most of the
// time that a server takes to start. Whatever is not certainly right is judged
// again by a validator, which has the words for what is wrong, so this need not
// know everything.
func (p *place) fits(n *schema.Node, input bool) verdict {
	s, r := p.of, &p.rules
	if n.Kind() == schema.Null {
		return verdictOf(p.nullable || s.kind == kindAnything)
	}
	if s.kind == kindCustom || s.kind == kindTime || r.format != "" || r.factor != "" || r.unique || s.name != "" && r.constrains() {
		return unknown
	}
	switch s.kind {
	case kindObject:
		return s.fitsObject(n, input)
	case kindDict:
		return p.fitsItems(n, schema.Object, len(n.Members()), input)
	case kindList:
		return p.fitsItems(n, schema.Array, len(n.Items()), input)
	case kindText:
		return verdictOf(n.Kind() == schema.String && r.fitsText(n.Text()))
	case kindBoolean:
		if len(r.enum) > 0 {
			return unknown
		}
		return verdictOf(n.Kind() == schema.Bool)
	case kindInteger, kindNumber:
		return p.fitsNumber(n)
	}
	return fine
}

func verdictOf(ok bool) verdict {
	if ok {
		return fine
	}
	return wrong
}

func (s *shape) fitsObject(n *schema.Node, input bool) verdict {
	if n.Kind() != schema.Object {
		return wrong
	}
	least := fine
	for _, m := range n.Members() {
		f := s.field(m.Name)
		if f == nil && input {
			return wrong
		}
		if f != nil {
			least = min(least, f.at.fits(m.Value, input))
		}
	}
	for _, f := range s.fields {
		if f.required && !n.Has(f.name) {
			return wrong
		}
	}
	return least
}

func (p *place) fitsItems(n *schema.Node, want schema.Kind, count int, input bool) verdict {
	if n.Kind() != want || !within(big.NewRat(int64(count), 1), p.rules.min, p.rules.max) || p.of.exact >= 0 && count != p.of.exact {
		return wrong
	}
	item := *p.of.item
	if p.of.kind == kindList {
		item.rules = rules{enum: p.rules.enum, pattern: p.rules.pattern}
	}
	least := fine
	for _, v := range n.Items() {
		least = min(least, item.fits(v, input))
	}
	for _, m := range n.Members() {
		least = min(least, item.fits(m.Value, input))
	}
	return least
}

func (r *rules) fitsText(text string) bool {
	found := len(r.enum) == 0
	for _, v := range r.enum {
		var word string
		found = found || json.Unmarshal(v, &word) == nil && word == text
	}
	if !found || !within(big.NewRat(int64(utf8.RuneCountInString(text)), 1), r.min, r.max) {
		return false
	}
	if r.pattern == "" {
		return true
	}
	matched, err := regexp.MatchString(r.pattern, text)
	return err == nil && matched
}

func (p *place) fitsNumber(n *schema.Node) verdict {
	s, r := p.of, &p.rules
	if n.Kind() != schema.Number {
		return wrong
	}
	value, ok := new(big.Rat).SetString(n.Text())
	if !ok || len(r.enum) > 0 {
		return unknown
	}
	if s.kind == kindInteger && (!value.IsInt() || !within(value, s.low, s.high)) {
		return wrong
	}
	exclusive := func(bound string, sign int) bool {
		b, ok := new(big.Rat).SetString(bound)
		return bound == "" || ok && value.Cmp(b) == sign
	}
	return verdictOf(within(value, r.min, r.max) && exclusive(r.above, 1) && exclusive(r.below, -1))
}

// within reports whether a value lies between bounds; empty: none.
func within(value *big.Rat, low, high string) bool {
	beyond := func(bound string, sign int) bool {
		b, ok := new(big.Rat).SetString(bound)
		return bound != "" && (!ok || value.Cmp(b) == sign)
	}
	return !beyond(low, -1) && !beyond(high, 1)
}
