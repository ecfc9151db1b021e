package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/door"
	"github.com/dragoman-mcp/dragoman/internal/door/console"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/judge/policy"
	"github.com/dragoman-mcp/dragoman/internal/reach/servers"
	"github.com/dragoman-mcp/dragoman/internal/session"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

// envSends makes the program of these tests an MCP server whose tool sends requests.
const envSends = "DRAGOMAN_TEST_SENDS"

// sendingServer is a local MCP server with one tool, which sends a request from the process
// that it is and says what came of it. It never returns.
func sendingServer() {
	type wish struct {
		Method string `json:"method"`
		URL    string `json:"url"`
		Body   string `json:"body"`
		Type   string `json:"type"`
	}
	s := sdk.NewServer(&sdk.Implementation{Name: "sends", Version: "1"}, nil)
	sdk.AddTool(s, &sdk.Tool{Name: "send", Description: "Sends a request."}, func(ctx context.Context, _ *sdk.CallToolRequest, in wish) (*sdk.CallToolResult, any, error) {
		req, err := http.NewRequestWithContext(ctx, in.Method, in.URL, strings.NewReader(in.Body))
		if err != nil {
			return nil, nil, err
		}
		req.Header.Set("Content-Type", in.Type)
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			return nil, nil, err
		}
		defer res.Body.Close()
		_, _ = io.Copy(io.Discard, res.Body)
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: fmt.Sprint("status ", res.StatusCode)}}}, nil, nil
	})
	if err := s.Run(context.Background(), &sdk.StdioTransport{}); err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// TestServersOperateNothing: a server that we run sits on this machine as its person does,
// and shows no key, as nobody is asked for one; on no route of the console and of operators
// is that enough.
func TestServersOperateNothing(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	g := build(t, func(f *config.File) {
		f.Store.Path = filepath.Join(t.TempDir(), "dragoman.db")
		f.Policy = []policy.Rule{{Allow: []string{"*"}}}
		sends := servers.Config{Command: self, Env: map[string]secret.Text{envSends: secret.New("1")}}
		sends.SetDefaults()
		f.MCPServers = map[string]servers.Config{"sends": sends}
	})
	if err := g.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	url := serve(t, g).url
	s, err := g.Open(t.Context(), caller.Local, session.Want{})
	if err != nil {
		t.Fatal(err)
	}
	list, err := s.Tools.List(t.Context())
	if err != nil || list.Tools.Find("send") == nil {
		t.Fatalf("%+v %v", list.Servers, err)
	}
	n := 0
	send := func(method, path string) string {
		n++
		arguments, _ := json.Marshal(map[string]string{"method": method, "url": url + path, "type": "application/x-www-form-urlencoded", "body": "decision=approve&digest=" + strings.Repeat("0", 64) + "&secret=guess&check=1"})
		res, err := s.Call(t.Context(), dragoman.Call{ID: fmt.Sprint(n), Tool: list.Tools.Find("send"), Arguments: arguments}, nil)
		if err != nil || res.Problem != nil {
			t.Fatalf("%s %s: %v %v", method, path, err, res.Problem)
		}
		return string(res.Content)
	}
	if got := send("GET", "/v1/models"); !strings.Contains(got, "status 200") {
		t.Fatalf("the server reaches nobody, so that this test says nothing: %s", got)
	}
	routes := 0
	for _, route := range append(append([]door.Route{}, g.console.Routes()...), g.ops.Routes()...) {
		if route.Who == nil {
			continue // of callers about themselves
		}
		routes++
		method, path, ok := strings.Cut(route.Pattern, " ")
		if !ok {
			method, path = "POST", route.Pattern
		}
		path = strings.NewReplacer("{$}", "", "{id}", "0123456789", "{label}", "sends").Replace(path)
		for _, method := range []string{method, "POST"} {
			if got := send(method, path); !strings.Contains(got, "status 401") && !strings.Contains(got, "status 403") {
				t.Errorf("%s %s: %s", method, path, got)
			}
		}
	}
	if routes < 20 {
		t.Errorf("%d routes were tried", routes)
	}
	if got := send("POST", console.Root+"sign-in"); !strings.Contains(got, "status 401") && !strings.Contains(got, "status 429") {
		t.Errorf("signing in with a guess: %s", got)
	}
}

// TestOperatorsSecret: who has the secret of the console operates a gateway that asks
// nobody for a key, and answers what programs on this machine ask.
func TestOperatorsSecret(t *testing.T) {
	g := build(t, func(f *config.File) {
		f.Store.Path = filepath.Join(t.TempDir(), "dragoman.db")
		f.Policy = []policy.Rule{{Allow: []string{"*"}}, {Name: "records", Ask: []string{"demo__create_record"}}}
	})
	if err := g.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	url := serve(t, g).url
	answered := make(chan string, 1)
	go func() {
		_, body := sent(t, "", "POST", url+"/v1/chat/completions", makesARecord)
		answered <- body
	}()
	secret := g.secret.Key().Secret
	var waiting struct{ Approvals []struct{ ID string } }
	eventually(t, "a question", func() bool {
		status, body := sent(t, secret, "GET", url+"/approvals", "")
		return status == 200 && json.Unmarshal([]byte(body), &waiting) == nil && len(waiting.Approvals) == 1
	})
	for _, no := range []string{"", "x", secret + "x"} {
		if status, _ := sent(t, no, "POST", url+"/approvals/"+waiting.Approvals[0].ID, `{"decision":"approve"}`); status != 401 {
			t.Errorf("without the secret: %d", status)
		}
	}
	if status, body := sent(t, secret, "POST", url+"/approvals/"+waiting.Approvals[0].ID, `{"decision":"approve"}`); status != 200 {
		t.Errorf("with it: %d %s", status, body)
	}
	if body := <-answered; !strings.Contains(body, "done") {
		t.Errorf("the call: %s", body)
	}
	if status, _ := sent(t, secret, "GET", url+"/console/", ""); status != 401 {
		t.Errorf("the console takes a header for a sign-in: %d", status)
	}
}
