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

// maxChanges is how many bytes changes and their pointers may take before they are one of
// the whole, and changeBytes what one takes beside its pointer, by a rough count.
const (
	maxChanges  = 1 << 20
	changeBytes = 100
)

// Changes returns in what a definition means something else than one before, in
// the order of the old one, what is new behind it. The order of members, white
// space, the spelling of numbers and the order of lists of names (required, enum,
// type) mean nothing. So no changes, of definitions that are not the same bytes, is the
// proof that an approval of the one holds for the other: it rests on the two
// themselves, not on digests of parts. What is not strict JSON, where a second
// member of the same name could hide a change, is one change of the whole; so are
// more changes than somebody could read. It takes time by the length of the two,
// which is all that the server that wrote them has a say in.
func Changes(was, is []byte) []Change {
	a, errA := schema.Parse(was)
	b, errB := schema.Parse(is)
	if errA != nil || errB != nil {
		if string(was) == string(is) {
			return nil
		}
		return []Change{{"", was, is}}
	}
	c := changes{room: maxChanges}
	c.compare(&place{}, a, b)
	if c.room < 0 {
		return []Change{{"", was, is}}
	}
	return c.all
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

// changes collects changes. room is what there is for more of them; below zero they are
// too many.
type changes struct {
	all  []Change
	room int
}

// A place is where in two definitions a value stands, whose pointer is made only where they
// differ: a name on the way to it may be long, and what is behind it many.
type place struct {
	outer *place
	step  string
	// value says that what stands here is no schema.
	value bool
}

func (p *place) in(step string) *place {
	return &place{p, step, p.value || slices.Contains(values, step)}
}

func (p *place) item(i int) *place { return p.in(strconv.Itoa(i)) }

func (p *place) pointer() string {
	var steps []string
	for ; p.outer != nil; p = p.outer {
		steps = append(steps, p.step)
	}
	slices.Reverse(steps)
	return schema.Pointer(steps...)
}

func (c *changes) add(at *place, was, is *schema.Node) {
	if c.room < 0 {
		return
	}
	change := Change{Pointer: at.pointer()}
	if was != nil {
		change.Was = was.Bytes()
	}
	if is != nil {
		change.Is = is.Bytes()
	}
	if c.room -= changeBytes + len(change.Pointer); c.room >= 0 {
		c.all = append(c.all, change)
	}
}

func (c *changes) compare(at *place, was, is *schema.Node) {
	switch {
	case was.Kind() == schema.Object && is.Kind() == schema.Object:
		before, after := byName(was), byName(is)
		for _, m := range was.Members() {
			if now := after[m.Name]; now != nil {
				c.compare(at.in(m.Name), m.Value, now)
			} else {
				c.add(at.in(m.Name), m.Value, nil)
			}
		}
		for _, m := range is.Members() {
			if before[m.Name] == nil {
				c.add(at.in(m.Name), nil, m.Value)
			}
		}
	case was.Kind() == schema.Array && is.Kind() == schema.Array && at.unordered() && scalars(was) && scalars(is):
		c.compareSets(at, was.Items(), is.Items())
	case was.Kind() == schema.Array && is.Kind() == schema.Array:
		c.compareLists(at, was.Items(), is.Items())
	case !schema.Equal(was, is):
		c.add(at, was, is)
	}
}

func byName(object *schema.Node) map[string]*schema.Node {
	values := make(map[string]*schema.Node, len(object.Members()))
	for _, m := range object.Members() {
		values[m.Name] = m.Value
	}
	return values
}

// unordered reports whether the order of a list means nothing: of names in a schema, and
// not in a value, such as the default of an argument.
func (p *place) unordered() bool {
	switch {
	case p.value:
		return false
	case p.outer != nil && p.outer.step == "dependentRequired":
		return true
	default:
		return slices.Contains([]string{"required", "enum", "type"}, p.step)
	}
}

// values are members behind which values stand, and no schemas.
var values = []string{"default", "const", "examples", "example", "_meta"}

func scalars(list *schema.Node) bool {
	return !slices.ContainsFunc(list.Items(), func(n *schema.Node) bool { return n.Kind() == schema.Object || n.Kind() == schema.Array })
}

// compareSets reports what left a list of names, and what joined it.
func (c *changes) compareSets(at *place, was, is []*schema.Node) {
	for _, i := range missing(was, is) {
		c.add(at.item(i), was[i], nil)
	}
	for _, i := range missing(is, was) {
		c.add(at.item(i), nil, is[i])
	}
}

// missing returns which of some values are not among others, each of which stands for one.
func missing(some, others []*schema.Node) (at []int) {
	left := map[string]int{}
	for _, n := range others {
		left[n.Identity()]++
	}
	for i, n := range some {
		if id := n.Identity(); left[id] > 0 {
			left[id]--
		} else {
			at = append(at, i)
		}
	}
	return at
}

func (c *changes) compareLists(at *place, was, is []*schema.Node) {
	for i := range max(len(was), len(is)) {
		switch {
		case i >= len(was):
			c.add(at.item(i), nil, is[i])
		case i >= len(is):
			c.add(at.item(i), was[i], nil)
		default:
			c.compare(at.item(i), was[i], is[i])
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
