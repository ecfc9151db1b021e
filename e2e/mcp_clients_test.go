package e2e

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
)

// clientFacts are what came of what a client did at the MCP endpoint. Maps are by
// the server behind, which is of the legacy or of the modern era.
type clientFacts struct {
	Tools, Prompts  []string
	Server, Unknown string
	Echo, Asked     map[string]string
	Cancelled       map[string]string
	Progress        map[string][]float64
	Prompt          string
	Resources       int
	Resource        bool
}

// judge judges what came of it. Not every client can do everything.
func (f *clientFacts) judge(t *testing.T) {
	t.Helper()
	for _, want := range []string{"everything__echo", "legacy__echo", "modern__echo", "read_more"} {
		if !slices.Contains(f.Tools, want) {
			t.Errorf("%s is not among %d tools", want, len(f.Tools))
		}
	}
	if f.Server != "dragoman" || !strings.Contains(f.Unknown, "nobody") {
		t.Errorf("the server is %q, and an unknown tool %q", f.Server, f.Unknown)
	}
	for _, behind := range []string{"legacy", "modern"} {
		if !strings.Contains(f.Echo[behind], `"hi"`) {
			t.Errorf("%s: the call came to %q", behind, f.Echo[behind])
		}
		if asked, can := f.Asked[behind]; can && !strings.Contains(asked, "accept") {
			t.Errorf("%s: the question came to %q", behind, asked)
		}
		if progress, can := f.Progress[behind]; can && (len(progress) == 0 || !slices.IsSorted(progress)) {
			t.Errorf("%s: progress %v", behind, progress)
		}
		if how, can := f.Cancelled[behind]; can && how != "given up" {
			t.Errorf("%s: a call that was given up was %s", behind, how)
		}
	}
	if f.Prompts != nil && (!slices.Contains(f.Prompts, "everything__args-prompt") || !strings.Contains(f.Prompt, "Paris")) {
		t.Errorf("prompts %s, and one came to %q", f.Prompts, f.Prompt)
	}
	if f.Resources == 0 || !f.Resource {
		t.Errorf("%d resources; read: %t", f.Resources, f.Resource)
	}
}

// clientsGateway is a gateway for MCP clients, with a server of each era and a
// published one behind.
func clientsGateway(t *testing.T) (g *gateway, legacy, modern *fakemcp.Server) {
	all, legacy, modern := clientsServers(t)
	return start(t, nil, all).ready(), legacy, modern
}

// clientsServers are a server of each era and a published one.
func clientsServers(t *testing.T) (all servers, legacy, modern *fakemcp.Server) {
	question := json.RawMessage(`{"message":"The answer?","requestedSchema":{"type":"object","properties":{"answer":{"type":"string"}}}}`)
	tools := []fakemcp.Tool{
		{Name: "echo"}, {Name: "steps", Do: fakemcp.Progress}, {Name: "ask", Do: fakemcp.Ask, Question: question}, {Name: "slow", Delay: time.Hour},
	}
	all = servers{"everything": stdio(t, "@modelcontextprotocol/server-everything", "stdio")}
	all["legacy"], legacy = remote(t, fakemcp.Config{Era: fakemcp.LegacyOnly, Tools: tools})
	all["modern"], modern = remote(t, fakemcp.Config{Era: fakemcp.ModernOnly, Tools: tools})
	for _, entry := range all {
		entry["max_in_flight"] = 64
	}
	return all, legacy, modern
}

// TestMCPClients lets clients that others wrote use the MCP endpoint, all of them
// at once, with servers of both eras behind: list, call, progress, questions,
// cancellation, an error, prompts and resources.
func TestMCPClients(t *testing.T) {
	g, legacy, modern := clientsGateway(t)
	useClients(t, g, g.Root, []string{"legacy", "auto", "modern", "sse", "remote", "ai", "agents"}, legacy, modern)
}

// useClients lets clients use the MCP endpoint at an address.
func useClients(t *testing.T, g *gateway, root string, scripts []string, legacy, modern *fakemcp.Server) {
	t.Helper()
	versions := []string{"2025-11-25", "2026-07-28"}
	t.Run("clients", func(t *testing.T) {
		for _, scenario := range scripts {
			t.Run(scenario, func(t *testing.T) {
				t.Parallel()
				program, path := node(t, filepath.Join("clients", "mcp.mjs"))
				var got clientFacts
				out := output(t, []string{"DRAGOMAN_BASE_URL=" + root + "/v1"}, program, path, scenario)
				if err := json.Unmarshal(out, &got); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				got.judge(t)
			})
		}
		for _, version := range versions {
			t.Run("official Go SDK, "+version, func(t *testing.T) {
				t.Parallel()
				goClient(t, root+"/mcp", version).judge(t)
			})
		}
		for _, era := range []string{"legacy", "auto", "modern"} {
			t.Run("Inspector, "+era, func(t *testing.T) {
				t.Parallel()
				inspect(t, root+"/mcp", era)
			})
		}
	})
	// Each of them gave up one call of each server, which must have been told where the
	// call had got there: a client on a slow machine may give up before.
	g.until("telling the servers of the calls that were given up", func() bool {
		return legacy.Count("notifications/cancelled") >= legacy.Executions("slow") && modern.Count(fakemcp.Disconnected) >= modern.Executions("slow")
	})
	if given := len(scripts) + len(versions); legacy.Executions("slow") == 0 || modern.Executions("slow") == 0 {
		t.Errorf("of %d calls each that were given up none was made", given)
	}
}

// goClient does with the official Go SDK what the scripts do.
func goClient(t *testing.T, url, version string) *clientFacts {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	f := &clientFacts{Echo: map[string]string{}, Asked: map[string]string{}, Cancelled: map[string]string{}, Progress: map[string][]float64{}}
	now := ""
	client := sdk.NewClient(&sdk.Implementation{Name: "e2e", Version: "1"}, &sdk.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
			f.Progress[now] = append(f.Progress[now], r.Params.Progress)
		},
		ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"answer": "forty-two"}}, nil
		},
	})
	s, err := client.Connect(ctx, &sdk.StreamableClientTransport{Endpoint: url}, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got := s.InitializeResult(); got != nil && got.ServerInfo != nil {
		f.Server = got.ServerInfo.Name
	}
	for tool, err := range s.Tools(ctx, nil) {
		if err != nil {
			t.Fatal(err)
		}
		f.Tools = append(f.Tools, tool.Name)
	}
	call := func(name string, params *sdk.CallToolParams) string {
		params.Name = name
		res, err := s.CallTool(ctx, params)
		if err != nil {
			t.Fatalf("calling %s: %v", name, err)
		}
		var all strings.Builder
		for _, c := range res.Content {
			if text, ok := c.(*sdk.TextContent); ok {
				all.WriteString(text.Text)
			}
		}
		return all.String()
	}
	for _, behind := range []string{"legacy", "modern"} {
		f.Echo[behind] = call(behind+"__echo", &sdk.CallToolParams{Arguments: map[string]any{"message": "hi"}})
		f.Asked[behind] = call(behind+"__ask", &sdk.CallToolParams{})
		now = behind
		steps := &sdk.CallToolParams{}
		steps.SetProgressToken("steps of " + behind)
		call(behind+"__steps", steps)
		short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
		f.Cancelled[behind] = "answered"
		if _, err := s.CallTool(short, &sdk.CallToolParams{Name: behind + "__slow"}); err != nil {
			f.Cancelled[behind] = "given up"
		}
		cancel()
	}
	if _, err := s.CallTool(ctx, &sdk.CallToolParams{Name: "nobody"}); err != nil {
		f.Unknown = err.Error()
	}
	f.goEntries(ctx, t, s)
	return f
}

func (f *clientFacts) goEntries(ctx context.Context, t *testing.T, s *sdk.ClientSession) {
	t.Helper()
	for prompt, err := range s.Prompts(ctx, nil) {
		if err != nil {
			t.Fatal(err)
		}
		f.Prompts = append(f.Prompts, prompt.Name)
	}
	prompt, err := s.GetPrompt(ctx, &sdk.GetPromptParams{Name: "everything__args-prompt", Arguments: map[string]string{"city": "Paris"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range prompt.Messages {
		if text, ok := m.Content.(*sdk.TextContent); ok {
			f.Prompt += text.Text
		}
	}
	list, err := s.ListResources(ctx, nil)
	if err != nil || len(list.Resources) == 0 {
		t.Fatalf("no resources: %v", err)
	}
	f.Resources = len(list.Resources)
	read, err := s.ReadResource(ctx, &sdk.ReadResourceParams{URI: list.Resources[0].URI})
	if err != nil {
		t.Fatal(err)
	}
	f.Resource = len(read.Contents) > 0 && read.Contents[0].URI == list.Resources[0].URI
}

// inspect does with the Inspector's command what it can do. Each of its commands is
// a client of its own.
func inspect(t *testing.T, url, era string) {
	program, script := node(t, filepath.Join("node_modules", "@modelcontextprotocol", "inspector", "clients", "launcher", "build", "index.js"))
	run := func(args ...string) string {
		t.Helper()
		return string(output(t, nil, program, append([]string{script, "--cli", url, "--transport", "http", "--protocol-era", era, "--format", "json", "-q", "--method"}, args...)...))
	}
	type command struct {
		args []string
		want string
	}
	further := map[string]command{ // in one era each: every command takes a second
		"legacy": {[]string{"tools/list"}, `"modern__echo"`},
		"auto":   {[]string{"resources/list"}, `"uri"`},
		"modern": {[]string{"prompts/get", "--prompt-name", "everything__args-prompt", "--prompt-args", "city=Paris"}, "Paris"},
	}
	for _, c := range []command{{[]string{"tools/call", "--tool-name", "legacy__echo", "--tool-arg", "message=hi"}, `hi`}, further[era]} {
		if got := run(c.args...); !strings.Contains(got, c.want) {
			t.Errorf("%s: %.500s", c.args, got)
		}
	}
}
