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

// rawPattern judges a pattern for an engine that reads it as the text of a JSON
// string: it has only parts that such engines know, and whatever it matches can
// stand in a string.
func (k *checker) rawPattern(p, at string) {
	repeats, class := 0, false
	for i := 1; i < len(p)-1; i++ {
		switch ch := p[i]; {
		case ch == '\\' && class && p[i+1] == 'x' && isHex(p[i+2]) && isHex(p[i+3]):
			i += 3
		case ch == '\\' && !class && p[i+1] == '^':
			i++
		case class:
			class = ch != ']'
			if ch == '\\' || ch < ' ' || ch == '^' && p[i-1] != '[' {
				k.wrong(at, "the pattern has a class that the engine does not know")
				return
			}
		case ch == '[':
			class = true
		case strings.IndexByte(`\".^$`, ch) >= 0, ch < ' ', ch == 0x7f, ch == '?' && p[i-1] == '(':
			k.wrong(at, "the pattern has a part that the engine does not know")
			return
		case ch == '{':
			for _, digits := range strings.Split(p[i+1:i+1+strings.IndexByte(p[i+1:], '}')], ",") {
				n, _ := strconv.Atoi(digits)
				repeats = max(repeats, n)
			}
		}
	}
	if k.rules.MaxRepeat > 0 && repeats > k.rules.MaxRepeat {
		k.wrong(at, "the pattern repeats too often")
	}
	if !k.rules.EscapedPatterns && strings.Contains(p, `\x5C]`) {
		k.wrong(at, "the pattern has what JSON escapes")
	}
	if !keepsToJSON(p) {
		k.wrong(at, "the pattern takes what cannot stand in a JSON string")
	}
}

func isHex(b byte) bool { return strings.IndexByte("0123456789ABCDEF", b) >= 0 }

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
