package prove

import (
	"math/rand/v2"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	"github.com/dragoman-mcp/dragoman/schema"
)

// A chance makes values of a schema at random, as a model may write them: the
// members that are declared, each optional one as often as not, texts of any
// length and any character that the schema allows. It knows each keyword that
// judges alone; what several keywords allow together it may miss, so that
// whoever asks has to judge what comes.
type chance struct {
	r    *rand.Rand
	root *schema.Node
	obey bool // descriptions are read
	long int  // how long the text that is made has to be
	made int
}

// Bounds of one value, for schemas that have no end.
const (
	maxChance     = 600 // values
	deepChance    = 6   // levels, from which on only what is needed is made
	deepestChance = 24
)

// chanceOf makes a value of root, and where obey is true one that keeps to what
// descriptions say, too.
func chanceOf(r *rand.Rand, root *schema.Node, obey bool) *schema.Node {
	c := chance{r: r, root: root, obey: obey}
	return c.value(root, 0)
}

func (c *chance) one(n int) bool { return c.r.IntN(n) == 0 }

func pick[T any](c *chance, list []T) T { return list[c.r.IntN(len(list))] }

func (c *chance) value(n *schema.Node, depth int) *schema.Node {
	c.made++
	if n = follow(c.root, n); n.Kind() != schema.Object || depth > deepestChance {
		return schema.NewNull()
	}
	if c.obey {
		n = obeyed(n)
	}
	if v := n.Get("const"); v != nil {
		return v.Clone()
	}
	if enum := n.Get("enum").Items(); len(enum) > 0 {
		return pick(c, enum).Clone()
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		if branches := n.Get(keyword).Items(); len(branches) > 0 {
			return c.union(n, branches, depth)
		}
	}
	if parts := n.Get("allOf").Items(); len(parts) > 0 && !slices.Contains(typesOf(n), "object") && !n.Has("properties") {
		if v := c.value(pick(c, parts), depth+1); v.Kind() != schema.Object {
			return v
		}
	}
	return c.typed(n, c.kind(n, depth), depth)
}

// union makes a value of one branch, with the members that n itself declares.
func (c *chance) union(n *schema.Node, branches []*schema.Node, depth int) *schema.Node {
	branch := pick(c, branches)
	if depth > deepChance {
		for _, b := range branches { // towards the end of a recursion
			if !b.Has("$ref") && typeOf(b) != "object" && typeOf(b) != "array" {
				branch = b
			}
		}
	}
	v := c.value(branch, depth+1)
	if v.Kind() == schema.Object {
		c.members(v, n, depth)
	}
	return v
}

// kind chooses a type.
func (c *chance) kind(n *schema.Node, depth int) string {
	kinds := typesOf(n)
	if len(kinds) == 0 && n.Has("allOf") {
		return "object"
	}
	if len(kinds) == 0 {
		if guess := typeOf(n); guess != "string" || n.Has("pattern") || n.Has("minLength") || n.Has("maxLength") || n.Has("format") {
			return guess
		}
		kinds = []string{"string", "integer", "boolean"}
	}
	if depth > deepChance && slices.Contains(kinds, "null") {
		return "null"
	}
	return pick(c, kinds)
}

func (c *chance) typed(n *schema.Node, kind string, depth int) *schema.Node {
	switch kind {
	case "null":
		return schema.NewNull()
	case "boolean":
		return schema.NewBool(c.one(2))
	case "integer", "number":
		return c.number(n, kind)
	case "array":
		return c.array(n, depth)
	case "object":
		v := schema.NewObject()
		c.members(v, n, depth)
		return v
	}
	return schema.NewString(c.text(n))
}

// members adds what n says of an object's members.
func (c *chance) members(v, n *schema.Node, depth int) {
	for _, part := range n.Get("allOf").Items() {
		if part = follow(c.root, part); part.Kind() == schema.Object {
			c.members(v, part, depth)
		}
	}
	needed := map[string]bool{}
	for _, name := range n.Get("required").Items() {
		needed[name.Text()] = true
	}
	properties := n.Get("properties").Members()
	for _, p := range properties {
		spare := depth > deepChance || c.made > maxChance
		if !v.Has(p.Name) && (needed[p.Name] || !spare && c.one(2)) && !p.Value.IsBool(false) {
			v.Set(p.Name, c.value(p.Value, depth+1))
		}
	}
	for _, name := range n.Get("required").Items() {
		if !v.Has(name.Text()) {
			v.Set(name.Text(), c.undeclared(n, name.Text(), depth))
		}
	}
	c.further(v, n, depth)
	for _, m := range n.Get("dependentRequired").Members() {
		for _, name := range m.Value.Items() {
			if v.Has(m.Name) && !v.Has(name.Text()) {
				v.Set(name.Text(), c.value(n.Get("properties").Get(name.Text()), depth+1))
			}
		}
	}
	least := number(n, "minProperties")
	for _, i := range c.r.Perm(len(properties)) {
		if p := properties[i]; len(v.Members()) < least && !v.Has(p.Name) {
			v.Set(p.Name, c.value(p.Value, depth+1))
		}
	}
	for _, m := range slices.Clone(v.Members()) {
		if n.Has("maxProperties") && len(v.Members()) > number(n, "maxProperties") && !needed[m.Name] {
			v.Delete(m.Name)
		}
	}
}

// further adds members with names of the model's own, where an object is made for
// such: it has a schema for them, or declares none.
func (c *chance) further(v, n *schema.Node, depth int) {
	extra, patterns := n.Get("additionalProperties"), n.Get("patternProperties").Members()
	bare := !n.Has("properties") && !n.Has("anyOf") && !n.Has("oneOf") && !n.Has("allOf") && depth > 0
	if extra.Kind() != schema.Object && len(patterns) == 0 && !(len(n.Get("properties").Members()) == 0 && extra.IsBool(true)) && !bare {
		return
	}
	least := number(n, "minProperties")
	for range max(c.r.IntN(3), min(least, 20)-len(v.Members())) {
		name := "k" + strconv.Itoa(c.r.IntN(1000))
		switch names := n.Get("propertyNames"); {
		case len(patterns) > 0:
			name = c.match(pick(c, patterns).Name)
		case names != nil:
			if v := c.value(names, depth+1); v.Kind() == schema.String {
				name = v.Text()
			}
		}
		if !v.Has(name) && !(extra.IsBool(false) && len(patterns) == 0) {
			v.Set(name, c.undeclared(n, name, depth))
		}
	}
}

// undeclared is the value of a member that properties does not name.
func (c *chance) undeclared(n *schema.Node, name string, depth int) *schema.Node {
	for _, p := range n.Get("patternProperties").Members() {
		if matched(p.Name, name) {
			return c.value(p.Value, depth+1)
		}
	}
	if extra := n.Get("additionalProperties"); extra.Kind() == schema.Object && len(extra.Members()) > 0 {
		return c.value(extra, depth+1)
	}
	return c.typed(schema.NewObject(), pick(c, []string{"string", "integer", "boolean"}), depth)
}

func (c *chance) array(n *schema.Node, depth int) *schema.Node {
	prefix, inner := n.Get("prefixItems").Items(), n.Get("items")
	least := min(number(n, "minItems"), 50)
	length := least + c.r.IntN(3)
	if depth > deepChance || c.made > maxChance {
		length = least
	}
	if length < len(prefix) && least == 0 && !c.one(4) {
		length = len(prefix)
	}
	if n.Has("maxItems") {
		length = min(length, number(n, "maxItems"))
	}
	unique := n.Get("uniqueItems").IsBool(true)
	var items []*schema.Node
	for try := 0; len(items) < length && try < 4*length+8; try++ {
		i := len(items)
		var item *schema.Node
		switch {
		case i < len(prefix):
			item = c.value(prefix[i], depth+1)
		case n.Has("contains") && i == len(prefix):
			item = c.value(n.Get("contains"), depth+1)
		case inner.IsBool(false):
			return schema.NewArray(items...)
		case inner.Kind() == schema.Object:
			item = c.value(inner, depth+1)
		default:
			item = schema.NewString("any")
		}
		if !unique || !slices.ContainsFunc(items, func(v *schema.Node) bool { return schema.Equal(v, item) }) {
			items = append(items, item)
		}
	}
	return schema.NewArray(items...)
}

// number is one within the bounds, near their ends rather often.
func (c *chance) number(n *schema.Node, kind string) *schema.Node {
	bound := func(inclusive, exclusive string) (float64, bool) {
		for _, keyword := range []string{inclusive, exclusive} {
			if f, err := strconv.ParseFloat(n.Get(keyword).Text(), 64); err == nil {
				return f, true
			}
		}
		return 0, false
	}
	low, hasLow := bound("minimum", "exclusiveMinimum")
	high, hasHigh := bound("maximum", "exclusiveMaximum")
	switch {
	case !hasLow && !hasHigh:
		low, high = pick(c, [][2]float64{{-5, 5}, {0, 100}, {0, 100_000}, {1, 20}})[0], 100
	case !hasLow:
		low = high - 1000
	case !hasHigh:
		high = low + 1000
	}
	if step, err := strconv.ParseFloat(n.Get("multipleOf").Text(), 64); err == nil && step > 0 {
		steps := int64(min((high-low)/step, 1000))
		return schema.NewNumber(strconv.FormatFloat(float64(int64(low/step)+c.r.Int64N(max(steps+1, 1)))*step, 'f', -1, 64))
	}
	if kind == "number" && c.one(2) {
		return schema.NewNumber(strconv.FormatFloat(low+c.r.Float64()*(high-low), 'f', 3, 64))
	}
	return schema.NewNumber(strconv.FormatInt(int64(low)+c.r.Int64N(max(int64(min(high-low, 1e12))+1, 1)), 10))
}

// chanceRunes are what random texts are made of: what models write, with the
// characters at which engines go wrong.
var chanceRunes = []rune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789      _-./:,;!?()[]{}<>@#%&*+='\"\\\n\té世🙂")

// text is a text of a length, a pattern or a format. One in twelve is empty where
// that is allowed, and one in twelve long.
func (c *chance) text(n *schema.Node) string {
	least, most := number(n, "minLength"), -1
	if n.Has("maxLength") {
		most = number(n, "maxLength")
	}
	formats := formatted[n.Get("format").Text()]
	if p := n.Get("pattern").Text(); p != "" {
		if len(formats) > 0 && matched(p, formats[0]) {
			return formats[0] // both judge
		}
		c.long = least
		text := c.match(p)
		for range 100 {
			if size := len([]rune(text)); size >= least && (most < 0 || size <= most) {
				break
			}
			text = c.match(p)
		}
		c.long = 0
		return text
	}
	if len(formats) > 0 {
		return formats[0]
	}
	if strings.Contains(n.Get("description").Text(), "a JSON object, written as text") {
		return string(c.undeclaredObject().Append(nil))
	}
	length := c.r.IntN(24)
	switch c.r.IntN(12) {
	case 0:
		length = 0
	case 1:
		length = 300
	}
	if length = max(length, min(least, 5000)); most >= 0 {
		length = min(length, most)
	}
	text := make([]rune, length)
	for i := range text {
		text[i] = pick(c, chanceRunes)
	}
	return string(text)
}

// undeclaredObject is an object of which nothing is known.
func (c *chance) undeclaredObject() *schema.Node {
	v := schema.NewObject()
	c.further(v, schema.NewObject(), 1)
	return v
}

// match is a text that a pattern matches, as far as RE2 knows the pattern.
func (c *chance) match(pattern string) string {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return "text"
	}
	var b strings.Builder
	c.write(&b, re)
	return b.String()
}

func (c *chance) write(b *strings.Builder, re *syntax.Regexp) {
	times := func(least, most int) {
		if most < 0 {
			most = max(least, c.long) + 4
			least = max(least, c.long-2)
			if c.one(12) {
				most = least + 40
			}
		}
		for range least + c.r.IntN(most-least+1) {
			if b.Len() < 4000 {
				c.write(b, re.Sub[0])
			}
		}
	}
	switch re.Op {
	case syntax.OpLiteral:
		b.WriteString(string(re.Rune))
	case syntax.OpCharClass:
		if len(re.Rune) > 0 {
			b.WriteRune(c.oneOf(re.Rune))
		}
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		r := pick(c, chanceRunes)
		for re.Op == syntax.OpAnyCharNotNL && r == '\n' {
			r = pick(c, chanceRunes)
		}
		b.WriteRune(r)
	case syntax.OpConcat, syntax.OpCapture:
		for _, sub := range re.Sub {
			c.write(b, sub)
		}
	case syntax.OpAlternate:
		c.write(b, pick(c, re.Sub))
	case syntax.OpStar:
		times(0, -1)
	case syntax.OpPlus:
		times(1, -1)
	case syntax.OpQuest:
		times(0, 1)
	case syntax.OpRepeat:
		times(re.Min, re.Max)
	}
}

// oneOf is a character of a class, of ASCII where there is some.
func (c *chance) oneOf(ranges []rune) rune {
	var plain []rune
	for _, r := range chanceRunes {
		for i := 0; i < len(ranges); i += 2 {
			if ranges[i] <= r && r <= ranges[i+1] {
				plain = append(plain, r)
			}
		}
	}
	i := c.r.IntN(len(ranges)/2) * 2
	low, high := ranges[i], min(ranges[i+1], ranges[i]+100)
	if len(plain) > 0 && !c.one(4) {
		return pick(c, plain)
	}
	return low + rune(c.r.IntN(int(high-low)+1))
}

// matched reports whether a pattern, as far as RE2 knows it, matches a text.
func matched(pattern, text string) bool {
	re, err := regexp.Compile(pattern)
	return err == nil && re.MatchString(text)
}
