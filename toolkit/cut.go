package toolkit

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dragoman-mcp/dragoman/schema"
)

// Cutting goes by structure, so that what is left is valid JSON and, where the
// schema allows it, still fits the schema. In this order, and no further than
// needed: a page loses its last items; texts of more than longText characters lose
// their end; lists and maps lose their last elements; all other free texts lose
// their end. Required members, enumerations, patterns, formats and times are never
// touched.
const (
	longText   = 2000
	shortText  = 60
	noteRoom   = 600 // characters for truncation_message and its name
	ellipsis   = "…"
	maxNoted   = 5
	unlimited  = math.MaxInt32
	cutMessage = "The result had %d characters; at most %d are sent. "
)

// cut shortens an encoded result to the limit. Pages stay pages: their counts
// and their next offset speak of the items that are left.
func (b *binding) cut(data []byte, limit int, page *pageReply) ([]byte, error) {
	n, err := schema.Parse(data)
	if err != nil {
		return nil, fmt.Errorf("read own result: %w", err)
	}
	length := utf8.RuneCount(data)
	if n.Kind() != schema.Object || b.out.kind == kindCustom {
		return nil, b.tooLarge(length)
	}
	fewest := 0
	if page != nil {
		fewest = 1 // a page without items would never end
	}
	c := cutter{root: &place{of: b.out}, node: n, room: limit - noteRoom}
	short := c.fit(fewest)
	if short == nil {
		return nil, b.tooLarge(length)
	}
	notes := shortened(n, short, "")
	if page != nil {
		page.adjust(short)
	}
	message := fmt.Sprintf(cutMessage, length, b.room(0, 2))
	if len(notes) > maxNoted {
		notes = append(notes[:maxNoted:maxNoted], "and more")
	}
	if len(notes) > 0 {
		message += "Left: " + strings.Join(notes, ", ") + ". "
	}
	message += b.advice()
	if runes := []rune(message); len(runes) > noteRoom-100 {
		message = string(runes[:noteRoom-100]) + ellipsis
	}
	addTruncation(short, message)
	return short.Bytes(), nil
}

type cutter struct {
	root *place
	node *schema.Node
	room int
}

// fit finds the mildest cut that fits; nil if none does.
func (c *cutter) fit(fewest int) *schema.Node {
	try := func(items, characters int) *schema.Node {
		n := trim(c.node, c.root, items, characters)
		if utf8.RuneCount(n.Bytes()) <= c.room {
			return n
		}
		return nil
	}
	if fewest > 0 { // the items that a page leaves out are on the next one, whole
		if found := largest(fewest, len(c.node.Get("items").Items()), c.page); found != nil {
			return found
		}
	}
	most := longest(c.node)
	if found := largest(longText, c.room, func(v int) *schema.Node { return try(unlimited, v) }); found != nil {
		return found
	}
	if found := largest(max(1, fewest), most, func(v int) *schema.Node { return try(v, longText) }); found != nil {
		return found
	}
	if found := largest(shortText, longText, func(v int) *schema.Node { return try(max(1, fewest), v) }); found != nil {
		return found
	}
	return try(fewest, shortText)
}

// page returns the page with its first items alone; nil where it is too long still.
func (c *cutter) page(items int) *schema.Node {
	all := c.node.Get("items").Items()
	n := schema.NewObject(slices.Clone(c.node.Members())...)
	n.Set("items", schema.NewArray(all[:min(items, len(all))]...))
	if utf8.RuneCount(n.Bytes()) > c.room {
		return nil
	}
	return n
}

// largest searches for the greatest value in [low, high] that fits, given that
// smaller values fit better; nil if low does not.
func largest(low, high int, try func(int) *schema.Node) *schema.Node {
	best := try(low)
	if best == nil {
		return nil
	}
	for low < high {
		middle := low + (high-low+1)/2
		if n := try(middle); n != nil {
			best, low = n, middle
		} else {
			high = middle - 1
		}
	}
	return best
}

// longest is the length of the longest list or map in n.
func longest(n *schema.Node) int {
	most := max(len(n.Items()), len(n.Members()))
	for _, item := range n.Items() {
		most = max(most, longest(item))
	}
	for _, m := range n.Members() {
		most = max(most, longest(m.Value))
	}
	return most
}

// trim returns n with lists and maps of at most so many items and free texts of
// at most so many characters. n stays as it is.
func trim(n *schema.Node, p *place, items, characters int) *schema.Node {
	switch n.Kind() {
	case schema.Object:
		return trimObject(n, p, items, characters)
	case schema.Array:
		if p.of.kind == kindCustom || p.of.exact >= 0 {
			return n
		}
		kept := n.Items()
		kept = kept[:min(len(kept), max(items, number(p.rules.min)))]
		if p.rules.unique && len(kept) > 1 { // what is cut may become equal
			items, characters = unlimited, unlimited
		}
		inner := free
		if p.of.item != nil {
			inner = p.of.item
			if len(p.rules.enum) > 0 || p.rules.pattern+p.rules.format != "" {
				inner = &place{of: inner.of, rules: p.rules}
			}
		}
		list := make([]*schema.Node, len(kept))
		for i, item := range kept {
			list[i] = trim(item, inner, items, characters)
		}
		return schema.NewArray(list...)
	case schema.String:
		return trimText(n, p, characters)
	}
	return n
}

// free is a place that any value fits.
var free = &place{of: &shape{kind: kindAnything, exact: -1}}

func trimObject(n *schema.Node, p *place, items, characters int) *schema.Node {
	if p.of.kind == kindCustom {
		return n
	}
	members := n.Members()
	if p.of.kind != kindObject {
		members = members[:min(len(members), max(items, number(p.rules.min)))]
	}
	list := make([]schema.Member, len(members))
	for i, m := range members {
		inner := free
		switch p.of.kind {
		case kindObject:
			if f := p.of.field(m.Name); f != nil {
				inner = f.at
			}
		case kindDict:
			inner = p.of.item
		}
		list[i] = schema.Member{Name: m.Name, Value: trim(m.Value, inner, items, characters)}
	}
	return schema.NewObject(list...)
}

func trimText(n *schema.Node, p *place, characters int) *schema.Node {
	fixed := len(p.rules.enum) > 0 || p.rules.pattern+p.rules.format != "" || p.of.base64
	if fixed || p.of.kind != kindText && p.of.kind != kindAnything {
		return n
	}
	text := n.Text()
	keep := max(characters, number(p.rules.min))
	if len(text) <= keep || utf8.RuneCountInString(text) <= keep {
		return n
	}
	end := 0
	for i := range text {
		if keep--; keep == 0 {
			end = i
			break
		}
	}
	return schema.NewString(text[:end] + ellipsis)
}

// number reads a length from a tag; empty is 0.
func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return n
}

// shortened says what is left of each list and text, by its place.
func shortened(before, after *schema.Node, at string) []string {
	var notes []string
	name := at
	if name == "" {
		name = "the result"
	}
	note := func(had, kept int, what string) {
		if kept < had {
			notes = append(notes, fmt.Sprintf("%d of %d %s of %s", kept, had, what, name))
		}
	}
	switch before.Kind() {
	case schema.Object:
		note(len(before.Members()), len(after.Members()), "members")
		for i, m := range after.Members() {
			notes = append(notes, shortened(before.Members()[i].Value, m.Value, dot(at, m.Name))...)
		}
	case schema.Array:
		note(len(before.Items()), len(after.Items()), "items")
		for i, item := range after.Items() {
			if len(notes) > maxNoted {
				break
			}
			notes = append(notes, shortened(before.Items()[i], item, dot(at, strconv.Itoa(i)))...)
		}
	case schema.String:
		note(utf8.RuneCountInString(before.Text()), utf8.RuneCountInString(after.Text()), "characters")
	}
	return notes
}

func dot(at, name string) string {
	if at == "" {
		return name
	}
	return at + "." + name
}
