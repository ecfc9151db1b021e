package toolkit

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/dragoman-mcp/dragoman/schema"
)

// timeLayout is how people read a time: 2024-01-15 10:30:00 UTC.
const timeLayout = "2006-01-02 15:04:05 UTC"

// maxHeading is the depth of objects that get headings; deeper ones are lists.
const maxHeading = 4

// renderMarkdown writes a result for people: headings for what is large, lists
// for what is small, times in UTC, names with their ids.
func renderMarkdown(title string, n *schema.Node, s *shape, page *pageReply) string {
	var w markdownWriter
	if title != "" {
		w.line("# " + title)
		w.blank()
	}
	if page != nil {
		w.page(n, s, page)
	} else {
		w.object(n, s, 2, false)
	}
	if n.Get("truncated").IsBool(true) {
		w.blank()
		w.line("> " + oneLine(n.Get("truncation_message").Text()))
	}
	return strings.TrimSpace(w.String()) + "\n"
}

type markdownWriter struct{ strings.Builder }

func (w *markdownWriter) line(text string) {
	w.WriteString(text)
	w.WriteByte('\n')
}

// blank ends a paragraph, once.
func (w *markdownWriter) blank() {
	if text := w.String(); text != "" && !strings.HasSuffix(text, "\n\n") {
		w.WriteByte('\n')
	}
}

// page writes the items and where in the list they stand.
func (w *markdownWriter) page(n *schema.Node, s *shape, page *pageReply) {
	items := n.Get("items").Items()
	position := fmt.Sprintf("%d items", len(items))
	if total, ok := n.Get("total").Integer(); ok && !page.cursor {
		position = fmt.Sprintf("Items %d to %d of %s", page.offset+1, page.offset+len(items), total)
	} else if ok {
		position += " of " + total
	}
	if len(items) == 0 {
		position = "No items"
	}
	w.line(position + ".")
	if f := s.field("items"); f != nil {
		w.blank()
		w.items(n.Get("items"), f.at.of.item, 2)
	}
	w.blank()
	if next, ok := n.Get("next_offset").Integer(); ok {
		w.line("More with offset " + next + ".")
	} else if cursor := n.Get("next_cursor").Text(); cursor != "" {
		w.line("More with cursor `" + cursor + "`.")
	}
}

// object writes members: short ones as a list, then long ones under headings.
// headed says that name and id stand in a heading already.
func (w *markdownWriter) object(n *schema.Node, s *shape, level int, headed bool) {
	type part struct {
		label string
		value *schema.Node
		at    *place
	}
	var large []part
	for _, m := range n.Members() {
		f, at := s.member(m.Name)
		if m.Value.Kind() == schema.Null || m.Name == "truncated" || m.Name == "truncation_message" {
			continue
		}
		if f != nil && (f.role == roleOmitted || headed && (f.role == roleName || f.role == roleID)) {
			continue
		}
		label := label(m.Name, at)
		if text, small := w.small(m.Value, at, f); small {
			w.line("- **" + label + "**: " + text)
		} else {
			large = append(large, part{label, m.Value, at})
		}
	}
	for _, p := range large {
		w.blank()
		head := headline(p.value, p.at.of)
		w.line(strings.Repeat("#", min(level, 6)) + " " + strings.TrimSuffix(p.label+": "+head, ": "))
		w.blank()
		switch p.value.Kind() {
		case schema.Array:
			item := free
			if p.at.of.item != nil {
				item = p.at.of.item
			}
			w.items(p.value, item, level+1)
		case schema.String:
			for l := range strings.SplitSeq(p.value.Text(), "\n") {
				w.line("> " + l)
			}
		default:
			w.object(p.value, p.at.of, level+1, head != "")
		}
	}
}

// items writes a list of objects or of values.
func (w *markdownWriter) items(n *schema.Node, at *place, level int) {
	if level > maxHeading {
		w.bullets(n, at, 0)
		return
	}
	for i, item := range n.Items() {
		if text, small := w.small(item, at, nil); small {
			w.line("- " + text)
			continue
		}
		head := headline(item, at.of)
		w.blank()
		w.line(strings.Repeat("#", min(level, 6)) + " " + cmp.Or(head, strconv.Itoa(i+1)))
		w.blank()
		if item.Kind() == schema.Array {
			w.bullets(item, free, 0)
			continue
		}
		w.object(item, at.of, level+1, head != "")
	}
}

// bullets writes what is nested too deep for headings, one line for each object.
func (w *markdownWriter) bullets(n *schema.Node, at *place, depth int) {
	indent := strings.Repeat("  ", depth)
	for _, item := range n.Items() {
		if text, small := w.small(item, at, nil); small {
			w.line(indent + "- " + text)
			continue
		}
		if item.Kind() == schema.Array {
			w.line(indent + "-")
			w.bullets(item, free, depth+1)
			continue
		}
		head := headline(item, at.of)
		var facts []string
		var nested []schema.Member
		for _, m := range item.Members() {
			f, p := at.of.member(m.Name)
			if m.Value.Kind() == schema.Null || f != nil && (f.role == roleOmitted || head != "" && (f.role == roleName || f.role == roleID)) {
				continue
			}
			if text, small := w.small(m.Value, p, f); small {
				facts = append(facts, label(m.Name, p)+": "+text)
			} else {
				nested = append(nested, m)
			}
		}
		w.line(indent + "- " + strings.TrimPrefix(strings.TrimSuffix(head+"; "+strings.Join(facts, "; "), "; "), "; "))
		for _, m := range nested {
			_, p := at.of.member(m.Name)
			inner := free
			if p.of.item != nil {
				inner = p.of.item
			}
			if m.Value.Kind() == schema.Object {
				w.bullets(schema.NewArray(m.Value), p, depth+1)
				continue
			}
			w.bullets(m.Value, inner, depth+1)
		}
	}
}

// small writes a value that fits on the line of its label.
func (w *markdownWriter) small(n *schema.Node, at *place, f *field) (string, bool) {
	switch n.Kind() {
	case schema.String:
		text := n.Text()
		if at.of.kind == kindTime || at.rules.format == "date-time" {
			return readable(text), true
		}
		if strings.Contains(text, "\n") {
			return "", false
		}
		return text, true
	case schema.Number:
		if f != nil && (f.role == roleTime || f.role == roleMillis) {
			return instant(n, f.role), true
		}
		return n.Text(), true
	case schema.Bool:
		return map[bool]string{true: "yes", false: "no"}[n.IsBool(true)], true
	case schema.Null:
		return "none", true
	case schema.Array:
		if len(n.Items()) == 0 {
			return "none", true
		}
		var words []string
		for _, item := range n.Items() {
			inner := free
			if at.of.item != nil {
				inner = at.of.item
			}
			text, small := w.small(item, inner, nil)
			if !small || item.Kind() == schema.Array {
				return "", false
			}
			words = append(words, text)
		}
		if text := strings.Join(words, ", "); utf8.RuneCountInString(text) <= 200 {
			return text, true
		}
		return "", false
	case schema.Object:
		if len(n.Members()) == 0 {
			return "none", true
		}
		for _, m := range n.Members() {
			if f := at.of.field(m.Name); f == nil || f.role != roleName && f.role != roleID {
				return "", false
			}
		}
		return headline(n, at.of), true
	}
	return "", false
}

// headline is the display name of an object with its id behind: "Ada (U1)".
func headline(n *schema.Node, s *shape) string {
	var name, id string
	for _, f := range s.fields {
		switch value := n.Get(f.name); {
		case value == nil:
		case f.role == roleName:
			name = oneLine(value.Text())
		case f.role == roleID:
			id = oneLine(value.Text())
		}
	}
	switch {
	case name != "" && id != "":
		return name + " (" + id + ")"
	case name != "":
		return name
	}
	return id
}

// member finds what is known of a member; values of maps and of unknown JSON
// have a place, too.
func (s *shape) member(name string) (*field, *place) {
	if f := s.field(name); f != nil {
		return f, f.at
	}
	if s.kind == kindDict {
		return nil, s.item
	}
	return nil, free
}

// label is a member's title, or its name made readable: next_offset becomes
// "Next offset".
func label(name string, at *place) string {
	if at.rules.title != "" {
		return at.rules.title
	}
	text := strings.NewReplacer("_", " ", "-", " ").Replace(name)
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func readable(text string) string {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return text
	}
	return t.UTC().Format(timeLayout)
}

func instant(n *schema.Node, r role) string {
	v, err := strconv.ParseInt(n.Text(), 10, 64)
	if err != nil {
		return n.Text()
	}
	if r == roleMillis {
		return time.UnixMilli(v).UTC().Format(timeLayout)
	}
	return time.Unix(v, 0).UTC().Format(timeLayout)
}
