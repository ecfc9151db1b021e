package config

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/text/glob"
)

// unneeded reports whether nobody who reads the file needs the key at a path.
func (d *decoder) unneeded(path string) bool {
	return d.inputs.reader.Needs != nil && !glob.MatchAny(d.inputs.reader.Needs, path)
}

// scalar returns the text of a scalar with its variables filled in. Filled
// reports that there were some. A value that nobody needs and that cannot be filled in
// is not ok, and no error.
func (d *decoder) scalar(n *node, path string) (text string, filled, ok bool) {
	if n.kind != stringKind || n.literal {
		return n.text, false, true
	}
	text, filled, failed := d.expand.expand(n.text, 0)
	if failed != nil {
		if d.unsetOK {
			return n.text, false, true
		}
		if d.unneeded(path) {
			d.unfilled++
			return "", true, false
		}
		d.fail(n, path, path+": "+failed.message, failed.hint)
		return "", true, false
	}
	if filled {
		d.refs[path] = reference{n.text, text}
		d.text += len(text)
	}
	return text, filled, true
}

func (d *decoder) str(n *node, v reflect.Value, path string, f field) {
	switch {
	case n.kind == stringKind:
	case f.unit == "text" && (n.kind == numberKind || n.kind == boolKind):
		// Arguments, variables and headers are text in the end: 3000 is "3000".
	default:
		d.wrong(n, path, "text")
		return
	}
	text, filled, ok := d.scalar(n, path)
	if !ok {
		return
	}
	if len(f.enum) > 0 && !slices.Contains(f.enum, text) {
		shown := strconv.Quote(text)
		if filled {
			shown = strconv.Quote(n.text)
		}
		d.fail(n, path, fmt.Sprintf("%s must be one of %s, not %s", path, strings.Join(f.enum, ", "), shown), Nearest(text, f.enum))
		return
	}
	v.SetString(text)
}

func (d *decoder) boolean(n *node, v reflect.Value, path string) {
	text, filled, ok := d.scalar(n, path)
	if !ok || d.unsetOK && n.kind == stringKind && !filled {
		return
	}
	if n.kind == boolKind || filled {
		if text == "true" || text == "false" {
			v.SetBool(text == "true")
			return
		}
	}
	hint := ""
	switch strings.ToLower(n.text) {
	case "yes", "on":
		hint = "Write true."
	case "no", "off":
		hint = "Write false."
	}
	d.fail(n, path, fmt.Sprintf("%s must be true or false, not %s", path, d.shown(n)), hint)
}

func (d *decoder) duration(n *node, v reflect.Value, path string, f field) {
	text, filled, ok := d.scalar(n, path)
	if !ok || d.unsetOK && n.kind == stringKind && !filled {
		return
	}
	value, err := time.ParseDuration(text)
	if n.kind != stringKind || err != nil {
		hint := ""
		if n.kind == numberKind {
			hint = fmt.Sprintf("Write %ss if you mean seconds.", n.text)
		}
		d.fail(n, path, fmt.Sprintf("%s must be a time such as 30s or 5m, not %s", path, d.shown(n)), hint)
		return
	}
	switch {
	case int64(value) >= f.min:
		v.SetInt(int64(value))
	case f.min == 0:
		d.fail(n, path, path+" must be at least 0s", "Leave the key out for its default.")
	default:
		d.fail(n, path, path+" must be more than 0", "Leave the key out for its default.")
	}
}

func (d *decoder) number(n *node, v reflect.Value, path string, f field) {
	text, filled, ok := d.scalar(n, path)
	if !ok || d.unsetOK && n.kind == stringKind && !filled {
		return
	}
	want := "a whole number"
	value, err := strconv.ParseInt(text, 10, 64)
	ok = err == nil && (n.kind == numberKind || filled)
	if f.unit == "bytes" {
		want = "a size such as 65536, 64KiB or 16MiB"
		value, ok = parseSize(text)
		ok = ok && n.kind >= numberKind && n.kind <= stringKind
	}
	switch {
	case !ok:
		d.fail(n, path, fmt.Sprintf("%s must be %s, not %s", path, want, d.shown(n)), "")
	case value < f.min:
		d.fail(n, path, fmt.Sprintf("%s must be at least %d", path, f.min), "Leave the key out for its default.")
	case f.max > 0 && value > f.max || v.OverflowInt(value):
		d.fail(n, path, fmt.Sprintf("%s must be at most %d", path, f.max), "")
	default:
		v.SetInt(value)
	}
}

// shown describes a value of a wrong kind as it stands in the file, so that
// nothing from the environment gets into an error.
func (d *decoder) shown(n *node) string {
	switch {
	case n.kind == numberKind && len(n.text) <= 40:
		return n.text
	case n.kind == stringKind && len(n.text) <= 40:
		return strconv.Quote(n.text)
	}
	return n.kind.String()
}
