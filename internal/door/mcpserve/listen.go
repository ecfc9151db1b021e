package mcpserve

import (
	"cmp"
	"context"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/session"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// listen tells a client what changes, until it goes, or nobody will tell of anything that it
// wants: of lists, by comparing the snapshots that follow one another, and of the resources
// and tasks that it names, by listening at their servers in turn.
func (h *host) listen(ctx context.Context, s *session.Session, v *view, call dragoman.Call, params *rawjson.Object) (dragoman.Result, error) {
	if call.Notify == nil {
		<-ctx.Done()
		return dragoman.Result{}, context.Cause(ctx)
	}
	wants, err := rawjson.ParseObject(orEmpty(params.Get("notifications")))
	if err != nil {
		wants = &rawjson.Object{}
	}
	lasts := h.who.Until
	if h.legacy { // whose session goes on with newer tokens
		lasts = context.WithCancel
	}
	ctx, end := lasts(ctx)
	l := &listening{host: h, session: s, call: call, wants: wants, at: map[string]bool{}, refused: make(chan refusal)}
	defer l.wg.Wait()
	defer end()
	if known := h.greeted.Load(); known != nil {
		l.compare(known, v)
	}
	watches, refused := l.watches(ctx, v)
	if refused != nil && len(l.wants.Members) == 0 {
		return dragoman.Result{Problem: refused, Ran: dragoman.RanNot}, nil
	}
	l.tell(dragoman.Notification{Method: mcp.Acknowledged, Params: append(append(json.RawMessage(`{"notifications":`), l.wants.Bytes()...), '}')})
	var was <-chan struct{} // of the opener that v is of
	for ctx.Err() == nil {
		l.hear(ctx, watches)
		over := h.door.o.Sessions().Over()
		if over != was { // there is another opener than when v was opened
			was = over
		} else {
			select {
			case <-ctx.Done():
				return dragoman.Result{}, context.Cause(ctx)
			case r := <-l.refused:
				if l.forget(r.of); len(l.wants.Members) == 0 {
					return dragoman.Result{Problem: r.why, Ran: dragoman.RanNot}, nil
				}
				watches = nil
				continue
			case <-v.changed:
			case <-over:
			}
		}
		_, next, err := h.opened(ctx, session.Want{NoTools: true})
		switch {
		case ctx.Err() != nil:
			return dragoman.Result{}, context.Cause(ctx)
		case err != nil:
			return dragoman.Result{}, err
		}
		l.compare(v, next)
		v = next
		if watches, refused = l.watches(ctx, v); refused != nil && len(l.wants.Members) == 0 {
			return dragoman.Result{Problem: refused, Ran: dragoman.RanNot}, nil
		}
	}
	return dragoman.Result{}, context.Cause(ctx)
}

// changes names the lists in which two views differ.
func (v *view) changes(next *view) (what []string) {
	tools := form{legacy: true, raw: true}
	if v.tools != next.tools && !v.listing("tools/list", tools).same(next.listing("tools/list", tools)) {
		what = append(what, "tools")
	}
	for _, list := range []struct{ name, method string }{{"prompts", "prompts/list"}, {"resources", "resources/list"}} {
		as := form{legacy: true, raw: true}
		same := v.listing(list.method, as).same(next.listing(list.method, as))
		if list.name == "resources" {
			same = same && v.listing("resources/templates/list", as).same(next.listing("resources/templates/list", as))
		}
		if !same {
			what = append(what, list.name)
		}
	}
	return what
}

// A listening is a client that hears of changes, and all that listens for it at
// servers.
type listening struct {
	host    *host
	session *session.Session
	call    dragoman.Call
	wants   *rawjson.Object
	wg      sync.WaitGroup
	refused chan refusal    // what is asked for no more
	at      map[string]bool // servers that were judged, and are asked

	mu sync.Mutex // Notify is for one goroutine at a time
}

// A refusal is why nothing is told of some resources, by the URIs that the client knows.
type refusal struct {
	of  map[string]bool
	why *dragoman.Problem
}

func (l *listening) tell(n dragoman.Notification) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.call.Notify(n)
}

// compare tells the client which lists differ between two views.
func (l *listening) compare(before, after *view) {
	if before == after {
		return
	}
	for _, what := range before.changes(after) {
		if l.wants.Get(what+"ListChanged") != nil {
			l.tell(dragoman.Notification{Method: "notifications/" + what + "/list_changed"})
		}
	}
}

// watches returns what there is to hear at those servers of a view that were not there
// before. What the rules deny is not among it, and no more among what the client wants:
// whoever is refused is told so, once, and asks again. The problem is that of the last server
// of which something is denied.
func (l *listening) watches(ctx context.Context, v *view) (watches map[string]*watch, refused *dragoman.Problem) {
	watches = l.host.watched(v, l.wants)
	denied := map[string]bool{}
	for server, w := range watches {
		if l.at[server] {
			delete(watches, server)
			continue
		}
		l.at[server] = true
		if all := l.asks(server, w); !l.session.Denies(ctx, &all) {
			continue // of a thousand resources, too, that is one look at what is known of the caller
		}
		var no []json.RawMessage
		w.uris = slices.DeleteFunc(w.uris, func(raw json.RawMessage) bool {
			one := l.asks(server, &watch{uris: []json.RawMessage{raw}})
			if !l.session.Denies(ctx, &one) {
				return false
			}
			uri, _ := rawjson.String(raw)
			denied[w.as[uri]] = true
			no = append(no, raw)
			return true
		})
		if no != nil {
			all := l.asks(server, &watch{uris: no})
			refused = cmp.Or(l.session.Refuse(ctx, &all), refused)
		}
		if len(w.uris)+len(w.tasks) == 0 && !w.status {
			delete(watches, server)
		}
	}
	l.forget(denied)
	return watches, refused
}

// forget takes resources from what the client wants.
func (l *listening) forget(denied map[string]bool) {
	if len(denied) == 0 {
		return
	}
	uris, _ := rawjson.Elements(l.wants.Get("resourceSubscriptions"))
	uris = slices.DeleteFunc(uris, func(raw json.RawMessage) bool {
		uri, _ := rawjson.String(raw)
		return denied[uri]
	})
	l.wants = l.wants.Clone()
	if l.wants.Set("resourceSubscriptions", rawjson.AppendArray(nil, uris)); len(uris) == 0 {
		l.wants.Delete("resourceSubscriptions")
	}
}

// hear listens at servers.
func (l *listening) hear(ctx context.Context, watches map[string]*watch) {
	for server, w := range watches {
		l.wg.Go(func() { l.keep(ctx, server, w) })
	}
}

// asks is the call that asks a server for what is watched.
func (l *listening) asks(server string, w *watch) dragoman.Call {
	return dragoman.Call{
		Method: l.call.Method, Server: server, Can: l.call.Can, Meta: l.call.Meta,
		Arguments: append(append(json.RawMessage(`{"notifications":`), w.filter()...), '}'),
	}
}

// keep listens at a server until the client goes: again, after a while, where the
// server was away. A server that will not tell is asked no more, and no more is what the
// rules deny meanwhile; where it was asked for several things, it is asked for each, since it
// may be only one of them.
func (l *listening) keep(ctx context.Context, server string, w *watch) {
	call := l.asks(server, w)
	call.Notify = func(n dragoman.Notification) {
		n.Params = w.public(n)
		l.tell(n)
	}
	for failures := 0; ; failures++ {
		start := time.Now()
		res, err := l.session.Tools.Call(ctx, call)
		if ctx.Err() != nil || err != nil {
			return
		}
		if asked(res.Problem) {
			parts := w.parts()
			for _, one := range parts {
				l.wg.Go(func() { l.keep(ctx, server, one) })
			}
			if parts == nil {
				l.giveUp(ctx, w, res.Problem)
			}
			return
		}
		if time.Since(start) > time.Minute {
			failures = 0
		}
		pause := min(250*time.Millisecond<<min(failures, 7), 30*time.Second)
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause/2 + rand.N(pause/2)):
		}
	}
}

// giveUp says that nothing is told of the resources of a watch. The error of the protocol that
// a server answered with is its own, and says nothing of what is offered here.
func (l *listening) giveUp(ctx context.Context, w *watch, why *dragoman.Problem) {
	r := refusal{map[string]bool{}, &dragoman.Problem{Code: why.Code, Message: why.Message, AuditID: why.AuditID}}
	for _, raw := range w.uris {
		uri, _ := rawjson.String(raw)
		r.of[w.as[uri]] = true
	}
	select {
	case l.refused <- r:
	case <-ctx.Done():
	}
}

// asked reports whether a problem is the answer of the server, or of the rules, which would
// be given again.
func asked(p *dragoman.Problem) bool {
	return p != nil && (p.Code == dragoman.CodeProtocol || p.Code == dragoman.CodeInvalidArguments || p.Code == dragoman.CodeDenied)
}

// A watch is what a client wants to hear of one server.
type watch struct {
	uris   []json.RawMessage
	as     map[string]string // how the client knows what the server knows by a URI
	tasks  []json.RawMessage
	status bool
}

func (w *watch) filter() json.RawMessage {
	o := rawjson.Object{}
	if len(w.uris) > 0 {
		o.Set("resourceSubscriptions", rawjson.AppendArray(nil, w.uris))
	}
	if w.tasks != nil {
		o.Set("taskIds", rawjson.AppendArray(nil, w.tasks))
	}
	if w.status {
		o.Set("taskStatus", json.RawMessage(`true`))
	}
	return o.Bytes()
}

// maxParts is how many resources of a watch a server is asked for one by one.
const maxParts = 100

// parts returns what a watch is of: each resource, and all tasks. There are none of a watch
// of one, and of one of too many.
func (w *watch) parts() (parts []*watch) {
	if len(w.uris) > maxParts {
		return nil
	}
	for i := range w.uris {
		parts = append(parts, &watch{uris: w.uris[i : i+1], as: w.as})
	}
	if w.tasks != nil || w.status {
		parts = append(parts, &watch{tasks: w.tasks, status: w.status})
	}
	if len(parts) == 1 {
		return nil
	}
	return parts
}

// public returns the params of a notification with the URI that the client knows.
func (w *watch) public(n dragoman.Notification) json.RawMessage {
	if n.Method != "notifications/resources/updated" {
		return n.Params
	}
	o, err := rawjson.ParseObject(n.Params)
	if err != nil {
		return n.Params
	}
	uri, _ := rawjson.String(o.Get("uri"))
	known, ok := w.as[uri]
	if !ok || known == uri {
		return n.Params
	}
	o = o.Clone()
	o.Set("uri", rawjson.Quote(known))
	return o.Bytes()
}

// watched returns what a client wants to hear, by server, as the servers know it.
func (h *host) watched(v *view, wants *rawjson.Object) map[string]*watch {
	byServer := map[string]*watch{}
	at := func(server string) *watch {
		if byServer[server] == nil {
			byServer[server] = &watch{as: map[string]string{}}
		}
		return byServer[server]
	}
	uris, _ := rawjson.Elements(wants.Get("resourceSubscriptions"))
	for _, u := range uris {
		uri, _ := rawjson.String(u)
		if e := v.resource(uri); e != nil {
			w := at(e.Server)
			original := e.Original
			if e.Kind == dragoman.Template {
				original = uri
			}
			w.uris = append(w.uris, rawjson.Quote(original))
			w.as[original] = uri
		}
	}
	ids, _ := rawjson.Elements(wants.Get("taskIds"))
	for _, raw := range ids {
		id, _ := rawjson.String(raw)
		w := at(session.TaskServer(id))
		w.tasks = append(w.tasks, raw)
	}
	if string(wants.Get("taskStatus")) == "true" {
		for _, s := range v.servers {
			if legacyTasks(s) {
				at(s.Label).status = true
			}
		}
	}
	return byServer
}
