package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// A listing is a list of the server over all its pages.
type listing struct {
	// items are the entries, byte for byte and in the server's order.
	items []json.RawMessage
	// ttl is how long the server wants the list to be considered fresh; zero
	// when it did not say (MCP 2026-07-28, "Caching").
	ttl time.Duration
	// public reports that the list holds nothing of a single user, so that it may
	// be shared by callers with different authorization.
	public bool
}

// listKeys names the member of the result that holds the entries.
var listKeys = map[string]string{
	"tools/list": "tools", "prompts/list": "prompts", "resources/list": "resources",
	"resources/templates/list": "resourceTemplates", "skills/list": "skills",
}

// declares reports whether the server declared that it answers a list.
func (d *declared) declares(method string) bool {
	switch method {
	case "tools/list":
		return d.tools
	case "prompts/list":
		return d.prompts
	case "skills/list":
		return d.skills
	}
	return d.resources
}

// itemSize is what an entry costs beside its bytes, in bytes.
const itemSize = 512

// list gets all pages of a list. A list that the server did not declare is empty
// without a request. A list over [Limits] is an error.
func (c *Client) list(ctx context.Context, method string) (listing, error) {
	list := listing{public: true}
	if d := c.session.Load().declared; !d.declares(method) {
		return listing{}, nil
	}
	var size int64
	for p, err := range c.pages(ctx, method) {
		if err != nil {
			return listing{}, fmt.Errorf("listing with %s: %w", method, err)
		}
		if list.items == nil {
			list.ttl = p.ttl
		}
		list.ttl = min(list.ttl, p.ttl)
		list.public = list.public && p.public
		list.items = append(list.items, p.items...)
		size += p.size + int64(len(p.items))*itemSize
		switch limit := c.limits; {
		case len(list.items) > limit.Items:
			return listing{}, fmt.Errorf("listing with %s: %w: a list of over %d entries", method, ErrTooLarge, limit.Items)
		case size > limit.List:
			return listing{}, fmt.Errorf("listing with %s: %w: a list of over %d bytes", method, ErrTooLarge, limit.List)
		}
	}
	return list, nil
}

// A page is one page of a list.
type page struct {
	listing
	size   int64 // of the whole answer
	cursor json.RawMessage
}

// pages yields the pages of a list, until the last one or an error: a cursor that
// is none, one that comes again, too many pages.
func (c *Client) pages(ctx context.Context, method string) iter.Seq2[*page, error] {
	return func(yield func(*page, error) bool) {
		seen := map[string]bool{}
		var first []json.RawMessage
		var cursor json.RawMessage
		for n := 1; ; n++ {
			p, err := c.page(ctx, method, cursor)
			switch {
			case err != nil:
			case n == 1:
				first = p.items
			case string(cursor) == `""` && slices.EqualFunc(p.items, first, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }):
				return // for this server an empty cursor is the end
			}
			if !yield(p, err) || err != nil || p.cursor == nil {
				return
			}
			cursor = p.cursor
			switch {
			case rawjson.Kind(cursor) != '"' || validJSON(cursor) != nil:
				err = fmt.Errorf("%w: the cursor is not a string", ErrAnswer)
			case seen[string(cursor)]:
				err = fmt.Errorf("%w: page %d repeats a cursor", ErrAnswer, n)
			case n >= c.limits.Pages:
				err = fmt.Errorf("%w: a list of over %d pages", ErrTooLarge, n)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			seen[string(cursor)] = true
		}
	}
}

// page gets one page of a list.
func (c *Client) page(ctx context.Context, method string, cursor json.RawMessage) (*page, error) {
	r := &request{method: method, split: true, can: c.o.Can}
	if cursor != nil {
		r.inner = append([]byte(`"cursor":`), cursor...)
	}
	a, err := c.do(ctx, r)
	if err != nil {
		return nil, err
	}
	key := listKeys[method]
	raw := a.object.Get(key)
	items, err := rawjson.Elements(raw)
	if err != nil && string(raw) != "null" { // how some languages write an empty list
		return nil, fmt.Errorf("%w: %s is not an array", ErrAnswer, key)
	}
	p := &page{listing: listing{items: items}, size: int64(len(a.raw))}
	ms, _ := number(a.object.Get("ttlMs"))
	p.ttl = time.Duration(max(0, min(ms, int64(24*time.Hour/time.Millisecond)))) * time.Millisecond
	scope, _ := rawjson.String(a.object.Get("cacheScope"))
	p.public = scope == "public"
	if cursor := a.object.Get("nextCursor"); !rawjson.IsNull(cursor) {
		p.cursor = cursor
	}
	return p, nil
}
