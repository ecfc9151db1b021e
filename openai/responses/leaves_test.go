package responses

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/openai/chat"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// A leaving client is gone by the time that a tool has run.
type leaving struct {
	http.ResponseWriter
	p *player
}

func (l leaving) Write(b []byte) (int, error) {
	if len(l.p.ran) > 0 {
		return 0, errors.New("the client has left")
	}
	return l.ResponseWriter.Write(b)
}

// Unwrap is for [http.ResponseController].
func (l leaving) Unwrap() http.ResponseWriter { return l.ResponseWriter }

// TestLeftAtAResult: where it turns out that the client has left when it is to be told a
// result, as over a WebSocket, the model reads the call once when the person goes on.
func TestLeftAtAResult(t *testing.T) {
	p := newPlayer(t)
	first := `{"role":"developer","content":"Be brief."},{"role":"user","content":"Weather? ` + strings.Repeat("Please. ", 40) + `"}`
	const members = `"model":"m","stream":true,"safety_identifier":"ada"`
	p.answers = []string{called("weather__get", oslo)}
	request, err := Parse([]byte(`{` + members + `,"input":[` + first + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	client := &model.Client{Post: p.post}
	client.Dialect, _ = dialect.For(p.dialect)
	c, err := New(request, leaving{httptest.NewRecorder(), p}, Options{
		Options: chat.Options{Model: client, Memory: p.memory, Caller: p.caller, Running: &p.running, ID: "req_1"}, Store: p.store, Seals: p.seals,
	})
	if err != nil {
		t.Fatal(err)
	}
	loop := dragoman.Loop{Tools: shop{p}}
	err = loop.Run(t.Context(), c)
	if len(p.ran) != 1 {
		t.Fatalf("%d calls ran: %v", len(p.ran), err)
	}
	p.say(`{"model":"m","safety_identifier":"ada","input":[`+first+`,{"role":"user","content":"And now?"}]}`, spoken("Rain."))
	if m := p.messages(); strings.Count(m, `"role":"tool"`) != 1 {
		t.Errorf("the model read %s", m)
	}
}
