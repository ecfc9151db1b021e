package dialect

import (
	"regexp"
	"slices"

	"github.com/dragoman-mcp/dragoman/schema"
)

// freeForm reports whether n is an object whose members may have any name.
func freeForm(n *schema.Node) bool { return isObject(n) && freeMembers(n) }

// freeMembers reports whether the members of an object that n describes, perhaps beside
// values of other types, may have any name.
func freeMembers(n *schema.Node) bool {
	if len(n.Get("properties").Members()) > 0 {
		return false
	}
	extra := n.Get("additionalProperties")
	return !extra.IsBool(false) && extra.Kind() != schema.Object
}

// openExplicitly marks objects without properties as open, where silence means
// that they are closed.
func (c *conversion) openExplicitly() {
	if !c.rules.ClosedBySilence || c.rules.bad(Open) {
		return
	}
	c.each(func(n *schema.Node) {
		if n != c.root && slices.Contains(typesOf(n), "object") && freeMembers(n) && !c.mark(n).closed && !n.Has("additionalProperties") && !n.Has("patternProperties") && !n.Has("unevaluatedProperties") {
			n.Set("additionalProperties", schema.NewBool(true))
			c.say("openExplicitly", n, "without a word on it the object would be closed")
		}
	})
}

// openObjects takes additionalProperties: false away. It binds nobody where a
// tool is not strict, and models fill objects better without it; the
// validation of arguments still knows it.
func (c *conversion) openObjects() {
	c.each(func(n *schema.Node) {
		extra := n.Get("additionalProperties")
		if extra.Kind() == schema.Object && unrestricted(extra) && (c.rules.bad(EmptySchema) || c.rules.bad(Map)) {
			extra = schema.NewBool(true)
			n.Set("additionalProperties", extra)
		}
		switch {
		case extra.IsBool(false) && c.rules.Form == "":
			switch {
			case c.rules.ClosedBySilence && len(n.Get("properties").Members()) == 0 && n != c.root && !c.rules.bad(Closed):
				if isObject(n) && !n.Has("properties") {
					n.Set("properties", schema.NewObject())
				}
			case c.rules.ClosedBySilence && len(typesOf(n)) == 0 && len(n.Get("properties").Members()) == 0:
				if c.rules.bad(Closed) { // no silence closes what is perhaps no object
					n.Delete("additionalProperties")
					c.widen("openObjects", n, "additionalProperties: false is not taken")
				}
			case c.rules.ClosedBySilence:
				n.Delete("additionalProperties")
				if isObject(n) && !n.Has("properties") {
					n.Set("properties", schema.NewObject())
				}
				c.mark(n).closed = true
				c.say("openObjects", n, "without a word on it the object is closed anyway")
			default:
				n.Delete("additionalProperties")
				c.widen("openObjects", n, "additionalProperties: false binds nobody in a tool that is not strict")
			}
		case extra.IsBool(true) && c.rules.bad(Open) && c.rules.Form == "":
			n.Delete("additionalProperties")
			c.say("openObjects", n, "additionalProperties: true is not taken; it says what silence says")
		}
	})
}

// openIdle says by a boolean that members of any name may be anything, where nothing is left
// of what restricted them.
func (c *conversion) openIdle() {
	if c.rules.Form != "" || !c.rules.bad(EmptySchema) {
		return
	}
	c.each(func(n *schema.Node) {
		extra := n.Get("additionalProperties")
		switch {
		case extra.Kind() != schema.Object || !unrestricted(extra):
		case c.rules.bad(Open):
			n.Delete("additionalProperties")
		default:
			n.Set("additionalProperties", schema.NewBool(true))
		}
	})
}

// writeMaps deals with objects whose names are arbitrary.
func (c *conversion) writeMaps() {
	if c.rules.Form != "" && !c.rules.MapsAsPairs {
		return // makeStrict refuses what arbitrary names may be in
	}
	besideText, besideArray := c.beside("string"), c.beside("array")
	if c.rules.bad(ItemUnion) {
		c.each(func(n *schema.Node) { // a union in items takes no list of pairs either
			for _, branch := range n.Get("items").Get("anyOf").Items() {
				besideArray[branch] = true
			}
		})
	}
	c.each(func(n *schema.Node) {
		if c.rules.MapsAsPairs && !besideText[n] && n != c.root && isObject(n) && len(n.Get("properties").Members()) == 0 {
			c.writeMapsAsPairs(n, !besideArray[n])
		}
		if c.rules.Form != "" {
			return
		}
		if extra := n.Get("additionalProperties"); extra.Kind() == schema.Object && c.rules.bad(Map) {
			n.Delete("additionalProperties")
			if !unrestricted(extra) {
				c.spill(n, "further members: "+briefly(extra))
			}
			c.widen("writeMaps", n, "a schema in additionalProperties is not taken")
		}
		if patterns := n.Get("patternProperties"); patterns != nil && c.rules.bad(PatternProperties) {
			n.Delete("patternProperties")
			for _, p := range patterns.Members() {
				c.spill(n, "members named like "+p.Name+": "+briefly(p.Value))
			}
			c.openForPatterns(n, patterns.Members())
			c.widen("writeMaps", n, "patternProperties is not taken")
		}
	})
}

// openForPatterns lets an object have members of any name with the values that its
// patternProperties, which it had, and its additionalProperties take.
func (c *conversion) openForPatterns(n *schema.Node, patterns []schema.Member) {
	extra := n.Get("additionalProperties")
	if len(patterns) == 0 || !c.rules.ClosedBySilence && !extra.IsBool(false) && extra.Kind() != schema.Object {
		return // it is open
	}
	if extra.IsBool(true) {
		return // open by its own word, to values of any kind
	}
	if c.rules.bad(Map) {
		if c.rules.bad(Open) {
			n.Delete("additionalProperties")
			return
		}
		n.Set("additionalProperties", schema.NewBool(true))
		return
	}
	var values []*schema.Node
	for _, p := range patterns {
		values = append(values, p.Value)
	}
	for _, more := range []*schema.Node{extra, n.Get("unevaluatedProperties")} {
		if extra == nil && more.IsBool(true) || more.Kind() == schema.Object {
			values = append(values, more)
		}
	}
	for _, v := range values {
		if v.IsBool(true) || unrestricted(v) {
			n.Set("additionalProperties", schema.NewBool(true))
			return
		}
	}
	if extra == nil && (c.hadUnevaluated(n) || n != c.root && len(n.Get("properties").Members()) == 0) && !anyNameMatches(patterns) {
		c.narrow("writeMaps", n, "members whose names match none of patternProperties can be written with the values of those only")
	}
	values = distinct(values)
	value := values[0]
	if len(values) > 1 {
		value = c.made(schema.NewObject(schema.Member{Name: "anyOf", Value: schema.NewArray(values...)}), n)
	}
	n.Set("additionalProperties", value)
}

// hadUnevaluated reports whether the server says, by unevaluatedProperties that left n, what
// members of other names may be.
func (c *conversion) hadUnevaluated(n *schema.Node) bool {
	origin := c.mark(n).origin
	return origin.Has("unevaluatedProperties") && !origin.Get("unevaluatedProperties").IsBool(false) && !n.Has("unevaluatedProperties")
}

// everyName matches the patterns that every name matches, as generators write them.
var everyName = regexp.MustCompile(`^\^?\(?\.[*+]\)?\$?$|^\^?$|^\$$`)

// anyNameMatches reports whether one of patternProperties speaks of members of any name.
func anyNameMatches(patterns []schema.Member) bool {
	return slices.ContainsFunc(patterns, func(p schema.Member) bool { return everyName.MatchString(p.Name) })
}

// beside are the alternatives of unions of which one takes values of some type.
func (c *conversion) beside(name string) map[*schema.Node]bool {
	found := map[*schema.Node]bool{}
	c.each(func(n *schema.Node) {
		branches := n.Get("anyOf").Items()
		for _, branch := range branches {
			if t := typesOf(branch); len(t) == 0 || slices.Contains(t, name) {
				for _, other := range branches {
					found[other] = true
				}
			}
		}
	})
	return found
}

// writeMapsAsPairs writes a map as an array of pairs, and an object of which
// nothing is known, or that stands beside arrays, as JSON text.
func (c *conversion) writeMapsAsPairs(n *schema.Node, pairwise bool) {
	if len(required(n)) > 0 || n.Has("anyOf") {
		return
	}
	extra := n.Get("additionalProperties")
	m := c.mark(n)
	if extra.IsBool(false) {
		return
	}
	exact := !n.Has("propertyNames") && !n.Has("patternProperties")
	if n.Has("patternProperties") || extra.Kind() != schema.Object || unrestricted(extra) || !pairwise {
		exact = exact && !n.Has("minProperties") && !n.Has("maxProperties")
		c.keepWords(n, schema.Member{Name: "type", Value: schema.NewString("string")})
		c.spill(n, "a JSON object, written as text")
		if extra.Kind() == schema.Object && !unrestricted(extra) {
			exact = false
			c.spill(n, "its members: "+briefly(extra))
		}
		m.ops = append(m.ops, jsonText{})
		c.sayAsPairs("writeObjectAsText", n, exact, "an object of which nothing is known")
		return
	}
	pair := schema.NewObject(
		schema.Member{Name: "type", Value: schema.NewString("object")},
		schema.Member{Name: "properties", Value: schema.NewObject(
			schema.Member{Name: "key", Value: schema.NewObject(schema.Member{Name: "type", Value: schema.NewString("string")})},
			schema.Member{Name: "value", Value: extra})},
		schema.Member{Name: "required", Value: schema.NewArray(schema.NewString("key"), schema.NewString("value"))})
	if c.rules.Form != "" {
		pair.Set("additionalProperties", schema.NewBool(false))
	}
	pair = c.made(pair, n)
	members := []schema.Member{{Name: "type", Value: schema.NewString("array")}, {Name: "items", Value: pair}}
	for _, rename := range [][2]string{{"minProperties", "minItems"}, {"maxProperties", "maxItems"}} {
		from, to := rename[0], rename[1]
		if limit := n.Get(from); limit != nil {
			members = append(members, schema.Member{Name: to, Value: limit})
		}
	}
	c.keepWords(n, members...)
	c.spill(n, "a list of keys and values")
	m.ops = append(m.ops, pairs{})
	c.sayAsPairs("writeMapsAsPairs", n, exact, "an object with arbitrary names")
}

// sayAsPairs notes that an object is written in another form.
func (c *conversion) sayAsPairs(pass string, n *schema.Node, exact bool, what string) {
	why := what + " arrives empty"
	if c.rules.Form != "" {
		why = what + " is not taken in a strict tool"
	}
	if exact {
		c.say(pass, n, why+"; its arguments are mapped back exactly")
	} else {
		c.widen(pass, n, why+"; not all that restricts it can be said in the other form")
	}
}

// keepWords replaces all that judges in n; nullable and the words stay.
func (c *conversion) keepWords(n *schema.Node, members ...schema.Member) {
	out := schema.NewObject(members...)
	for _, m := range n.Members() {
		if !judges(m.Name) && m.Name != "default" {
			out.Set(m.Name, m.Value)
		}
	}
	n.Become(out)
}

// briefly describes a schema in a few words.
func briefly(n *schema.Node) string {
	if n.Has("$ref") || n.Has("properties") || n.Has("anyOf") || n.Has("items") {
		return snippet(n, 200)
	}
	return n.Words()
}

func distinct(list []*schema.Node) []*schema.Node {
	var out []*schema.Node
	known := make(map[string]bool, len(list))
	for _, n := range list {
		if identity := n.Identity(); !known[identity] {
			known[identity] = true
			out = append(out, n)
		}
	}
	return out
}
