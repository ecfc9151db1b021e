package gateway

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/identity/apikey"
	"github.com/dragoman-mcp/dragoman/internal/judge/audit"
	"github.com/dragoman-mcp/dragoman/internal/reach/servers"
	"github.com/dragoman-mcp/dragoman/internal/session"
	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
)

// bearer shows a key with each request.
type bearer struct {
	http.RoundTripper
	key string
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.key)
	return b.RoundTripper.RoundTrip(r)
}

type answering = func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error)

// client connects the official client with a key; answer may be nil.
func (s *gatedGateway) client(key, version string, answer answering) *sdk.ClientSession {
	s.Helper()
	transport := &http.Transport{}
	client := sdk.NewClient(&sdk.Implementation{Name: "olga's", Version: "1"}, &sdk.ClientOptions{ElicitationHandler: answer})
	c, err := client.Connect(s.Context(), &sdk.StreamableClientTransport{Endpoint: s.url + "/mcp", HTTPClient: &http.Client{Transport: bearer{transport, key}}}, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = c.Close(); transport.CloseIdleConnections() })
	return c
}

func offersReview(t *testing.T, c *sdk.ClientSession) bool {
	t.Helper()
	list, err := c.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(list.Tools, func(tool *sdk.Tool) bool { return tool.Name == session.ReviewApprovals })
}

// TestReviewInClient: a call of one caller waits until another, who may approve it,
// has said so in a form of their MCP client. The model at that client decides nothing.
func TestReviewInClient(t *testing.T) {
	for _, version := range []string{"2026-07-28", "2025-11-25", "2025-06-18"} {
		t.Run(version, func(t *testing.T) {
			s := gated(t)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			answered := make(chan string, 1)
			go func() {
				_, body := s.do(s.ann, "POST", "/v1/chat/completions", makesARecord)
				answered <- body
			}()
			eventually(t, "a question", func() bool {
				_, body := s.do(s.olga, "GET", "/approvals", "")
				return strings.Contains(body, `"pending"`)
			})
			for who, c := range map[string]*sdk.ClientSession{"a client without forms": s.client(s.olga, version, nil), "who may approve nothing": s.client(s.bob, version, declines)} {
				if offersReview(t, c) {
					t.Errorf("%s is offered it", who)
				}
				if res, err := c.CallTool(ctx, &sdk.CallToolParams{Name: session.ReviewApprovals}); err == nil && !res.IsError {
					t.Errorf("%s called it: %+v", who, res)
				}
			}
			var shown string
			olga := s.client(s.olga, version, func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
				shown = r.Params.Message
				return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"decision": "approve"}}, nil
			})
			if !offersReview(t, olga) {
				t.Error("who may approve is not offered it")
			}
			if res, err := olga.CallTool(ctx, &sdk.CallToolParams{Name: session.ReviewApprovals, Arguments: map[string]any{"decision": "approve"}}); err == nil && !res.IsError || shown != "" {
				t.Errorf("with a decision in the arguments: %+v, %v; the person was shown %q", res, err, shown)
			}
			res, err := olga.CallTool(ctx, &sdk.CallToolParams{Name: session.ReviewApprovals})
			if err != nil || len(res.Content) != 1 || !strings.HasPrefix(res.Content[0].(*sdk.TextContent).Text, "Approved: 1. Denied: 0. Still waiting: 0.") {
				t.Fatalf("%+v, %v", res, err)
			}
			for _, want := range []string{`"create_record"`, `"ann"`, `"records"`, `{"data":{"name":"Ada"},"table":"people"}`} {
				if !strings.Contains(shown, want) {
					t.Errorf("the person is not shown %s:\n%s", want, shown)
				}
			}
			if body := <-answered; !strings.Contains(body, "done") {
				t.Errorf("the call that waited: %s", body)
			}
			found, err := s.ledger.Audit.Find(ctx, audit.Filter{Tool: "create_record"})
			if err != nil || !slices.ContainsFunc(found, func(r audit.Record) bool {
				return r.Kind == audit.Approval && r.State == "approved" && strings.HasPrefix(r.By, "key-") && r.By != r.Caller
			}) {
				t.Errorf("the audit log does not say who approved: %+v, %v", found, err)
			}
		})
	}
}

// TestReviewIsOurs: where the tools of the only server have no prefix, none of them is what
// who may approve is asked with.
func TestReviewIsOurs(t *testing.T) {
	fake := fakemcp.New(fakemcp.Config{Tools: []fakemcp.Tool{{Name: session.ReviewApprovals}}})
	s := gatedBy(t, func(f *config.File) {
		f.MCPServers = map[string]servers.Config{"theirs": {URL: web(t, fake) + "/mcp"}}
	})
	s.change(func(keys []apikey.Record) ([]apikey.Record, error) {
		for i := range keys {
			keys[i].Rights = append(keys[i].Rights, "tool:*")
		}
		return keys, nil
	})
	c := s.client(s.olga, "2025-11-25", declines)
	list, err := c.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if same := slices.DeleteFunc(list.Tools, func(tool *sdk.Tool) bool { return tool.Name != session.ReviewApprovals }); len(same) != 1 {
		t.Errorf("%d tools have one name", len(same))
	}
	res, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: session.ReviewApprovals})
	if err != nil || len(res.Content) != 1 || !strings.HasPrefix(res.Content[0].(*sdk.TextContent).Text, "Approved: 0.") {
		t.Errorf("%+v, %v", res, err)
	}
	if n := fake.Log.Executions(session.ReviewApprovals); n != 0 {
		t.Errorf("the server was called %d times", n)
	}
}

func declines(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
	return &sdk.ElicitResult{Action: "decline"}, nil
}
