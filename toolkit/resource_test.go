package toolkit

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// closing tells whether it was closed.
type closing struct {
	io.Reader
	closed bool
}

func (c *closing) Close() error { c.closed = true; return nil }

func resourceServer(t *testing.T) (*Server, *closing) {
	var logged sink
	s := newServer(t, Options{Logger: loggingTo(&logged)})
	from := &closing{Reader: strings.NewReader("from a reader")}
	add := func(uri, mime string, limit int64, c Contents, err error) {
		AddResource(s, Resource{URI: uri, Name: "r", MIMEType: mime, MaxBytes: limit, Watched: true}, func(context.Context) (Contents, error) { return c, err })
	}
	add("a://text", "", 0, Contents{Text: "plain"}, nil)
	add("a://json", "application/json", 0, Contents{Data: []byte(`{}`)}, nil)
	add("a://data", "", 0, Contents{Data: []byte{0xff, 0}}, nil)
	add("a://liar", "text/csv", 0, Contents{Data: []byte("\xff\xfe")}, nil)
	add("a://reader", "", 20, Contents{From: from}, nil)
	add("a://endless", "", 10, Contents{From: endless{}}, nil)
	add("a://any", "", math.MaxInt64, Contents{From: strings.NewReader("however long")}, nil)
	add("a://large", "", 4, Contents{Text: "12345"}, nil)
	add("a://gone", "", 0, Contents{}, NotFound("gone"))
	add("a://broken", "", 0, Contents{}, errors.New("secret-7"))
	AddTemplate(s, Resource{URI: "a://notes/{folder}/{page}", Name: "note", Complete: map[string]Completer{"folder": Choices("work", "World", "home")}},
		func(_ context.Context, v struct {
			Folder string `json:"folder" max:"5"`
			Page   int    `json:"page" min:"1"`
		}) (Contents, error) {
			return Contents{Text: strings.Repeat(v.Folder, v.Page)}, nil
		})
	AddTemplate(s, Resource{URI: "b://{+path}", Name: "file"}, func(_ context.Context, v struct {
		Path string `json:"path"`
	}) (Contents, error) {
		return Contents{Text: v.Path}, nil
	})
	return s, from
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func TestResources(t *testing.T) {
	s, from := resourceServer(t)
	session := dial(t, s, legacy, nil)
	for _, tt := range []struct{ uri, mime, text, blob, fails string }{
		{uri: "a://text", mime: "text/plain", text: "plain"},
		{uri: "a://json", mime: "application/json", text: "{}"},
		{uri: "a://data", mime: "application/octet-stream", blob: "\xff\x00"},
		{uri: "a://liar", mime: "text/csv", blob: "\xff\xfe"},
		{uri: "a://reader", mime: "text/plain", text: "from a reader"},
		{uri: "a://any", mime: "text/plain", text: "however long"},
		{uri: "a://endless", fails: "The resource is larger than 10 bytes"},
		{uri: "a://large", fails: "The resource is larger than 4 bytes"},
		{uri: "a://gone", fails: "not found"},
		{uri: "a://none", fails: "not found"},
		{uri: "a://broken", fails: "Internal error in r, id "},
		{uri: "a://notes/work/2", mime: "text/plain", text: "workwork"},
		{uri: "a://notes/%E4%B8%80/1", mime: "text/plain", text: "一"},
		{uri: "a://notes/a%2Fb/1", mime: "text/plain", text: "a/b"},
		{uri: "a://notes/work/0", fails: "not found"},
		{uri: "a://notes/toolong/1", fails: "not found"},
		{uri: "a://notes/work/x", fails: "not found"},
		{uri: "a://notes/%00/1", fails: "not found"},
		{uri: "b://x/y/z.txt", mime: "text/plain", text: "x/y/z.txt"},
	} {
		res, err := session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: tt.uri})
		if tt.fails != "" {
			if err == nil || !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(tt.fails)) || strings.Contains(err.Error(), "secret-7") {
				t.Errorf("%s: %v, want %q", tt.uri, err, tt.fails)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tt.uri, err)
			continue
		}
		c := res.Contents[0]
		if c.URI != tt.uri || c.MIMEType != tt.mime || c.Text != tt.text || string(c.Blob) != tt.blob {
			t.Errorf("%s: %+v", tt.uri, c)
		}
	}
	if !from.closed {
		t.Error("the reader was not closed")
	}
}

// TestEmptyContents: an empty file has contents that MCP's schema knows, in a resource and
// in a block, and in both eras.
func TestEmptyContents(t *testing.T) {
	s := newServer(t, Options{})
	for uri, c := range map[string]Contents{"a://text": {}, "a://data": {Data: []byte{}}, "a://reader": {From: strings.NewReader("")}} {
		AddResource(s, Resource{URI: uri, Name: "r"}, func(context.Context) (Contents, error) { return c, nil })
	}
	Add(s, Tool{Name: "get_file", Description: "x", Hints: reading}, func(context.Context, struct{}) (Content, error) {
		block, err := Embed("a://text", Contents{})
		return Content{block}, err
	})
	for _, era := range []mcp.Era{mcp.Legacy, mcp.Modern} {
		r, w := s.Pipe(context.WithoutCancel(t.Context()))
		client, err := mcp.Connect(t.Context(), mcp.Pipe{Reader: r, Writer: w}, &mcp.ClientOptions{Era: era})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		list, _ := client.List(t.Context())
		calls := map[string]dragoman.Call{"get_file": {Tool: list.Tools.Find("get_file")}}
		for _, uri := range []string{"a://text", "a://data", "a://reader"} {
			calls[uri] = dragoman.Call{Method: "resources/read", Arguments: json.RawMessage(`{"uri":"` + uri + `"}`)}
		}
		for name, c := range calls {
			res, err := client.Call(t.Context(), c)
			if err != nil || res.Problem != nil || !strings.Contains(string(res.Content), `"mimeType":"text/plain","blob":""}`) {
				t.Errorf("%s, %s: %s, %v, %v", era, name, res.Content, res.Problem, err)
			}
		}
	}
}

func TestWatchedResource(t *testing.T) {
	s, _ := resourceServer(t)
	changed := make(chan string, 1)
	session := dial(t, s, legacy, &sdk.ClientOptions{
		ResourceUpdatedHandler: func(_ context.Context, req *sdk.ResourceUpdatedNotificationRequest) { changed <- req.Params.URI },
	})
	if err := session.Subscribe(t.Context(), &sdk.SubscribeParams{URI: "a://text"}); err != nil {
		t.Fatal(err)
	}
	if err := s.Changed(t.Context(), "a://text"); err != nil {
		t.Fatal(err)
	}
	if uri := <-changed; uri != "a://text" {
		t.Errorf("told of %s", uri)
	}
}

func TestTemplateErrors(t *testing.T) {
	type vars struct {
		X string `json:"x"`
	}
	for uri, want := range map[string]string{
		"a://b": "no variables in braces", "a://{x}/{y}": "no such field", "a://{x}/{": "not a template", "{x}": "not a template",
	} {
		s := NewServer(Options{Name: "test-mcp-server"})
		AddTemplate(s, Resource{URI: uri, Name: "n"}, func(context.Context, vars) (Contents, error) { return Contents{}, nil })
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", uri, err, want)
		}
	}
}

func TestPrompts(t *testing.T) {
	s := newServer(t, Options{})
	type trip struct {
		City  string `json:"city" desc:"Where to" min:"1" title:"City"`
		Days  int    `json:"days" default:"3" max:"9"`
		Style string `json:"style,omitempty" enum:"slow,fast"`
	}
	AddPrompt(s, Prompt{
		Name: "plan_trip", Title: "Plan", Description: "Plans\n a trip.",
		Complete: map[string]Completer{"city": func(_ context.Context, typed string, given map[string]string) ([]string, error) {
			if given["style"] == "broken" {
				return nil, errors.New("secret-7")
			}
			return []string{typed + "1", typed + given["style"]}, nil
		}},
	}, func(_ context.Context, in trip) (Messages, error) {
		if in.City == "nowhere" {
			return nil, NotFound("There is no %s.", in.City)
		}
		return Messages{User(strings.Repeat(in.City, in.Days) + in.Style), Assistant(Words("ok"))}, nil
	})
	session := dial(t, s, legacy, nil)
	list, err := session.ListPrompts(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []*sdk.PromptArgument{{Name: "city", Title: "City", Description: "Where to", Required: true}, {Name: "days"}, {Name: "style"}}
	if diff := cmp.Diff(want, list.Prompts[0].Arguments); diff != "" || list.Prompts[0].Description != "Plans a trip." {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, tt := range []struct {
		given map[string]string
		want  string
		fails string
	}{
		{map[string]string{"city": "A"}, "AAA", ""},
		{map[string]string{"city": "A", "days": "2", "style": "slow"}, "AAslow", ""},
		{map[string]string{"city": "A", "days": ""}, "AAA", ""},
		{map[string]string{}, "", "missing property 'city', expected string (Where to)"},
		{map[string]string{"city": "A", "days": "many"}, "", "days: expected integer, got string"},
		{map[string]string{"city": "A", "days": "10"}, "", "days: expected a number of at most 9, got 10"},
		{map[string]string{"city": "A", "style": "odd"}, "", "style: expected one of 'slow', 'fast'"},
		{map[string]string{"city": "A", "town": "x"}, "", "unknown property 'town', known are city, days, style"},
		{map[string]string{"city": "nowhere"}, "", "There is no nowhere."},
	} {
		res, err := session.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "plan_trip", Arguments: tt.given})
		if tt.fails != "" {
			wire, ok := errors.AsType[*jsonrpc.Error](err)
			if !ok || wire.Code != jsonrpc.CodeInvalidParams || !strings.Contains(wire.Message, tt.fails) {
				t.Errorf("%v: %v, want %q", tt.given, err, tt.fails)
			}
			continue
		}
		if err != nil {
			t.Errorf("%v: %v", tt.given, err)
			continue
		}
		if text := res.Messages[0].Content.(*sdk.TextContent).Text; text != tt.want || res.Messages[1].Role != "assistant" {
			t.Errorf("%v: %s", tt.given, text)
		}
	}
	complete := func(ref *sdk.CompleteReference, argument, typed string, given map[string]string) ([]string, error) {
		res, err := session.Complete(t.Context(), &sdk.CompleteParams{
			Ref: ref, Argument: sdk.CompleteParamsArgument{Name: argument, Value: typed}, Context: &sdk.CompleteContext{Arguments: given},
		})
		if err != nil {
			return nil, err
		}
		return res.Completion.Values, nil
	}
	ref := &sdk.CompleteReference{Type: "ref/prompt", Name: "plan_trip"}
	for _, tt := range []struct {
		argument, typed string
		given           map[string]string
		want            []string
	}{
		{"city", "x", map[string]string{"style": "S"}, []string{"x1", "xS"}},
		{"style", "S", nil, []string{"slow"}},
		{"style", "", nil, []string{"slow", "fast"}},
		{"days", "", nil, []string{}},
	} {
		got, err := complete(ref, tt.argument, tt.typed, tt.given)
		if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
			t.Errorf("%s %q: %v\n%s", tt.argument, tt.typed, err, diff)
		}
	}
	if _, err := complete(ref, "city", "x", map[string]string{"style": "broken"}); err == nil || strings.Contains(err.Error(), "secret-7") {
		t.Errorf("a completer that fails: %v", err)
	}
}

func TestTemplateCompletion(t *testing.T) {
	s, _ := resourceServer(t)
	session := dial(t, s, modern, nil)
	res, err := session.Complete(t.Context(), &sdk.CompleteParams{
		Ref:      &sdk.CompleteReference{Type: "ref/resource", URI: "a://notes/{folder}/{page}"},
		Argument: sdk.CompleteParamsArgument{Name: "folder", Value: "wo"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"work", "World"}, res.Completion.Values); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestPromptWithoutMessages has a list of none: clients refuse null.
func TestPromptWithoutMessages(t *testing.T) {
	s := newServer(t, Options{})
	AddPrompt(s, Prompt{Name: "say_nothing", Description: "x"}, func(context.Context, struct{}) (Messages, error) { return nil, nil })
	res, err := dial(t, s, legacy, nil).GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "say_nothing"})
	if err != nil || res.Messages == nil {
		t.Errorf("got %+v, %v", res, err)
	}
}
