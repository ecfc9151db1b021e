package prove

import (
	"math/big"
	"strconv"
	"strings"

	"github.com/dragoman-mcp/dragoman/schema"
)

// typeOf is the type that a schema asks for, or speaks of; the first of several.
func typeOf(n *schema.Node) string {
	if kinds := typesOf(n); len(kinds) > 0 {
		return kinds[0]
	}
	for _, guess := range []struct{ keyword, kind string }{
		{"properties", "object"}, {"required", "object"}, {"additionalProperties", "object"}, {"patternProperties", "object"},
		{"minProperties", "object"}, {"items", "array"}, {"prefixItems", "array"}, {"minItems", "array"}, {"maxItems", "array"},
		{"contains", "array"}, {"minimum", "number"}, {"maximum", "number"}, {"exclusiveMinimum", "number"},
		{"exclusiveMaximum", "number"}, {"multipleOf", "number"},
	} {
		if n.Has(guess.keyword) {
			return guess.kind
		}
	}
	return "string"
}

func typesOf(n *schema.Node) (kinds []string) {
	switch t := n.Get("type"); t.Kind() {
	case schema.String:
		kinds = []string{t.Text()}
	case schema.Array:
		for _, item := range t.Items() {
			kinds = append(kinds, item.Text())
		}
	}
	if len(kinds) > 0 && n.Get("nullable").IsBool(true) {
		kinds = append(kinds, "null")
	}
	return kinds
}

// palette returns values at which a schema, or an engine that reads it, may
// change its mind, whether they fit or not.
func (b builder) palette(n *schema.Node) (values []*schema.Node) {
	if c := n.Get("const"); c != nil {
		values = append(values, c)
	}
	values = append(values, n.Get("enum").Items()...)
	kinds := typesOf(n)
	if len(kinds) == 0 {
		kinds = []string{typeOf(n)}
		if len(n.Members()) == 0 || n.Get("type") == nil && !n.Has("properties") && !n.Has("items") {
			kinds = []string{"null", "boolean", "integer", "number", "string", "array", "object"}
		}
	}
	for _, kind := range kinds {
		switch kind {
		case "array":
			values = append(values, b.arrays(n)...)
		case "object":
			values = append(values, b.objects(n)...)
		default:
			values = append(values, scalars(n, kind)...)
		}
	}
	return values
}

// scalars are values of one type, the plainest that fits first as far as the
// keywords tell.
func scalars(n *schema.Node, kind string) []*schema.Node {
	switch kind {
	case "null":
		return []*schema.Node{schema.NewNull()}
	case "boolean":
		return []*schema.Node{schema.NewBool(false), schema.NewBool(true)}
	case "integer", "number":
		return numbers(n, kind)
	}
	return texts(n)
}

// numbers are the ends of the range, what is just beyond them, and numbers that
// readers get wrong.
func numbers(n *schema.Node, kind string) (values []*schema.Node) {
	var fit, beyond []string
	one := big.NewRat(1, 1)
	at := func(keyword string, inside, outside int64) {
		if r, ok := new(big.Rat).SetString(n.Get(keyword).Text()); ok {
			step := one
			if m, ok := new(big.Rat).SetString(n.Get("multipleOf").Text()); ok && m.Sign() > 0 {
				step = m
			}
			fit = append(fit, decimal(new(big.Rat).Add(r, new(big.Rat).Mul(step, big.NewRat(inside, 1)))))
			beyond = append(beyond, decimal(new(big.Rat).Add(r, new(big.Rat).Mul(step, big.NewRat(outside, 1)))))
		}
	}
	at("minimum", 0, -1)
	at("maximum", 0, 1)
	at("exclusiveMinimum", 1, 0)
	at("exclusiveMaximum", -1, 0)
	if m := n.Get("multipleOf"); m != nil {
		fit = append(fit, m.Text())
		beyond = append(beyond, m.Text()+"1")
	}
	plain := []string{"0", "1", "-1", "10", "9007199254740993", "-9007199254740993", "1e3", "2.0"}
	if kind == "number" {
		plain = append(plain, "0.5", "-0.25", "1e-7", "-0")
	} else {
		beyond = append(beyond, "0.5")
	}
	if len(fit) == 0 {
		fit, plain = plain, nil
	}
	for _, list := range [][]string{fit, plain, beyond} {
		for _, literal := range list {
			values = append(values, schema.NewNumber(literal))
		}
	}
	return values
}

// decimal writes a rational number as JSON, exactly where it has few digits.
func decimal(r *big.Rat) string {
	if r.IsInt() {
		return r.Num().String()
	}
	return strings.TrimRight(r.FloatString(12), "0")
}

// awkward are texts that have to be escaped, that look like something else, or
// that a byte is not a character of.
var awkward = []string{
	"", "a", " ", "\"", "\\", "\n", "\t", "/", "é", "世", "🙂", "'", "`", "{}", "[1]", "null", "true", "1", "a b", "a\"b\\c\nd",
	"\u0000", "\u007f", "\u2028", "</s>", "a,b", "-", ".", "%", "<", "http://a.bc/d?e=f#g",
}

// longText is the longest text that is tried where nothing says how long one may
// be.
const longText = 300

// texts are texts of a length, a pattern or a format, and awkward ones.
func texts(n *schema.Node) (values []*schema.Node) {
	seen := map[string]bool{}
	add := func(list ...string) {
		for _, s := range list {
			if !seen[s] {
				seen[s] = true
				values = append(values, schema.NewString(s))
			}
		}
	}
	least, most := number(n, "minLength"), -1
	if n.Has("maxLength") {
		most = number(n, "maxLength")
	}
	if p := n.Get("pattern").Text(); p != "" {
		m := matches(p)
		add(m...)
		for _, s := range m[:min(len(m), 3)] {
			add(s+"a", "a"+s, s+"\"", s+" ", s+"é", s+"\n")
		}
	}
	if f := n.Get("format").Text(); f != "" {
		add(formatted[f]...)
	}
	if least <= 5000 {
		add(strings.Repeat("a", least))
	}
	if least > 1 {
		add(strings.Repeat("a", least-1), strings.Repeat("\"", least), strings.Repeat("世", least))
	}
	if most >= 0 && most <= 5000 {
		add(strings.Repeat("a", most), strings.Repeat("a", most+1), strings.Repeat("é", most))
		if most > 0 {
			add(strings.Repeat("a", most-1) + "\"")
		}
	} else {
		add(strings.Repeat("a", max(least, longText)))
	}
	for _, s := range awkward {
		add(s)
		if pad := least - len([]rune(s)); pad > 0 && pad <= 200 {
			add(s + strings.Repeat("a", pad))
		}
	}
	return values
}

// formatted are texts of known formats, and texts near them that are none.
var formatted = map[string][]string{
	"date-time":     {"2026-11-21T12:00:00Z", "2026-11-21T12:00:00.5+02:00", "2026-11-21T12:00:00", "2026-02-30T12:00:00Z"},
	"date":          {"2026-11-21", "2024-02-29", "2026-02-29", "21.11.2026"},
	"time":          {"12:00:00Z", "12:00:00.5+02:00", "25:00:00Z", "12:00"},
	"duration":      {"P1D", "PT1H30M", "1 day"},
	"email":         {"a@b.co", "a.b+c@d-e.org", "a@b", "a"},
	"hostname":      {"a.bc", "localhost", "-a.bc", "a b"},
	"ipv4":          {"127.0.0.1", "255.255.255.255", "256.0.0.1", "1.2.3"},
	"ipv6":          {"::1", "2001:db8::8:800:200c:417a", ":::1", "1"},
	"uri":           {"http://a.bc", "https://a.bc/d?e=f#g", "urn:a:b", "mailto:a@b.co", "/a", "a b"},
	"uri-reference": {"/a", "#b", "http://a.bc", "\\a"},
	"uuid":          {"123e4567-e89b-12d3-a456-426614174000", "123E4567-E89B-12D3-A456-426614174000", "123e4567"},
	"regex":         {"^a$", "("},
	"json-pointer":  {"/a/0", "a"},
}

// arrays are lists of the lengths at which a schema may change its mind.
func (b builder) arrays(n *schema.Node) (values []*schema.Node) {
	lengths := []int{0, 1, 2}
	least, most := number(n, "minItems"), number(n, "maxItems")
	for _, l := range []int{least - 1, least, least + 1} {
		if n.Has("minItems") && l >= 0 && l <= 300 {
			lengths = append(lengths, l)
		}
	}
	for _, l := range []int{most, most + 1} {
		if n.Has("maxItems") && l <= 300 {
			lengths = append(lengths, l)
		}
	}
	prefix := len(n.Get("prefixItems").Items())
	if prefix > 0 {
		lengths = append(lengths, prefix-1, prefix, prefix+1)
	}
	seen := map[int]bool{}
	for _, l := range lengths {
		if !seen[l] {
			seen[l] = true
			values = append(values, b.items(n, l, 0))
		}
	}
	if n.Get("uniqueItems").IsBool(true) && n.Get("items").Kind() == schema.Object {
		v := b.value(n.Get("items"), 0)
		values = append(values, schema.NewArray(v, v))
	}
	return values
}

// objects are the smallest and the fullest object, and the smallest with each
// member alone, or without it, and with names that have to be escaped where names
// are free.
func (b builder) objects(n *schema.Node) (values []*schema.Node) {
	small, full := b.as(false).object(n, 0), b.as(true).object(n, 0)
	values = append(values, small, full, schema.NewObject())
	for i, p := range n.Get("properties").Members() {
		if i >= 40 {
			break
		}
		if small.Has(p.Name) {
			without := small.Clone()
			without.Delete(p.Name)
			values = append(values, without)
			continue
		}
		values = append(values, with(small, p.Name, b.value(p.Value, 0)))
	}
	if n.Get("additionalProperties").Kind() == schema.Object || !n.Has("properties") && !n.Get("additionalProperties").IsBool(false) {
		for _, name := range []string{"k", "", "a b", "a.b", "\"", "\\", "é", "0", "__proto__"} {
			values = append(values, with(small, name, b.undeclared(n, 0)))
		}
		many := small
		for i := range 3 {
			many = with(many, "k"+strconv.Itoa(i), b.undeclared(n, 0))
		}
		values = append(values, many)
	}
	return values
}

// distinct makes as many different values of a schema as it can, up to a number:
// scalars, or objects that differ in one scalar member.
func (b builder) distinct(n *schema.Node, count int) (values []*schema.Node) {
	if n = follow(b.root, n); n == nil {
		return nil
	}
	if enum := n.Get("enum").Items(); len(enum) > 0 {
		return enum[:min(len(enum), count)]
	}
	switch kind := typeOf(n); kind {
	case "array":
		return nil
	case "object":
		base := b.value(n, maxBuild-2)
		for _, p := range n.Get("properties").Members() {
			if inner := follow(b.root, p.Value); inner != nil && (typeOf(inner) == "string" || typeOf(inner) == "integer") {
				for _, v := range b.distinct(inner, count) {
					values = append(values, with(base, p.Name, v))
				}
				return values
			}
		}
		return nil
	default:
		judge := schema.NewOpenAPIValidator(n.Bytes())
		for _, v := range append(scalars(n, kind), counted(kind, 2*count)...) {
			if len(values) < count && len(judge.ValidateNode(v)) == 0 {
				values = append(values, v)
			}
		}
		return values
	}
}

// counted are values of a type that differ, as many as asked for.
func counted(kind string, count int) (values []*schema.Node) {
	for i := range count {
		switch kind {
		case "string":
			values = append(values, schema.NewString("item"+strconv.Itoa(i)))
		case "integer", "number":
			values = append(values, schema.NewNumber(strconv.Itoa(1000+i)))
		}
	}
	return values
}
