package pin

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/text/canonical"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/schema"
)

// A Change is one thing in which two definitions of a tool mean something else.
type Change struct {
	// Pointer is a JSON pointer (RFC 6901) into the definition.
	Pointer string
	// Was and Is are what stood there, and what does; nil where nothing.
	Was, Is json.RawMessage
}

// Changes returns in what a definition means something else than one before, in
// the order of the old one, what is new behind it. The order of members, white
// space, the spelling of numbers and the order of lists of names (required, enum,
// type) mean nothing. So no changes, of definitions that are not the same bytes, is the
// proof that an approval of the one holds for the other: it rests on the two
// themselves, not on digests of parts. What is not strict JSON, where a second
// member of the same name could hide a change, is one change of the whole.
func Changes(was, is []byte) []Change {
	a, errA := schema.Parse(was)
	b, errB := schema.Parse(is)
	if errA != nil || errB != nil {
		if string(was) == string(is) {
			return nil
		}
		return []Change{{"", was, is}}
	}
	var c changes
	c.compare("", a, b)
	return c
}

// Changed names the parts of a definition that changes are in, each once, in the
// order of [Parts]: words of ours, whatever the server writes.
func Changed(changes []Change) (parts []string) {
	in := map[string]bool{}
	for _, c := range changes {
		part, _, _ := strings.Cut(strings.TrimPrefix(c.Pointer, "/"), "/")
		if !slices.Contains(Parts, part) {
			part = other
		}
		in[part] = true
	}
	for _, part := range append(slices.Clone(Parts), other) {
		if in[part] {
			parts = append(parts, part)
		}
	}
	return parts
}

type changes []Change

func (c *changes) add(pointer string, was, is *schema.Node) {
	change := Change{Pointer: pointer}
	if was != nil {
		change.Was = was.Bytes()
	}
	if is != nil {
		change.Is = is.Bytes()
	}
	*c = append(*c, change)
}

func (c *changes) compare(pointer string, was, is *schema.Node) {
	switch {
	case schema.Equal(was, is):
	case was.Kind() == schema.Object && is.Kind() == schema.Object:
		for _, m := range was.Members() {
			if now := is.Get(m.Name); now != nil {
				c.compare(pointer+schema.Pointer(m.Name), m.Value, now)
			} else {
				c.add(pointer+schema.Pointer(m.Name), m.Value, nil)
			}
		}
		for _, m := range is.Members() {
			if !was.Has(m.Name) {
				c.add(pointer+schema.Pointer(m.Name), nil, m.Value)
			}
		}
	case was.Kind() == schema.Array && is.Kind() == schema.Array && unordered(pointer) && scalars(was) && scalars(is):
		c.compareSets(pointer, was.Items(), is.Items())
	case was.Kind() == schema.Array && is.Kind() == schema.Array:
		c.compareLists(pointer, was.Items(), is.Items())
	default:
		c.add(pointer, was, is)
	}
}

// unordered reports whether the order of a list means nothing: of names in a schema, and
// not in a value, such as the default of an argument.
func unordered(pointer string) bool {
	steps := strings.Split(pointer, "/")
	switch n := len(steps); {
	case slices.ContainsFunc(steps, func(s string) bool { return slices.Contains(values, s) }):
		return false
	case n > 1 && steps[n-2] == "dependentRequired":
		return true
	default:
		return slices.Contains([]string{"required", "enum", "type"}, steps[n-1])
	}
}

// values are members behind which values stand, and no schemas.
var values = []string{"default", "const", "examples", "example", "_meta"}

func scalars(list *schema.Node) bool {
	return !slices.ContainsFunc(list.Items(), func(n *schema.Node) bool { return n.Kind() == schema.Object || n.Kind() == schema.Array })
}

// compareSets reports what left a list of names, and what joined it.
func (c *changes) compareSets(pointer string, was, is []*schema.Node) {
	left := slices.Clone(is)
	for i, old := range was {
		at := slices.IndexFunc(left, func(n *schema.Node) bool { return schema.Equal(old, n) })
		if at < 0 {
			c.add(pointer+"/"+strconv.Itoa(i), old, nil)
			continue
		}
		left = slices.Delete(left, at, at+1)
	}
	for _, now := range left {
		c.add(pointer+"/"+strconv.Itoa(slices.Index(is, now)), nil, now)
	}
}

func (c *changes) compareLists(pointer string, was, is []*schema.Node) {
	for i := range max(len(was), len(is)) {
		at := pointer + "/" + strconv.Itoa(i)
		switch {
		case i >= len(was):
			c.add(at, nil, is[i])
		case i >= len(is):
			c.add(at, was[i], nil)
		default:
			c.compare(at, was[i], is[i])
		}
	}
}

// String says the change in words, on one line of bounded length. Texts of the
// server stand in quotes, and nothing in them is hidden.
func (c Change) String() string {
	where := canonical.Spelled(clip(cmp.Or(strings.TrimPrefix(c.Pointer, "/"), whole), 0))
	switch {
	case c.Was == nil:
		return fmt.Sprintf("%s: added %s", where, canonical.Spelled(clip(plain(c.Is), 0)))
	case c.Is == nil:
		return fmt.Sprintf("%s: removed %s", where, canonical.Spelled(clip(plain(c.Was), 0)))
	}
	was, is := plain(c.Was), plain(c.Is)
	same := 0
	for a, b := []rune(was), []rune(is); same < len(a) && same < len(b) && a[same] == b[same]; {
		same++
	}
	return fmt.Sprintf("%s: %s became %s", where, canonical.Spelled(clip(was, same)), canonical.Spelled(clip(is, same)))
}

// Full returns where the change is, what stood there and what does, whole, for people:
// texts without escapes, in lines, and nothing in them is hidden. Nothing is empty.
func (c Change) Full() (where, was, is string) {
	return canonical.Spelled(cmp.Or(c.Pointer, whole)), full(c.Was), full(c.Is)
}

// whole is where a change is that is about all of a definition.
const whole = "the definition"

func full(value json.RawMessage) string {
	if value == nil {
		return ""
	}
	text, ok := rawjson.String(value)
	if !ok {
		text = string(value)
		d := json.NewDecoder(bytes.NewReader(value))
		d.UseNumber()
		var tree any
		if d.Decode(&tree) == nil {
			var b bytes.Buffer
			e := json.NewEncoder(&b)
			e.SetEscapeHTML(false)
			e.SetIndent("", "  ")
			if e.Encode(tree) == nil {
				text = strings.TrimSuffix(b.String(), "\n")
			}
		}
	}
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = canonical.Spelled(lines[i])
	}
	return strings.Join(lines, "\n")
}

// plain is a value for people: a text without escapes, so that none hides a word.
func plain(value json.RawMessage) string {
	if text, ok := rawjson.String(value); ok {
		return `"` + text + `"`
	}
	return string(value)
}

// shown is how much of a text is shown, and before how much of it of what comes
// before a difference.
const shown, before = 160, 40

// clip cuts a text to a readable length around a place in it, in characters.
func clip(text string, place int) string {
	runes := []rune(text)
	if len(runes) <= shown {
		return text
	}
	start, head, tail := 0, "", ""
	if place > before {
		start, head = place-before, "…"
	}
	end := min(start+shown, len(runes))
	if end < len(runes) {
		tail = "…"
	}
	return head + string(runes[start:end]) + tail
}
