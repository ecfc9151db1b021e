package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dragoman-mcp/dragoman/examples/tickets/tracker"
	"github.com/dragoman-mcp/dragoman/toolkit"
)

func open(t *testing.T) *tracker.Tracker {
	t.Helper()
	db, err := tracker.Open(t.Context(), filepath.Join(t.TempDir(), "tickets.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

type call struct{ tool, arguments, want string }

// calls are a story, told to both servers. Times are left out.
var calls = []call{
	{"search_tickets", `{}`, `{"total":0,"count":0,"offset":0,"items":[],"has_more":false}`},
	{"create_ticket", `{"title":"Printer is on fire","due":"2026-05-01"}`, `{"id":1,"title":"Printer is on fire","status":"open","due":"2026-05-01","author":"owner","created":""}`},
	{"create_ticket", `{"title":"Coffee 100%","body":"none left"}`, `{"id":2,"title":"Coffee 100%","status":"open","author":"owner","created":"","body":"none left"}`},
	{"update_ticket", `{"id":1,"status":"doing"}`, `{"id":1,"title":"Printer is on fire","status":"doing","due":"2026-05-01","author":"owner","created":""}`},
	{"update_ticket", `{"id":1,"due":null}`, `{"id":1,"title":"Printer is on fire","status":"doing","author":"owner","created":""}`},
	{"add_comment", `{"id":2,"text":"On my way."}`, `{"id":2,"title":"Coffee 100%","status":"open","author":"owner","created":"","body":"none left","comments":[{"author":"owner","text":"On my way.","at":""}]}`},
	{"search_tickets", `{"words":"100%"}`, `{"total":1,"count":1,"offset":0,"items":[{"id":2,"title":"Coffee 100%","status":"open","author":"owner","created":""}],"has_more":false}`},
	{"search_tickets", `{"limit":1}`, `{"total":2,"count":1,"offset":0,"items":[{"id":2,"title":"Coffee 100%","status":"open","author":"owner","created":""}],"has_more":true,"next_offset":1}`},
	{"get_ticket", `{"id":7}`, "There is no such ticket. Find its number with tickets_search_tickets."},
	{"create_ticket", `{"title":"x","due":"soon"}`, "due: expected a date such as 2024-01-15"},
	{"create_ticket", `{}`, "title"},
	{"update_ticket", `{"id":1,"status":"lost"}`, "status"},
	{"update_ticket", `{"id":1,"title":null}`, "title"},
	{"delete_ticket", `{"id":1}`, `{"id":1}`},
	{"delete_ticket", `{"id":1}`, "There is no such ticket. Find its number with tickets_search_tickets."},
}

var times = regexp.MustCompile(`"(created|at)":"[^"]*"`)

func tell(t *testing.T, session *mcp.ClientSession) {
	t.Helper()
	for _, c := range calls {
		res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "tickets_" + c.tool, Arguments: json.RawMessage(c.arguments)})
		if err != nil {
			t.Fatalf("%s %s: %v", c.tool, c.arguments, err)
		}
		got := times.ReplaceAllString(res.Content[0].(*mcp.TextContent).Text, `"$1":""`)
		if right := strings.HasPrefix(c.want, "{"); right && sorted(t, got) != sorted(t, c.want) || !right && !strings.Contains(got, c.want) || res.IsError == right {
			t.Errorf("%s %s:\n got %s\nwant %s", c.tool, c.arguments, got, c.want)
		}
	}
}

// sorted has the members of objects in a fixed order: the SDK writes them in
// another one than the toolkit.
func sorted(t *testing.T, text string) string {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return text
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestTickets(t *testing.T) {
	s := newServer(open(t))
	defer s.Close()
	session, err := s.Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	tell(t, session)
	res, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "tickets://2"})
	if err != nil || res.Contents[0].Text != "Coffee 100% (open)\n\nnone left" {
		t.Errorf("resource: %v, %v", res, err)
	}
	// All that is wrong in one round, which the bare server does not do.
	wrong, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "tickets_create_ticket", Arguments: json.RawMessage(`{"title":"","due":"soon","when":1}`)})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"title: expected at least 1 characters", "due: expected a date", "unknown property 'when'"} {
		if got := wrong.Content[0].(*mcp.TextContent).Text; !strings.Contains(got, want) {
			t.Errorf("%q is not in %s", want, got)
		}
	}
}

func TestRights(t *testing.T) {
	s := newServer(open(t))
	defer s.Close()
	for user, want := range map[string][]string{
		"reader": {"tickets_get_ticket", "tickets_search_tickets"},
		"writer": {"tickets_add_comment", "tickets_create_ticket", "tickets_get_ticket", "tickets_search_tickets", "tickets_update_ticket"},
	} {
		rights := []string{read}
		if user == "writer" {
			rights = append(rights, write)
		}
		session, err := s.Client(toolkit.As(context.WithoutCancel(t.Context()), toolkit.Caller{User: user, Rights: rights}))
		if err != nil {
			t.Fatal(err)
		}
		defer session.Close()
		if got := tools(t, session); !slices.Equal(got, want) {
			t.Errorf("%s sees %v, want %v", user, got, want)
		}
	}
}

func tools(t *testing.T, session *mcp.ClientSession) (names []string) {
	t.Helper()
	list, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	slices.Sort(names)
	return names
}

// TestBothServers runs this server and the one on the bare SDK as programs: the
// same story over standard input and output, and the same rights over HTTP.
func TestBothServers(t *testing.T) {
	for _, pkg := range []string{".", "./bare"} {
		t.Run(pkg, func(t *testing.T) {
			dir := t.TempDir()
			program := filepath.Join(dir, "tickets")
			if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, pkg).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			command := exec.CommandContext(t.Context(), program, "--db", filepath.Join(dir, "story.db"))
			client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
			session, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: command}, nil)
			if err != nil {
				t.Fatal(err)
			}
			tell(t, session)
			session.Close()
			overHTTP(t, program, dir)
		})
	}
}

type withKey string

func (k withKey) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(k))
	return http.DefaultTransport.RoundTrip(r)
}

var address = regexp.MustCompile(`http://[^/]+/mcp`)

func overHTTP(t *testing.T, program, dir string) {
	keys := filepath.Join(dir, "keys.jsonl")
	key, err := exec.CommandContext(t.Context(), program, "--keys", keys, "--new-key", "bob", "--rights", "tickets:read").Output()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), program, "--db", filepath.Join(dir, "web.db"), "--keys", keys, "--http", "127.0.0.1:0")
	errs, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	lines, url := bufio.NewScanner(errs), ""
	for url == "" && lines.Scan() {
		url = address.FindString(lines.Text())
	}
	var trail strings.Builder
	drained := make(chan struct{})
	go func() { defer close(drained); io.Copy(&trail, errs) }()
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
		via := &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: withKey(strings.TrimSpace(string(key)))}, DisableStandaloneSSE: true}
		session, err := client.Connect(t.Context(), via, &mcp.ClientSessionOptions{ProtocolVersion: version})
		if err != nil {
			t.Fatal(err)
		}
		if got := tools(t, session); !slices.Equal(got, []string{"tickets_get_ticket", "tickets_search_tickets"}) {
			t.Errorf("%s: bob sees %v", version, got)
		}
		res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "tickets_delete_ticket", Arguments: json.RawMessage(`{"id":1}`)})
		if err != nil || !res.IsError || !strings.Contains(res.Content[0].(*mcp.TextContent).Text, `needs the right "tickets:admin"`) {
			t.Errorf("%s: %v, %v", version, res, err)
		}
		session.Close()
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	if err := command.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	<-drained
	if err := command.Wait(); err != nil {
		t.Errorf("end: %v", err)
	}
	if got := strings.Count(trail.String(), `"outcome":"denied"`); got != 2 || !strings.Contains(trail.String(), `"user":"bob"`) {
		t.Errorf("audit: %s", trail.String())
	}
}

// TestLines holds README.md to what the two servers really take: lines that are
// neither empty nor comments.
func TestLines(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"main.go", "bare/main.go", "tracker/tracker.go"} {
		source, err := os.ReadFile(filepath.FromSlash(name))
		if err != nil {
			t.Fatal(err)
		}
		count := 0
		for line := range strings.Lines(string(source)) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
				count++
			}
		}
		if want := fmt.Sprintf("| `%s` | %d |", name, count); !strings.Contains(string(readme), want) {
			t.Errorf("README.md does not have the line\n%s", want)
		}
	}
}
