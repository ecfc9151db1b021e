package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/gateway"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/reach/servers"
	"github.com/dragoman-mcp/dragoman/internal/session"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// charts is a server with a view: a tool that has one, tools for the view alone, and
// the view's page. Others are the same about something else.
type charts struct{ about string }

const (
	chartMeta = `{"ui":{"resourceUri":"ui://charts/view.html","visibility":["model","app"]},"vendor/n":9007199254740993}`
	chartPage = `{"uri":"ui://charts/view.html","mimeType":"text/html;profile=mcp-app","text":"<!doctype html><title>Chart</title><script type=\"module\">` + chartScript + `</script>",` +
		`"_meta":{"ui":{"csp":{"connectDomains":["https://example.com"]},"prefersBorder":true}}}`
	// The view knows its server's tools by the names that the server gave them.
	chartScript = `const app = new App({ name: 'chart', version: '1' }, {}, { autoResize: false });` +
		` await app.connect(transport);` +
		` done(await app.callServerTool({ name: 'refresh_chart', arguments: {} }), await app.callServerTool({ name: 'close_view', arguments: {} }).catch(String));`
	chartTools = `[{"name":"show_chart","description":"Shows a chart.","inputSchema":{"type":"object","properties":{"year":{"type":"integer"}}},` +
		`"outputSchema":{"type":"object","properties":{"points":{"type":"array"}}},"_meta":` + chartMeta + `},` +
		`{"name":"refresh_chart","description":"For the view.","inputSchema":{"type":"object"},"_meta":{"ui":{"resourceUri":"ui://charts/view.html","visibility":["app"]}}},` +
		`{"name":"close_view","description":"For the view.","inputSchema":{"type":"object"},"_meta":{"ui":{"visibility":["app"]}}}]`
	chartResource = `{"uri":"ui://charts/view.html","name":"Chart","mimeType":"text/html;profile=mcp-app","_meta":{"ui":{"prefersBorder":true}}}`
	chartResult   = `{"content":[{"type":"text","text":"{\"points\":[1,2]}"}],"structuredContent":{"points":[1,2]},"_meta":{"ui":{"title":"2026"},"vendor/view":"of chart"}}`
)

func (charts) Owner() string { return "" }

func (charts) Describe(context.Context) mcp.Description {
	return mcp.Description{
		Info:         json.RawMessage(`{"name":"apps","version":"1"}`),
		Capabilities: json.RawMessage(`{"tools":{},"resources":{},"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}}}`),
	}
}

func (c charts) Call(ctx context.Context, call dragoman.Call) (dragoman.Result, error) {
	content := map[string]string{
		"tools/list": `{"tools":` + chartTools + `}`, "resources/list": `{"resources":[` + chartResource + `]}`,
		"resources/templates/list": `{"resourceTemplates":[]}`, "resources/read": `{"contents":[` + chartPage + `]}`, "tools/call": chartResult,
	}[call.Method]
	switch {
	case content != "":
		return dragoman.Result{Content: json.RawMessage(strings.ReplaceAll(content, "chart", c.about))}, nil
	case call.Method == "subscriptions/listen":
		<-ctx.Done()
		return dragoman.Result{}, context.Cause(ctx)
	}
	return dragoman.Result{}, &mcp.RPCError{Code: -32601, Message: "no " + call.Method}
}

// chartsGateway is a gateway with the server behind it in an era.
func chartsGateway(t *testing.T, era string) (front string) {
	t.Helper()
	return appsGateway(t, era, "chart")
}

// appsGateway is a gateway with servers behind it in an era, about these things.
func appsGateway(t *testing.T, era string, things ...string) (front string) {
	t.Helper()
	file := config.Default()
	file.MCPServers = map[string]servers.Config{}
	for _, about := range things {
		behind := &mcp.Server{Host: func(*http.Request) (mcp.Host, error) { return charts{about}, nil }}
		t.Cleanup(behind.Close)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if era == "legacy" && r.Header.Get("Mcp-Method") != "" {
				http.Error(w, "what?", http.StatusBadRequest)
				return
			}
			behind.ServeHTTP(w, r)
		}))
		t.Cleanup(server.Close)
		file.MCPServers[about+"s"] = servers.Config{URL: server.URL}
	}
	file.Sets = map[string]config.Set{"all": {Servers: []string{"charts"}}}
	g, err := gateway.New(file, gateway.Options{Apps: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	if err := g.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := g.Servers()[0].Era; got != era {
		t.Fatalf("the gateway speaks the %s era with the server", got)
	}
	h := httptest.NewServer(g.Handler())
	t.Cleanup(h.Close)
	for range 6000 { // resources are listed after tools
		s, err := g.Open(t.Context(), caller.Local, session.Want{Client: true})
		if err != nil {
			t.Fatal(err)
		}
		if list, err := s.Tools.List(t.Context()); err != nil || len(list.Entries) >= len(things) {
			return h.URL
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("the server's resources were not listed within a minute")
	return ""
}

// TestAppsPass: what belongs to views passes unharmed, byte for byte, in both eras on
// either side and at each of the endpoints.
func TestAppsPass(t *testing.T) {
	for _, behind := range []string{"legacy", "modern"} {
		front := chartsGateway(t, behind)
		for _, era := range []mcp.Era{mcp.Legacy, mcp.Modern} {
			for _, path := range []string{"/mcp", "/mcp/charts", "/mcp/set/all"} {
				t.Run(fmt.Sprintf("%s server, %s client, %s", behind, era, path), func(t *testing.T) {
					c, err := mcp.Connect(t.Context(), &mcp.HTTP{URL: front + path}, &mcp.ClientOptions{Era: era})
					if err != nil {
						t.Fatal(err)
					}
					defer c.Close()
					if err := c.Refresh(t.Context()); err != nil {
						t.Fatal(err)
					}
					appsPass(t, c)
				})
			}
		}
	}
}

func appsPass(t *testing.T, c *mcp.Client) {
	list, err := c.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(c.Capabilities()), `"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}`) {
		t.Errorf("declared is %s", c.Capabilities())
	}
	tool := list.Tools.Find("show_chart")
	if tool == nil {
		tool = list.Tools.Find("charts__show_chart")
	}
	if tool == nil || !strings.Contains(string(tool.Definition), `"_meta":`+chartMeta) {
		t.Fatalf("the tool is %+v", tool)
	}
	listed := false
	for _, e := range list.Entries {
		listed = listed || string(e.Definition) == chartResource
	}
	if !listed {
		t.Errorf("the view is not listed as it is: %+v", list.Entries)
	}
	page, err := c.Call(t.Context(), dragoman.Call{Method: "resources/read", Arguments: json.RawMessage(`{"uri":"ui://charts/view.html"}`)})
	if err != nil || !strings.Contains(string(page.Content), chartPage) {
		t.Errorf("the view is %s, %v %v", page.Content, page.Problem, err)
	}
	res, err := c.Call(t.Context(), dragoman.Call{Tool: tool, Arguments: json.RawMessage(`{"year":2026}`)})
	if err != nil || res.Problem != nil {
		t.Fatalf("%v %v", res.Problem, err)
	}
	for _, part := range []string{`"structuredContent":{"points":[1,2]}`, `"_meta":{"ui":{"title":"2026"},"vendor/view":"of chart"}`, `{"type":"text","text":"{\"points\":[1,2]}"}`} {
		if !strings.Contains(string(res.Content), part) {
			t.Errorf("the result is %s, want %s in it", res.Content, part)
		}
	}
}

// TestAppsJudge lets the official packages judge: a view talks to its host, and the
// host to the gateway.
func TestAppsJudge(t *testing.T) {
	node, _ := programs(t)
	dir := filepath.Dir(filepath.Dir(modules(t, "@modelcontextprotocol", "ext-apps")))
	script, err := filepath.Abs(filepath.Join("testdata", "apps.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	for behind, era := range map[string]string{"legacy": "modern", "modern": "legacy"} { // TestAppsPass has all four
		t.Run(behind+" server, "+era+" client", func(t *testing.T) {
			appsJudge(t, node, script, dir, chartsGateway(t, behind), era)
		})
	}
}

func appsJudge(t *testing.T, node, script, dir, front, era string) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, node, script, dir, front+"/mcp", era)
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	var complaints strings.Builder
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, complaints.String())
	}
	o, err := rawjson.ParseObject(out)
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for name, want := range map[string]string{
		"uri": `"ui://charts/view.html"`, "appOnly": "true", "read": "true", "listed": chartResource,
		"extension": `{"mimeTypes":["text/html;profile=mcp-app"]}`, "contents": "[" + chartPage + "]",
	} {
		if got := string(o.Get(name)); !sameJSON(got, want) {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	for _, name := range []string{"shown", "called"} {
		if got := string(o.Get(name)); !strings.Contains(got, `"structuredContent":{"points":[1,2]}`) {
			t.Errorf("%s is %s", name, got)
		}
	}
}

func sameJSON(a, b string) bool {
	var x, y any
	if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		return false
	}
	xs, _ := json.Marshal(x)
	ys, _ := json.Marshal(y)
	return string(xs) == string(ys)
}

// TestViewsOfTwoServers runs the script of each view's own page, as its server sends it,
// in the official App, which talks to the official AppBridge: at /mcp it calls its tool
// by the name that its server gave it, and gets its own server's; a name that both
// servers' views have is an error that says what to call.
func TestViewsOfTwoServers(t *testing.T) {
	node, _ := programs(t)
	dir := filepath.Dir(filepath.Dir(modules(t, "@modelcontextprotocol", "ext-apps")))
	script, err := filepath.Abs(filepath.Join("testdata", "views.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	for behind, era := range map[string]string{"legacy": "modern", "modern": "legacy"} {
		t.Run(behind+" servers, "+era+" client", func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, node, script, dir, appsGateway(t, behind, "chart", "map")+"/mcp", era)
			cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
			var complaints strings.Builder
			cmd.Stderr = &complaints
			out, err := cmd.Output()
			var seen map[string]struct {
				Called struct {
					Meta json.RawMessage `json:"_meta"`
					SC   json.RawMessage `json:"structuredContent"`
				}
				Both json.RawMessage
			}
			if err != nil || json.Unmarshal(out, &seen) != nil || len(seen) != 2 {
				t.Fatalf("%v\n%s\n%s", err, out, complaints.String())
			}
			for about, view := range seen {
				if !strings.Contains(string(view.Called.Meta), `"of `+about+`"`) {
					t.Errorf("the view of %s got %s %s", about, view.Called.Meta, view.Called.SC)
				}
				if !strings.Contains(string(view.Both), "call charts__close_view or maps__close_view") {
					t.Errorf("what both have: %s", view.Both)
				}
			}
		})
	}
}
