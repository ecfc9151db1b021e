package dialect

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/dragoman-mcp/dragoman/schema"
)

// readTolerantly reads what models write when they mean JSON. It returns
// errCut where the text is a beginning of that: nothing is ever completed. The
// rules of what it put right come in the order in which they were needed.
func readTolerantly(text string) (*schema.Node, []string, error) {
	r := &tolerant{in: text}
	r.fence()
	value, err := r.value(0)
	if err != nil {
		return nil, nil, err
	}
	value, err = r.rest(value)
	return value, r.rules, err
}

var (
	errCut       = errors.New("the text ends before the value does")
	errForeign   = errors.New("this is no JSON")
	errBackslash = errors.New("a string has backslashes that escape nothing beside some that do; write each backslash of a text as \\\\")
	errGlued     = errors.New("there are several objects, one behind the other; make one call for each")
)

// errTwice means that an object has two members of a name, with values that
// contradict each other: readers differ in which one counts.
type errTwice struct{ name string }

func (e errTwice) Error() string {
	return fmt.Sprintf("the member %q is there twice, with different values", cut(e.name, 60))
}

type tolerant struct {
	in    string
	at    int
	read  int // values
	rules []string

	stray, control bool // the string at hand has a backslash that escapes nothing, and one that does
}

func (r *tolerant) used(rule string) {
	if !slices.Contains(r.rules, rule) {
		r.rules = append(r.rules, rule)
	}
}

// fence skips the line that opens a block of code.
func (r *tolerant) fence() {
	r.space()
	rest := r.in[r.at:]
	if !strings.HasPrefix(rest, "```") {
		return
	}
	r.used("codeFence")
	rest = rest[3:]
	for i := 0; i < len(rest); i++ {
		if c := rest[i]; c == '\n' || c == '{' || c == '[' || c == '"' {
			r.at += 3 + i
			return
		}
	}
	r.at = len(r.in)
}

// space skips white space, also where it is spelled as an escape.
func (r *tolerant) space() {
	for r.at < len(r.in) {
		switch c := r.in[r.at]; {
		case c == ' ' || c == '\n' || c == '\t' || c == '\r':
			r.at++
		case c == '\\' && r.at+1 < len(r.in) && strings.IndexByte("nrt", r.in[r.at+1]) >= 0:
			r.used("literalEscapes")
			r.at += 2
		case strings.HasPrefix(r.in[r.at:], "\ufeff"):
			r.at += len("\ufeff")
		case strings.HasPrefix(r.in[r.at:], "\u00a0"):
			r.at += len("\u00a0")
		default:
			return
		}
	}
}

// peek returns the next byte after white space; 0 at the end.
func (r *tolerant) peek() byte {
	r.space()
	if r.at >= len(r.in) {
		return 0
	}
	return r.in[r.at]
}

func (r *tolerant) value(depth int) (*schema.Node, error) {
	if depth > schema.MaxNesting {
		return nil, errForeign
	}
	if r.read++; r.read > schema.MaxValues {
		return nil, errForeign
	}
	switch c := r.peek(); {
	case c == 0:
		return nil, errCut
	case c == '{':
		r.at++
		return r.object(depth)
	case c == '[':
		r.at++
		return r.array(depth)
	case r.quote() != "":
		s, err := r.str()
		if err != nil {
			return nil, err
		}
		return schema.NewString(s), nil
	case c == '-' || c >= '0' && c <= '9':
		return r.number()
	}
	return r.word()
}

func (r *tolerant) object(depth int) (*schema.Node, error) {
	object := schema.NewObject()
	for {
		switch c := r.peek(); {
		case c == 0:
			return nil, errCut
		case c == '}':
			r.at++
			return object, nil
		}
		name, err := r.name()
		if err != nil {
			return nil, err
		}
		switch r.peek() {
		case 0:
			return nil, errCut
		case ':':
			r.at++
		default:
			return nil, errForeign
		}
		value, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		if known := object.Get(name); known != nil {
			if !schema.Equal(known, value) {
				return nil, errTwice{name}
			}
			r.used("duplicateKeys")
		}
		object.Set(name, value)
		if err := r.comma('}'); err != nil {
			return nil, err
		}
	}
}

func (r *tolerant) array(depth int) (*schema.Node, error) {
	var items []*schema.Node
	for {
		switch r.peek() {
		case 0:
			return nil, errCut
		case ']':
			r.at++
			return schema.NewArray(items...), nil
		}
		item, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
		if err := r.comma(']'); err != nil {
			return nil, err
		}
	}
}

// comma reads what stands between two elements, or sees the closer.
func (r *tolerant) comma(closer byte) error {
	switch r.peek() {
	case 0:
		return errCut
	case ',':
		r.at++
		if r.peek() == closer {
			r.used("trailingComma")
		}
		return nil
	case closer:
		return nil
	}
	return errForeign
}

// name reads a member's name, which may lack its quotes.
func (r *tolerant) name() (string, error) {
	if r.quote() != "" {
		return r.str()
	}
	start := r.at
	for r.at < len(r.in) {
		c := r.in[r.at]
		if c == '_' || c == '$' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || r.at > start && (c == '-' || c >= '0' && c <= '9') {
			r.at++
			continue
		}
		break
	}
	if r.at == start {
		return "", errForeign
	}
	r.used("unquotedNames")
	return r.in[start:r.at], nil
}

// quote returns the closing quote of the string that begins here; "" where
// none does.
func (r *tolerant) quote() string {
	rest := r.in[r.at:]
	switch {
	case strings.HasPrefix(rest, `"`):
		return `"`
	case strings.HasPrefix(rest, `'`):
		return `'`
	case strings.HasPrefix(rest, "“"):
		return "”"
	case strings.HasPrefix(rest, "‘"):
		return "’"
	}
	return ""
}

// str reads a string in any quotes. A quote that is not escaped ends it.
func (r *tolerant) str() (string, error) {
	closing := r.quote()
	if closing != `"` {
		r.used("quotes")
		_, size := utf8.DecodeRuneInString(r.in[r.at:])
		r.at += size
	} else {
		r.at++
	}
	var b strings.Builder
	r.stray, r.control = false, false
	for r.at < len(r.in) {
		rest := r.in[r.at:]
		switch c := rest[0]; {
		case strings.HasPrefix(rest, closing):
			r.at += len(closing)
			if r.stray && r.control {
				return "", errBackslash // C:\new\dir: is \n a line break?
			}
			return b.String(), nil
		case c == '\\':
			if err := r.escape(&b); err != nil {
				return "", err
			}
		case c < 0x20:
			r.used("rawControls")
			b.WriteByte(c)
			r.at++
		default:
			ch, size := utf8.DecodeRuneInString(rest)
			if ch == utf8.RuneError && size == 1 {
				r.used("invalidUTF8")
			}
			b.WriteRune(ch)
			r.at += size
		}
	}
	return "", errCut
}

func (r *tolerant) escape(b *strings.Builder) error {
	if r.at+1 >= len(r.in) {
		return errCut
	}
	c := r.in[r.at+1]
	if i := strings.IndexByte(`"\/bfnrt'`, c); i >= 0 {
		r.control = r.control || i >= 3 && i <= 7
		b.WriteByte("\"\\/\b\f\n\r\t'"[i])
		r.at += 2
		return nil
	}
	if c != 'u' {
		r.used("strayBackslash")
		r.stray = true
		b.WriteByte('\\')
		r.at++
		return nil
	}
	unit, err := r.hex(r.at + 2)
	if err != nil {
		return err
	}
	r.at += 6
	r.control = true
	if !utf16.IsSurrogate(unit) {
		b.WriteRune(unit)
		return nil
	}
	if strings.HasPrefix(r.in[r.at:], `\u`) {
		low, err := r.hex(r.at + 2)
		if err != nil {
			return err
		}
		if pair := utf16.DecodeRune(unit, low); pair != utf8.RuneError {
			r.at += 6
			b.WriteRune(pair)
			return nil
		}
	}
	r.used("loneSurrogate")
	b.WriteRune(utf8.RuneError)
	return nil
}

func (r *tolerant) hex(at int) (rune, error) {
	var v rune
	for i := at; i < at+4; i++ {
		if i >= len(r.in) {
			return 0, errCut
		}
		d := strings.IndexByte("0123456789abcdef", r.in[i]|0x20)
		if r.in[i] >= '0' && r.in[i] <= '9' {
			d = int(r.in[i] - '0')
		}
		if d < 0 || d < 10 && (r.in[i] < '0' || r.in[i] > '9') {
			return 0, errForeign
		}
		v = v<<4 | rune(d)
	}
	return v, nil
}

// number reads a number as JSON spells it. At the very end of the text it may
// be cut off, so there it is not taken; only arguments that are an object come
// here.
func (r *tolerant) number() (*schema.Node, error) {
	start := r.at
	for r.at < len(r.in) && strings.IndexByte("+-.eE0123456789", r.in[r.at]) >= 0 {
		r.at++
	}
	literal := r.in[start:r.at]
	n, err := schema.Parse([]byte(literal))
	if err != nil {
		if r.at == len(r.in) {
			return nil, errCut
		}
		return nil, errForeign
	}
	return n, nil
}

// word reads true, false and null, also as Python spells them.
func (r *tolerant) word() (*schema.Node, error) {
	start := r.at
	for r.at < len(r.in) && (r.in[r.at]|0x20 >= 'a' && r.in[r.at]|0x20 <= 'z') {
		r.at++
	}
	word := r.in[start:r.at]
	switch word {
	case "True", "False", "None":
		r.used("pythonLiterals")
	}
	switch word {
	case "true", "True":
		return schema.NewBool(true), nil
	case "false", "False":
		return schema.NewBool(false), nil
	case "null", "None":
		return schema.NewNull(), nil
	}
	if r.at == len(r.in) && word != "" {
		for _, whole := range []string{"true", "false", "null", "True", "False", "None"} {
			if strings.HasPrefix(whole, word) {
				return nil, errCut
			}
		}
	}
	return nil, errForeign
}

// rest judges what stands behind the value.
func (r *tolerant) rest(value *schema.Node) (*schema.Node, error) {
	for {
		switch c := r.peek(); {
		case c == 0:
			return value, nil
		case c == '}' || c == ']':
			r.used("extraClosers")
			r.at++
		case strings.HasPrefix(r.in[r.at:], "```") && slices.Contains(r.rules, "codeFence"):
			r.at += 3
		case c == '{':
			next, err := r.value(0)
			if err != nil {
				return nil, err
			}
			switch {
			case value.Kind() == schema.Object && len(value.Members()) == 0:
				r.used("emptyObjectBefore")
				value = next
			case schema.Equal(value, next):
				r.used("repeatedObject")
			case len(next.Members()) == 0:
				r.used("emptyObjectBehind")
			default:
				return nil, errGlued
			}
		default:
			return nil, errForeign
		}
	}
}
