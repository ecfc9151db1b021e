package toolkit_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dragoman-mcp/dragoman/toolkit"
	"github.com/dragoman-mcp/dragoman/toolkit/jwt"
	"github.com/dragoman-mcp/dragoman/toolkit/openapi"
)

// askAs is ask by somebody.
func askAs(s *toolkit.Server, c toolkit.Caller, tool, arguments string) {
	ctx := toolkit.As(context.Background(), c)
	session, err := s.Client(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(arguments)})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Content[0].(*mcp.TextContent).Text)
}

type OrderChange struct {
	Number int                         `json:"number" min:"1"`
	Copies int                         `json:"copies,omitempty" min:"1"`
	Note   toolkit.Optional[string]    `json:"note,omitzero" desc:"Left out: stays; null: none any more" max:"200"`
	Until  toolkit.Optional[time.Time] `json:"until,omitzero" desc:"Last day, if there is one"`
}

func ExampleOptional() {
	s := newShop()
	t := find("shop_update_order")
	t.Examples[0].Arguments = `{"number":7,"note":null}`
	toolkit.Add(s, t, func(_ context.Context, c OrderChange) (toolkit.Text, error) {
		note := "as a present"
		c.Note.Apply(&note)
		return toolkit.Text(fmt.Sprintf("note %q, until given: %v", note, c.Until.Present)), nil
	})
	ask(s, "shop_update_order", `{"number":7}`)
	ask(s, "shop_update_order", `{"number":7,"note":null}`)
	ask(s, "shop_update_order", `{"number":7,"note":"urgent","until":"2026-05-01T00:00:00Z"}`)
	// Output:
	// note "as a present", until given: false
	// note "", until given: false
	// note "urgent", until given: true
}

func ExampleCheck() {
	fmt.Println(toolkit.Check(Trip{City: "Rome", Class: "third", Seats: 12, Email: "ada"}))
	// Output: class: expected one of 'first', 'second', got "third"; email: expected an email address, got "ada"; seats: expected a number of at most 9, got 12.
}

func ExampleInvalid_several() {
	s := newShop()
	type dates struct {
		From time.Time `json:"from"`
		To   time.Time `json:"to"`
		Days int       `json:"days,omitempty"`
	}
	t := find("shop_plan_sale")
	t.Examples[0].Arguments = `{"from":"2026-05-01T00:00:00Z","to":"2026-05-03T00:00:00Z"}`
	toolkit.Add(s, t, func(_ context.Context, d dates) (toolkit.Text, error) {
		var wrong []error
		if d.To.Before(d.From) {
			wrong = append(wrong, toolkit.Invalid("to", "expected a time after from."))
		}
		if d.Days > 0 && !d.To.IsZero() {
			wrong = append(wrong, toolkit.Invalid("", "give to or days, not both."))
		}
		if err := errors.Join(wrong...); err != nil {
			return "", err
		}
		return "planned", nil
	})
	ask(s, "shop_plan_sale", `{"from":"2026-05-01T00:00:00Z","to":"2026-04-01T00:00:00Z","days":3}`)
	// Output: Invalid arguments for shop_plan_sale: to: expected a time after from; give to or days, not both.
}

func ExampleEmbed() {
	s := newShop()
	toolkit.Add(s, find("shop_get_receipt"), func(context.Context, struct{}) (toolkit.Content, error) {
		receipt, err := toolkit.Embed("shop://receipts/7", toolkit.Contents{Data: []byte("%PDF-1.7 …"), MIMEType: "application/pdf"})
		return toolkit.Content{toolkit.Words("Your receipt:"), receipt}, err
	})
	ask(s, "shop_get_receipt", `{}`)
	// Output: Your receipt:
}

func ExampleRequestFrom() {
	s := newShop()
	toolkit.Add(s, find("shop_list_orders"), func(ctx context.Context, _ struct{}) (toolkit.Text, error) {
		switch r := toolkit.RequestFrom(ctx); {
		case r.IsOwner(): // on standard input and output, or in the process
			return "all orders", nil
		case r.Authenticated(): // over HTTP, with a key or a token
			return toolkit.Text("the orders of " + r.User), nil
		default: // over HTTP, where anybody may ask
			return "", toolkit.Refuse("Say who you are, and your orders are listed.")
		}
	})
	ask(s, "shop_list_orders", `{}`)
	askAs(s, toolkit.Caller{User: "ada"}, "shop_list_orders", `{}`)
	askAs(s, toolkit.Caller{}, "shop_list_orders", `{}`)
	// Output:
	// all orders
	// the orders of ada
	// Say who you are, and your orders are listed.
}

func ExampleTool_requires() {
	s := newShop()
	t := find("shop_cancel_order")
	t.Requires = []string{"orders:write"}
	toolkit.Add(s, t, func(context.Context, struct{}) (toolkit.Text, error) { return "cancelled", nil })
	askAs(s, toolkit.Caller{User: "ada", Rights: []string{"orders:*"}}, "shop_cancel_order", `{}`)
	askAs(s, toolkit.Caller{User: "bob", Rights: []string{"orders:read"}}, "shop_cancel_order", `{}`)
	// Output:
	// cancelled
	// shop_cancel_order needs the right "orders:write", which bob does not have. Whoever runs this server can grant it.
}

func ExampleAPIKeys() {
	text, key, err := toolkit.NewAPIKey("ada", "orders:read", "orders:write")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(text), text[:4]) // hand it to Ada; store the rest
	s := toolkit.NewServer(toolkit.Options{Service: "shop", HTTP: toolkit.HTTP{
		APIKeys: toolkit.KeyList{key}, // or OpenKeys("keys.jsonl"), or a database
	}})
	fmt.Println(s.Validate())
	// Output:
	// 77 dgm_
	// <nil>
}

func ExampleMiddleware() {
	s := toolkit.NewServer(toolkit.Options{
		Service:  "shop",
		UserRate: toolkit.Rate{PerSecond: 2, Burst: 10}, // of any one user
		Around: []toolkit.Middleware{func(ctx context.Context, r *toolkit.Request, next func(context.Context) error) error {
			if r.Kind == "tool" && time.Now().Year() < 2000 {
				return toolkit.Refuse("The shop is not open yet.")
			}
			err := next(ctx)
			fmt.Println(r.Name, r.Caller, string(r.Arguments), err)
			return err
		}},
	})
	t := find("shop_get_stock")
	t.Examples[0].Arguments = `{"book":"Emma"}`
	toolkit.Add(s, t, func(_ context.Context, q Stock) (toolkit.Text, error) { return "3", nil })
	ask(s, "shop_get_stock", `{"book":"Emma"}`)
	// Output:
	// shop_get_stock the owner {"book":"Emma"} <nil>
	// 3
}

func ExampleServer_Include() {
	bills := toolkit.NewServer(toolkit.Options{Service: "bills"})
	toolkit.Add(bills, find("bills_list_open"), func(context.Context, struct{}) (toolkit.Text, error) { return "none", nil })

	office := toolkit.NewServer(toolkit.Options{Name: "office-mcp-server"})
	office.Include(bills)
	ask(office, "bills_list_open", `{}`)
	// Output: none
}

func ExampleFlags() {
	mainFunction := func() {
		file := flag.String("db", "shop.db", "`file` of the shop")
		line := toolkit.Flags(flag.CommandLine)
		flag.Parse()

		db := openShop(*file)
		defer db.Close() // runs, since Main returns

		s := newShop()
		s.OnStop(db.Flush) // before that, when all calls have ended
		line.Main(s)
	}
	_ = mainFunction
}

func ExampleOAuth_jwt() {
	oauth := &toolkit.OAuth{Resource: "https://shop.example/mcp", Issuers: []string{"https://login.example"}, Scopes: []string{"shop"}}
	oauth.Verify = jwt.Verifier(jwt.Options{Resource: oauth.Resource, Issuers: oauth.Issuers})
	s := toolkit.NewServer(toolkit.Options{Service: "shop", HTTP: toolkit.HTTP{OAuth: oauth}})
	fmt.Println(s.Validate())
	// Output: <nil>
}

func Example_openAPI() {
	doc, err := openapi.Load([]byte(`{
		"openapi": "3.1.0", "info": {"title": "Shop", "version": "1"},
		"paths": {"/books/{isbn}": {"get": {
			"operationId": "getBook", "summary": "Looks up a book.",
			"parameters": [{"name": "isbn", "in": "path", "required": true, "schema": {"type": "string"}}],
			"responses": {"200": {"description": "the book"}}
		}}}
	}`))
	if err != nil {
		log.Fatal(err)
	}
	s := newShop()
	skipped, err := doc.Add(s, openapi.Options{
		BaseURL:   "http://127.0.0.1:1", // where nobody answers
		Authorize: openapi.Bearer(apiKey),
		Configure: func(o openapi.Operation, t *toolkit.Tool) { t.Requires = []string{"books:read"} },
	})
	fmt.Println(len(skipped), err)
	ask(s, "shop_get_book", `{"isbn":"978-1-03"}`)
	// Output:
	// 0 <nil>
	// The service gave no answer.
}

// openShop opens a database that is not there.
func openShop(string) database { return database{} }

type database struct{}

func (database) Close() error                { return nil }
func (database) Flush(context.Context) error { return nil }
