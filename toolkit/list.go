package toolkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dragoman-mcp/dragoman/schema"
)

// A Page is the part of a list that a caller asks for.
type Page struct {
	// Limit is the number of items wanted, 1 to 50; 20 if the caller did not say.
	// Load no more.
	Limit int
	// Offset is the number of items to skip.
	Offset int
	// Cursor is what an earlier [Listing.Next] said, for tools that page by
	// cursor; empty for the first page. It comes from outside: check it.
	Cursor string
}

// A Listing is one page of a list.
type Listing[T any] struct {
	// Items of the page, at most [Page.Limit]; more are left out.
	Items []T
	// Total is the number of items in the whole list; negative if nobody knows.
	Total int
	// More says that there are items after these, where Total is not known.
	More bool
	// Next is the cursor of the next page, for tools that page by cursor; empty
	// on the last page.
	Next string
}

// ListOf takes the page out of a list that is in memory anyway.
func ListOf[T any](all []T, p Page) Listing[T] {
	rest := all[min(max(0, p.Offset), len(all)):]
	return Listing[T]{Items: rest[:min(max(0, p.Limit), len(rest))], Total: len(all)}
}

// AddList adds a tool that lists or searches. Besides the fields of Query the
// tool takes limit (1 to 50, default 20) and offset or, with [Tool.Cursor],
// cursor; it answers total, count, offset, items, has_more and next_offset, or
// next_cursor. The function loads one page and no more.
//
// A page that is too long loses items from its end, and count, has_more and
// next_offset say so; paging on misses nothing. With cursors the function is
// asked again for fewer items.
func AddList[Query, Item any](s *Server, t Tool, f func(context.Context, Query, Page) (Listing[Item], error)) {
	kind, out := pageOffset, reflect.TypeFor[offsetPage[Item]]()
	if t.Cursor {
		kind, out = pageCursor, reflect.TypeFor[cursorPage[Item]]()
	}
	b := newBinding(s, t, reflect.TypeFor[Query](), out)
	b.page = kind
	if f == nil {
		b.fail("no function")
	}
	if b.in != nil {
		for _, added := range kind.fields(b.in) {
			for _, own := range b.in.fields { // encoding/json reads names in any case
				if strings.EqualFold(own.name, added.name) {
					b.fail("arguments: AddList adds %q itself; read it from the Page", added.name)
				}
			}
		}
	}
	b.register(func(ctx context.Context, a arguments) (reply, error) {
		var q Query
		if err := a.decode(&q); err != nil {
			return reply{}, err
		}
		p := a.page()
		got, err := f(ctx, q, p)
		if err != nil {
			return reply{}, err
		}
		if kind == pageOffset {
			return offsetReply(got, p)
		}
		for range 3 {
			fewer := fewerItems(got.Items, p.Limit, b.room(0, 2))
			if fewer >= p.Limit {
				break
			}
			p.Limit = fewer
			if r, ok := ctx.Value(runningKey{}).(*running); ok {
				r.asks.anew()
			}
			if got, err = f(ctx, q, p); err != nil {
				return reply{}, err
			}
		}
		return cursorReply(got, p)
	})
}

type pageKind int

const (
	pageNone pageKind = iota
	pageOffset
	pageCursor
)

// fields are the parameters that a tool with pages takes.
func (k pageKind) fields(*shape) []*field {
	if k == pageNone {
		return nil
	}
	limit := &field{name: "limit", at: &place{of: &shape{kind: kindInteger, exact: -1}, rules: rules{
		desc: "Items to return at most", min: "1", max: strconv.Itoa(MaxPage), fallback: json.RawMessage(strconv.Itoa(DefaultPage)),
	}}}
	if k == pageOffset {
		return []*field{limit, {name: "offset", at: &place{of: &shape{kind: kindInteger, exact: -1}, rules: rules{
			desc: "Items to skip, the next_offset of the page before", min: "0", fallback: json.RawMessage("0"),
		}}}}
	}
	return []*field{limit, {name: "cursor", at: &place{of: &shape{kind: kindText, exact: -1}, rules: rules{
		desc: "The next_cursor of the page before; leave it out for the first page", max: "4096",
	}}}}
}

func (a arguments) page() Page {
	integer := func(name string) int {
		text, _ := a.node.Get(name).Integer()
		n, err := strconv.Atoi(text)
		if err != nil { // beyond int: further than any list goes
			return int(^uint(0) >> 1)
		}
		return n
	}
	p := Page{Limit: integer("limit"), Cursor: a.node.Get("cursor").Text()}
	if a.node.Has("offset") {
		p.Offset = integer("offset")
	}
	return p
}

type offsetPage[T any] struct {
	Total      *int `json:"total,omitempty" desc:"Items in the whole list, where that is known"`
	Count      int  `json:"count" desc:"Items in this page"`
	Offset     int  `json:"offset" desc:"Items before this page"`
	Items      []T  `json:"items"`
	HasMore    bool `json:"has_more" desc:"Whether there are items after this page"`
	NextOffset *int `json:"next_offset,omitempty" desc:"The offset of the next page, if there is one"`
}

type cursorPage[T any] struct {
	Total      *int   `json:"total,omitempty" desc:"Items in the whole list, where that is known"`
	Count      int    `json:"count" desc:"Items in this page"`
	Items      []T    `json:"items"`
	HasMore    bool   `json:"has_more" desc:"Whether there are items after this page"`
	NextCursor string `json:"next_cursor,omitempty" desc:"The cursor of the next page, if there is one"`
}

// A pageReply remembers what cutting must keep true.
type pageReply struct {
	offset int
	cursor bool
}

func offsetReply[T any](got Listing[T], p Page) (reply, error) {
	extra := len(got.Items) > p.Limit
	items := got.Items[:min(len(got.Items), p.Limit)]
	next := p.Offset + len(items)
	out := offsetPage[T]{Count: len(items), Offset: p.Offset, Items: items, HasMore: extra || got.More}
	if got.Total >= 0 {
		total := got.Total
		if len(items) > 0 {
			total = max(total, next)
		}
		out.Total = &total
		out.HasMore = out.HasMore || next < total && len(items) > 0
	}
	if out.HasMore && len(items) == 0 {
		return reply{}, errors.New("the function says that there is more, and returned no items")
	}
	if out.HasMore {
		out.NextOffset = &next
	}
	return reply{value: out, page: &pageReply{offset: p.Offset}}, nil
}

func cursorReply[T any](got Listing[T], p Page) (reply, error) {
	if len(got.Items) > p.Limit {
		return reply{}, fmt.Errorf("the function returned %d items, %d were asked for; a cursor cannot point between them", len(got.Items), p.Limit)
	}
	out := cursorPage[T]{Count: len(got.Items), Items: got.Items, HasMore: got.Next != "", NextCursor: got.Next}
	if got.Total >= 0 {
		total := max(got.Total, len(got.Items))
		out.Total = &total
	}
	return reply{value: out, page: &pageReply{cursor: true}}, nil
}

// fewerItems estimates how many of the items fit into so many characters.
func fewerItems[T any](items []T, limit, characters int) int {
	room := characters - noteRoom
	for i, item := range items {
		data, err := json.Marshal(item)
		if err != nil {
			return limit // deliver says what is wrong
		}
		if room -= utf8.RuneCount(data) + 1; room < 0 {
			return max(1, i)
		}
	}
	return limit
}

// adjust makes the counts of a page speak of the items that cutting left.
func (p *pageReply) adjust(n *schema.Node) {
	left := len(n.Get("items").Items())
	had, _ := n.Get("count").Integer()
	if had == strconv.Itoa(left) {
		return
	}
	n.Set("count", schema.NewNumber(strconv.Itoa(left)))
	if p.cursor {
		return
	}
	n.Set("has_more", schema.NewBool(true))
	n.Set("next_offset", schema.NewNumber(strconv.Itoa(p.offset+left)))
}
