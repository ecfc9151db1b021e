package toolkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

type ticket struct {
	ID int `json:"id" min:"1"`
}

// ticketServer tells who asks, in a tool, a resource and a prompt that anybody
// may use and in others that need rights.
func ticketServer(t *testing.T, o Options) *Server {
	s := newServer(t, o)
	who := func(ctx context.Context) string {
		r := RequestFrom(ctx)
		return fmt.Sprintf("%s: %s %s owner=%v", r.Caller, r.Kind, r.Name, r.IsOwner())
	}
	Add(s, Tool{Name: "show_caller", Description: "Shows.", Hints: reading}, func(ctx context.Context, _ struct{}) (Text, error) {
		return Text(who(ctx)), nil
	})
	Add(s, Tool{
		Name: "close_ticket", Description: "Closes.", Hints: Hints{No, Yes, Yes, No}, Requires: []string{"tickets:write"},
		Examples: []Example{{"Close 7", `{"id":7}`}},
	}, func(_ context.Context, in ticket) (Text, error) { return Text(fmt.Sprintf("closed %d", in.ID)), nil })
	AddResource(s, Resource{URI: "tickets://open", Name: "open", Requires: []string{"tickets:read"}}, func(ctx context.Context) (Contents, error) {
		return Contents{Text: who(ctx)}, nil
	})
	AddTemplate(s, Resource{URI: "tickets://{id}", Name: "ticket", Requires: []string{"tickets:read"}}, func(ctx context.Context, v ticket) (Contents, error) {
		return Contents{Text: who(ctx)}, nil
	})
	AddPrompt(s, Prompt{Name: "sum_up", Description: "Sums up.", Requires: []string{"tickets:read"}}, func(ctx context.Context, _ struct{}) (Messages, error) {
		return Messages{User(who(ctx))}, nil
	})
	return s
}

// as connects a caller over a pipe.
func as(t *testing.T, s *Server, c Caller, version string) *sdk.ClientSession {
	t.Helper()
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	r, w := s.Pipe(As(context.WithoutCancel(t.Context()), c))
	return connect(t, &sdk.IOTransport{Reader: r, Writer: w}, version, nil)
}

func names(t *testing.T, session *sdk.ClientSession) (list []string) {
	t.Helper()
	tools, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	prompts, err := session.ListPrompts(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	resources, err := session.ListResources(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	templates, err := session.ListResourceTemplates(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range tools.Tools {
		list = append(list, x.Name)
	}
	for _, x := range prompts.Prompts {
		list = append(list, x.Name)
	}
	for _, x := range resources.Resources {
		list = append(list, x.URI)
	}
	for _, x := range templates.ResourceTemplates {
		list = append(list, x.URITemplate)
	}
	slices.Sort(list)
	return list
}

func TestRights(t *testing.T) {
	all := []string{"close_ticket", "show_caller", "sum_up", "tickets://open", "tickets://{id}"}
	for _, version := range []string{legacy, modern} {
		for _, tt := range []struct {
			name   string
			caller Caller
			sees   []string
			closes string
		}{
			{"owner", Owner(), all, "closed 7"},
			{"everything", Caller{User: "ada", Rights: []string{"*"}}, all, "closed 7"},
			{"pattern", Caller{User: "ada", Rights: []string{"tickets:*"}}, all, "closed 7"},
			{"writer", Caller{User: "ada", Rights: []string{"tickets:write"}}, []string{"close_ticket", "show_caller"}, "closed 7"},
			{"reader", Caller{User: "bob", Rights: []string{"tickets:read"}}, []string{"show_caller", "sum_up", "tickets://open", "tickets://{id}"},
				`close_ticket needs the right "tickets:write", which bob does not have. Whoever runs this server can grant it.`},
			{"scopes are no patterns", Caller{User: "eve", Rights: []string{"tickets:*"}, Token: &auth.TokenInfo{}}, []string{"show_caller"},
				`close_ticket needs the right "tickets:write", which eve does not have. Whoever runs this server can grant it.`},
			{"nobody, with rights that nobody has", Caller{Rights: []string{"*"}}, []string{"show_caller"},
				`close_ticket needs the right "tickets:write", which somebody unknown does not have. Whoever runs this server can grant it.`},
		} {
			t.Run(tt.name+" "+version, func(t *testing.T) {
				var trail sink
				session := as(t, ticketServer(t, Options{Audit: &trail}), tt.caller, version)
				if diff := cmp.Diff(tt.sees, names(t, session)); diff != "" {
					t.Errorf("lists, -want +got:\n%s", diff)
				}
				got := call(t, session, "close_ticket", `{"id":7}`)
				if got.text != tt.closes || got.failed == strings.HasPrefix(tt.closes, "closed") {
					t.Errorf("got %+v, want %s", got, tt.closes)
				}
				if denied := strings.Contains(trail.String(), `"outcome":"denied"`); denied != got.failed {
					t.Errorf("audit: %s", trail.String())
				}
				may := tt.caller.May("tickets:read")
				if _, err := session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "tickets://open"}); (err == nil) != may {
					t.Errorf("resource: %v", err)
				}
				if _, err := session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "tickets://5"}); (err == nil) != may {
					t.Errorf("template: %v", err)
				}
				if _, err := session.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "sum_up"}); (err == nil) != may {
					t.Errorf("prompt: %v", err)
				}
			})
		}
	}
}

func TestRightsMisspelt(t *testing.T) {
	s := newServer(t, Options{})
	Add(s, Tool{Name: "show_caller", Description: "x", Hints: reading, Requires: []string{"write"}}, func(context.Context, struct{}) (Text, error) { return "", nil })
	Add(s, Tool{Name: "show_all", Description: "x", Hints: reading, Requires: []string{"tickets:*"}}, func(context.Context, struct{}) (Text, error) { return "", nil })
	AddResource(s, Resource{URI: "a://b", Name: "b", Requires: []string{"a b"}}, func(context.Context) (Contents, error) { return Contents{}, nil })
	err := s.Validate()
	for _, want := range []string{`tool "show_caller": cannot require this: right "write": a right is kind:what`, `tool "show_all": cannot require this: right "tickets:*": a pattern`, `resource "a://b": cannot require this:`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
}

// TestOwnerAndReader is what a library user sees of the two: in the process
// everything is the owner's, over HTTP it takes a key.
func TestWhoAsks(t *testing.T) {
	text, key, err := NewAPIKey("bob", "tickets:read")
	if err != nil {
		t.Fatal(err)
	}
	var trail sink
	s := ticketServer(t, Options{Audit: &trail, HTTP: HTTP{APIKeys: KeyList{key}}})
	if got := call(t, as(t, s, Owner(), legacy), "show_caller", `{}`); got.text != "the owner: tool show_caller owner=true" {
		t.Errorf("in the process: %s", got.text)
	}
	web := serve(t, s)
	for _, version := range []string{legacy, modern} {
		session := connect(t, &sdk.StreamableClientTransport{Endpoint: web + "/mcp", HTTPClient: bearer(text), DisableStandaloneSSE: true}, version, nil)
		if got := call(t, session, "show_caller", `{}`); got.text != "bob: tool show_caller owner=false" {
			t.Errorf("%s: %s", version, got.text)
		}
		res, err := session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "tickets://open"})
		if err != nil || res.Contents[0].Text != "bob: resource tickets://open owner=false" {
			t.Errorf("%s: %v, %v", version, res, err)
		}
		prompt, err := session.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "sum_up"})
		if err != nil || prompt.Messages[0].Content.(*sdk.TextContent).Text != "bob: prompt sum_up owner=false" {
			t.Errorf("%s: %v, %v", version, prompt, err)
		}
		if got := call(t, session, "close_ticket", `{"id":1}`); !got.failed {
			t.Errorf("%s: bob closed a ticket", version)
		}
	}
	old := connect(t, &sdk.SSEClientTransport{Endpoint: web + "/sse", HTTPClient: bearer(text)}, legacy, nil)
	if got := call(t, old, "show_caller", `{}`); got.text != "bob: tool show_caller owner=false" {
		t.Errorf("sse: %s", got.text)
	}
	if want := fmt.Sprintf(`"caller":"user","user":"bob","key":%q`, key.ID); strings.Count(trail.String(), want) != 9 || strings.Contains(trail.String(), text[30:]) {
		t.Errorf("audit, want 9 times %s:\n%s", want, trail.String())
	}
}

// serve serves over HTTP until the test ends.
func serve(t *testing.T, s *Server) string {
	t.Helper()
	routes, err := s.Routes()
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(routes)
	t.Cleanup(web.Close)
	t.Cleanup(func() { s.Close() })
	return web.URL
}

// A bearer sends a token with each request.
type bearerTransport string

func (b bearerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

func bearer(token string) *http.Client { return &http.Client{Transport: bearerTransport(token)} }

func TestAPIKeys(t *testing.T) {
	good, key, err := NewAPIKey("ada", "tickets:*")
	if err != nil {
		t.Fatal(err)
	}
	old, expired, err := NewAPIKey("ada")
	if err != nil {
		t.Fatal(err)
	}
	expired.Expires = time.Now().Add(-time.Second)
	unknown, _, err := NewAPIKey("ada")
	if err != nil {
		t.Fatal(err)
	}
	swapped, other, err := NewAPIKey("eve")
	if err != nil {
		t.Fatal(err)
	}
	other.Hash = key.Hash
	var logged sink
	s := newServer(t, Options{Logger: loggingTo(&logged), HTTP: HTTP{APIKeys: KeyList{key, expired, other}}})
	for token, want := range map[string]struct {
		status int
		says   string
	}{
		"": {401, "no bearer token"}, good: {200, ""}, good[:50]: {401, "mistyped or cut off"}, old: {401, "expired"}, unknown: {401, "invalid token"},
		swapped: {401, "invalid token"}, "sk-something-else-entirely": {401, "invalid token"},
	} {
		authorization := ""
		if token != "" {
			authorization = "Bearer " + token
		}
		if w := get(t, s, "/mcp", authorization); w.Code != want.status || !strings.Contains(w.Body.String(), want.says) {
			t.Errorf("%s: %d %s, want %v", token, w.Code, w.Body, want)
		}
	}
	for _, rights := range []string{"write", "a b:c", "A:b"} {
		if _, _, err := NewAPIKey("ada", rights); err == nil {
			t.Errorf("right %q: no error", rights)
		}
	}
	if _, _, err := NewAPIKey(""); err == nil {
		t.Error("a key of nobody's: no error")
	}
}

// TestAuthenticate lets an author recognise callers themselves.
func TestAuthenticate(t *testing.T) {
	var logged sink
	s := ticketServer(t, Options{Logger: loggingTo(&logged), HTTP: HTTP{Authenticate: func(r *http.Request) (Caller, error) {
		switch user := r.Header.Get("X-User"); user {
		case "":
			return Caller{}, ErrUnauthenticated
		case "broken":
			return Caller{}, errors.New("secret-7")
		case "zero":
			return Caller{}, nil
		case "root":
			return Owner(), nil
		default:
			return Caller{User: user, Rights: []string{"tickets:write"}}, nil
		}
	}}})
	routes, err := s.Routes()
	if err != nil {
		t.Fatal(err)
	}
	post := func(user, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), "POST", "http://localhost/mcp", strings.NewReader(body))
		for name, value := range map[string]string{
			"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Authorization": "Bearer from-outside", "X-User": user,
			"Mcp-Protocol-Version": modern, "Mcp-Method": "tools/call", "Mcp-Name": "show_caller",
		} {
			r.Header.Set(name, value)
		}
		w := httptest.NewRecorder()
		routes.ServeHTTP(w, r)
		return w
	}
	show := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"show_caller","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	for user, want := range map[string]int{"": 401, "broken": 500, "zero": 500, "root": 500, "ada": 200} {
		w := post(user, show)
		if w.Code != want || strings.Contains(w.Body.String(), "secret-7") {
			t.Errorf("%q: %d %s, want %d", user, w.Code, w.Body, want)
		}
		if want == 200 && !strings.Contains(w.Body.String(), "ada: tool show_caller owner=false") {
			t.Errorf("%q: %s", user, w.Body)
		}
	}
	if !strings.Contains(logged.String(), "secret-7") {
		t.Errorf("log: %s", logged.String())
	}
	for _, both := range []HTTP{
		{Token: "correct-horse-battery", APIKeys: KeyList{}},
		{Token: "correct-horse-battery", Authenticate: func(*http.Request) (Caller, error) { return Caller{}, nil }},
		{APIKeys: KeyList{}, Authenticate: func(*http.Request) (Caller, error) { return Caller{}, nil }},
	} {
		if err := newServer(t, Options{HTTP: both}).Validate(); err == nil {
			t.Errorf("%+v: no error", both)
		}
	}
}

// TestStepUp wants a client with an OAuth token to learn which scopes it lacks.
func TestStepUp(t *testing.T) {
	text, key, err := NewAPIKey("bob", "tickets:read")
	if err != nil {
		t.Fatal(err)
	}
	var trail sink
	s := ticketServer(t, Options{Audit: &trail, HTTP: HTTP{APIKeys: KeyList{key}, OAuth: &OAuth{
		Resource: "https://tickets.example/mcp", Issuers: []string{"https://login.example"}, Scopes: []string{"tickets:read"},
		Verify: func(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
			return &auth.TokenInfo{UserID: "eve", Scopes: strings.Split(token, "+"), Expiration: time.Now().Add(time.Hour)}, nil
		},
	}}})
	web := serve(t, s)
	closing := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"close_ticket","arguments":{"id":3},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	for token, want := range map[string]int{"tickets:read": 403, "tickets:read+tickets:write": 200, text: 200} {
		req, err := http.NewRequestWithContext(t.Context(), "POST", web+"/mcp", strings.NewReader(closing))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{
			"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
			"Mcp-Protocol-Version": modern, "Mcp-Method": "tools/call", "Mcp-Name": "close_ticket",
		} {
			req.Header.Set(name, value)
		}
		res, err := bearer(token).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("%s: %d, want %d", token, res.StatusCode, want)
		}
		challenge := `Bearer error="insufficient_scope", scope="tickets:write", resource_metadata="https://tickets.example/.well-known/oauth-protected-resource/mcp"`
		if got := res.Header.Get("WWW-Authenticate"); want == 403 && got != challenge {
			t.Errorf("challenge %s", got)
		}
	}
	// The key's owner is told in the result, since nobody can step up a key.
	if !strings.Contains(trail.String(), `"tool":"close_ticket","outcome":"denied","caller":"user","user":"eve"`) ||
		!strings.Contains(trail.String(), `"tool":"close_ticket","outcome":"denied","caller":"user","user":"bob"`) {
		t.Errorf("audit: %s", trail.String())
	}
}

func TestMiddleware(t *testing.T) {
	type tenant struct{}
	var seen []string
	s := newServer(t, Options{Around: []Middleware{
		func(ctx context.Context, r *Request, next func(context.Context) error) error {
			err := next(context.WithValue(ctx, tenant{}, "acme"))
			seen = append(seen, fmt.Sprintf("%s %s %s: %v", r.Kind, r.Name, r.Arguments, err))
			return err
		},
		func(ctx context.Context, r *Request, next func(context.Context) error) error {
			var in ticket
			if err := json.Unmarshal(r.Arguments, &in); r.Kind == "tool" && err != nil {
				return err
			}
			switch in.ID {
			case 13:
				return Refuse("Not this one.")
			case 14:
				return nil // forgot next
			case 15:
				_ = next(ctx)
				return nil // says that all is well, and it is not
			case 16:
				panic("oops")
			}
			return next(ctx)
		},
	}})
	Add(s, Tool{Name: "get_ticket", Description: "x", Hints: reading, Examples: []Example{{"One", `{"id":1}`}}}, func(ctx context.Context, in ticket) (Text, error) {
		if in.ID == 15 {
			return "", NotFound("no 15")
		}
		return Text(fmt.Sprint(ctx.Value(tenant{}), in.ID)), nil
	})
	AddResource(s, Resource{URI: "a://b", Name: "b"}, func(ctx context.Context) (Contents, error) {
		return Contents{Text: fmt.Sprint(ctx.Value(tenant{}))}, nil
	})
	session := dial(t, s, legacy, nil)
	for arguments, want := range map[string]string{`{"id":1}`: "acme1", `{"id":13}`: "Not this one.", `{"id":14}`: "Internal error", `{"id":15}`: "no 15", `{"id":16}`: "Internal error"} {
		if got := call(t, session, "get_ticket", arguments); !strings.HasPrefix(got.text, want) {
			t.Errorf("%s: %s, want %s", arguments, got.text, want)
		}
	}
	seen = nil
	call(t, session, "get_ticket", `{"id":0}`) // never gets there
	call(t, session, "get_ticket", `{"id":2}`)
	if res, err := session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "a://b"}); err != nil || res.Contents[0].Text != "acme" {
		t.Errorf("resource: %v, %v", res, err)
	}
	if diff := cmp.Diff([]string{`tool get_ticket {"id":2}: <nil>`, "resource a://b : <nil>"}, seen); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestUserRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewServer(Options{Name: "test-mcp-server", UserRate: Rate{PerSecond: 1, Burst: 2}})
		own := newBudget(Rate{}, Rate{PerSecond: 1, Burst: 1})
		try := func(c Caller) error {
			_, err := do(t.Context(), s, job{request: &Request{Kind: "tool", Caller: c}, name: "x", timeout: time.Minute, own: own},
				func(context.Context) (int, error) { return 0, nil })
			return err
		}
		ada, bob := Caller{User: "ada"}, Caller{User: "bob"}
		for _, c := range []Caller{ada, bob, Owner(), {}} {
			if err := try(c); err != nil {
				t.Errorf("%v: %v", c, err)
			}
			if err := try(c); err == nil || !strings.Contains(err.Error(), "Too many calls. Try again in 1 second.") {
				t.Errorf("%v, again: %v", c, err)
			}
		}
		time.Sleep(time.Second)
		if err := try(ada); err != nil {
			t.Error(err)
		}
	})
}

// TestForgottenUsers bounds what is kept of users who are gone.
func TestForgottenUsers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(Rate{}, Rate{PerSecond: 1, Burst: 1})
		for i := range 10 * fewUsers {
			b.limiters(Caller{User: fmt.Sprint(i)})[0].Allow()
			if i%fewUsers == 0 {
				time.Sleep(2 * time.Second)
			}
			if len(b.byUser) > 2*fewUsers {
				t.Fatalf("%d users are kept", len(b.byUser))
			}
		}
	})
}
