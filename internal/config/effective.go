package config

import (
	"bytes"
	"fmt"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/text/invisible"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// Effective returns f as YAML, with defaults filled in and secrets hidden.
// Apart from what is hidden it can be read again and means the same. In entries
// of models and mcpServers, keys that are empty are left out.
func Effective(f *File) []byte {
	p := &printer{refs: f.refs}
	p.structure(reflect.ValueOf(f).Elem(), "", 0, false)
	return p.out.Bytes()
}

type printer struct {
	out  bytes.Buffer
	refs map[string]reference
}

func (p *printer) indent(depth int) { p.out.WriteString(strings.Repeat("  ", depth)) }

// structure prints the keys of a struct, each on lines of its own. It leaves out
// those that are at nothing where nothing cannot be written; compact leaves out
// all that are empty.
func (p *printer) structure(v reflect.Value, path string, depth int, compact bool) {
	first := true
	for _, f := range fieldsOf(v.Type()) {
		value := v.FieldByIndex(f.index)
		unwritable := len(f.enum) > 0 || value.CanInt() && f.min > 0
		unsaid := f.keys == "label" && value.IsNil() // no servers at all would be something else
		if unsaid || empty(value) && (compact || unwritable) {
			continue
		}
		// The first key of a list item follows its dash.
		if !first || !bytes.HasSuffix(p.out.Bytes(), []byte("- ")) {
			p.indent(depth)
		}
		first = false
		p.out.WriteString(f.name + ":")
		p.value(value, join(path, f.name), f, depth+1, compact)
	}
	if first {
		p.out.WriteString("{}\n")
	}
}

// empty reports whether a value is nothing at all; a struct is when all its
// fields are.
func empty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map:
		return v.Len() == 0
	case reflect.Struct:
		for i := range v.NumField() {
			if !empty(v.Field(i)) {
				return false
			}
		}
		return true
	default:
		return v.IsZero()
	}
}

// value prints what follows a key.
func (p *printer) value(v reflect.Value, path string, f field, depth int, compact bool) {
	switch {
	case v.Type() == rawType: // JSON is YAML
		p.out.WriteString(" " + strings.TrimSpace(string(v.Bytes())) + "\n")
	case (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.Len() == 0:
		p.out.WriteString(map[reflect.Kind]string{reflect.Slice: " []\n", reflect.Map: " {}\n"}[v.Kind()])
	case isSection(v.Type()):
		p.out.WriteByte('\n')
		p.structure(v, path, depth, compact)
	case v.Kind() == reflect.Slice:
		p.out.WriteByte('\n')
		for i := range v.Len() {
			p.indent(depth)
			p.out.WriteString("-")
			at := fmt.Sprintf("%s[%d]", path, i)
			if isSection(v.Index(i).Type()) {
				p.out.WriteByte(' ')
				p.structure(v.Index(i), at, depth+1, true)
				continue
			}
			text := p.text(v.Index(i), at, f)
			if f.secret != "" && i > 0 && text == v.Index(i).String() && secret.IsFlag(v.Index(i-1).String()) {
				text = secret.Hidden
			}
			p.out.WriteString(" " + quote(text) + "\n")
		}
	case v.Kind() == reflect.Map:
		p.out.WriteByte('\n')
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		for _, key := range keys {
			p.indent(depth)
			p.out.WriteString(quote(key.String()) + ":")
			at := join(path, key.String())
			if f.keys == "label" {
				p.out.WriteByte('\n')
				p.structure(v.MapIndex(key), at, depth+1, true)
				continue
			}
			p.out.WriteString(" " + quote(p.text(v.MapIndex(key), at, f)) + "\n")
		}
	default:
		p.out.WriteString(" " + p.scalar(v, path, f) + "\n")
	}
}

func (p *printer) scalar(v reflect.Value, path string, f field) string {
	switch {
	case v.Type() == durationType:
		return formatDuration(time.Duration(v.Int()))
	case f.unit == "bytes":
		return formatSize(v.Int())
	case v.CanInt():
		return strconv.FormatInt(v.Int(), 10)
	case v.Kind() == reflect.Bool:
		return strconv.FormatBool(v.Bool())
	}
	return quote(p.text(v, path, f))
}

// text returns what to show of a string: itself, with dollars escaped, the
// reference that it came from, or ***.
func (p *printer) text(v reflect.Value, path string, f field) string {
	if t, ok := v.Interface().(secret.Text); ok {
		return t.String()
	}
	text := v.String()
	if f.secret == "filled" {
		if ref, ok := p.refs[path]; ok && ref.value == text {
			return hideInText(ref.written)
		}
		text = hideInText(text)
	}
	return escapeDollars(text)
}

// escapeDollars doubles the dollars that reading would otherwise take for the
// beginning of something.
func escapeDollars(text string) string {
	var b strings.Builder
	for i := range len(text) {
		b.WriteByte(text[i])
		if text[i] == '$' && i+1 < len(text) && (text[i+1] == '$' || text[i+1] == '{') {
			b.WriteByte('$')
		}
	}
	return b.String()
}

// hideInText hides secrets that were written out where secrets do not belong: in a URL, and in
// an argument such as --token=x or Authorization: x. References to them stay.
func hideInText(text string) string {
	if u, err := url.Parse(references.ReplaceAllLiteralString(text, "0")); err == nil && u.Host != "" {
		return hideInURL(text)
	}
	if at, ok := secret.Assigned(text); ok {
		return text[:at] + hidden(text[at:])
	}
	if strings.Contains(text, "://") {
		return hideInURL(text)
	}
	return text
}

func hideInURL(text string) string {
	address, query, hasQuery := strings.Cut(text, "?")
	address = userInfo.ReplaceAllStringFunc(secret.HideSegments(address), func(user string) string {
		return "://" + hidden(user[len("://"):len(user)-len("@")]) + "@"
	})
	if !hasQuery {
		return address
	}
	pairs := strings.Split(query, "&")
	for i, pair := range pairs {
		if name, value, _ := strings.Cut(pair, "="); value != "" && secret.IsParameter(name) {
			pairs[i] = name + "=" + hidden(value)
		}
	}
	return address + "?" + strings.Join(pairs, "&")
}

// hidden stands for a secret, unless it consists of references.
func hidden(text string) string {
	if strings.Trim(references.ReplaceAllLiteralString(text, ""), ":") == "" {
		return text
	}
	return secret.Hidden
}

var (
	plain     = regexp.MustCompile(`^[A-Za-z/][A-Za-z0-9_./@+=-]*(:[A-Za-z0-9_./@+=-]+)*$|^\d{1,3}(\.\d{1,3}){3}:\d+$`)
	yamlWords = []string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}
)

// quote returns text as a YAML scalar that every YAML reader takes for this
// text.
func quote(text string) string {
	if plain.MatchString(text) && !slices.Contains(yamlWords, strings.ToLower(text)) {
		return text
	}
	var b strings.Builder
	for _, r := range string(rawjson.Quote(text)) {
		switch {
		case !invisible.Hidden(r):
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
