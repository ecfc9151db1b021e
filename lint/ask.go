package lint

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/schema"
)

// Names of the single requests in [Live.Answers].
const (
	askPing         = "ping"         // legacy
	askDiscover     = "discover"     // server/discover, modern
	askUnknown      = "unknown"      // a method that does not exist
	askUnknownTool  = "unknown tool" // a tool that does not exist
	askCursor       = "cursor"       // a list with a cursor that nobody gave out
	askMalformed    = "malformed"    // what is not JSON
	askResource     = "resource"     // a resource that does not exist
	askBare         = "bare"         // modern, without _meta
	askGreeting     = "greeting"     // legacy: initialize with a version that there is not
	askVersion      = "version"      // modern, of a version that does not exist
	askEnvelope     = "envelope"     // modern: initialize with the _meta of its era
	askHeader       = "header"       // legacy HTTP: a version in the header that there is not
	askGet          = "get"          // HTTP: the stream that a server may have
	askNotification = "notification"
	askMismatch     = "mismatch"      // modern HTTP: header and body differ
	askOrigin       = "origin"        // from a page of another origin
	askHost         = "host"          // by a name that is not its own
	askAnonymous    = "anonymous"     // without credentials, in the session
	askStranger     = "stranger"      // a greeting without credentials
	askForged       = "forged"        // with a token that nobody signed
	askOldSession   = "old session"   // with a session that was deleted
	askMixed        = "mixed"         // the answer that another client should have got
	nonsense        = "dragoman_lint" // part of every name that we make up
	unknownMethod   = nonsense + "/unknown"
	unknownTool     = nonsense + "_unknown_tool"
	notJSON         = "a message that is not JSON" // an input of rough
)

// patience is how long we wait for answers that many servers never give.
const patience = 5 * time.Second

// note writes an answer down. That the server was gone by then says nothing about
// how it answers.
func (w *watcher) note(name string, a Answer) {
	if a.Err != errGone {
		w.live.Answers[name] = a
	}
}

// protocol sends what a client never sends, one request at a time.
func (w *watcher) protocol() {
	c := w.main
	w.note(askUnknown, w.ask(c, unknownMethod, params()))
	if len(w.server.Tools) > 0 {
		w.note(askUnknownTool, w.ask(c, "tools/call", params("name", `"`+unknownTool+`"`, "arguments", `{}`)))
		w.note(askCursor, w.send(c, w.message(c, "tools/list", params("cursor", `"`+nonsense+`"`)), patience))
	}
	if !c.client.modern() {
		w.note(askPing, w.health(c))
	}
	w.notify()
	if _, ok := w.live.Others["resources/list"]; ok {
		w.note(askResource, w.ask(c, "resources/read", params("uri", `"dragoman-lint://nothing"`)))
	}
	if c.client.modern() {
		w.note(askDiscover, w.ask(c, "server/discover", params()))
		if w.live.Web != nil {
			// On standard input such a request may be one of a legacy client.
			w.note(askBare, w.send(c, w.bare(c), patience))
		}
		w.note(askVersion, w.send(c, w.unknownVersion(c), patience))
	}
}

// notify sends a notification, which on standard output must get no answer.
func (w *watcher) notify() {
	if w.live.Web != nil {
		return // [watcher.doors] does
	}
	w.note(askNotification, w.send(w.main, raw{
		body: []byte(`{"jsonrpc":"2.0","method":"notifications/` + nonsense + `"}`), method: "notifications/" + nonsense,
	}, time.Second))
}

// usual are the headers without which a modern server does not even read the
// body.
func (w *watcher) usual(c *connection) map[string]string {
	if !c.client.modern() {
		return nil
	}
	return map[string]string{"Mcp-Method": "tools/list", "Mcp-Protocol-Version": c.client.version()}
}

// bare is a modern request without the _meta that each must have.
func (w *watcher) bare(c *connection) raw {
	m := w.message(c, "tools/list", params())
	o, _ := rawjson.ParseObject(m.body) // our own
	o.Set("params", json.RawMessage(`{}`))
	m.body = o.Bytes()
	return m
}

func (w *watcher) unknownVersion(c *connection) raw {
	const version = noVersion
	m := w.message(c, "tools/list", params())
	o, _ := rawjson.ParseObject(m.body) // our own
	p, _ := rawjson.ParseObject(o.Get("params"))
	meta, _ := rawjson.ParseObject(p.Get("_meta"))
	meta.Set("io.modelcontextprotocol/protocolVersion", rawjson.Quote(version))
	p.Set("_meta", meta.Bytes())
	o.Set("params", p.Bytes())
	m.body = o.Bytes()
	m.header["Mcp-Protocol-Version"] = version
	return m
}

// health asks whether the server still answers.
func (w *watcher) health(c *connection) Answer {
	method := "ping"
	if c.client.modern() {
		method = "server/discover"
	}
	return w.send(c, w.message(c, method, params()), patience)
}

// crowdSize is how many requests are sent at once.
const crowdSize = 20

// crowd sends the same harmless request many times at once.
func (w *watcher) crowd() {
	if len(w.server.Tools) == 0 {
		return
	}
	messages := make([]raw, crowdSize)
	for i := range messages {
		messages[i] = w.message(w.main, "tools/list", params())
	}
	answers := make([]Answer, crowdSize)
	var wg sync.WaitGroup
	for i, m := range messages {
		wg.Go(func() { answers[i] = w.send(w.main, m, w.budget.Answer) })
	}
	wg.Wait()
	w.live.Crowd = answers
}

// second opens a second connection: to see whether it lists the same tools, and
// to send bad input where it harms nothing else.
func (w *watcher) second() {
	c, err := w.connect(otherName)
	if err != nil {
		return // the first connection came about; that this one did not shows nowhere
	}
	defer w.disconnect(c)
	if len(w.live.Lists) > 0 && w.live.Lists[0].Endless == "" {
		w.others(c)
		if w.live.Lists[0].Err == nil {
			w.mix(c)
		}
	}
	w.rough(c)
}

// mix sends two requests with one id from two clients at once. The server must
// not mix the answers up.
func (w *watcher) mix(other *connection) {
	if w.live.Web == nil || w.live.Transport == "sse" {
		return
	}
	for range 5 {
		list := w.message(w.main, "tools/list", params())
		wrong := w.message(other, unknownMethod, params())
		o, _ := rawjson.ParseObject(wrong.body) // our own
		o.Set("id", json.RawMessage(list.id))
		wrong.id, wrong.body = list.id, o.Bytes()
		var a, b Answer
		var wg sync.WaitGroup
		wg.Go(func() { a = w.send(w.main, list, patience) })
		wg.Go(func() { b = w.send(other, wrong, patience) })
		wg.Wait()
		// A method that there is not may be answered with a result, which is another fault.
		if o, err := rawjson.ParseObject(b.Result); a.failed() && a.Code == -32601 || err == nil && o.Get("tools") != nil {
			w.note(askMixed, b)
			return
		}
	}
}

// rough sends bad input, and after each looks whether the server still answers.
func (w *watcher) rough(c *connection) {
	name := unknownTool
	field := "text"
	for _, t := range w.server.Tools {
		if w.mayCall(t) {
			name = t.Name
			for _, p := range t.Params() {
				if p.Schema.Get("type").IsString("string") {
					field = p.Name
				}
			}
			break
		}
	}
	r := &w.live.Rough
	r.Tried = true
	for _, input := range roughInputs(name, field, w.long) {
		if w.ctx.Err() != nil {
			return
		}
		var m raw
		if input.body != "" {
			m = raw{body: []byte(input.body), header: w.usual(c)}
		} else {
			m = w.message(c, "tools/call", input.params)
		}
		r.Sent = append(r.Sent, input.name)
		a := w.roughly(c, m, input.body != "")
		// Not everybody answers what is not JSON, and a tool that is slow with good
		// arguments may be so with bad ones.
		silent := a.Err != nil && input.body == "" && (input.envelope || w.prompt(name))
		if input.body != "" {
			w.live.Answers[askMalformed] = a
		}
		health := w.health(c)
		switch {
		case gone(c):
			r.Died, r.Why, r.Gone = input.name, "the server was gone", !input.envelope
		case health.Err != nil || health.Status == 404 || health.Result == nil && health.Code == 0:
			r.Died, r.Why = input.name, "the next request got "+health.says()
		case silent && w.ctx.Err() == nil:
			r.Died, r.Why, r.Gone = input.name, "the request itself got no answer", !input.envelope
		default:
			continue
		}
		return
	}
}

// roughly sends bad input. What is not even a message gets no answer from many servers,
// which over lines have passed it by once they answer what came after it, twice.
func (w *watcher) roughly(c *connection, m raw, noMessage bool) Answer {
	if !noMessage || w.live.Web != nil {
		return w.send(c, m, patience)
	}
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	wrote := make(chan struct{})
	m.wrote = wrote
	answered := make(chan Answer, 1)
	go func() { answered <- w.sendUntil(ctx, c, m, patience) }()
	select {
	case a := <-answered:
		return a
	case <-wrote:
	}
	for range 2 {
		if w.health(c).Err != nil {
			return <-answered // it may answer what it got before, in its time
		}
	}
	cancel()
	return <-answered
}

// prompt reports whether every call of a tool so far was answered soon.
func (w *watcher) prompt(name string) bool {
	for _, c := range w.live.Calls {
		if c.Tool.Name == name && (c.Err != nil || c.Took > patience/2) {
			return false
		}
	}
	return true
}

func gone(c *connection) bool {
	select {
	case <-c.wire.gone():
		return true
	default:
		return false
	}
}

// A roughInput is one thing that no server should be harmed by.
type roughInput struct {
	name   string
	params rawjson.Object
	body   string // instead of params
	// envelope reports that the message itself is bad, not what it carries.
	envelope bool
}

func roughInputs(tool, field string, long int) []roughInput {
	name := string(rawjson.Quote(tool))
	argument := func(value string) string { return "{" + string(rawjson.Quote(field)) + ":" + value + "}" }
	return []roughInput{
		{name: "arguments that are null", params: params("name", name, "arguments", `null`)},
		{name: "arguments that are an array", params: params("name", name, "arguments", `[1,2]`)},
		{name: "an argument that is null", params: params("name", name, "arguments", argument(`null`))},
		{name: "a string of one megabyte", params: params("name", name, "arguments", argument(`"`+strings.Repeat("x", long)+`"`))},
		{name: "arguments nested 400 levels deep", params: params("name", name, "arguments", argument(strings.Repeat(`{"a":`, 400)+`1`+strings.Repeat(`}`, 400)))},
		{name: "a call without a tool's name", params: params("arguments", `{}`), envelope: true},
		{name: notJSON, body: `{"jsonrpc":"2.0","id":1,"method":tools/list}`, envelope: true},
	}
}

// mayCall reports whether the tool may be called under the chosen probe.
func (w *watcher) mayCall(t *Tool) bool {
	if t.Malformed != nil || t.Refusal != nil || t.Name == "" || !isObject(t) {
		return false
	}
	if w.probe == ProbeAll {
		return true
	}
	if w.target.ReadOnly != nil && w.target.ReadOnly(t.Name) && !said(t.Hints.ReadOnly, false) {
		return true
	}
	verb, _ := t.mutates()
	return said(t.Hints.ReadOnly, true) && !said(t.Hints.Destructive, true) && verb == "" && !headers(t)
}

// headers reports whether a tool wants arguments in HTTP headers.
func headers(t *Tool) (found bool) {
	walk(t.Input, "", func(n *schema.Node, _ string, _ int) { found = found || n.Has("x-mcp-header") })
	return found
}
