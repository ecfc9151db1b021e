package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestBookshop(t *testing.T) {
	shop := newShop()
	shop.now = func() time.Time { return time.Date(2026, 3, 4, 9, 30, 0, 0, time.UTC) }
	s := newServer(shop)
	defer s.Close()
	session, err := s.Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	for _, tt := range []struct{ tool, arguments, want string }{
		{"bookshop_search_books", `{"words":"calder","limit":1}`, `"total":2,"count":1,"offset":0,"items":[{"isbn":"978-1-04"`},
		{"bookshop_search_books", `{"in_stock":true,"sorted":"price","limit":1}`, `"price":12.9`},
		{"bookshop_search_books", `{"genre":"poems"}`, "genre: expected one of 'crime', 'novel', 'science'"},
		{"bookshop_search_books", `{"words":"cranes","response_format":"markdown"}`, "## A Winter of Cranes (978-1-03)\n\n- **Author**: Mei Lin"},
		{"bookshop_get_book", `{"isbn":"978-1-99"}`, "There is no book 978-1-99."},
		{"bookshop_list_genres", `{}`, "The shop has 2 main genres."},
		{"bookshop_order_book", `{"isbn":"978-1-03","copies":2,"response_format":"markdown"}`, "- **Ready**: 2026-03-04 10:30:00 UTC"},
		{"bookshop_order_book", `{"isbn":"978-1-03","copies":9}`, "copies: only 5 of A Winter of Cranes are left."},
		{"bookshop_order_book", `{"isbn":"978-1-02"}`, "sold out; the next delivery comes tomorrow. Try again in 86400 seconds."},
	} {
		res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: tt.tool, Arguments: json.RawMessage(tt.arguments)})
		if err != nil {
			t.Fatal(err)
		}
		if got := res.Content[0].(*mcp.TextContent).Text; !strings.Contains(got, tt.want) {
			t.Errorf("%s %s: %s, want %s", tt.tool, tt.arguments, got, tt.want)
		}
	}
	p, err := session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "suggest_books", Arguments: map[string]string{"genre": "crime"}})
	if err != nil || !strings.HasPrefix(p.Messages[0].Content.(*mcp.TextContent).Text, "Suggest 3 books of the genre crime.") {
		t.Errorf("prompt: %v, %v", p, err)
	}
}
