package toolkit

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dragoman-mcp/dragoman/schema"
)

// A stay is the argument struct of most tests here.
type stay struct {
	City    string    `json:"city" desc:"City to stay in" min:"1" max:"20"`
	Nights  int       `json:"nights" desc:"Number of nights" default:"2" min:"1" max:"30"`
	Class   string    `json:"class" enum:"plain,fine" default:"plain"`
	From    time.Time `json:"from,omitzero" desc:"First day"`
	Guests  []guest   `json:"guests,omitempty" max:"3"`
	Contact string    `json:"contact,omitempty" format:"email"`
}

type guest struct {
	Name string `json:"name"`
	Age  uint8  `json:"age" default:"30"`
}

type booking struct {
	Echo stay     `json:"echo"`
	Rest []string `json:"rest"`
}

func stayTool() Tool {
	return Tool{
		Name: "book_stay", Title: "Book a stay", Hints: Hints{ReadOnly: No, Destructive: No, Idempotent: No, OpenWorld: No},
		Description: "Books\n\t\ta  stay.",
		Examples:    []Example{{Ask: "Two nights in Rome", Arguments: `{"city": "Rome"}`}},
	}
}

func echo(_ context.Context, in stay) (booking, error) { return booking{Echo: in}, nil }

func TestArguments(t *testing.T) {
	s := newServer(t, Options{})
	Add(s, stayTool(), echo)
	session := dial(t, s, legacy, nil)
	for _, tt := range []struct {
		name, arguments string
		want            string   // structuredContent
		contains        []string // of the error
	}{
		{
			name: "defaults", arguments: `{"city":"Rome"}`,
			want: `{"echo":{"city":"Rome","nights":2,"class":"plain"},"rest":[]}`,
		},
		{
			name: "everything, with defaults below", arguments: `{"city":"Rome","nights":3.0,"class":"fine","from":"2026-05-01T00:00:00Z","guests":[{"name":"A"},{"name":"B","age":7}],"contact":"a@b.example"}`,
			want: `{"echo":{"city":"Rome","nights":3,"class":"fine","from":"2026-05-01T00:00:00Z","guests":[{"name":"A","age":30},{"name":"B","age":7}],"contact":"a@b.example"},"rest":[]}`,
		},
		{name: "nothing", arguments: `{}`, contains: []string{"Invalid arguments for book_stay: missing property 'city', expected string (City to stay in)"}},
		{name: "wrong type", arguments: `{"city":7}`, contains: []string{"city: expected string, got number"}},
		{name: "null", arguments: `{"city":"Rome","nights":null}`, contains: []string{"nights: expected integer, got null; leave the property out instead"}},
		{name: "unknown", arguments: `{"city":"Rome","town":1}`, contains: []string{"unknown property 'town', known are city, nights, class, from, guests, contact"}},
		{name: "wrong case", arguments: `{"City":"Rome"}`, contains: []string{"missing property 'city'", "unknown property 'City'"}},
		{name: "range", arguments: `{"city":"Rome","nights":31}`, contains: []string{"nights: expected a number of at most 30, got 31"}},
		{name: "enum", arguments: `{"city":"Rome","class":"royal"}`, contains: []string{`class: expected one of 'plain', 'fine', got "royal"`}},
		{name: "length", arguments: `{"city":""}`, contains: []string{"city: expected at least 1 characters"}},
		{name: "below", arguments: `{"city":"Rome","guests":[{"name":"A"},{"age":300}]}`, contains: []string{"missing property 'guests.1.name'", "guests.1.age: expected a number of at most 255, got 300"}},
		{name: "unknown below", arguments: `{"city":"Rome","guests":[{"name":"A","x":1}]}`, contains: []string{"unknown property 'guests.0.x'"}},
		{name: "time", arguments: `{"city":"Rome","from":"tomorrow"}`, contains: []string{"from: expected a date and time such as 2024-01-15T10:30:00Z"}},
		{name: "email", arguments: `{"city":"Rome","contact":"nobody"}`, contains: []string{"contact: expected an email address"}},
		{name: "duplicate", arguments: `{"city":"Rome","city":"Paris"}`, contains: []string{"duplicate"}},
		{name: "number out of bounds", arguments: `{"city":"Rome","nights":1e999999}`, contains: []string{"1e999999", "out of range", "nights"}},
		{name: "deep", arguments: `{"city":` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + `}`, contains: []string{"nested deeper than 64 levels"}},
		{name: "array", arguments: `[]`, contains: []string{"arguments: expected object, got array"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := call(t, session, "book_stay", tt.arguments)
			if got.failed != (tt.want == "") {
				t.Fatalf("isError %v: %s", got.failed, got.text)
			}
			if tt.want != "" && (!equalJSON(got.data, tt.want) || got.text != tt.want) {
				t.Errorf("got  %s\ntext %s\nwant %s", got.data, got.text, tt.want)
			}
			if got.failed && got.data != "" {
				t.Errorf("an error has structuredContent %s", got.data)
			}
			for _, part := range tt.contains {
				if !strings.Contains(got.text, part) {
					t.Errorf("%q is not in %s", part, got.text)
				}
			}
		})
	}
}

// equalJSON compares values; clients do not keep the order of members.
func equalJSON(a, b string) bool {
	x, errX := schema.Parse([]byte(a))
	y, errY := schema.Parse([]byte(b))
	return errX == nil && errY == nil && schema.Equal(x, y)
}

func TestDefinition(t *testing.T) {
	s := newServer(t, Options{})
	Add(s, stayTool(), echo)
	session := dial(t, s, modern, nil)
	list, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	tool := list.Tools[0]
	if want := `Books a stay. Examples: "Two nights in Rome" → {"city":"Rome"}.`; tool.Description != want {
		t.Errorf("description %q, want %q", tool.Description, want)
	}
	hints, err := json.Marshal(tool.Annotations)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"destructiveHint":false`, `"openWorldHint":false`} {
		if !strings.Contains(string(hints), want) {
			t.Errorf("%s is not in %s", want, hints)
		}
	}
	in := tool.InputSchema.(map[string]any)["properties"].(map[string]any)
	if in["response_format"] != nil || in["city"] == nil { // it costs tokens, and is there for those who ask
		t.Errorf("properties: %v", in)
	}
	out := tool.OutputSchema.(map[string]any)["properties"].(map[string]any)
	if out["truncated"] == nil || out["truncation_message"] == nil {
		t.Errorf("properties of the result: %v", out)
	}
}

// TestUnknownVerbsWarn: an action that is on no list keeps nobody from starting. It is
// said when the server is first served, and of tools that come later, once each.
func TestUnknownVerbsWarn(t *testing.T) {
	var log sink
	none := func(context.Context, struct{}) (Text, error) { return "", nil }
	part := NewServer(Options{Service: "part"})
	Add(part, Tool{Name: "part_defragment_disk", Description: "x", Hints: reading}, none)
	s := NewServer(Options{Service: "notes", Verbs: []string{"transmogrify"}, Logger: loggingTo(&log)})
	Add(s, Tool{Name: "notes_frobnicate_note", Description: "x", Hints: reading}, none)
	Add(s, Tool{Name: "notes_transmogrify_note", Description: "x", Hints: reading}, none)
	Add(s, Tool{Name: "notes_read_note", Description: "x", Hints: reading}, none)
	s.Include(part)
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`tool "notes_frobnicate_note": "frobnicate" is not a known verb; names are notes_{action}_{resource} (add a verb with Options.Verbs) [N005]`,
		`tool "part_defragment_disk": "defragment" is not a known verb; names are part_{action}_{resource} (add a verb with Options.Verbs) [N005]`,
	}
	check := func() {
		t.Helper()
		var got []string
		for _, w := range s.Warnings() {
			got = append(got, w.Error())
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("warnings (-want +got)\n%s", diff)
		}
		for i := range got {
			if n := strings.Count(log.String(), strings.ReplaceAll(got[i], `"`, `\"`)); n != 1 {
				t.Errorf("%q is %d times in the log", got[i], n)
			}
		}
		if n := strings.Count(log.String(), "level=WARN"); n != len(want) {
			t.Errorf("%d warnings in the log:\n%s", n, log.String())
		}
	}
	for range 2 {
		session, err := s.Client(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if list, err := session.ListTools(t.Context(), nil); err != nil || len(list.Tools) < 4 {
			t.Errorf("%v, %v", list, err)
		}
		session.Close()
		check()
		if len(want) == 2 {
			Add(s, Tool{Name: "notes_yank_note", Description: "x", Hints: reading}, none)
			want = slices.Insert(want, 1, `tool "notes_yank_note": "yank" is not a known verb; names are notes_{action}_{resource} (add a verb with Options.Verbs) [N005]`)
		}
	}
	check()
}

func TestRegistrationProblems(t *testing.T) {
	s := NewServer(Options{Service: "git_hub", Name: "github-v2", Characters: 10, Rate: Rate{PerSecond: -1}, Keys: []*Key{{Env: "TOOLKIT_TEST_UNSET", Hint: "make one at example.com"}}})
	none := func(context.Context, struct{}) (Text, error) { return "", nil }
	Add(s, Tool{Name: "Weather"}, none)
	Add(s, Tool{Name: "list_issues", Description: "x", Hints: reading}, none)
	Add(s, Tool{Name: "git_hub_frobnicate", Description: "x", Hints: reading}, none)
	Add(s, Tool{Name: "git_hub_list", Description: "x", Hints: Hints{ReadOnly: Yes, Destructive: Yes, Idempotent: Yes, OpenWorld: No}}, none)
	Add(s, Tool{Name: "git_hub_list_issues", Description: "x", Hints: Hints{ReadOnly: Yes, Destructive: No}}, none)
	Add(s, Tool{Name: "git_hub_get_stay", Description: "x", Hints: reading}, echo)
	Add(s, Tool{Name: "git_hub_put_stay", Description: "x", Hints: reading, Examples: []Example{{Ask: "x", Arguments: `{"city":1}`}, {Arguments: `{"city":"Rome"}`}}}, echo)
	Add(s, Tool{Name: "git_hub_get_text", Description: "x", Hints: reading, Characters: 20}, func(context.Context, string) (int, error) { return 0, nil })
	Add(s, Tool{Name: "git_hub_get_chan", Description: "x", Hints: reading}, func(context.Context, struct{ C chan int }) (struct{ F func() }, error) { panic("never") })
	AddList(s, Tool{Name: "git_hub_list_pages", Description: "x", Hints: reading}, func(context.Context, struct {
		Limit int `json:"limit"`
	}, Page) (Listing[int], error) {
		panic("never")
	})
	AddList(s, Tool{Name: "git_hub_list_cursors", Description: "x", Hints: reading, Cursor: true, Timeout: -1, Rate: Rate{PerSecond: 1, Burst: -5}, UserRate: Rate{Burst: 3}}, func(context.Context, struct {
		Cursor string
	}, Page) (Listing[int], error) {
		panic("never")
	})
	AddResource(s, Resource{URI: "notes"}, nil)
	AddTemplate[struct{}](s, Resource{URI: "notes://{x}", Name: "n"}, nil)
	AddPrompt[struct{ L []int }](s, Prompt{Name: "Plan"}, nil)
	err := s.Validate()
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		`github-v2 cannot start, `,
		`server name "github-v2": leave out versions`,
		`Options.Characters is 10; results need at least 1000`,
		`tool "Weather": names are lower-case words joined by _`, `no description`,
		`hints not stated: readOnlyHint, destructiveHint, idempotentHint, openWorldHint`,
		`names of this server begin with the service: git_hub_{action}_{resource}`,
		`the name does not say what is acted on`, `a tool that changes nothing cannot be destructive`,
		`hints not stated: idempotentHint, openWorldHint; say Yes or No to each [A009]`,
		`tool "git_hub_get_stay": no Examples`, `tool "git_hub_get_text": Characters is 20;`,
		`example "x": city: expected string, got number`,
		`example {"city":"Rome"}: Ask does not say`,
		`arguments must be a struct, not string`,
		`the result must be a struct or a map (clients before 2026-07-28 take nothing else), not int`,
		`arguments: struct.C: type chan int has no form in JSON`, `result: struct.F: type func() has no form in JSON`,
		`AddList adds "limit" itself`, `AddList adds "cursor" itself`, `tool "git_hub_list_cursors": Timeout is negative`,
		`tool "git_hub_list_cursors": Rate: a Burst of -5 lets`, `tool "git_hub_list_cursors": UserRate: a Burst limits nothing`,
		`Options.Rate: PerSecond is -1;`,
		`resource "notes": the URI is not absolute`,
		`resource "notes://{x}": the URI has {x}, and struct {} no such field`,
		`prompt "Plan": L: only texts, numbers, booleans and times`,
		`environment variable TOOLKIT_TEST_UNSET is not set: make one at example.com`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in\n%v", want, err)
		}
	}
	if _, again := s.SDK(); again == nil || again.Error() != err.Error() {
		t.Errorf("SDK: %v", again)
	}
	r, w := s.Pipe(t.Context())
	if _, readErr := r.Read(make([]byte, 1)); readErr == nil || readErr.Error() != err.Error() {
		t.Errorf("Pipe read: %v", readErr)
	}
	w.Close()
}

// TestRegisteredNothing: what is nil is reported before anything is served, each by its
// name, and panics nowhere.
func TestRegisteredNothing(t *testing.T) {
	s := NewServer(Options{Service: "shop", Keys: []*Key{nil}, Around: []Middleware{nil}})
	tool := func(name string) Tool {
		return Tool{Name: name, Description: "x", Hints: reading, Examples: []Example{{Ask: "x", Arguments: `{}`}}}
	}
	Add[struct{}, Text](s, tool("shop_get_one"), nil)
	AddList[struct{}, int](s, tool("shop_list_all"), nil)
	AddRaw[Text](s, tool("shop_get_raw"), json.RawMessage(`{"type":"object"}`), nil)
	AddPrompt[struct{}](s, Prompt{Name: "plan_day", Description: "x"}, nil)
	AddResource(s, Resource{URI: "shop://one", Name: "one", MaxBytes: -1}, nil)
	AddTemplate[struct {
		Name string `json:"name"`
	}](s, Resource{URI: "shop://all/{name}", Name: "all"}, nil)
	s.Include(nil)
	s.OnStop(nil)
	err := s.Validate()
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		`tool "shop_get_one": no function`, `tool "shop_list_all": no function`, `tool "shop_get_raw": no function`,
		`prompt "plan_day": no function`, `resource "shop://one": no function`, `MaxBytes is negative`, `resource "shop://all/{name}": no function`,
		`Include: no server`, `OnStop: no function`, `Options.Around[0] is nil`, `a Key without Env`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in\n%v", want, err)
		}
	}
	s.usage(flag.NewFlagSet("shop", flag.ContinueOnError), io.Discard, "shop")
}

func TestRegisteredTwice(t *testing.T) {
	s := newServer(t, Options{})
	Add(s, stayTool(), echo)
	Add(s, stayTool(), echo)
	if err := s.Validate(); err == nil || !strings.Contains(err.Error(), `tool "book_stay": registered twice`) {
		t.Errorf("got %v", err)
	}
}

func TestErrors(t *testing.T) {
	var logged, trail sink
	s := newServer(t, Options{Logger: loggingTo(&logged), Audit: &trail})
	type wish struct {
		What string `json:"what"`
	}
	Add(s, Tool{Name: "test_error", Description: "Fails.", Hints: Hints{No, No, No, No}, Examples: []Example{{"Fail", `{"what":"panic"}`}}},
		func(_ context.Context, in wish) (booking, error) {
			switch in.What {
			case "invalid":
				return booking{}, fmt.Errorf("while booking: %w", Invalid("what", "give something else than %q.", in.What))
			case "not found":
				return booking{}, NotFound("There is no such thing.")
			case "refuse":
				return booking{}, Refuse("Not on Sundays.")
			case "retry":
				return booking{}, RetryAfter(1500*time.Millisecond, "The hotel is busy.")
			case "panic":
				panic("secret-7")
			case "encode":
				return booking{Echo: stay{From: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}}, nil
			case "schema":
				return booking{Echo: stay{City: "Rome", Class: "secret-7"}}, nil
			}
			return booking{}, errors.New("secret-7: connection to 10.0.0.1 failed")
		})
	session := dial(t, s, modern, nil)
	for _, tt := range []struct{ what, want, outcome string }{
		{"invalid", `Invalid arguments for test_error: what: give something else than "invalid".`, "invalid_arguments"},
		{"not found", "There is no such thing.", "not_found"},
		{"refuse", "Not on Sundays.", "refused"},
		{"retry", "The hotel is busy. Try again in 2 seconds.", "retry_later"},
		{"panic", "Internal error in test_error, id ", "panic"},
		{"encode", "Internal error in test_error, id ", "internal_error"},
		{"schema", "Internal error in test_error, id ", "internal_error"},
		{"other", "Internal error in test_error, id ", "internal_error"},
	} {
		got := call(t, session, "test_error", `{"what":"`+tt.what+`"}`)
		if !got.failed || !strings.HasPrefix(got.text, tt.want) || strings.Contains(got.text, "secret-7") {
			t.Errorf("%s: %s", tt.what, got.text)
		}
		lines := strings.Split(strings.TrimSpace(trail.String()), "\n")
		var line struct {
			Outcome, Tool, Client, Error_id string
		}
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &line); err != nil {
			t.Fatal(err)
		}
		if line.Outcome != tt.outcome || line.Tool != "test_error" || line.Client != "tester" {
			t.Errorf("%s: audit line %s", tt.what, lines[len(lines)-1])
		}
		if id, found := strings.CutPrefix(got.text, "Internal error in test_error, id "); found {
			id, _, _ = strings.Cut(id, ".")
			if line.Error_id != id || !strings.Contains(logged.String(), "error_id="+id) {
				t.Errorf("%s: id %q is not that of the audit line %q or not in the log", tt.what, id, line.Error_id)
			}
		}
	}
	for _, want := range []string{"secret-7: connection", "panic=secret-7", "the result breaks its own schema", "tool_test.go"} {
		if !strings.Contains(logged.String(), want) {
			t.Errorf("%q is not in the log:\n%s", want, logged.String())
		}
	}
	if strings.Contains(trail.String(), "secret-7") || strings.Contains(trail.String(), `"what"`) {
		t.Errorf("the audit trail holds values: %s", trail.String())
	}
}

func TestAuditLine(t *testing.T) {
	var trail sink
	s := newServer(t, Options{Audit: &trail})
	Add(s, stayTool(), echo)
	call(t, dial(t, s, legacy, nil), "book_stay", `{"city":"Rome"}`)
	var line map[string]any
	if err := json.Unmarshal([]byte(trail.String()), &line); err != nil {
		t.Fatalf("%v: %s", err, trail.String())
	}
	if took, ok := line["duration_ms"].(float64); !ok || took < 0 {
		t.Errorf("duration_ms: %v", line["duration_ms"])
	}
	if _, err := time.Parse(time.RFC3339, line["time"].(string)); err != nil {
		t.Error(err)
	}
	delete(line, "time")
	delete(line, "duration_ms")
	want := map[string]any{
		"server": "test-mcp-server", "tool": "book_stay", "outcome": "ok", "client": "tester", "caller": "owner",
		"arguments_sha256": fmt.Sprintf("%x", sha256.Sum256([]byte(`{"city":"Rome"}`))),
	}
	if diff := cmp.Diff(want, line); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestRawResults(t *testing.T) {
	s := newServer(t, Options{})
	bare := func(name string) Tool { return Tool{Name: name, Description: "Makes one.", Hints: reading} }
	Add(s, bare("get_text"), func(context.Context, struct{}) (Text, error) { return "plain", nil })
	Add(s, bare("get_image"), func(context.Context, struct{}) (Content, error) {
		embedded, err := Embed("a://c", Contents{Text: "d"})
		return Content{Words("here"), Image([]byte{1, 2}, "image/png"), Audio([]byte{3}, "audio/wav"), Link("a://b", "b", "c"), embedded}, err
	})
	Add(s, bare("get_anything"), func(ctx context.Context, _ struct{}) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{Words("for " + RequestFrom(ctx).Client)}}, nil
	})
	session := dial(t, s, legacy, nil)
	if got := call(t, session, "get_text", `{}`); got.text != "plain" || got.data != "" {
		t.Errorf("text: %+v", got)
	}
	if got := call(t, session, "get_anything", `null`); got.text != "for tester" {
		t.Errorf("anything: %+v", got)
	}
	res, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "get_image"})
	if err != nil {
		t.Fatal(err)
	}
	kinds := ""
	for _, c := range res.Content {
		kinds += fmt.Sprintf("%T ", c)
	}
	if want := "*mcp.TextContent *mcp.ImageContent *mcp.AudioContent *mcp.ResourceLink *mcp.EmbeddedResource "; kinds != want {
		t.Errorf("got %s, want %s", kinds, want)
	}
	list, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range list.Tools {
		if tool.OutputSchema != nil {
			t.Errorf("%s has an output schema %v", tool.Name, tool.OutputSchema)
		}
	}
}

func TestToolsAddedLater(t *testing.T) {
	s := newServer(t, Options{})
	Add(s, stayTool(), echo)
	changed := make(chan struct{}, 8)
	session := dial(t, s, legacy, &sdk.ClientOptions{
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { changed <- struct{}{} },
	})
	Add(s, Tool{Name: "get_text", Description: "x", Hints: reading}, func(context.Context, struct{}) (Text, error) { return "later", nil })
	<-changed
	if got := call(t, session, "get_text", `{}`); got.text != "later" {
		t.Errorf("got %+v", got)
	}
}
