package terminal

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman"
)

const form = `{"message":"Which table?","requestedSchema":{"type":"object","properties":{
	"name":{"type":"string","title":"Your name","minLength":2},
	"seats":{"type":"integer","minimum":1,"maximum":8,"default":2},
	"outside":{"type":"boolean","description":"In the garden"},
	"menu":{"type":"string","enum":["a","b"],"enumNames":["À la carte","Business"]},
	"time":{"type":"string","oneOf":[{"const":"19:00","title":"seven"},{"const":"20:00","title":"eight"}]},
	"extras":{"type":"array","items":{"type":"string","enum":["candles","music","2"]}},
	"mail":{"type":"string"}},
	"required":["name","outside","menu"]}}`

func TestAsk(t *testing.T) {
	for _, tt := range []struct {
		name   string
		q      dragoman.Question
		typed  string
		want   string // "" for no reply
		screen []string
	}{
		{
			name: "a form", q: dragoman.Question{Kind: dragoman.AskForm, Params: json.RawMessage(form)},
			typed:  "x\nAnn\n9\n\nmaybe\ny\n3\nBusiness\neight\n1,2\n\n",
			want:   `{"action":"accept","content":{"name":"Ann","seats":2,"outside":true,"menu":"b","time":"20:00","extras":["candles","2"]}}`,
			screen: []string{"shop asks: Which table?", "Your name", "(integer, default 2)", "1) À la carte", "expected y or n", "expected a number from 1 to 2", "optional"},
		},
		{
			name: "a form that is declined half way", q: dragoman.Question{Kind: dragoman.AskForm, Params: json.RawMessage(form)},
			typed: "Ann\n/decline\n", want: `{"action":"decline"}`,
		},
		{
			name: "a form that is left", q: dragoman.Question{Kind: dragoman.AskForm, Params: json.RawMessage(form)},
			typed: "/cancel\n", want: `{"action":"cancel"}`,
		},
		{
			name: "a form, and the input ends", q: dragoman.Question{Kind: dragoman.AskForm, Params: json.RawMessage(form)},
			typed: "Ann\n", want: `{"action":"cancel"}`,
		},
		{
			name: "a form without fields", q: dragoman.Question{Kind: dragoman.AskForm, Params: json.RawMessage(`{"message":"Sure?","requestedSchema":{"type":"object","properties":{}}}`)},
			typed: "yes\n", want: `{"action":"accept","content":{}}`,
		},
		{
			name: "an address", q: dragoman.Question{Kind: dragoman.AskURL, Params: json.RawMessage(`{"mode":"url","message":"Log in","url":"https://example.com@evil.example/x"}`)},
			typed: "\n", want: `{"action":"decline"}`, screen: []string{"visit evil.example\n"},
		},
		{
			name: "a name that looks like another", q: dragoman.Question{Kind: dragoman.AskURL, Params: json.RawMessage(`{"mode":"url","message":"Log in","url":"https://\u0430pple.example:8443/x"}`)},
			typed: "\n", want: `{"action":"decline"}`, screen: []string{"visit \u0430pple.example:8443 (xn--pple-43d.example)\n"},
		},
		{
			name: "a name with another dot", q: dragoman.Question{Kind: dragoman.AskURL, Params: json.RawMessage(`{"mode":"url","message":"Log in","url":"https://shop.example%E3%80%82evil.example/x"}`)},
			typed: "\n", want: `{"action":"decline"}`, screen: []string{"(shop.example.evil.example)\n"},
		},
		{
			name: "an address that is none", q: dragoman.Question{Kind: dragoman.AskURL, Params: json.RawMessage(`{"mode":"url","message":"Log in","url":"javascript:alert(1)"}`)},
			want: `{"action":"cancel"}`,
		},
		{
			name: "an approval", q: dragoman.Question{Kind: dragoman.AskApproval, Params: json.RawMessage(`{"message":"It deletes."}`)},
			typed: "Y\n", want: `{"action":"accept"}`, screen: []string{"delete", `"path":"/tmp/x\u001b"`},
		},
		{
			name: "an approval that nobody gives", q: dragoman.Question{Kind: dragoman.AskApproval},
			typed: "of course\n", want: `{"action":"decline"}`,
		},
		{name: "sampling", q: dragoman.Question{Kind: dragoman.AskSampling, Params: json.RawMessage(`{}`)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			screen := &Screen{Writer: &out}
			asker := &Asker{In: NewLines(strings.NewReader(tt.typed), screen), Screen: screen}
			tt.q.Key, tt.q.Server = "q", "shop"
			call := dragoman.Call{Tool: &dragoman.Tool{Name: "delete"}, Arguments: json.RawMessage("{\"path\":\"/tmp/x\x1b\"}")}
			answers, err := asker.Ask(t.Context(), call, &dragoman.Asks{Questions: []dragoman.Question{tt.q}})
			if err != nil {
				t.Fatal(err)
			}
			if got := string(answers.Replies["q"]); got != tt.want {
				t.Errorf("answered %s\nwant     %s\nscreen:\n%s", got, tt.want, out.String())
			}
			for _, want := range tt.screen {
				if !strings.Contains(out.String(), want) {
					t.Errorf("the screen does not show %q:\n%s", want, out.String())
				}
			}
			if strings.ContainsRune(out.String(), 0x1b) {
				t.Error("what a server wrote takes over the terminal")
			}
		})
	}
}

func TestAskEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, _ := io.Pipe()
	screen := &Screen{Writer: io.Discard}
	asker := &Asker{In: NewLines(r, screen), Screen: screen}
	_, err := asker.Ask(ctx, dragoman.Call{}, &dragoman.Asks{Questions: []dragoman.Question{{Kind: dragoman.AskApproval}}})
	if err != context.Canceled {
		t.Errorf("Ask = %v", err)
	}
}

// A server that offers very many choices does not flood the terminal, and all of them
// can be chosen.
func TestManyChoices(t *testing.T) {
	values := strings.Repeat(`"a",`, 50_000) + `"last"`
	f := readFields(json.RawMessage(`{"type":"object","properties":{"x":{"enum":[` + values + `]}}}`))[0]
	shown := f.prompt(&Screen{Writer: io.Discard})
	if len(shown) > 10_000 || !strings.Contains(shown, "100) a\n    and 49901 more") {
		t.Errorf("%d characters: %.3000s", len(shown), shown)
	}
	for _, typed := range []string{"last", "50001"} {
		if value, err := f.read(typed); err != nil || string(value) != `"last"` {
			t.Errorf("%s: %s, %v", typed, value, err)
		}
	}
}
