package schema

import (
	"cmp"
	"math/big"
	"slices"
)

// An examination is one rule judging one value, keyword by keyword.
type examination struct {
	*judging
	rule  *rule
	value *Node
	seen  partSet
	wrong []cause
}

// fail notes that a keyword is not met, with the names that it is about.
func (e *examination) fail(keyword string, names ...string) {
	e.wrong = append(e.wrong, cause{of: &failure{rule: e.rule, value: e.value, keyword: keyword, names: names}})
}

// failBy notes that a keyword is not met for causes.
func (e *examination) failBy(keyword string, causes []cause) {
	e.wrong = append(e.wrong, cause{of: &failure{rule: e.rule, value: e.value, keyword: keyword, causes: causes}})
}

// here has a rule judge the same value.
func (e *examination) here(r *rule) {
	if r == nil {
		return
	}
	o := e.judge(r, e.value)
	if o.wrong != nil {
		e.wrong = append(e.wrong, cause{of: o.wrong})
		return
	}
	e.note(o.seen)
}

// fits reports whether the same value fits a rule, which is no failure where not.
func (e *examination) fits(r *rule) bool {
	o := e.judge(r, e.value)
	if o.wrong == nil {
		e.note(o.seen)
	}
	return o.wrong == nil
}

func (e *examination) note(seen partSet) {
	if e.unevaluated && len(seen) > 0 {
		e.spend(len(seen))
		e.seen.addAll(seen)
	}
}

// inside has a rule judge a part of the value.
func (e *examination) inside(r *rule, i int, name string, part *Node) {
	if o := e.judge(r, part); o.wrong != nil {
		c := cause{of: o.wrong, below: true, name: name, index: i}
		if e.value.Kind() == Object {
			c.index = -1
		}
		e.wrong = append(e.wrong, c)
	}
	e.judged(i)
}

func (e *examination) judged(i int) {
	if e.unevaluated {
		e.seen.add(i)
	}
}

func (e *examination) object() {
	r, v := e.rule, e.value
	if r.minProperties >= 0 && len(v.members) < r.minProperties {
		e.fail("minProperties")
	}
	if r.maxProperties >= 0 && len(v.members) > r.maxProperties {
		e.fail("maxProperties")
	}
	if missing := e.missing(r.required); len(missing) > 0 {
		e.fail("required", missing...)
	}
	if r.properties != nil || r.patterns != nil || r.additional != nil {
		e.eachMember()
	}
	if r.names != nil {
		e.memberNames()
	}
	for _, d := range r.dependent {
		if !e.has(v, d.name) {
			continue
		}
		e.here(d.rule)
		if missing := e.missing(d.required); len(missing) > 0 {
			e.fail("dependentRequired", append([]string{d.name}, missing...)...)
		}
	}
}

func (e *examination) missing(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return e.has(e.value, name) })
}

func (e *examination) eachMember() {
	r := e.rule
	var surplus []string
	for i, m := range e.value.members {
		e.spend(1 + len(m.Name)/64)
		found := false
		if p := r.properties[m.Name]; p != nil {
			found = true
			e.inside(p, i, m.Name, m.Value)
		}
		for _, p := range r.patterns {
			if e.matches(p.pattern, m.Name) {
				found = true
				e.inside(p.rule, i, m.Name, m.Value)
			}
		}
		switch {
		case found || r.additional == nil:
		case r.additional.never:
			surplus = append(surplus, m.Name)
			e.judged(i)
		default:
			e.inside(r.additional, i, m.Name, m.Value)
		}
	}
	if len(surplus) > 0 {
		e.fail("additionalProperties", surplus...)
	}
}

func (e *examination) memberNames() {
	for _, m := range e.value.members {
		e.spend(1)
		if o := e.judge(e.rule.names, NewString(m.Name)); o.wrong != nil {
			e.failBy("propertyNames", []cause{{of: o.wrong}})
		}
	}
}

func (e *examination) array() {
	r, items := e.rule, e.value.items
	if r.minItems >= 0 && len(items) < r.minItems {
		e.fail("minItems")
	}
	if r.maxItems >= 0 && len(items) > r.maxItems {
		e.fail("maxItems")
	}
	if r.unique && !e.differ() {
		e.fail("uniqueItems")
	}
	for i, item := range items {
		if i < len(r.prefix) {
			e.inside(r.prefix[i], i, "", item)
		} else if r.items != nil {
			e.inside(r.items, i, "", item)
		}
	}
	if r.contains != nil {
		e.containing()
	}
}

func (e *examination) differ() bool {
	items := e.value.items
	seen := make(map[string]bool, len(items))
	for _, item := range items {
		id := e.identity(item)
		if seen[id] {
			return false
		}
		seen[id] = true
	}
	return true
}

func (e *examination) containing() {
	r, count := e.rule, 0
	var causes []cause
	for i, item := range e.value.items {
		if o := e.judge(r.contains, item); o.wrong != nil {
			causes = append(causes, cause{of: o.wrong, below: true, index: i})
			continue
		}
		e.judged(i)
		count++
	}
	switch {
	case r.minContains >= 0 && count < r.minContains:
		e.failBy("minContains", causes)
	case r.minContains < 0 && count == 0:
		e.failBy("contains", causes)
	}
	if r.maxContains >= 0 && count > r.maxContains {
		e.fail("maxContains")
	}
}

func (e *examination) text() {
	r, text := e.rule, e.value.text
	if r.minLength >= 0 && e.runes(text) < r.minLength {
		e.fail("minLength")
	}
	if r.maxLength >= 0 && e.runes(text) > r.maxLength {
		e.fail("maxLength")
	}
	if r.pattern != nil && !e.matches(r.pattern, text) {
		e.fail("pattern")
	}
}

func (e *examination) number() {
	for _, b := range e.rule.bounds {
		if e.spend(1); !e.within(b) {
			e.fail(b.keyword)
		}
	}
}

// within reports whether a number is within a bound. Small integers, which most are,
// are compared as such.
func (e *examination) within(b bound) bool {
	if small, ok := smallInteger(e.value.text); ok && b.small != 0 {
		if b.ok == nil {
			return small%b.small == 0
		}
		return b.ok(cmp.Compare(small, b.small))
	}
	n := e.rational(e.value)
	switch {
	case n == nil: // no number that can be computed with; Parse reads none
		return true
	case b.ok != nil:
		return b.ok(n.Cmp(b.limit))
	}
	e.spend(1 + (n.Num().BitLen()+b.limit.Denom().BitLen())/4)
	return new(big.Rat).Quo(n, b.limit).IsInt()
}

// combined judges by the schemas that are combined.
func (e *examination) combined() {
	r := e.rule
	if r.not != nil && e.judge(r.not, e.value).wrong == nil {
		e.fail("not")
	}
	for _, s := range r.allOf {
		e.here(s)
	}
	e.some()
	e.one()
	if r.when != nil {
		if e.fits(r.when) {
			e.here(r.then)
		} else {
			e.here(r.otherwise)
		}
	}
}

func (e *examination) some() {
	var causes []cause
	fitting := 0
	for i, s := range e.rule.anyOf {
		o := e.judge(s, e.value)
		if o.wrong != nil {
			causes = append(causes, cause{of: o.wrong, index: i})
			continue
		}
		fitting++
		e.note(o.seen)
		if !e.unevaluated {
			return // the others have nothing to add
		}
	}
	if len(e.rule.anyOf) > 0 && fitting == 0 {
		e.failBy("anyOf", causes)
	}
}

func (e *examination) one() {
	var causes []cause
	fitting := 0
	for i, s := range e.rule.oneOf {
		o := e.judge(s, e.value)
		if o.wrong != nil {
			causes = append(causes, cause{of: o.wrong, index: i})
			continue
		}
		if fitting++; fitting > 1 {
			e.fail("oneOf")
			return
		}
		e.note(o.seen)
	}
	if len(e.rule.oneOf) > 0 && fitting == 0 {
		e.failBy("oneOf", causes)
	}
}

// rest judges the parts that nothing has judged so far.
func (e *examination) rest() {
	r := e.rule
	if r.unevaluatedProperties != nil && e.value.Kind() == Object {
		for i, m := range e.value.members {
			if e.spend(1); !e.seen.has(i) {
				e.inside(r.unevaluatedProperties, i, m.Name, m.Value)
			}
		}
	}
	if r.unevaluatedItems != nil && e.value.Kind() == Array {
		for i, item := range e.value.items {
			if e.spend(1); !e.seen.has(i) {
				e.inside(r.unevaluatedItems, i, "", item)
			}
		}
	}
}
