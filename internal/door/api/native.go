package api

import (
	"net/http"

	"github.com/dragoman-mcp/dragoman/internal/door"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/state/idempotency"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// orNative returns the route of requests of an API that are answered here, unless they are
// for an upstream that speaks the API itself and are not for us alone, by named: those go
// there as they are.
func (a *API) orNative(api string, named func(body []byte) bool, route onceRoute) onceRoute {
	return func(w http.ResponseWriter, r *http.Request, who caller.Caller, run *idempotency.Run) {
		body, err := a.readBody(w, r)
		if err != nil {
			a.fail(w, r, err)
			return
		}
		r.Body, r.ContentLength = door.ReadAgain(body), int64(len(body))
		if a.speaks(api, body) && !named(body) {
			w.Header().Set(wireHeader, "relayed")
			a.relay(w, r, who)
			run.Answered = true
			return
		}
		route(w, r, who, run)
	}
}

// speaks reports whether the upstream of the model that a body names speaks an API. The body,
// which may be long, is looked at only where there is one that does.
func (a *API) speaks(api string, body []byte) bool {
	if !a.Upstreams.Speaks(api) {
		return false
	}
	name, ok := rawjson.String(rawjson.Get(body, "model"))
	if !ok {
		return a.Upstreams.First().Speaks(api) // where requests go that name none
	}
	up, err := a.upstream(name)
	return err == nil && up.Speaks(api)
}
