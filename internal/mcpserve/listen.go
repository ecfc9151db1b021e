package mcpserve

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/rawjson"
	"github.com/dragoman-mcp/dragoman/internal/session"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// listen tells a client what changes, until it goes: of lists, by comparing the
// snapshots that follow one another, and of the resources that it names, by
// listening at their servers in turn.
func (h *host) listen(ctx context.Context, s *session.Session, v *view, call dragoman.Call, params *rawjson.Object) (dragoman.Result, error) {
	if call.Notify == nil {
		<-ctx.Done()
		return dragoman.Result{}, context.Cause(ctx)
	}
	wants, err := rawjson.ParseObject(orEmpty(params.Get("notifications")))
	if err != nil {
		wants = &rawjson.Object{}
	}
	ctx, end := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer end()
	var mu sync.Mutex // Notify is for one goroutine at a time
	tell := func(n dragoman.Notification) {
		mu.Lock()
		defer mu.Unlock()
		call.Notify(n)
	}
	for server, uris := range h.watched(v, wants) {
		inner := dragoman.Call{Method: call.Method, Server: server, Can: call.Can, Meta: call.Meta}
		filter := rawjson.Object{}
		filter.Set("resourceSubscriptions", rawjson.AppendArray(nil, uris))
		inner.Arguments = append(append(json.RawMessage(`{"notifications":`), filter.Bytes()...), '}')
		inner.Notify = tell
		wg.Go(func() { _, _ = s.Tools.Call(ctx, inner) })
	}
	tell(dragoman.Notification{Method: mcp.Acknowledged})
	for {
		select {
		case <-ctx.Done():
			return dragoman.Result{}, context.Cause(ctx)
		case <-v.list.Changed:
		}
		_, next, err := h.opened(ctx, session.Want{NoTools: true})
		switch {
		case ctx.Err() != nil:
			return dragoman.Result{}, context.Cause(ctx)
		case err != nil:
			return dragoman.Result{}, err
		}
		for _, what := range v.changes(next) {
			if wants.Get(what+"ListChanged") != nil {
				tell(dragoman.Notification{Method: "notifications/" + what + "/list_changed"})
			}
		}
		v = next
	}
}

// changes names the lists in which two views differ.
func (v *view) changes(next *view) (what []string) {
	if v.tools != next.tools {
		what = append(what, "tools")
	}
	for _, list := range []struct{ name, method string }{{"prompts", "prompts/list"}, {"resources", "resources/list"}} {
		same := string(v.listing(list.method, false, true)) == string(next.listing(list.method, false, true))
		if list.name == "resources" {
			same = same && string(v.listing("resources/templates/list", false, true)) == string(next.listing("resources/templates/list", false, true))
		}
		if !same {
			what = append(what, list.name)
		}
	}
	return what
}

// watched returns the URIs that a client wants to hear of, by server, as the
// servers know them.
func (h *host) watched(v *view, wants *rawjson.Object) map[string][]json.RawMessage {
	byServer := map[string][]json.RawMessage{}
	uris, _ := rawjson.Elements(wants.Get("resourceSubscriptions"))
	for _, u := range uris {
		uri, _ := rawjson.String(u)
		if e := v.resource(uri); e != nil {
			byServer[e.Server] = append(byServer[e.Server], rawjson.Quote(e.Original))
		}
	}
	return byServer
}
