package toolkit_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman/toolkit"
)

type User struct {
	Name   string    `json:"name" md:"name"`
	ID     string    `json:"id" md:"id"`
	Joined time.Time `json:"joined"`
	Avatar string    `json:"avatar" md:"-"`
}

type Team struct {
	Team    string `json:"team"`
	Members []User `json:"members"`
}

func getTeam(context.Context, struct{}) (Team, error) {
	joined := time.Date(2024, 1, 15, 10, 30, 0, 0, time.UTC)
	return Team{"Core", []User{{"Ada", "U1", joined, "https://pictures.example/u1"}}}, nil
}

func ExampleAdd_json() {
	s := newShop()
	toolkit.Add(s, find("shop_get_team"), getTeam)
	ask(s, "shop_get_team", `{}`)
	// Output: {"team":"Core","members":[{"name":"Ada","id":"U1","joined":"2024-01-15T10:30:00Z","avatar":"https://pictures.example/u1"}]}
}

func ExampleAdd_markdown() {
	s := newShop()
	t := find("shop_get_team")
	t.Markdown = true
	toolkit.Add(s, t, getTeam)
	ask(s, "shop_get_team", `{"response_format":"markdown"}`)
	// Output:
	// - **Team**: Core
	//
	// ## Members
	//
	// ### Ada (U1)
	//
	// - **Joined**: 2024-01-15 10:30:00 UTC
}

func ExampleSummarizer() {
	s := newShop()
	toolkit.Add(s, find("shop_get_tree"), func(context.Context, struct{}) (EmployeeTree, error) {
		return EmployeeTree{"E1", []Employee{{ID: "E1", Name: "Ada", Subordinates: []Employee{{ID: "E2", Name: "Bob"}}}}}, nil
	})
	ask(s, "shop_get_tree", `{}`)
	// Output:
	// Found the organisation of employee E1: 2 people. The tree is in structuredContent.
	// {"empId":"E1","tree":[{"id":"E1","name":"Ada","subordinates":[{"id":"E2","name":"Bob"}]}]}
}

type Chart struct {
	Bars []int `json:"bars"`
}

func (c Chart) Markdown() string {
	var text strings.Builder
	for _, b := range c.Bars {
		fmt.Fprintln(&text, strings.Repeat("█", b))
	}
	return text.String()
}

func ExampleMarkdowner() {
	s := newShop()
	t := find("shop_get_chart")
	t.Markdown = true
	toolkit.Add(s, t, func(context.Context, struct{}) (Chart, error) { return Chart{[]int{3, 1}}, nil })
	ask(s, "shop_get_chart", `{"response_format":"markdown"}`)
	// Output:
	// ███
	// █
}

var books = []string{"Emma", "Dune", "Ulysses", "Faust", "Walden"}

func ExampleAddList_offset() {
	s := newShop()
	toolkit.AddList(s, find("shop_list_books"), func(_ context.Context, _ struct{}, p toolkit.Page) (toolkit.Listing[string], error) {
		return toolkit.ListOf(books, p), nil
	})
	ask(s, "shop_list_books", `{"limit":2,"offset":1}`)
	// Output: {"total":5,"count":2,"offset":1,"items":["Dune","Ulysses"],"has_more":true,"next_offset":3}
}

func ExampleAddList_filter() {
	s := newShop()
	type query struct {
		Word string `json:"word,omitempty" desc:"Part of the title"`
	}
	toolkit.AddList(s, find("shop_search_books"), func(_ context.Context, q query, p toolkit.Page) (toolkit.Listing[string], error) {
		// As a database would: skip, take one more than asked for, count nothing.
		var found []string
		skip := p.Offset
		for _, b := range books {
			if !strings.Contains(strings.ToLower(b), q.Word) {
				continue
			}
			if skip--; skip >= 0 {
				continue
			}
			if found = append(found, b); len(found) > p.Limit {
				break
			}
		}
		return toolkit.Listing[string]{Items: found, Total: -1}, nil
	})
	ask(s, "shop_search_books", `{"word":"u","limit":1}`)
	// Output: {"count":1,"offset":0,"items":["Dune"],"has_more":true,"next_offset":1}
}

func ExampleAddList_cursor() {
	s := newShop()
	t := find("shop_scan_books")
	t.Cursor = true
	toolkit.AddList(s, t, func(_ context.Context, _ struct{}, p toolkit.Page) (toolkit.Listing[string], error) {
		// The cursor is the title that the page begins after.
		from := 0
		for i, b := range books {
			if b == p.Cursor {
				from = i + 1
			}
		}
		if p.Cursor != "" && from == 0 {
			return toolkit.Listing[string]{}, toolkit.Invalid("cursor", "give the next_cursor of an earlier answer.")
		}
		end := min(from+p.Limit, len(books))
		page := toolkit.Listing[string]{Items: books[from:end], Total: len(books)}
		if end < len(books) {
			page.Next = books[end-1]
		}
		return page, nil
	})
	ask(s, "shop_scan_books", `{"limit":2}`)
	ask(s, "shop_scan_books", `{"limit":3,"cursor":"Dune"}`)
	ask(s, "shop_scan_books", `{"cursor":"Odyssey"}`)
	// Output:
	// {"total":5,"count":2,"items":["Emma","Dune"],"has_more":true,"next_cursor":"Dune"}
	// {"total":5,"count":3,"items":["Ulysses","Faust","Walden"],"has_more":false}
	// Invalid arguments for shop_scan_books: cursor: give the next_cursor of an earlier answer.
}

type Log struct {
	Lines []string `json:"lines"`
}

func ExampleTool_characters() {
	s := newShop()
	t := find("shop_read_log")
	t.Characters, t.Advice = 1000, "Use 'since' to read less."
	toolkit.Add(s, t, func(context.Context, struct{}) (Log, error) {
		var l Log
		for i := range 500 {
			l.Lines = append(l.Lines, fmt.Sprintf("%d %s", i, strings.Repeat("·", 90)))
		}
		return l, nil
	})
	ask(s, "shop_read_log", `{}`)
	// Output:
	// {"lines":["0 ··························································································","1 ··························································································","2 ··························································································","3 ··························································································"],"truncated":true,"truncation_message":"The result had 48401 characters; at most 1000 are sent. Left: 4 of 500 items of lines. Use 'since' to read less."}
}

func ExampleText() {
	s := newShop()
	t := find("shop_read_story")
	t.Characters = 1000
	toolkit.Add(s, t, func(context.Context, struct{}) (toolkit.Text, error) {
		return toolkit.Text(strings.Repeat(strings.Repeat("once more, ", 20)+"and once more\n", 50)), nil
	})
	ask(s, "shop_read_story", `{}`)
	// Output:
	// once more, once more, once more, once more, once more, once more, once more, once more, once more, once more, once more, once more, once more, once more, once more, once more, once more, once more, once more, once more, and once more
	// once more, once more, once more, once more, once more, once more, once more, once more, once more, once more, once more, once more, once more, once more, once more, once more, once more, once more, once more, once more, and once more
	// once more, once more, once more, once more, once more, once more, once more, once more, once more, once more, once more, once more, once more, once more, once more, once more, once more, once more, once more, once more, and once more
	//
	// [Truncated: the first 701 of 11700 characters are shown. Ask for something narrower.]
}

type Article struct {
	Title string `json:"title"`
	Body  string `json:"body"`
}

func ExampleAddList_long() {
	s := newShop()
	t := find("shop_list_articles")
	t.Characters = 1000
	toolkit.AddList(s, t, func(_ context.Context, _ struct{}, p toolkit.Page) (toolkit.Listing[Article], error) {
		articles := make([]Article, 100)
		for i := range articles {
			articles[i] = Article{fmt.Sprintf("Article %d", i), "…"}
		}
		return toolkit.ListOf(articles, p), nil
	})
	ask(s, "shop_list_articles", `{"limit":50,"offset":50}`)
	// Output:
	// {"total":100,"count":9,"offset":50,"items":[{"title":"Article 50","body":"…"},{"title":"Article 51","body":"…"},{"title":"Article 52","body":"…"},{"title":"Article 53","body":"…"},{"title":"Article 54","body":"…"},{"title":"Article 55","body":"…"},{"title":"Article 56","body":"…"},{"title":"Article 57","body":"…"},{"title":"Article 58","body":"…"}],"has_more":true,"next_offset":59,"truncated":true,"truncation_message":"The result had 1763 characters; at most 1000 are sent. Left: 9 of 50 items of items. Use 'offset' and a smaller 'limit' for the rest."}
}

func ExampleContent() {
	s := newShop()
	toolkit.Add(s, find("shop_get_cover"), func(context.Context, struct{}) (toolkit.Content, error) {
		return toolkit.Content{toolkit.Words("The cover:"), toolkit.Image([]byte("…"), "image/png")}, nil
	})
	ask(s, "shop_get_cover", `{}`)
	// Output: The cover:
}

type Stock struct {
	Book string `json:"book" desc:"Title"`
}

func ExampleInvalid() {
	s := newShop()
	type dates struct {
		From, To time.Time
	}
	t := find("shop_count_days")
	t.Examples = []toolkit.Example{{Ask: "Days in May", Arguments: `{"From":"2026-05-01T00:00:00Z","To":"2026-06-01T00:00:00Z"}`}}
	toolkit.Add(s, t, func(_ context.Context, d dates) (toolkit.Text, error) {
		if d.To.Before(d.From) {
			return "", toolkit.Invalid("To", "expected a time after From.")
		}
		return toolkit.Text(fmt.Sprint(int(d.To.Sub(d.From).Hours() / 24))), nil
	})
	ask(s, "shop_count_days", `{"From":"2026-05-01T00:00:00Z","To":"2026-04-01T00:00:00Z"}`)
	// Output: Invalid arguments for shop_count_days: To: expected a time after From.
}

func ExampleNotFound() {
	s := newShop()
	t := find("shop_get_stock")
	t.Examples[0].Arguments = `{"book":"Emma"}`
	toolkit.Add(s, t, func(_ context.Context, q Stock) (toolkit.Text, error) {
		return "", toolkit.NotFound("There is no book %q. Search with shop_search_books first.", q.Book)
	})
	ask(s, "shop_get_stock", `{"book":"Odyssey"}`)
	// Output: There is no book "Odyssey". Search with shop_search_books first.
}

func ExampleRetryAfter() {
	s := newShop()
	toolkit.Add(s, find("shop_get_price"), func(context.Context, struct{}) (toolkit.Text, error) {
		return "", toolkit.RetryAfter(30*time.Second, "The price service is busy.")
	})
	ask(s, "shop_get_price", `{}`)
	// Output: The price service is busy. Try again in 30 seconds.
}
