package mcp

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// listen serves a modern subscription: what is told carries its id, and the first
// message says what it will be about.
func (v *incomingRequest) listen(ctx context.Context) (json.RawMessage, error) {
	if object(v.in.members.Get("notifications")).Get("taskIds") != nil {
		if err := v.mayUseTasks(ctx); err != nil {
			return nil, err
		}
	}
	meta := rawjson.Object{}
	meta.Set(metaSubscription, v.in.id)
	about := func(params json.RawMessage) json.RawMessage {
		o := object(params).Clone()
		m := object(o.Get("_meta")).Clone()
		m.Set(metaSubscription, v.in.id)
		o.Set("_meta", m.Bytes())
		return o.Bytes()
	}
	var once sync.Once
	wants := v.in.members.Get("notifications")
	capabilities := v.host.Describe(ctx).Capabilities
	acknowledge := func(will json.RawMessage) {
		once.Do(func() {
			ack := rawjson.Object{}
			ack.Set("notifications", agreed(will, capabilities))
			v.to.send(notification(Acknowledged, about(ack.Bytes())))
		})
	}
	defer time.AfterFunc(patience, func() { acknowledge(wants) }).Stop() // for a Host that does not say
	call := v.in.call()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(v.server.listening, cancel)()
	wanted := readSubscription(call.Arguments)
	call.Notify = func(n dragoman.Notification) {
		told := wants
		if n.Method == Acknowledged {
			if said := object(n.Params).Get("notifications"); said != nil {
				told = said
			}
		}
		acknowledge(told)
		if wanted.wants(n.Method, n.Params) {
			v.to.send(notification(n.Method, about(n.Params)))
		}
	}
	res, err := v.host.Call(ctx, call)
	if v.server.listening.Err() != nil {
		res, err = dragoman.Result{}, nil // its end is said by a result, not by an error
	}
	if err != nil {
		return nil, err
	}
	if res.Problem != nil {
		return nil, v.rpcError(res.Problem)
	}
	o := rawjson.Object{}
	o.Set("resultType", json.RawMessage(`"complete"`))
	o.Set("_meta", meta.Bytes())
	return o.Bytes(), nil
}

// agreed returns those of the wanted notifications that the server has
// capabilities for.
func agreed(wanted, capabilities json.RawMessage) json.RawMessage {
	o, c := rawjson.Object{}, object(capabilities)
	for _, m := range object(wanted).Members {
		is := func(what, how string) bool { return string(object(c.Get(what)).Get(how)) == "true" }
		var ok bool
		switch m.Name {
		case "toolsListChanged":
			ok = is("tools", "listChanged")
		case "promptsListChanged":
			ok = is("prompts", "listChanged")
		case "resourcesListChanged":
			ok = is("resources", "listChanged")
		case "resourceSubscriptions":
			ok = is("resources", "subscribe")
		case "taskIds":
			ok = hasTasks(capabilities)
		}
		if ok && string(m.Value) != "false" {
			o.Set(m.Name, m.Value)
		}
	}
	return o.Bytes()
}
