package dialect

import (
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/dragoman-mcp/dragoman/schema"
)

// numbers looks for what is beyond an engine's arithmetic.
func (k *checker) numbers(n *schema.Node, at string) {
	for _, keyword := range []string{"minLength", "maxLength", "minItems", "maxItems"} {
		if f, err := strconv.ParseFloat(n.Get(keyword).Text(), 64); k.rules.MaxRepeat > 0 && err == nil && f > float64(k.rules.MaxRepeat) {
			k.wrong(at, keyword+" is too large")
		}
	}
	for _, keyword := range []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"} {
		f, err := strconv.ParseFloat(n.Get(keyword).Text(), 64)
		switch {
		case k.rules.Bounds == "" || err != nil:
		case !n.Get("type").IsString("integer") && len(n.Get("type").Items()) == 0, strings.Contains(string(n.Get("type").Bytes()), `"number"`):
			k.wrong(at, keyword+" is not that of an integer")
		case math.Abs(f) >= math.MaxInt64, k.rules.Bounds == "double" && math.Abs(f) > 1<<53:
			k.wrong(at, keyword+" is beyond the engine's arithmetic")
		case k.rules.Bounds == "double" && f < 0 && !n.Has(opposite[keyword][0]) && !n.Has(opposite[keyword][1]):
			k.wrong(at, keyword+" is negative and has nothing on the other side")
		}
	}
}

// ranges looks for what ends before it begins.
func (k *checker) ranges(n *schema.Node, at string) {
	for _, pair := range [][2]string{
		{"minLength", "maxLength"}, {"minItems", "maxItems"}, {"minProperties", "maxProperties"}, {"minimum", "maximum"},
		{"minimum", "exclusiveMaximum"}, {"exclusiveMinimum", "maximum"}, {"exclusiveMinimum", "exclusiveMaximum"},
	} {
		low, err := strconv.ParseFloat(n.Get(pair[0]).Text(), 64)
		high, failed := strconv.ParseFloat(n.Get(pair[1]).Text(), 64)
		if err == nil && failed == nil && (low > high || low == high && strings.HasPrefix(pair[0]+pair[1], "exclusive")) {
			k.wrong(at, pair[0]+" is above "+pair[1])
		}
	}
}

// opposite are the keywords that bound numbers on the other side.
var opposite = map[string][2]string{
	"minimum": {"maximum", "exclusiveMaximum"}, "exclusiveMinimum": {"maximum", "exclusiveMaximum"},
	"maximum": {"minimum", "exclusiveMinimum"}, "exclusiveMaximum": {"minimum", "exclusiveMinimum"},
}

// literals looks for members of enum and const that the engine cannot write.
func (k *checker) literals(n *schema.Node, at string) {
	if k.rules.Literals == "" {
		return
	}
	members := n.Get("enum").Items()
	if n.Has("const") {
		members = append(members[:len(members):len(members)], n.Get("const"))
	}
	for _, m := range members {
		if !regexp.MustCompile(k.rules.Literals).Match(m.Bytes()) {
			k.wrong(at, "the engine cannot write "+string(m.Bytes()))
		}
	}
}

func (k *checker) scalar(n *schema.Node, at string) {
	k.numbers(n, at)
	k.ranges(n, at)
	k.literals(n, at)
	length := n.Has("minLength") || n.Has("maxLength")
	k.has(MinMaxLength, at, length)
	k.has(MinMax, at, n.Has("minimum") || n.Has("maximum"))
	k.has(ExclusiveMinMax, at, n.Has("exclusiveMinimum") || n.Has("exclusiveMaximum"))
	k.has(MultipleOf, at, n.Has("multipleOf"))
	if format := n.Get("format"); format != nil {
		feature := FormatOther
		for _, known := range k.rules.Formats {
			if known == format.Text() {
				feature = FormatKnown
			}
		}
		k.found(feature, at)
		k.has(PatternWithLength, at, length)
	}
	pattern := n.Get("pattern")
	if pattern == nil {
		return
	}
	p := pattern.Text()
	k.found(Pattern, at)
	if k.rules.RawPatterns {
		k.has(PatternLookaround, at, strings.Contains(p, "(?"))
		if !strings.HasPrefix(p, "^") || !strings.HasSuffix(p, "$") {
			k.wrong(at, "the pattern does not name its ends")
			return
		}
		k.rawPattern(p, at)
	}
	k.has(PatternUnanchored, at, !strings.HasPrefix(p, "^") || !strings.HasSuffix(p, "$"))
	k.has(PatternLookaround, at, strings.Contains(p, "(?=") || strings.Contains(p, "(?!") || strings.Contains(p, "(?<"))
	k.has(PatternEscapes, at, strings.Contains(p, `\d`) || strings.Contains(p, `\w`) || strings.Contains(p, `\s`) ||
		strings.Contains(p, `\D`) || strings.Contains(p, `\W`) || strings.Contains(p, `\S`))
	k.has(PatternWithLength, at, length)
}

// members counts the members of a name in a whole document.
func members(n *schema.Node, name string) (count int) {
	for _, m := range n.Members() {
		if m.Name == name {
			count++
		}
		count += members(m.Value, name)
	}
	for _, item := range n.Items() {
		count += members(item, name)
	}
	return count
}
