package mcp

import (
	"io"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman"
)

// TestSamplesWithTools: who takes tools in a question for a sample says so to servers, and
// nobody else is offered any.
func TestSamplesWithTools(t *testing.T) {
	const both = dragoman.AskSampling | dragoman.AskTools
	for capabilities, can := range map[string]dragoman.Kind{
		`{"sampling":{}}`:           dragoman.AskSampling,
		`{"sampling":{"tools":{}}}`: both,
	} {
		if got := declaredBy([]byte(capabilities)); got != can {
			t.Errorf("%s is read as %s", capabilities, got)
		}
		if got := (&Client{}).capabilities(can, false); string(got) != capabilities {
			t.Errorf("%s is declared as %s", can, got)
		}
	}
	for _, tt := range []struct {
		params string
		can    dragoman.Kind
		put    bool
	}{
		{`{"maxTokens":1}`, dragoman.AskSampling, true},
		{`{"maxTokens":1,"tools":[]}`, dragoman.AskSampling, false},
		{`{"maxTokens":1,"tools":[]}`, both, true},
	} {
		var id string
		serve := func(line []byte, out io.Writer) {
			switch o := object(line); {
			case o.Get("method") != nil:
				id = string(o.Get("id"))
				_, _ = io.WriteString(out, `{"jsonrpc":"2.0","id":"q","method":"sampling/createMessage","params":`+tt.params+"}\n")
			case !strings.Contains(string(o.Get("error")), `"code":-1,`):
				t.Errorf("%s: the server was told %s", tt.params, line)
			default:
				_, _ = io.WriteString(out, `{"jsonrpc":"2.0","id":`+id+`,"result":{}}`+"\n")
			}
		}
		pipedWith(t, &ClientOptions{Era: Legacy, Passive: true, Can: both}, serve, func(t *testing.T, c *Client) {
			call := question1("")
			call.Can = tt.can
			res, err := c.Call(t.Context(), call)
			if err != nil || res.Problem != nil || (res.Asks != nil) != tt.put {
				t.Fatalf("%s for who can be asked %s: %+v, %v", tt.params, tt.can, res, err)
			}
			if res.Asks != nil {
				call.Answers = &dragoman.Answers{State: res.Asks.State, Ran: res.Ran}
				_, _ = c.Call(t.Context(), call)
			}
		})
	}
	modern := func(can dragoman.Kind) error {
		f := &pendingCall{c: &Client{o: ClientOptions{Can: both}, peer: &peer{limits: Limits{Rounds: 1}}}, call: dragoman.Call{Can: can}}
		_, err := f.inputRequired(object([]byte(`{"inputRequests":{"q":{"method":"sampling/createMessage","params":{"tools":[]}}}}`)))
		return err
	}
	if err := modern(dragoman.AskSampling); err == nil {
		t.Error("a modern server may offer tools to who did not declare them")
	}
	if err := modern(both); err != nil {
		t.Error(err)
	}
}
