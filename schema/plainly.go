package schema

import (
	"math/big"
	"slices"
	"unicode/utf8"
)

// Plainly reports whether a value fits a schema for certain. It looks at the two
// and compiles nothing, which for the small values that authors write into
// schemas, defaults and examples, is a small part of the work of a [Validator].
// False says nothing: the value may be wrong, or the schema may use a keyword
// that Plainly does not know, and only a validator can tell.
//
// The schema is one in the spelling of JSON Schema 2020-12, such as [Document.Root].
func Plainly(schema, value *Node) bool { return plainly(schema, value, 0) }

// plainlyDeep is how far down Plainly looks.
const plainlyDeep = 32

func plainly(s, v *Node, depth int) bool {
	if s.Kind() != Object || depth > plainlyDeep {
		return s.IsBool(true)
	}
	for _, m := range s.Members() {
		if judge, known := plainJudges[m.Name]; !known || judge != nil && !judge(s, m.Value, v, depth) {
			return false
		}
	}
	return true
}

// plainJudges judge a value v by one keyword of the schema s; nil for keywords
// that judge nothing. What is not here is not judged plainly: references, format,
// oneOf, and whatever else.
var plainJudges map[string]func(s, keyword, v *Node, depth int) bool

func init() { // the judges call each other
	plainJudges = map[string]func(s, keyword, v *Node, depth int) bool{
		"title": nil, "description": nil, "default": nil, "examples": nil, "deprecated": nil, "readOnly": nil, "writeOnly": nil,
		"$comment": nil, "$defs": nil, "x-mcp-header": nil, "contentEncoding": nil, "contentMediaType": nil,

		"type":  func(_, k, v *Node, _ int) bool { return plainType(k, v) },
		"const": func(_, k, v *Node, _ int) bool { return Equal(k, v) },
		"enum":  func(_, k, v *Node, _ int) bool { return anyOf(k, func(n *Node) bool { return Equal(n, v) }) },
		"anyOf": func(_, k, v *Node, depth int) bool {
			return anyOf(k, func(n *Node) bool { return plainly(n, v, depth+1) })
		},

		"minimum":          func(_, k, v *Node, _ int) bool { return plainOrder(v, k, 0, 1) },
		"maximum":          func(_, k, v *Node, _ int) bool { return plainOrder(v, k, -1, 0) },
		"exclusiveMinimum": func(_, k, v *Node, _ int) bool { return plainOrder(v, k, 1, 1) },
		"exclusiveMaximum": func(_, k, v *Node, _ int) bool { return plainOrder(v, k, -1, -1) },
		"minLength":        func(_, k, v *Node, _ int) bool { return v.Kind() != String || plainCount(runes(v), k, 1) },
		"maxLength":        func(_, k, v *Node, _ int) bool { return v.Kind() != String || plainCount(runes(v), k, -1) },
		"minItems":         func(_, k, v *Node, _ int) bool { return v.Kind() != Array || plainCount(len(v.Items()), k, 1) },
		"maxItems":         func(_, k, v *Node, _ int) bool { return v.Kind() != Array || plainCount(len(v.Items()), k, -1) },
		"minProperties":    func(_, k, v *Node, _ int) bool { return v.Kind() != Object || plainCount(len(v.Members()), k, 1) },
		"maxProperties":    func(_, k, v *Node, _ int) bool { return v.Kind() != Object || plainCount(len(v.Members()), k, -1) },
		"pattern":          func(_, k, v *Node, _ int) bool { return v.Kind() != String || plainPattern(k, v) },

		"items": func(_, k, v *Node, depth int) bool {
			for _, item := range v.Items() {
				if !plainly(k, item, depth+1) {
					return false
				}
			}
			return true
		},
		"required": func(_, k, v *Node, _ int) bool {
			if k.Kind() != Array {
				return false
			}
			for _, name := range k.Items() {
				if v.Kind() == Object && !v.Has(name.Text()) {
					return false
				}
			}
			return true
		},
		"properties": func(_, k, v *Node, depth int) bool {
			for _, m := range v.Members() {
				if p := k.Get(m.Name); p != nil && !plainly(p, m.Value, depth+1) {
					return false
				}
			}
			return k.Kind() == Object
		},
		"additionalProperties": func(s, k, v *Node, depth int) bool {
			if s.Has("patternProperties") {
				return false
			}
			for _, m := range v.Members() {
				if !s.Get("properties").Has(m.Name) && !plainly(k, m.Value, depth+1) {
					return false
				}
			}
			return true
		},
	}
}

func anyOf(list *Node, is func(*Node) bool) bool {
	return slices.ContainsFunc(list.Items(), is)
}

// plainType reports whether a value is of a type, or of one of a list of types.
func plainType(want, v *Node) bool {
	if want.Kind() == Array {
		return anyOf(want, func(n *Node) bool { return n.Kind() == String && plainType(n, v) })
	}
	return isType(want.Text(), v)
}

// plainOrder reports whether a number compares to a bound with a sign between low
// and high. What is no number has no order.
func plainOrder(v, bound *Node, low, high int) bool {
	if v.Kind() != Number {
		return bound.Kind() == Number
	}
	sign, ok := Compare(v, bound)
	return ok && sign >= low && sign <= high
}

// plainCount reports whether n is at least (sign 1) or at most (sign -1) a bound.
func plainCount(n int, bound *Node, sign int) bool {
	if bound.Kind() != Number {
		return false
	}
	r, ok := rational(bound.text)
	if !ok {
		return false
	}
	c := big.NewRat(int64(n), 1).Cmp(r)
	return c == 0 || c == sign
}

func runes(v *Node) int { return utf8.RuneCountInString(v.Text()) }

func plainPattern(pattern, v *Node) bool {
	if pattern.Kind() != String {
		return false
	}
	budget := maxPatternCost
	re, err := compilePattern(pattern.Text(), &budget)
	return err == nil && re.MatchString(v.Text())
}
