package toolkit

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestInclude(t *testing.T) {
	var trail, logged, partLogged sink
	var order []string
	mark := func(name string) Middleware {
		return func(ctx context.Context, _ *Request, next func(context.Context) error) error {
			order = append(order, name)
			return next(ctx)
		}
	}
	whole := newServer(t, Options{Name: "office-mcp-server", Audit: &trail, Logger: loggingTo(&logged), Around: []Middleware{mark("whole")}})
	bills := NewServer(Options{Service: "bills", Around: []Middleware{mark("bills")}, Rate: Rate{PerSecond: 0.001, Burst: 2}})
	posts := NewServer(Options{Service: "posts", Logger: loggingTo(&partLogged)})
	inner := NewServer(Options{Service: "stamps"})
	add := func(s *Server, name string, f func() error) {
		Add(s, Tool{Name: name, Description: "x", Hints: reading}, func(context.Context, struct{}) (Text, error) { return Text(name), f() })
	}
	fine := func() error { return nil }
	add(bills, "bills_list_all", fine)
	posts.Include(inner)
	whole.Include(bills)
	whole.Include(posts)
	add(whole, "show_all", fine)
	add(posts, "posts_send_letter", func() error { return errors.New("secret-7") }) // after it became a part
	add(inner, "stamps_order_one", fine)
	AddPrompt(inner, Prompt{Name: "pick_stamp", Description: "x"}, func(_ context.Context, v struct {
		Kind string `json:"kind" enum:"red,blue"`
	}) (Messages, error) {
		return Messages{User(v.Kind)}, nil
	})
	AddResource(posts, Resource{URI: "posts://box", Name: "box", Watched: true}, func(context.Context) (Contents, error) { return Contents{Text: "empty"}, nil })

	session := dial(t, whole, legacy, nil)
	if diff := cmp.Diff([]string{"bills_list_all", "pick_stamp", "posts://box", "posts_send_letter", "show_all", "stamps_order_one"}, names(t, session)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, name := range []string{"show_all", "stamps_order_one", "bills_list_all", "bills_list_all"} {
		if got := call(t, session, name, `{}`); got.text != name {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := call(t, session, "bills_list_all", `{}`); !strings.HasPrefix(got.text, "Too many calls") {
		t.Errorf("a part keeps its rate: %+v", got)
	}
	if diff := cmp.Diff([]string{"whole", "whole", "whole", "bills", "whole", "bills"}, order); diff != "" {
		t.Errorf("middleware, -want +got:\n%s", diff)
	}
	if got := call(t, session, "posts_send_letter", `{}`); strings.Contains(got.text, "secret-7") || !strings.Contains(partLogged.String(), "secret-7") || strings.Contains(logged.String(), "secret-7") {
		t.Errorf("log of a part: %s, %s", partLogged.String(), logged.String())
	}
	if !strings.Contains(trail.String(), `"server":"bills-mcp-server","tool":"bills_list_all"`) || strings.Count(trail.String(), "\n") != 6 {
		t.Errorf("audit: %s", trail.String())
	}
	res, err := session.Complete(t.Context(), &sdk.CompleteParams{Ref: &sdk.CompleteReference{Type: "ref/prompt", Name: "pick_stamp"}, Argument: sdk.CompleteParamsArgument{Name: "kind", Value: "r"}})
	if err != nil || len(res.Completion.Values) != 1 {
		t.Errorf("completion: %v, %v", res, err)
	}
	if err := posts.Changed(t.Context(), "posts://box"); err != nil {
		t.Error(err)
	}
	if _, err := posts.Routes(); err == nil || !strings.Contains(err.Error(), "part of another server") {
		t.Errorf("a part by itself: %v", err)
	}
}

// TestIncludedCompletion completes at a part, whose middleware and rate hold there, too.
func TestIncludedCompletion(t *testing.T) {
	var order []string
	mark := func(name string) Middleware {
		return func(ctx context.Context, r *Request, next func(context.Context) error) error {
			order = append(order, name+" "+r.Kind)
			return next(ctx)
		}
	}
	part := NewServer(Options{Service: "stamps", Around: []Middleware{mark("part")}, Rate: Rate{PerSecond: 0.001, Burst: 1}})
	whole := newServer(t, Options{Around: []Middleware{mark("whole")}})
	whole.Include(part)
	addStampPrompt(part)
	session := dial(t, whole, legacy, nil)
	if got, err := completeStamp(t, session); err != nil || got != "red" {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := completeStamp(t, session); err == nil || !strings.Contains(err.Error(), "Too many calls") {
		t.Errorf("beyond the rate: %q, %v", got, err)
	}
	if diff := cmp.Diff([]string{"whole completion", "part completion"}, order); diff != "" {
		t.Errorf("middleware, -want +got:\n%s", diff)
	}
}

func addStampPrompt(s *Server) {
	AddPrompt(s, Prompt{Name: "pick_stamp", Description: "x"}, func(context.Context, struct {
		Kind string `json:"kind" enum:"red,blue"`
	}) (Messages, error) {
		return nil, nil
	})
}

func completeStamp(t *testing.T, session *sdk.ClientSession) (string, error) {
	res, err := session.Complete(t.Context(), &sdk.CompleteParams{
		Ref: &sdk.CompleteReference{Type: "ref/prompt", Name: "pick_stamp"}, Argument: sdk.CompleteParamsArgument{Name: "kind", Value: "r"},
	})
	if err != nil {
		return "", err
	}
	return strings.Join(res.Completion.Values, " "), nil
}

// TestAddedLater adds what can be completed and watched to a server that is in use.
func TestAddedLater(t *testing.T) {
	for _, version := range []string{legacy, modern} {
		s := newServer(t, Options{})
		read := func(context.Context) (Contents, error) { return Contents{Text: "x"}, nil }
		AddResource(s, Resource{URI: "stamps://one", Name: "one"}, read)
		can := func(session *sdk.ClientSession) (completions, subscribe bool) {
			c := session.InitializeResult().Capabilities
			return c.Completions != nil, c.Resources.Subscribe
		}
		early := dial(t, s, version, nil)
		if completions, subscribe := can(early); completions || subscribe {
			t.Errorf("%s: announced before: completions %v, subscribe %v", version, completions, subscribe)
		}
		if got, err := completeStamp(t, early); err == nil {
			t.Errorf("%s: completed before: %q", version, got)
		}
		addStampPrompt(s)
		AddResource(s, Resource{URI: "stamps://two", Name: "two", Watched: true}, read)
		late := dial(t, s, version, nil)
		if completions, subscribe := can(late); !completions || !subscribe {
			t.Errorf("%s: announced: completions %v, subscribe %v", version, completions, subscribe)
		}
		for _, session := range []*sdk.ClientSession{early, late} {
			if got, err := completeStamp(t, session); err != nil || got != "red" {
				t.Errorf("%s: completed %q, %v", version, got, err)
			}
			if err := session.Subscribe(t.Context(), &sdk.SubscribeParams{URI: "stamps://two"}); err != nil {
				t.Errorf("%s: subscribe: %v", version, err)
			}
		}
	}
}

func TestIncludeMistakes(t *testing.T) {
	whole := newServer(t, Options{})
	part := NewServer(Options{Service: "part", Keys: []*Key{{Env: "TOOLKIT_TEST_UNSET"}}})
	Add(part, Tool{Name: "wrong"}, func(context.Context, struct{}) (Text, error) { return "", nil })
	whole.Include(whole)
	whole.Include(part)
	whole.Include(part)
	part.Include(whole)
	err := whole.Validate()
	for _, want := range []string{
		`Include "test-mcp-server": a server cannot be part of itself`, `Include "part-mcp-server": it is in use already`,
		`tool "wrong": no description`, "TOOLKIT_TEST_UNSET is not set",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
}
