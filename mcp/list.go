package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/rawjson"
)

// A Listing is a list of the server over all its pages.
type Listing struct {
	// Items are the entries, byte for byte and in the server's order.
	Items []json.RawMessage
	// TTL is how long the server wants the list to be considered fresh; zero
	// when it did not say (MCP 2026-07-28, "Caching").
	TTL time.Duration
	// Public reports that the list holds nothing of a single user, so that it may
	// be shared by callers with different authorization.
	Public bool
}

// ListAll gets all pages of prompts/list, resources/list,
// resources/templates/list, tools/list or tasks/list. A list that the server did
// not declare is empty without a request. A page that repeats a cursor, or a
// list over [Limits], is an error.
func (c *Client) ListAll(ctx context.Context, method string) (*Listing, error) {
	l, err := c.list(ctx, method)
	if err != nil {
		return nil, wrap("listing with", method, err)
	}
	return l, nil
}

// listKeys names the member of the result that holds the entries.
var listKeys = map[string]string{
	"tools/list": "tools", "prompts/list": "prompts", "resources/list": "resources",
	"resources/templates/list": "resourceTemplates", "tasks/list": "tasks",
}

func (c *Client) list(ctx context.Context, method string) (*Listing, error) {
	key, ok := listKeys[method]
	if !ok {
		return nil, fmt.Errorf("%q is not a list", method)
	}
	d := c.session.Load().declared
	if method == "tools/list" && !d.tools || method == "prompts/list" && !d.prompts ||
		key == "resources" && !d.resources || key == "resourceTemplates" && !d.resources {
		return &Listing{}, nil
	}

	list := &Listing{Public: true}
	var first []json.RawMessage
	var size int64
	seen := map[string]bool{}
	var cursor json.RawMessage
	for page := 1; ; page++ {
		r := &request{method: method, split: true}
		if cursor != nil {
			r.inner = append([]byte(`"cursor":`), cursor...)
		}
		a, err := c.do(ctx, r)
		if err != nil {
			return nil, err
		}
		items, err := rawjson.Elements(a.object.Get(key))
		if err != nil && string(a.object.Get(key)) != "null" { // how some languages write an empty list
			return nil, fmt.Errorf("%w: %s is not an array", ErrAnswer, key)
		}
		switch {
		case page == 1:
			first = items
			list.TTL = ttl(a)
		case string(cursor) == `""` && slices.EqualFunc(items, first, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }):
			return list, nil // for this server an empty cursor is the end
		}
		list.TTL = min(list.TTL, ttl(a))
		if scope, _ := rawjson.String(a.object.Get("cacheScope")); scope != "public" {
			list.Public = false
		}
		list.Items = append(list.Items, items...)
		size += int64(len(a.raw))

		cursor = a.object.Get("nextCursor")
		switch {
		case rawjson.IsNull(cursor):
			return list, nil
		case rawjson.Kind(cursor) != '"' || validJSON(cursor) != nil:
			return nil, fmt.Errorf("%w: the cursor is not a string", ErrAnswer)
		case seen[string(cursor)]:
			return nil, fmt.Errorf("%w: page %d repeats a cursor", ErrAnswer, page)
		case page >= c.o.Limits.Pages:
			return nil, fmt.Errorf("%w: a list of over %d pages", ErrTooLarge, page)
		case len(list.Items) > c.o.Limits.Items:
			return nil, fmt.Errorf("%w: a list of over %d entries", ErrTooLarge, c.o.Limits.Items)
		case size > c.o.Limits.List:
			return nil, fmt.Errorf("%w: a list of over %d bytes", ErrTooLarge, c.o.Limits.List)
		}
		seen[string(cursor)] = true
	}
}

func ttl(a *answer) time.Duration {
	ms, _ := number(a.object.Get("ttlMs"))
	return time.Duration(max(0, min(ms, int64(24*time.Hour/time.Millisecond)))) * time.Millisecond
}
