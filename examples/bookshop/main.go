// Bookshop is an MCP server for a small shop whose books are compiled in: search
// them, look one up, order it. It shows pages, Markdown, recursive results,
// errors that help, and prompts with completion.
//
//	go run ./examples/bookshop
package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dragoman-mcp/dragoman/toolkit"
)

func main() { toolkit.Main(newServer(newShop())) }

// A book is what the shop sells.
type book struct {
	ISBN   string  `json:"isbn" md:"id" desc:"Number of the book, as the other tools want it"`
	Title  string  `json:"title" md:"name"`
	Author string  `json:"author"`
	Genre  string  `json:"genre"`
	Price  float64 `json:"price" desc:"In euros"`
	Stock  int     `json:"stock" desc:"Copies in the shop"`
}

// An order is a sale.
type order struct {
	Number int       `json:"number" md:"id"`
	Title  string    `json:"title" md:"name"`
	Copies int       `json:"copies"`
	Total  float64   `json:"total" desc:"In euros"`
	Ready  time.Time `json:"ready" desc:"When it can be fetched"`
}

// A genre holds genres.
type genre struct {
	Name  string  `json:"name" md:"name"`
	Books int     `json:"books" desc:"Titles in the genre itself"`
	Below []genre `json:"below,omitempty"`
}

func (g genre) Summary() string {
	return fmt.Sprintf("The shop has %d main genres. The tree of all genres is in structuredContent.", len(g.Below))
}

// A shop is safe for concurrent use.
type shop struct {
	mu     sync.Mutex
	books  []book
	orders int
	now    func() time.Time
}

func newShop() *shop {
	return &shop{now: time.Now, books: []book{
		{"978-1-01", "The Lighthouse Ledger", "Ines Calder", "crime", 14.5, 3},
		{"978-1-02", "Salt and Algebra", "Tomas Weir", "science", 22, 0},
		{"978-1-03", "A Winter of Cranes", "Mei Lin", "novel", 18, 7},
		{"978-1-04", "The Copper Orchard", "Ines Calder", "crime", 12.9, 1},
		{"978-1-05", "Small Hours, Large Seas", "Ruth Okoro", "novel", 16.4, 2},
	}}
}

type (
	search struct {
		Words  string `json:"words,omitempty" desc:"Part of title or author, in any case" max:"100"`
		Genre  string `json:"genre,omitempty" desc:"Only this genre" enum:"crime,novel,science"`
		Stock  bool   `json:"in_stock" desc:"Only what can be taken home today" default:"false"`
		Sorted string `json:"sorted" desc:"Order of the list" enum:"title,price" default:"title"`
	}
	which struct {
		ISBN string `json:"isbn" desc:"Number of the book, from bookshop_search_books" pattern:"^978-[0-9]-[0-9]{2}$"`
	}
	purchase struct {
		which
		Copies int `json:"copies" desc:"How many" default:"1" min:"1" max:"10"`
	}
	taste struct {
		Genre string `json:"genre" desc:"What to read" enum:"crime,novel,science"`
		Count int    `json:"count" desc:"How many suggestions" default:"3" min:"1" max:"5"`
	}
)

var reading = toolkit.Hints{ReadOnly: toolkit.Yes, Destructive: toolkit.No, Idempotent: toolkit.Yes, OpenWorld: toolkit.No}

func newServer(shop *shop) *toolkit.Server {
	s := toolkit.NewServer(toolkit.Options{Service: "bookshop", Title: "Bookshop", Version: "1.0.0"})
	toolkit.AddList(s, toolkit.Tool{
		Name: "bookshop_search_books", Title: "Books",
		Description: "Searches the books of the shop by title, author and genre. Without arguments it lists them all.",
		Hints:       reading, Markdown: true,
		Examples: []toolkit.Example{
			{Ask: "Do you have crime novels by Calder?", Arguments: `{"words":"calder","genre":"crime"}`},
			{Ask: "What is the cheapest book I can have today?", Arguments: `{"in_stock":true,"sorted":"price","limit":1}`},
		},
	}, shop.search)
	toolkit.Add(s, toolkit.Tool{
		Name: "bookshop_get_book", Title: "Book",
		Description: "Looks up one book by its number.", Hints: reading,
		Examples: []toolkit.Example{{Ask: "How many copies of that one are left?", Arguments: `{"isbn":"978-1-01"}`}},
	}, func(_ context.Context, w which) (book, error) {
		shop.mu.Lock()
		defer shop.mu.Unlock()
		b, err := shop.find(w.ISBN)
		if err != nil {
			return book{}, err
		}
		return *b, nil
	})
	toolkit.Add(s, toolkit.Tool{
		Name: "bookshop_list_genres", Title: "Genres",
		Description: "Returns the tree of genres with the number of titles in each.", Hints: reading,
	}, func(context.Context, struct{}) (genre, error) {
		return genre{Name: "all", Below: []genre{{"fiction", 0, []genre{{"crime", 2, nil}, {"novel", 2, nil}}}, {"science", 1, nil}}}, nil
	})
	toolkit.Add(s, toolkit.Tool{
		Name: "bookshop_order_book", Title: "Order",
		Description: "Orders copies of a book to be fetched in the shop. Calling it twice orders twice.",
		Hints:       toolkit.Hints{ReadOnly: toolkit.No, Destructive: toolkit.No, Idempotent: toolkit.No, OpenWorld: toolkit.No},
		Examples:    []toolkit.Example{{Ask: "I take two of them", Arguments: `{"isbn":"978-1-03","copies":2}`}},
		Markdown:    true,
	}, shop.order)
	toolkit.AddPrompt(s, toolkit.Prompt{Name: "suggest_books", Title: "What should I read?", Description: "Suggests books that the shop has."},
		func(_ context.Context, t taste) (toolkit.Messages, error) {
			return toolkit.Messages{toolkit.User(fmt.Sprintf(
				"Suggest %d books of the genre %s. Search with bookshop_search_books, take only what is in stock, and say in a sentence each why.", t.Count, t.Genre))}, nil
		})
	return s
}

func (s *shop) search(_ context.Context, q search, p toolkit.Page) (toolkit.Listing[book], error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []book
	for _, b := range s.books {
		words := strings.ToLower(b.Title + " " + b.Author)
		if strings.Contains(words, strings.ToLower(q.Words)) && (q.Genre == "" || b.Genre == q.Genre) && (!q.Stock || b.Stock > 0) {
			found = append(found, b)
		}
	}
	slices.SortFunc(found, func(a, b book) int {
		if q.Sorted == "price" && a.Price != b.Price {
			return int((a.Price - b.Price) * 100)
		}
		return strings.Compare(a.Title, b.Title)
	})
	return toolkit.ListOf(found, p), nil
}

// find returns the shop's own book; s.mu must be held.
func (s *shop) find(isbn string) (*book, error) {
	i := slices.IndexFunc(s.books, func(b book) bool { return b.ISBN == isbn })
	if i < 0 {
		return nil, toolkit.NotFound("There is no book %s. Search with bookshop_search_books for its number.", isbn)
	}
	return &s.books[i], nil
}

func (s *shop) order(_ context.Context, p purchase) (order, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := s.find(p.ISBN)
	if err != nil {
		return order{}, err
	}
	if b.Stock == 0 {
		return order{}, toolkit.RetryAfter(24*time.Hour, "%s is sold out; the next delivery comes tomorrow.", b.Title)
	}
	if p.Copies > b.Stock {
		return order{}, toolkit.Invalid("copies", "only %d of %s are left.", b.Stock, b.Title)
	}
	b.Stock -= p.Copies
	s.orders++
	return order{s.orders, b.Title, p.Copies, float64(p.Copies) * b.Price, s.now().Add(time.Hour).UTC().Truncate(time.Second)}, nil
}
