package pin

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/rawjson"
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
// space, the spelling of numbers and the order of lists of names (required, enum)
// mean nothing. So no changes, of definitions that are not the same bytes, is the
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
	case was.Kind() == schema.Array && is.Kind() == schema.Array && scalars(was) && scalars(is):
		c.compareSets(pointer, was.Items(), is.Items())
	case was.Kind() == schema.Array && is.Kind() == schema.Array:
		c.compareLists(pointer, was.Items(), is.Items())
	default:
		c.add(pointer, was, is)
	}
}

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
	where := strings.TrimPrefix(c.Pointer, "/")
	if where == "" {
		where = "the definition"
	}
	where = visible(clip(where, 0))
	switch {
	case c.Was == nil:
		return fmt.Sprintf("%s: added %s", where, visible(clip(plain(c.Is), 0)))
	case c.Is == nil:
		return fmt.Sprintf("%s: removed %s", where, visible(clip(plain(c.Was), 0)))
	}
	was, is := plain(c.Was), plain(c.Is)
	same := 0
	for a, b := []rune(was), []rune(is); same < len(a) && same < len(b) && a[same] == b[same]; {
		same++
	}
	return fmt.Sprintf("%s: %s became %s", where, visible(clip(was, same)), visible(clip(is, same)))
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

// visible spells out what cannot be seen: control characters, overrides of
// direction, tags.
func visible(text string) string {
	var b strings.Builder
	for _, r := range text {
		if strconv.IsGraphic(r) {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, "<U+%04X>", r)
		}
	}
	return b.String()
}
