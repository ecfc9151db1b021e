package lint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/wire/headervalue"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/schema"
)

// A watcher puts one running server to the test and writes down what it sees.
type watcher struct {
	ctx      context.Context
	server   *Server
	live     *Live
	target   Target
	budget   Budget
	probe    Probe
	attacked []string // tools that may be attacked
	long     int      // length of the longest argument that is tried
	progress func(doing string)
	listed   func() // is called when all is known that the server says of itself
	record   *record

	main *connection
	temp string   // the folder for temporary files of its processes; empty for none
	made []string // what came into it while calls failed
	ids  atomic.Int64
	hung atomic.Bool // it answers nothing any more
}

// A connection is one wire with a client on it.
type connection struct {
	wire   wire
	client *client
}

// run does everything, each step only if the server still answers.
func (w *watcher) run() {
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	w.ctx = ctx
	w.record.stop = cancel
	w.progress("connecting")
	began := time.Now()
	c, err := w.connect(ownName)
	w.live.Startup = time.Since(began)
	if err != nil {
		w.live.Failure = err
		if status, challenges, ok := unauthorized(err); ok && w.live.Web != nil {
			w.metadata(status, challenges)
		}
		return
	}
	w.main = c
	defer func() { w.disconnect(w.main) }()
	if web, ok := c.wire.(*webWire); ok && web.stream() != "" {
		w.live.Transport = "sse"
	}
	w.live.Era, w.live.Version = c.client.era(), c.client.version()
	c.client.describe(w.server)
	w.progress("listing")
	w.lists()
	w.listed()
	if w.probe == ProbeNone {
		return
	}
	for _, step := range []struct {
		doing string
		do    func()
	}{
		{"reading prompts and resources", w.read},
		{"greeting with a version that there is not", w.greet},
		{"asking what no client asks", w.protocol},
		{"calling tools", w.calls},
		{"attacking tools", w.attack},
		{"asking many things at once", w.crowd},
		{"knocking at the door", w.doors},
		{"sending bad input", w.second},
	} {
		if w.over() {
			return
		}
		w.progress(step.doing)
		step.do()
		if gone(w.main) {
			w.record.died()
		}
	}
}

// over reports whether there is no point in going on.
func (w *watcher) over() bool {
	select {
	case <-w.main.wire.gone():
		return true
	default:
		return w.ctx.Err() != nil || w.hung.Load()
	}
}

// connect opens a wire and greets the server, as the client of a name.
func (w *watcher) connect(name string) (*connection, error) {
	wire, err := w.open()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(w.ctx, w.budget.Start)
	defer cancel()
	c, err := connect(ctx, wire, name, w.target.Legacy)
	if err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("it does not answer within %v", w.budget.Start)
		}
		if w.live.Web != nil {
			w.live.Web.TLS = certificateProblem(err)
		}
		wire.end()
		return nil, err
	}
	return &connection{wire, c}, nil
}

func (w *watcher) open() (wire, error) {
	t := w.target
	switch {
	case t.Command != nil:
		w.live.Transport = "stdio"
		cmd := t.Command()
		if cmd.Err != nil {
			return nil, fmt.Errorf("it does not start: %w", cmd.Err)
		}
		if w.temp != "" {
			cmd.Env = append(cmd.Environ(), "TMPDIR="+w.temp, "TMP="+w.temp, "TEMP="+w.temp)
		}
		p, err := startProcess(w.record, cmd)
		if err != nil {
			return nil, fmt.Errorf("it does not start: %w", err)
		}
		return p, nil
	case t.Pipe != nil:
		w.live.Transport = "stdio"
		out, in, err := t.Pipe(w.ctx)
		if err != nil {
			return nil, err
		}
		return watchLines(w.record, out, in), nil
	}
	if w.live.Transport == "" {
		w.live.Transport = "http"
	}
	u, err := url.Parse(t.URL)
	if err != nil || u.Host == "" {
		return nil, errors.New("the address is not a valid URL")
	}
	if w.live.Web == nil {
		w.live.Web = &Web{URL: t.URL, Plain: u.Scheme == "http", Loopback: loopback(u.Hostname()), Token: len(t.Header) > 0}
	}
	return newWebWire(w.record, t), nil
}

func (w *watcher) disconnect(c *connection) {
	if c == nil {
		return
	}
	c.client.close()
	c.wire.end()
}

// message makes a message as a client of the server's era would.
func (w *watcher) message(c *connection, method string, params rawjson.Object) raw {
	id := `"lint-` + strconv.FormatInt(w.ids.Add(1), 10) + `"`
	var meta rawjson.Object
	if method == "tools/call" {
		meta.Set("progressToken", json.RawMessage(id))
	}
	m := raw{id: id, method: method, header: map[string]string{}}
	if c.client.modern() {
		meta.Set("io.modelcontextprotocol/protocolVersion", rawjson.Quote(c.client.version()))
		meta.Set("io.modelcontextprotocol/clientCapabilities", json.RawMessage(`{}`))
		meta.Set("io.modelcontextprotocol/clientInfo", json.RawMessage(`{"name":"`+c.client.name+`","version":"1"}`))
		m.header["Mcp-Method"] = method
		m.header["Mcp-Protocol-Version"] = c.client.version()
		for _, key := range []string{"name", "uri"} {
			if name, ok := rawjson.String(params.Get(key)); ok {
				m.header["Mcp-Name"] = headervalue.Encode(name)
			}
		}
	}
	if b := meta.Bytes(); len(b) > 2 {
		params.Set("_meta", b)
	}
	var o rawjson.Object
	o.Set("jsonrpc", json.RawMessage(`"2.0"`))
	o.Set("id", json.RawMessage(id))
	o.Set("method", rawjson.Quote(method))
	o.Set("params", params.Bytes())
	m.body = o.Bytes()
	return m
}

// ask sends a request and waits for the answer.
func (w *watcher) ask(c *connection, method string, params rawjson.Object) Answer {
	return w.await(c, w.message(c, method, params))
}

// doubted is how long an answer may take before the server is asked whether it is there.
const doubted = 10 * time.Second

// await sends a message and waits as long as an answer may take, unless the server shows
// meanwhile that it answers nothing at all: then nothing else is asked of it.
func (w *watcher) await(c *connection, m raw) Answer {
	until := w.ctx
	ctx, cancel := context.WithCancel(until)
	defer cancel()
	doubt := time.AfterFunc(doubted, func() {
		if w.health(c).Err == errSilent && until.Err() == nil {
			w.hung.Store(true)
			cancel()
		}
	})
	defer doubt.Stop()
	return w.sendUntil(ctx, c, m, w.budget.Answer)
}

// send sends a message and waits at most so long for the answer.
func (w *watcher) send(c *connection, m raw, patience time.Duration) Answer {
	return w.sendUntil(w.ctx, c, m, patience)
}

func (w *watcher) sendUntil(ctx context.Context, c *connection, m raw, patience time.Duration) Answer {
	if w.live.Busy {
		patience *= 4
	}
	ctx, cancel := context.WithTimeout(ctx, min(patience, w.budget.Answer))
	defer cancel()
	words := m.words
	if words == "" {
		words = "a request of " + quote(m.method)
	}
	w.record.sent(shorten(m.body), words)
	a := c.wire.exchange(ctx, m)
	a.Sent, a.Method = shorten(m.body), m.method
	return a
}

// shorten returns what was sent for people to read.
func shorten(body []byte) string {
	const most = 300
	if len(body) > most {
		return visible(string(body[:most])) + "… (" + strconv.Itoa(len(body)) + " bytes)"
	}
	return visible(string(body))
}

// params makes the params of a request of pairs of name and raw value.
func params(pairs ...string) rawjson.Object {
	var o rawjson.Object
	for i := 0; i+1 < len(pairs); i += 2 {
		o.Set(pairs[i], json.RawMessage(pairs[i+1]))
	}
	return o
}

// Limits of a list.
const (
	mostPages = 1000
	mostItems = 50_000
)

// list gets all pages of a list.
func (w *watcher) list(c *connection, method, key string) Listing {
	var l Listing
	began := time.Now()
	defer func() { l.Took = time.Since(began) }()
	seen := map[string]bool{}
	var cursor json.RawMessage
	for {
		p := params()
		if cursor != nil {
			p.Set("cursor", cursor)
		}
		a := w.ask(c, method, p)
		if a.Result == nil {
			l.Err = errors.New(a.says())
			if a.Err != nil {
				l.Err = fmt.Errorf("no answer (%w)", a.Err)
			}
			return l
		}
		o, err := rawjson.ParseObject(a.Result)
		if err != nil {
			l.Err = errors.New("the result is not an object")
			return l
		}
		items, err := rawjson.Elements(o.Get(key))
		if err != nil {
			l.Err = fmt.Errorf("the result has no array %q", key)
			return l
		}
		l.Items, l.Pages = append(l.Items, items...), append(l.Pages, a.Result)
		cursor = o.Get("nextCursor")
		switch {
		case rawjson.IsNull(cursor):
			return l
		case seen[string(cursor)]:
			l.Endless = fmt.Sprintf("page %d names a cursor that was named before", len(l.Pages))
		case len(l.Pages) >= mostPages:
			l.Endless = fmt.Sprintf("there are over %d pages", mostPages)
		case len(l.Items) > mostItems:
			l.Endless = fmt.Sprintf("there are over %d entries", mostItems)
		case len(items) == 0 && len(l.Pages) > 20:
			l.Endless = fmt.Sprintf("%d pages, the last ones without entries", len(l.Pages))
		}
		if l.Endless != "" {
			return l
		}
		seen[string(cursor)] = true
	}
}

// lists gets all that the server lists, the tools three times.
func (w *watcher) lists() {
	declared, _ := schema.Parse(w.live.Capabilities)
	if declared.Has("tools") || len(w.live.Capabilities) == 0 {
		times := 3
		if w.probe == ProbeNone {
			times = 1
		}
		for range times {
			l := w.list(w.main, "tools/list", "tools")
			w.live.Lists = append(w.live.Lists, l)
			if l.Err != nil || l.Endless != "" {
				break
			}
		}
		first := w.live.Lists[0]
		items := first.Items
		if first.Endless != "" {
			items = distinct(items)
		}
		w.server.setTools(items)
	} else if l := w.list(w.main, "tools/list", "tools"); l.Err == nil && len(l.Items) > 0 {
		w.live.Undeclared = true
		w.live.Lists = append(w.live.Lists, l)
		w.server.setTools(l.Items)
	}
	for _, other := range []struct {
		capability, method, key string
		into                    *[]json.RawMessage
	}{
		{"prompts", "prompts/list", "prompts", &w.server.Prompts},
		{"resources", "resources/list", "resources", &w.server.Resources},
		{"resources", "resources/templates/list", "resourceTemplates", &w.server.Templates},
	} {
		if !declared.Has(other.capability) && w.probe != ProbeNone && !w.over() {
			if l := w.list(w.main, other.method, other.key); l.Err == nil && len(l.Items) > 0 {
				w.live.Unsaid = append(w.live.Unsaid, other.capability)
			}
		}
		if declared.Has(other.capability) && !w.over() {
			l := w.list(w.main, other.method, other.key)
			w.live.Others[other.method] = l
			*other.into = l.Items
		}
	}
}

// distinct returns the entries of a list that goes in circles, once each and not
// too many.
func distinct(items []json.RawMessage) (once []json.RawMessage) {
	seen := map[string]bool{}
	for _, item := range items {
		if !seen[string(item)] && len(once) < 100 {
			seen[string(item)] = true
			once = append(once, item)
		}
	}
	return once
}
