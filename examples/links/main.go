// Links is an MCP server that looks at web pages for a model: whether they are
// there, what their title is, where they lead. It shows how to reach addresses
// that a model chose without reaching one's own network, limits on time and
// rate, progress, and a key from the environment.
//
//	LINKS_CONTACT=ada@example.com go run ./examples/links
package main

import (
	"context"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman/toolkit"
)

const maxPage = 512 << 10 // bytes that are read of a page

// contact is no secret, but sites want to know who asks, so it must be there.
var contact = &toolkit.Key{Env: "LINKS_CONTACT", Hint: "an address under which sites can reach you, sent as From"}

func main() {
	toolkit.Main(newServer(toolkit.PublicClient(10*time.Second), toolkit.PublicURL))
}

type (
	pages struct {
		URLs []string `json:"urls" desc:"Addresses of pages" min:"1" max:"20" unique:"true" format:"uri"`
	}
	verdict struct {
		URL    string `json:"url" md:"name"`
		Status int    `json:"status,omitempty" desc:"HTTP status; absent if there was no answer"`
		Title  string `json:"title,omitempty"`
		Final  string `json:"final,omitempty" desc:"Where redirects led, if they did"`
		Error  string `json:"error,omitempty"`
	}
	verdicts struct {
		Checked int       `json:"checked"`
		Broken  int       `json:"broken" desc:"Pages without an answer, or with a status of 400 and more"`
		Pages   []verdict `json:"pages"`
	}
)

func (v verdicts) Summary() string {
	return fmt.Sprintf("%d of %d pages are broken. Each page is listed in structuredContent.", v.Broken, v.Checked)
}

// newServer takes its client and its check of addresses from outside, for tests.
func newServer(client *http.Client, admit func(field, address string) (*url.URL, error)) *toolkit.Server {
	s := toolkit.NewServer(toolkit.Options{
		Service: "links", Title: "Links", Version: "1.0.0", Keys: []*toolkit.Key{contact}, Timeout: time.Minute,
	})
	toolkit.Add(s, toolkit.Tool{
		Name: "links_check_pages", Title: "Check pages",
		Description: "Fetches up to 20 web pages and tells of each the status, the title and where it leads. Only public addresses are reached.",
		Hints:       toolkit.Hints{ReadOnly: toolkit.Yes, Destructive: toolkit.No, Idempotent: toolkit.Yes, OpenWorld: toolkit.Yes},
		Examples:    []toolkit.Example{{Ask: "Is example.com up?", Arguments: `{"urls":["https://example.com/"]}`}},
		Rate:        toolkit.Rate{PerSecond: 1, Burst: 5},
	}, func(ctx context.Context, p pages) (verdicts, error) {
		var out verdicts
		for i, address := range p.URLs {
			u, err := admit(fmt.Sprintf("urls.%d", i), address)
			if err != nil {
				return verdicts{}, err
			}
			v := look(ctx, client, u.String())
			if ctx.Err() != nil {
				return verdicts{}, ctx.Err()
			}
			v.URL = address
			out.Pages = append(out.Pages, v)
			out.Checked++
			if v.Error != "" || v.Status >= 400 {
				out.Broken++
			}
			toolkit.Progress(ctx, float64(i+1), float64(len(p.URLs)), address)
		}
		return out, nil
	})
	return s
}

var title = regexp.MustCompile(`(?is)<title[^>]*>(.*?)</title>`)

// look fetches one page. What goes wrong with it is part of the verdict.
func look(ctx context.Context, client *http.Client, address string) verdict {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return verdict{Error: "the address cannot be asked for"}
	}
	req.Header.Set("From", contact.Value())
	res, err := client.Do(req)
	if err != nil {
		// The error may name addresses of the inside; the model needs none of them.
		if timeout, ok := errors.AsType[interface {
			error
			Timeout() bool
		}](err); ok && timeout.Timeout() {
			return verdict{Error: "no answer in time"}
		}
		return verdict{Error: "cannot be reached"}
	}
	defer res.Body.Close()
	v := verdict{Status: res.StatusCode}
	if final := res.Request.URL.String(); final != address {
		v.Final = final
	}
	body, err := toolkit.ReadAll(res.Body, maxPage)
	if err != nil {
		v.Error = "the page is too long, or broke off"
		return v
	}
	if m := title.FindSubmatch(body); m != nil {
		v.Title = strings.ToValidUTF8(strings.Join(strings.Fields(html.UnescapeString(string(m[1]))), " "), "?")
	}
	return v
}
