package toolkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

type party struct {
	Name  string   `json:"name" title:"Whose party?" min:"2"`
	Size  int      `json:"size" default:"3" max:"20"`
	Mood  string   `json:"mood,omitempty" enum:"loud,quiet"`
	Extra []string `json:"extra,omitempty" enum:"cake,music"`
}

type yes struct {
	Sure bool `json:"sure"`
}

// partyServer asks twice, and notes what it did.
func partyServer(t *testing.T, o Options, rate Rate, did *[]string) *Server {
	s := newServer(t, o)
	Add(s, Tool{
		Name: "book_party", Description: "x", Hints: Hints{ReadOnly: No, Destructive: No, Idempotent: No, OpenWorld: No},
		Examples: []Example{{Ask: "x", Arguments: `{"day":"Monday"}`}}, Rate: rate,
	}, func(ctx context.Context, day struct {
		Day string `json:"day"`
	}) (Text, error) {
		Progress(ctx, 1, 3, "asking")
		p, err := Ask[party](ctx, "A party on "+day.Day)
		if err != nil {
			return "", fmt.Errorf("booking: %w", err)
		}
		Progress(ctx, 2, 3, "asking again")
		sure, err := Ask[yes](ctx, "Sure?")
		if err != nil {
			return "", err
		}
		*did = append(*did, p.Name)
		return Text(fmt.Sprint(day.Day, " ", p.Name, " ", p.Size, " ", p.Extra, " ", sure.Sure)), nil
	})
	return s
}

// replies are what somebody answers, in turn, by the beginning of what is asked.
func replies(t *testing.T, all map[string]*sdk.ElicitResult, asked *[]string) *sdk.ClientOptions {
	return &sdk.ClientOptions{ElicitationHandler: func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
		*asked = append(*asked, r.Params.Message)
		word, _, _ := strings.Cut(r.Params.Message, " ")
		answer := all[word]
		if answer == nil {
			return nil, errors.New("somebody tripped over the cable")
		}
		return answer, nil
	}}
}

// TestAskInBothEras: a tool asks in one line, a client of either era is asked, the
// function goes on with the answers, and does once what follows them.
func TestAskInBothEras(t *testing.T) {
	ada := &sdk.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ada", "extra": []any{"cake"}}}
	sure := &sdk.ElicitResult{Action: "accept", Content: map[string]any{"sure": true}}
	for name, tt := range map[string]struct {
		answers map[string]*sdk.ElicitResult
		mute    bool // the client cannot ask
		want    string
		failed  bool
		asked   int
		did     int
	}{
		"accepted":       {answers: map[string]*sdk.ElicitResult{"A": ada, "Sure?": sure}, want: "Monday Ada 3 [cake] true", asked: 2, did: 1},
		"declined":       {answers: map[string]*sdk.ElicitResult{"A": {Action: "decline"}}, want: "The user was asked and said no.", failed: true, asked: 1},
		"dismissed":      {answers: map[string]*sdk.ElicitResult{"A": {Action: "cancel"}}, want: "The user was asked and gave no answer.", failed: true, asked: 1},
		"declined later": {answers: map[string]*sdk.ElicitResult{"A": ada, "Sure?": {Action: "decline"}}, want: "said no", failed: true, asked: 2},
		"no forms":       {mute: true, want: "shows no forms", failed: true},
	} {
		for _, version := range []string{legacy, modern} {
			t.Run(name+"/"+version, func(t *testing.T) {
				var did, asked []string
				var trail sink
				rate := Rate{PerSecond: 1e-6, Burst: 1}
				if version == modern {
					rate.Burst = 1 + tt.asked // each leg is a call there
				}
				s := partyServer(t, Options{Audit: &trail}, rate, &did)
				o := replies(t, tt.answers, &asked)
				if tt.mute {
					o = nil
				}
				session := dial(t, s, version, o)
				arguments := `{"day":"Monday"}`
				got := call(t, session, "book_party", arguments)
				if !strings.Contains(got.text, tt.want) || got.failed != tt.failed {
					t.Errorf("got %+v, want %q", got, tt.want)
				}
				if len(asked) != tt.asked || len(did) != tt.did {
					t.Errorf("asked %q, did %q", asked, did)
				}
				if n := strings.Count(trail.String(), `"outcome":"asked"`); n != tt.asked {
					t.Errorf("%d of %d questions are in the trail:\n%s", n, tt.asked, trail.String())
				}
			})
		}
	}
}

// TestClientFailsToAsk: what a client of the legacy era gives as an error is logged,
// not shown to the model; the tool can tell it from a no.
func TestClientFailsToAsk(t *testing.T) {
	var log sink
	var asked []string
	var what error
	s := newServer(t, Options{Logger: loggingTo(&log)})
	Add(s, Tool{Name: "ask_user", Description: "x", Hints: reading}, func(ctx context.Context, _ struct{}) (Text, error) {
		_, what = Ask[yes](ctx, "Hello?")
		return "unreached", what
	})
	got := call(t, dial(t, s, legacy, replies(t, nil, &asked)), "ask_user", `{}`)
	if !got.failed || got.text != "The user could not be asked: the client failed to." || !errors.Is(what, ErrCannotAsk) || !strings.Contains(log.String(), "cable") {
		t.Errorf("%+v, %v, %s", got, what, log.String())
	}
	if _, err := Ask[yes](t.Context(), "Hello?"); !errors.Is(err, ErrCannotAsk) {
		t.Errorf("outside of a call: %v", err)
	}
}

// TestAnswersBelongToTheirQuestion: an answer is good for its question, in a call with
// its arguments; any other is asked anew, as is where the state is none of ours.
func TestAnswersBelongToTheirQuestion(t *testing.T) {
	var did []string
	s := newServer(t, Options{})
	Add(s, Tool{Name: "delete_notes", Description: "x", Hints: Hints{ReadOnly: No, Destructive: Yes, Idempotent: Yes, OpenWorld: No},
		Examples: []Example{{Ask: "x", Arguments: `{"of":"ada"}`}}}, func(ctx context.Context, in struct {
		Of string `json:"of"`
	}) (Text, error) {
		first, err := Ask[yes](ctx, "All of them?")
		if err != nil {
			return "", err
		}
		second, err := Ask[yes](ctx, "All of them?") // the same words are a second question
		if err != nil {
			return "", err
		}
		did = append(did, in.Of)
		return Text(fmt.Sprint(first.Sure, second.Sure)), nil
	})
	o := replies(t, nil, new([]string))
	o.MultiRoundTrip = &sdk.MultiRoundTripOptions{Disabled: true}
	session := dial(t, s, modern, o)
	send := func(arguments, state string, answers sdk.InputResponseMap) *sdk.CallToolResult {
		t.Helper()
		res, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "delete_notes", Arguments: json.RawMessage(arguments), RequestState: state, InputResponses: answers})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	key := func(res *sdk.CallToolResult) string {
		t.Helper()
		if len(res.InputRequests) != 1 || len(did) > 0 {
			t.Fatalf("%d questions, did %q", len(res.InputRequests), did)
		}
		for key := range res.InputRequests {
			return key
		}
		return ""
	}
	accepted := func(key string) sdk.InputResponseMap {
		return sdk.InputResponseMap{key: &sdk.ElicitResult{Action: "accept", Content: map[string]any{"sure": true}}}
	}
	first := key(send(`{"of":"ada"}`, "", nil))
	if again := key(send(`{"of":"ada"}`, "", nil)); again != first {
		t.Error("the same question has another name")
	}
	if other := key(send(`{"of":"bob"}`, "", accepted(first))); other == first {
		t.Error("an answer is good for other arguments")
	}
	for _, state := range []string{"nonsense", "null", `{"x":null}`, `[]`, strings.Repeat(" ", maxAskState+1)} {
		if again := key(send(`{"of":"ada"}`, state, nil)); again != first {
			t.Errorf("state %.20q: another question", state)
		}
	}
	step := send(`{"of":"ada"}`, "", accepted(first))
	second := key(step)
	if second == first || step.RequestState == "" {
		t.Fatalf("the second question is the first, state %q", step.RequestState)
	}
	if other := key(send(`{"of":"bob"}`, step.RequestState, accepted(second))); other == first || other == second {
		t.Error("a state is good for other arguments")
	}
	res := send(`{"of":"ada"}`, step.RequestState, accepted(second))
	if len(res.InputRequests) > 0 || res.IsError || len(did) != 1 {
		t.Errorf("%+v, did %q", res, did)
	}
	misfit := sdk.InputResponseMap{first: &sdk.ElicitResult{Action: "accept", Content: map[string]any{"sure": "maybe", "more": 1}}}
	if res := send(`{"of":"ada"}`, "", misfit); !res.IsError || !strings.Contains(res.Content[0].(*sdk.TextContent).Text, "What the user filled in cannot be used: ") {
		t.Errorf("what does not fit is taken: %+v", res)
	}
}

// TestAskedWhateverIsReturned: a function that goes on without its answer has done so
// in vain; the person is asked. One that never ends asking is ended.
func TestAskedWhateverIsReturned(t *testing.T) {
	yesSure := map[string]*sdk.ElicitResult{"Sure?": {Action: "accept", Content: map[string]any{"sure": true}}, "Again": {Action: "accept", Content: map[string]any{"sure": true}}}
	var asked []string
	s := newServer(t, Options{})
	Add(s, Tool{Name: "check_thing", Description: "x", Hints: reading}, func(ctx context.Context, _ struct{}) (Text, error) {
		sure, _ := Ask[yes](ctx, "Sure?")
		return Text(fmt.Sprint(sure.Sure)), nil
	})
	n := 0
	Add(s, Tool{Name: "check_forever", Description: "x", Hints: reading}, func(ctx context.Context, _ struct{}) (Text, error) {
		n++
		_, err := Ask[yes](ctx, fmt.Sprint("Again ", n))
		return "done", err
	})
	session := dial(t, s, legacy, replies(t, yesSure, &asked))
	if got := call(t, session, "check_thing", `{}`); got.text != "true" {
		t.Errorf("%+v", got)
	}
	if got := call(t, session, "check_forever", `{}`); !got.failed || !strings.Contains(got.text, "each answer led to another question") || len(asked) != 1+maxAsks {
		t.Errorf("%+v, asked %d times", got, len(asked))
	}
}

// TestFormSchema: a form is flat and plain, as clients want it; what cannot be in one
// is named.
func TestFormSchema(t *testing.T) {
	got, err := FormSchema[party]()
	const want = `{"type":"object","properties":{"name":{"type":"string","title":"Whose party?","minLength":2},"size":{"type":"integer","maximum":20,"default":3},` +
		`"mood":{"type":"string","enum":["loud","quiet"]},"extra":{"type":"array","items":{"type":"string","enum":["cake","music"]}}},"required":["name"]}`
	if diff := cmp.Diff(want, string(got)); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	_, err = FormSchema[struct {
		Deep  party
		Map   map[string]string
		Words []string
		Data  []byte
		Maybe string  `nullable:"true"`
		Above float64 `above:"0"`
		ID    string  `format:"uuid"`
		Size  int     `enum:"1,2"`
		Fine  string  `format:"email"`
	}]()
	for _, name := range []string{"Deep", "Map", "Words", "Data", "Maybe", "Above", "ID", "Size"} {
		if err == nil || !strings.Contains(err.Error(), "struct."+name+": ") {
			t.Errorf("%s is not in %v", name, err)
		}
	}
	if err != nil && strings.Contains(err.Error(), "Fine") {
		t.Error(err)
	}
	if _, err := FormSchema[string](); err == nil {
		t.Error("a string is a form")
	}
}

// TestAskWhenRunAgain runs a function twice in one leg, as a middleware that tries again
// does, and a list whose page was too long: it is the same question.
func TestAskWhenRunAgain(t *testing.T) {
	tries := 0
	s := newServer(t, Options{Around: []Middleware{func(ctx context.Context, _ *Request, next func(context.Context) error) error {
		err := next(ctx)
		if err != nil {
			tries++
			err = next(ctx)
		}
		return err
	}}})
	Add(s, Tool{Name: "do_thing", Description: "x", Hints: reading}, func(ctx context.Context, _ struct{}) (Text, error) {
		_, err := Ask[yes](ctx, "Sure?")
		return "done", err
	})
	Add(s, Tool{Name: "do_shaky", Description: "x", Hints: reading}, func(ctx context.Context, _ struct{}) (Text, error) {
		if _, err := Ask[yes](ctx, "Sure?"); err != nil {
			return "", err
		}
		if tries == 1 {
			return "", errors.New("the connection broke")
		}
		return "done", nil
	})
	AddList(s, Tool{Name: "list_things", Description: "x", Hints: reading, Cursor: true, Characters: 1000}, func(ctx context.Context, _ struct{}, p Page) (Listing[string], error) {
		_, err := Ask[yes](ctx, "Sure?")
		return Listing[string]{Items: slices.Repeat([]string{strings.Repeat("x", 100)}, p.Limit), Total: -1, Next: "more"}, err
	})
	for _, version := range []string{legacy, modern} {
		for _, tool := range []string{"do_thing", "do_shaky", "list_things"} {
			var asked []string
			tries = 0
			session := dial(t, s, version, replies(t, map[string]*sdk.ElicitResult{"Sure?": {Action: "accept", Content: map[string]any{"sure": true}}}, &asked))
			if got := call(t, session, tool, `{}`); got.failed || len(asked) != 1 {
				t.Errorf("%s, %s: asked %q: %s", version, tool, asked, got.text)
			}
		}
	}
}

// TestMiddlewareAsks has a middleware that asks before each call, as one that has changes
// confirmed does, and a function that asks, too.
func TestMiddlewareAsks(t *testing.T) {
	s := newServer(t, Options{Around: []Middleware{func(ctx context.Context, _ *Request, next func(context.Context) error) error {
		if _, err := Ask[yes](ctx, "Sure?"); err != nil {
			return err
		}
		return next(ctx)
	}}})
	for name, question := range map[string]string{"do_thing": "", "do_more": "Really?", "do_same": "Sure?"} {
		Add(s, Tool{Name: name, Description: "x", Hints: reading}, func(ctx context.Context, _ struct{}) (Text, error) {
			if question == "" {
				return "done", nil
			}
			_, err := Ask[yes](ctx, question)
			return "done", err
		})
	}
	for _, version := range []string{legacy, modern} {
		for tool, want := range map[string]int{"do_thing": 1, "do_more": 2, "do_same": 2} {
			var asked []string
			accept := &sdk.ElicitResult{Action: "accept", Content: map[string]any{"sure": true}}
			session := dial(t, s, version, replies(t, map[string]*sdk.ElicitResult{"Sure?": accept, "Really?": accept}, &asked))
			if got := call(t, session, tool, `{}`); got.failed || got.text != "done" || len(asked) != want {
				t.Errorf("%s, %s: asked %q: %s", version, tool, asked, got.text)
			}
		}
	}
}

// TestInputRequests: what [Request.SDK] says of requests that the toolkit has no word for
// holds in both eras.
func TestInputRequests(t *testing.T) {
	s := newServer(t, Options{})
	Add(s, Tool{Name: "open_page", Description: "x", Hints: reading}, func(ctx context.Context, _ struct{}) (*sdk.CallToolResult, error) {
		if answer, ok := RequestFrom(ctx).SDK.Params.InputResponses["page"].(*sdk.ElicitResult); ok {
			return &sdk.CallToolResult{Content: []sdk.Content{Words(answer.Action)}}, nil
		}
		return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{"page": &sdk.ElicitParams{
			Mode: "url", Message: "Have a look.", URL: "https://example.com/", ElicitationID: "1",
		}}}, nil
	})
	for _, version := range []string{legacy, modern} {
		session := dial(t, s, version, &sdk.ClientOptions{
			Capabilities: &sdk.ClientCapabilities{Elicitation: &sdk.ElicitationCapabilities{URL: &sdk.URLElicitationCapabilities{}}},
			ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
				return &sdk.ElicitResult{Action: "accept"}, nil
			},
		})
		if got := call(t, session, "open_page", `{}`); got.failed || got.text != "accept" {
			t.Errorf("%s: %+v", version, got)
		}
	}
}
