package api

import (
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/dragoman-mcp/dragoman/internal/door"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// A wired client has a connection to a door.
type wired struct {
	*tested
	conn *websocket.Conn
}

// dial opens a connection.
func (d *tested) dial(headers ...string) *wired {
	d.Helper()
	h := http.Header{}
	for i := 0; i+1 < len(headers); i += 2 {
		h.Set(headers[i], headers[i+1])
	}
	conn, _, err := websocket.Dial(d.Context(), "ws"+strings.TrimPrefix(d.url, "http")+"/v1/responses", &websocket.DialOptions{HTTPHeader: h})
	if err != nil {
		d.Fatal(err)
	}
	conn.SetReadLimit(1 << 20)
	d.Cleanup(func() { _ = conn.CloseNow() })
	return &wired{d, conn}
}

func (w *wired) send(message string) {
	w.Helper()
	if err := w.conn.Write(w.Context(), websocket.MessageText, []byte(message)); err != nil {
		w.Fatal(err)
	}
}

// next returns the next event.
func (w *wired) next() *rawjson.Object {
	w.Helper()
	_, event, err := w.conn.Read(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	o, err := rawjson.ParseObject(event)
	if err != nil {
		w.Fatalf("%v: %s", err, event)
	}
	return o
}

// create asks for a response, and returns its events and the last one's response, or the
// error that came in its place.
func (w *wired) create(rest string) (events []*rawjson.Object, response *rawjson.Object) {
	w.Helper()
	w.send(`{"type":"response.create","model":"m",` + rest + `}`)
	return w.rest()
}

func (w *wired) rest() (events []*rawjson.Object, response *rawjson.Object) {
	w.Helper()
	for {
		event := w.next()
		events = append(events, event)
		switch kind, _ := rawjson.String(event.Get("type")); kind {
		case "response.completed", "response.failed", "response.incomplete":
			response, _ = rawjson.ParseObject(event.Get("response"))
			return events, response
		case "error":
			if event.Get("status") != nil {
				return events, nil
			}
		}
	}
}

// refused asks for what is refused, and returns the error's code and words.
func (w *wired) refused(message string) (code, words string) {
	w.Helper()
	w.send(message)
	event := w.next()
	failure, err := rawjson.ParseObject(event.Get("error"))
	if err != nil || string(event.Get("type")) != `"error"` || event.Get("status") == nil {
		w.Fatalf("%s: %s", message, event.Bytes())
	}
	code, _ = rawjson.String(failure.Get("code"))
	words, _ = rawjson.String(failure.Get("message"))
	return code, words
}

// One response after another comes over a connection, with our tools; each goes on from the
// one before, stored or not, and one that is not stored is the connection's alone.
func TestSocket(t *testing.T) {
	d := open(t, nil)
	w := d.dial()
	events, first := w.create(`"store":false,"input":"Call weather__get with {\"city\":\"Oslo\"}"`)
	for n, event := range events {
		if got, _ := rawjson.Int(event.Get("sequence_number")); got != n {
			t.Errorf("event %d has number %d", n, got)
		}
	}
	if d.tools.calls() == "" || first == nil || !strings.Contains(string(first.Get("output")), `"mcp_call"`) {
		t.Fatalf("%s", events[len(events)-1].Bytes())
	}
	id := idOf(first.Bytes())
	_, second := w.create(`"store":false,"input":"SAY more","previous_response_id":"` + id + `"`)
	if second == nil || told(second) == "" {
		t.Error("it is not gone on from")
	}
	if _, third := w.create(`"store":false,"input":"SAY even more","previous_response_id":"` + idOf(second.Bytes()) + `"`); third == nil {
		t.Error("it is not gone on from")
	}
	d.checkError(d.do("GET", "/v1/responses/"+id, ""), 404, "not_found")
	create := `{"type":"response.create","model":"m","input":"x","previous_response_id":"` + id + `"}`
	if code, _ := d.dial().refused(create); code != "previous_response_not_found" {
		t.Errorf("another connection: %s", code)
	}
	_, stored := w.create(`"input":"SAY hello"`)
	if _, next := d.dial().create(`"input":"SAY more","previous_response_id":"` + idOf(stored.Bytes()) + `"`); next == nil {
		t.Error("what is stored is not gone on from elsewhere")
	}
}

// A response that a refused request went on from is forgotten, where this connection alone
// has it.
func TestSocketForgets(t *testing.T) {
	d := open(t, nil, echoes(t, newEcho()))
	w := d.dial()
	_, made := w.create(`"store":false,"input":"one"`)
	_, stored := w.create(`"input":"one"`)
	const wrong = `"input":[{"type":"function_call_output","call_id":"nowhere","output":"x"}]`
	for _, tt := range []struct{ id, want string }{{idOf(made.Bytes()), "previous_response_not_found"}, {idOf(stored.Bytes()), ""}} {
		create := `{"type":"response.create","model":"m","store":false,"previous_response_id":"` + tt.id + `",`
		if code, _ := w.refused(create + wrong + `}`); code != "invalid_request" {
			t.Errorf("a result of nothing: %s", code)
		}
		if tt.want == "" {
			if _, next := w.create(`"store":false,"input":"two","previous_response_id":"` + tt.id + `"`); next == nil {
				t.Error("what is stored is not gone on from")
			}
		} else if code, _ := w.refused(create + `"input":"two"}`); code != tt.want {
			t.Errorf("it is %q", code)
		}
	}
}

// What was prepared can be gone on from.
func TestSocketPrepares(t *testing.T) {
	d := open(t, nil, echoes(t, newEcho()))
	w := d.dial()
	events, ready := w.create(`"store":false,"generate":false,"input":[` + message("user", "one") + `]`)
	if len(events) != 3 || ready == nil || string(ready.Get("output")) != "[]" || string(ready.Get("status")) != `"completed"` {
		t.Fatalf("%d events, %s", len(events), events[0].Bytes())
	}
	_, made := w.create(`"store":false,"input":[` + message("user", "two") + `],"previous_response_id":"` + idOf(ready.Bytes()) + `"`)
	if told(made) != "<user one|user two>" {
		t.Errorf("%s", told(made))
	}
}

// Those that are asked for at once are made one at a time, in their order; and a connection
// that ends takes the one that is being made with it.
func TestSocketOneAtATime(t *testing.T) {
	e := newEcho()
	d := start(t, filepath.Join(t.TempDir(), "dragoman.db"), echoes(t, e)).tested
	id := idOf(d.ok("POST", "/v1/conversations", `{}`).Bytes())
	w := d.dial()
	for _, input := range []string{"wait", "two"} {
		w.send(`{"type":"response.create","model":"m","input":"` + input + `","conversation":"` + id + `"}`)
	}
	<-e.came
	e.let <- struct{}{}
	if _, first := w.rest(); told(first) != "<user wait>" {
		t.Errorf("%s", told(first))
	}
	if _, second := w.rest(); told(second) != "<user wait|assistant <user wait>|user two>" {
		t.Errorf("%s", told(second))
	}
	other := d.dial()
	other.send(`{"type":"response.create","model":"m","input":"wait more","conversation":"` + id + `"}`)
	<-e.came
	_ = other.conn.CloseNow()
	if _, next := w.create(`"input":"three","conversation":"` + id + `"`); next == nil || strings.Contains(told(next), "wait more") {
		t.Errorf("%v", next) // it has waited until the other one let go
	}
}

// What is not for this way is refused in words, and the connection goes on.
func TestSocketRefuses(t *testing.T) {
	d := open(t, nil, echoes(t, newEcho()))
	w := d.dial()
	for message, want := range map[string]string{
		`{"type":"response.steer","previous_response_id":"x","input":[]}`:      codeNotOverSocket,
		`{"type":"response.create","model":"m","input":"x","stream_id":"a"}`:   codeNotOverSocket,
		`{"type":"response.create","model":"m","input":"x","background":true}`: codeNotOverSocket,
		`{"type":"session.update"}`:                                      codeSocketEvent,
		`{"model":"m","input":"x"}`:                                      codeSocketEvent,
		`{"type":"response.create","model":"m","model":"n","input":"x"}`: "invalid_json",
		`not JSON`:                               "invalid_json",
		`{"type":"response.create","model":"m"}`: "invalid_request",
		`{"type":"response.create","model":"m","input":"x","conversation":"conv_1"}`: "not_found",
	} {
		if code, words := w.refused(message); code != want || words == "" {
			t.Errorf("%s: %s %q", message, code, words)
		}
	}
	if err := w.conn.Write(t.Context(), websocket.MessageBinary, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if event := w.next(); string(event.Get("type")) != `"error"` {
		t.Errorf("%s", event.Bytes())
	}
	if _, made := w.create(`"input":"one"`); told(made) != "<user one>" {
		t.Error("the connection does not go on")
	}
	if a := d.do("GET", "/v1/responses", ""); a.status != http.StatusUpgradeRequired {
		t.Errorf("%d", a.status)
	}
}

// Who asks for responses by GET is told how to ask. Over HTTP/2 nothing is said of the connection:
// clients such as curl and Node.js take such an answer for broken.
func TestResponsesByGet(t *testing.T) {
	var options Options
	open(t, func(o *Options) { options = *o })
	mux := door.NewMux(func(w http.ResponseWriter, r *http.Request, route *door.Route) {
		route.Serve(w, r, caller.Caller{ID: "somebody", Grants: []string{"*"}})
	})
	mux.Handle(New(options).Routes()...)
	for major, upgrade := range map[int]string{1: "websocket", 2: ""} {
		server := httptest.NewUnstartedServer(mux)
		server.EnableHTTP2 = major == 2
		server.StartTLS()
		res, err := server.Client().Get(server.URL + "/v1/responses")
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.ProtoMajor != major || res.StatusCode != http.StatusUpgradeRequired || res.Header.Get("Upgrade") != upgrade || (res.Header.Get("Connection") == "") != (upgrade == "") {
			t.Errorf("%s: %d %v", res.Proto, res.StatusCode, res.Header)
		}
		server.Close()
	}
}

// closed waits for the end of a connection, and returns how it was closed.
func (w *wired) closed() websocket.StatusCode {
	w.Helper()
	for {
		if _, _, err := w.conn.Read(w.Context()); err != nil {
			return websocket.CloseStatus(err)
		}
	}
}

// A connection ends after its time, with words, and when the gateway stops once the response
// is made that it is at.
func TestSocketEnds(t *testing.T) {
	e := newEcho()
	var state *State
	with := func(life time.Duration) *tested {
		return open(t, func(o *Options) {
			o.State = NewState(o.Kept)
			state = o.State
			state.sockets.life = life
		}, echoes(t, e))
	}
	w := with(time.Millisecond).dial()
	if event := w.next(); !strings.Contains(string(event.Get("error")), codeSocketOver) {
		t.Errorf("%s", event.Bytes())
	}
	if code := w.closed(); code != websocket.StatusNormalClosure {
		t.Errorf("closed with %d", code)
	}
	d := with(socketLife)
	w = d.dial()
	w.send(`{"type":"response.create","model":"m","input":"wait"}`)
	<-e.came
	state.Stop()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if state.Stopped(ended) == nil {
		t.Error("nothing is waited for")
	}
	e.let <- struct{}{}
	if _, made := w.rest(); told(made) != "<user wait>" {
		t.Error("the response was not made")
	}
	if code := w.closed(); code != websocket.StatusGoingAway {
		t.Errorf("closed with %d", code)
	}
	if err := state.Stopped(t.Context()); err != nil {
		t.Error(err)
	}
	d.checkError(d.do("GET", "/v1/responses", "", "Upgrade", "websocket", "Connection", "Upgrade"), 503, "stopping")
}
