package toolkit_test

import (
	"context"
	"crypto/subtle"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dragoman-mcp/dragoman/toolkit"
)

func ExampleRate() {
	s := newShop()
	t := find("shop_get_price")
	t.Rate = toolkit.Rate{PerSecond: 0.1, Burst: 1}
	toolkit.Add(s, t, func(context.Context, struct{}) (toolkit.Text, error) { return "€ 12", nil })
	ask(s, "shop_get_price", `{}`)
	ask(s, "shop_get_price", `{}`)
	// Output:
	// € 12
	// Too many calls. Try again in 10 seconds.
}

func ExampleTool_timeout() {
	s := newShop()
	t := find("shop_get_report")
	t.Timeout = 10 * time.Millisecond
	toolkit.Add(s, t, func(ctx context.Context, _ struct{}) (toolkit.Text, error) {
		<-ctx.Done() // a database that takes too long
		return "", ctx.Err()
	})
	ask(s, "shop_get_report", `{}`)
	// Output: shop_get_report did not finish within 1 second. Ask for less, or try again later.
}

func ExampleProgress() {
	s := newShop()
	toolkit.Add(s, find("shop_count_stock"), func(ctx context.Context, _ struct{}) (toolkit.Text, error) {
		for i, b := range books {
			if err := ctx.Err(); err != nil { // the caller has cancelled
				return "", err
			}
			toolkit.Progress(ctx, float64(i+1), float64(len(books)), b)
		}
		return toolkit.Text(fmt.Sprintf("%d books", len(books))), nil
	})
	ask(s, "shop_count_stock", `{}`)
	// Output: 5 books
}

func ExampleAsk() {
	s := newShop()
	t := find("shop_clear_basket")
	t.Hints = toolkit.Hints{ReadOnly: toolkit.No, Destructive: toolkit.Yes, Idempotent: toolkit.Yes, OpenWorld: toolkit.No}
	toolkit.Add(s, t, func(ctx context.Context, _ struct{}) (toolkit.Text, error) {
		answer, err := toolkit.Ask[struct {
			Clear bool `json:"clear" title:"Take all of them out?"`
		}](ctx, "There are 14 books in the basket.")
		if err != nil {
			return "", err
		}
		if !answer.Clear {
			return "The basket stays as it is.", nil
		}
		return "The basket is empty.", nil
	})
	person := func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		fmt.Println(r.Params.Message)
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"clear": true}}, nil
	}
	ctx := context.Background()
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		r, w := s.Pipe(ctx)
		client := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, &mcp.ClientOptions{ElicitationHandler: person})
		session, err := client.Connect(ctx, &mcp.IOTransport{Reader: r, Writer: w}, &mcp.ClientSessionOptions{ProtocolVersion: version})
		if err != nil {
			log.Fatal(err)
		}
		result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "shop_clear_basket"})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(result.Content[0].(*mcp.TextContent).Text)
		session.Close()
	}
	ask(s, "shop_clear_basket", `{}`) // a client that shows no forms
	// Output:
	// There are 14 books in the basket.
	// The basket is empty.
	// There are 14 books in the basket.
	// The basket is empty.
	// This needs an answer of the user, and the client that is used shows no forms (MCP elicitation).
}

func ExampleFolder() {
	dir, err := os.MkdirTemp("", "guide-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	folder, err := toolkit.OpenFolder(dir)
	if err != nil {
		log.Fatal(err)
	}
	defer folder.Close()
	type file struct {
		Path string `json:"path" desc:"File, relative to the folder"`
	}
	s := newShop()
	t := find("shop_read_file")
	t.Examples[0].Arguments = `{"path":"notes/today.txt"}`
	toolkit.Add(s, t, func(_ context.Context, f file) (toolkit.Text, error) {
		data, err := folder.ReadFile(f.Path, 1<<20)
		return toolkit.Text(data), err
	})
	ask(s, "shop_read_file", `{"path":"../../etc/passwd"}`)
	// Output: "../../etc/passwd" is not a path inside the folder; give one relative to it, such as notes/today.txt.
}

func ExamplePublicClient() {
	client := toolkit.PublicClient(10 * time.Second)
	type page struct {
		URL string `json:"url" format:"uri"`
	}
	s := newShop()
	t := find("shop_fetch_page")
	t.Examples[0].Arguments = `{"url":"https://example.com/"}`
	toolkit.Add(s, t, func(ctx context.Context, p page) (toolkit.Text, error) {
		u, err := toolkit.PublicURL("url", p.URL)
		if err != nil {
			return "", err
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
		if err != nil {
			return "", err
		}
		res, err := client.Do(req)
		if err != nil {
			return "", toolkit.Refuse("%s cannot be reached.", u.Host)
		}
		defer res.Body.Close()
		body, err := toolkit.ReadAll(res.Body, 1<<20)
		return toolkit.Text(body), err
	})
	ask(s, "shop_fetch_page", `{"url":"http://169.254.169.254/latest/meta-data"}`)
	// Output: Invalid arguments for shop_fetch_page: url: "169.254.169.254" is not a public address.
}

func ExamplePlainArgument() {
	type query struct {
		Branch string `json:"branch"`
	}
	s := newShop()
	t := find("shop_log_branch")
	t.Examples[0].Arguments = `{"branch":"main"}`
	toolkit.Add(s, t, func(ctx context.Context, q query) (toolkit.Text, error) {
		if err := toolkit.PlainArgument("branch", q.Branch); err != nil {
			return "", err
		}
		out, err := exec.CommandContext(ctx, "git", "log", "--oneline", "-5", q.Branch, "--").Output()
		return toolkit.Text(out), err
	})
	ask(s, "shop_log_branch", `{"branch":"--output=/etc/cron.d/x"}`)
	// Output: Invalid arguments for shop_log_branch: branch: "--output=/etc/cron.d/x" must not begin with a dash.
}

var apiKey = &toolkit.Key{Env: "SHOP_API_KEY", Hint: "create one at https://shop.example/keys"}

func ExampleKey() {
	s := toolkit.NewServer(toolkit.Options{Service: "shop", Keys: []*toolkit.Key{apiKey}})
	fmt.Println(s.Validate())
	// Output:
	// shop-mcp-server cannot start:
	//   environment variable SHOP_API_KEY is not set: create one at https://shop.example/keys
}

// read prints one resource.
func read(s *toolkit.Server, uri string) {
	ctx := context.Background()
	session, err := s.Client(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	res, err := session.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
	if err != nil {
		fmt.Println("not found")
		return
	}
	fmt.Println(res.Contents[0].Text)
}

func ExampleAddResource() {
	s := newShop()
	toolkit.AddResource(s, toolkit.Resource{URI: "shop://hours", Name: "hours", Description: "When the shop is open."},
		func(context.Context) (toolkit.Contents, error) { return toolkit.Contents{Text: "9 to 5"}, nil })
	read(s, "shop://hours")
	// Output: 9 to 5
}

func ExampleAddTemplate() {
	s := newShop()
	type shelf struct {
		Shelf string `json:"shelf" enum:"novels,poems"`
		Place int    `json:"place" min:"1"`
	}
	toolkit.AddTemplate(s, toolkit.Resource{URI: "shop://shelves/{shelf}/{place}", Name: "book"},
		func(_ context.Context, v shelf) (toolkit.Contents, error) {
			if v.Place > len(books) {
				return toolkit.Contents{}, toolkit.NotFound("The shelf ends before.")
			}
			return toolkit.Contents{Text: books[v.Place-1]}, nil
		})
	read(s, "shop://shelves/novels/2")
	read(s, "shop://shelves/novels/0")
	// Output:
	// Dune
	// not found
}

func ExampleContents() {
	s := newShop()
	toolkit.AddResource(s, toolkit.Resource{URI: "shop://log", Name: "log", MIMEType: "text/plain", MaxBytes: 64 << 10},
		func(context.Context) (toolkit.Contents, error) {
			f, err := os.Open(filepath.Join("testdata", "log.txt"))
			return toolkit.Contents{From: f}, err // read up to MaxBytes, then closed
		})
	read(s, "shop://log")
	// Output: opened at nine
}

// prompt prints what a prompt becomes.
func prompt(s *toolkit.Server, name string, arguments map[string]string) {
	ctx := context.Background()
	session, err := s.Client(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	res, err := session.GetPrompt(ctx, &mcp.GetPromptParams{Name: name, Arguments: arguments})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, m := range res.Messages {
		fmt.Printf("%s: %s\n", m.Role, m.Content.(*mcp.TextContent).Text)
	}
}

func ExampleAddPrompt() {
	s := newShop()
	toolkit.AddPrompt(s, toolkit.Prompt{Name: "review_stock", Description: "Goes through the stock."},
		func(context.Context, struct{}) (toolkit.Messages, error) {
			return toolkit.Messages{toolkit.User("Look through the stock with shop_list_books and say what to order.")}, nil
		})
	prompt(s, "review_stock", nil)
	// Output: user: Look through the stock with shop_list_books and say what to order.
}

func ExampleAddPrompt_arguments() {
	s := newShop()
	type wish struct {
		Genre string `json:"genre" desc:"What to read"`
		Count int    `json:"count" default:"3" max:"9"`
	}
	toolkit.AddPrompt(s, toolkit.Prompt{Name: "suggest_books", Description: "Suggests what to read."},
		func(_ context.Context, w wish) (toolkit.Messages, error) {
			return toolkit.Messages{toolkit.User(fmt.Sprintf("Suggest %d books: %s.", w.Count, w.Genre))}, nil
		})
	prompt(s, "suggest_books", map[string]string{"genre": "poems"})
	// Output: user: Suggest 3 books: poems.
}

func ExamplePrompt_complete() {
	s := newShop()
	type wish struct {
		Title string `json:"title"`
	}
	toolkit.AddPrompt(s, toolkit.Prompt{
		Name: "discuss_book", Description: "Talks about a book.",
		Complete: map[string]toolkit.Completer{"title": toolkit.Choices(books...)},
	}, func(_ context.Context, w wish) (toolkit.Messages, error) {
		return toolkit.Messages{toolkit.User("Let us talk about " + w.Title + "."), toolkit.Assistant("Have you finished it?")}, nil
	})
	prompt(s, "discuss_book", map[string]string{"title": "Emma"})
	// Output:
	// user: Let us talk about Emma.
	// assistant: Have you finished it?
}

func ExampleServer_Routes() {
	s := toolkit.NewServer(toolkit.Options{Service: "shop", HTTP: toolkit.HTTP{
		Hosts: []string{"shop.example"},
		Token: "from-a-secret-store",
	}})
	routes, err := s.Routes()
	if err != nil {
		log.Fatal(err)
	}
	http.Handle("shop.example/", routes) // beside whatever else the program serves
	// Output:
}

func ExampleOAuth() {
	verify := func(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
		// A real one checks signature, issuer, expiry, and that the audience is us.
		if subtle.ConstantTimeCompare([]byte(token), []byte("opaque")) == 0 {
			return nil, auth.ErrInvalidToken
		}
		return &auth.TokenInfo{UserID: "ada", Scopes: []string{"shop"}, Expiration: time.Now().Add(time.Hour)}, nil
	}
	s := toolkit.NewServer(toolkit.Options{Service: "shop", HTTP: toolkit.HTTP{OAuth: &toolkit.OAuth{
		Resource: "https://shop.example/mcp", Issuers: []string{"https://login.example"}, Scopes: []string{"shop"}, Verify: verify,
	}}})
	fmt.Println(s.Validate())
	// Output: <nil>
}

func ExampleServer_Pipe() {
	s := newShop()
	r, w := s.Pipe(context.Background()) // the wire of standard input and output, in this process
	fmt.Fprintln(w, `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	w.Close()
	answer, err := io.ReadAll(r)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(string(answer))
	// Output: {"jsonrpc":"2.0","id":1,"result":{}}
}
