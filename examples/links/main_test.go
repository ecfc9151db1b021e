package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dragoman-mcp/dragoman/toolkit"
)

func check(t *testing.T, s *toolkit.Server, urls ...string) *mcp.CallToolResult {
	t.Helper()
	t.Setenv("LINKS_CONTACT", "ada@example.com")
	session, err := s.Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "links_check_pages", Arguments: map[string]any{"urls": urls}})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestLinks(t *testing.T) {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/old":
			http.Redirect(w, r, "/new", http.StatusFound)
		case "/new":
			w.Write([]byte("<title>New &amp;\n shiny</title> for " + r.Header.Get("From")))
		default:
			http.NotFound(w, r)
		}
	}))
	defer site.Close()
	s := newServer(site.Client(), func(_, address string) (*url.URL, error) { return url.Parse(address) })
	defer s.Close()
	res := check(t, s, site.URL+"/old", site.URL+"/gone", "http://127.0.0.1:1/")
	var got verdicts
	if err := json.Unmarshal([]byte(res.Content[1].(*mcp.TextContent).Text), &got); err != nil {
		t.Fatal(err)
	}
	if got.Checked != 3 || got.Broken != 2 || got.Pages[0].Title != "New & shiny" || got.Pages[0].Final != site.URL+"/new" ||
		got.Pages[1].Status != 404 || got.Pages[2].Error != "cannot be reached" {
		t.Errorf("got %+v", got)
	}
	if text := res.Content[0].(*mcp.TextContent).Text; !strings.HasPrefix(text, "2 of 3 pages are broken.") {
		t.Errorf("summary %s", text)
	}
}

func TestPrivateAddresses(t *testing.T) {
	s := newServer(toolkit.PublicClient(time.Second), toolkit.PublicURL)
	defer s.Close()
	res := check(t, s, "http://169.254.169.254/latest/meta-data")
	if text := res.Content[0].(*mcp.TextContent).Text; !res.IsError || !strings.Contains(text, `urls.0: "169.254.169.254" is not a public address.`) {
		t.Errorf("got %s", text)
	}
}

func TestContactIsNeeded(t *testing.T) {
	t.Setenv("LINKS_CONTACT", "")
	s := newServer(nil, nil)
	defer s.Close()
	if err := s.Validate(); err == nil || !strings.Contains(err.Error(), "environment variable LINKS_CONTACT is not set: an address") {
		t.Errorf("got %v", err)
	}
}
