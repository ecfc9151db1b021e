package mcpserve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/judge/approval"
	"github.com/dragoman-mcp/dragoman/internal/reach/catalog"
	"github.com/dragoman-mcp/dragoman/internal/session"
	"github.com/dragoman-mcp/dragoman/internal/text/qualified"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/mcp"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// A place is what is at an address: everything, one server, or a set.
type place struct{ server, set string }

// A host answers the requests of one caller at one place.
type host struct {
	door   *Door
	who    caller.Caller
	at     place
	path   string           // of the request; empty over lines
	legacy bool             // the client speaks the legacy era
	search model.SearchWhen // as the address says; empty where it does not
	// session is that of a legacy client over HTTP. Clients of the modern era have
	// none, and lines have one client.
	session string

	// greeted is what there was when the client was told about the server. What
	// changed between that and the beginning of its listening is told, too.
	greeted atomic.Pointer[view]
	// opening is what InputSchema opened, for the call that follows.
	opening *opening
	// other answers the other era; nil before somebody spoke it.
	other atomic.Pointer[host]
}

// An opening is what was opened for a tool.
type opening struct {
	tool    string
	session *session.Session
	view    *view
}

// Owner implements [mcp.Host].
func (h *host) Owner() string { return h.who.ID }

// In implements [mcp.Interpreter]. Of one connection each era has one host, which knows
// what its client was told.
func (h *host) In(era mcp.Era) mcp.Host {
	if h.legacy == (era == mcp.Legacy) {
		return h
	}
	if h.other.Load() == nil {
		h.other.CompareAndSwap(nil, &host{door: h.door, who: h.who, at: h.at, path: h.path, legacy: era == mcp.Legacy, search: h.search})
	}
	return h.other.Load()
}

// open opens a session for a request, and returns what there is at the place. It
// waits a while for servers that are still starting.
func (h *host) open(ctx context.Context) (*session.Session, *view, error) {
	return h.opened(ctx, session.Want{})
}

// opened opens a session that wants this of the place.
func (h *host) opened(ctx context.Context, want session.Want) (*session.Session, *view, error) {
	want.Door, want.Client, want.Session, want.Reviews = "mcp", true, h.session, h.reviews()
	want.Search, want.OwnNames = h.search, h.at.server != ""
	switch {
	case h.at.server != "":
		want.Servers = catalog.Selection{{Server: h.at.server}}
	case h.at.set != "":
		want.Servers = catalog.Selection{{Server: session.SetPrefix + h.at.set}}
	}
	s, err := h.door.o.Sessions().Open(ctx, h.who, want)
	switch {
	case errors.Is(err, session.ErrUnknownServer), errors.Is(err, session.ErrServerUnavailable):
		return nil, nil, &mcp.RPCError{Code: internalError, Message: err.Error()}
	case err != nil:
		return nil, nil, err
	}
	list, err := s.Tools.List(ctx)
	if err != nil {
		return nil, nil, err
	}
	return s, h.door.now.Load().views.of(list, h.at, s.Chosen), nil
}

// openFor opens a session for a call of a tool. A tool that is there is called:
// the call has nothing to do with servers that are still starting.
func (h *host) openFor(ctx context.Context, tool string) (*session.Session, *view, error) {
	if o := h.opening; o != nil && o.tool == tool {
		return o.session, o.view, nil
	}
	if s, v, err := h.opened(ctx, session.Want{NoTools: true}); err == nil && (v.tools.Exact(tool) != nil || h.own(v, tool) != nil || v.standsIn(s, tool) != nil) {
		return s, v, nil
	}
	return h.open(ctx)
}

// own returns a tool of ours; nil where there is none of that name.
func (h *host) own(v *view, name string) *dragoman.Tool {
	switch {
	case name == v.more.Name && !h.door.now.Load().Raw:
		return v.more
	case name == session.ReviewApprovals && h.reviews():
		tool := session.ReviewTool()
		return &tool
	}
	return nil
}

// reviews reports whether the caller may have review_approvals: at the place where
// everything is, whose names are those of the catalogue, which reserves it. At the place of
// one server are that server's own names.
func (h *host) reviews() bool {
	return h.door.now.Load().Reviews && h.at == place{} && approval.Reviews(h.who)
}

// Describe implements [mcp.Host]: the capabilities of all servers together, and
// their words on how to use them.
func (h *host) Describe(ctx context.Context) mcp.Description {
	d := mcp.Description{Public: true, Info: h.door.info()}
	_, v, err := h.open(ctx)
	if err != nil {
		d.Capabilities = json.RawMessage(`{"tools":{"listChanged":true}}`)
		d.Public = false
		return d
	}
	h.greeted.CompareAndSwap(nil, v)
	if h.at.server != "" && len(v.servers) == 1 {
		d.Info, d.Meta = h.door.identity(v.servers[0].Info)
	}
	d.Capabilities, d.Instructions = v.capabilities(), v.instructions(h.at.server != "")
	d.TTL, d.Public = v.fresh()
	d.Public = d.Public && !h.toldApart()
	return d
}

// toldApart reports whether callers are, so that what one gets is not for another: rules
// and rights decide what each may see, whatever servers say of their lists (MCP
// 2026-07-28, "Caching").
func (h *host) toldApart() bool { return !h.who.IsLocal() }

// Admit implements [mcp.Gatekeeper]: a call of a tool that needs other scopes than
// the caller's token has is refused in a way that its client can do something about.
// Whether the call is made is not decided here.
func (h *host) Admit(ctx context.Context, method, name string) *mcp.Refused {
	if method != "tools/call" || !h.steps() {
		return nil
	}
	right := h.toolRight(ctx, name)
	if right == "" {
		return nil
	}
	refusal := h.door.o.StepUp(h.who, h.path, right)
	if refusal == nil {
		return nil
	}
	return &mcp.Refused{Status: refusal.Status, Challenge: refusal.Challenge, Message: refusal.Message}
}

// steps reports whether the caller can get a token with other scopes.
func (h *host) steps() bool { return h.door.o.StepUp != nil && h.who.Issuer != "" }

// toolRight is the right to call what is a tool of this name here: tool:label__name,
// whatever the tool is called. It is empty for tools that are ours. A tool that the
// caller does not see has the right that its name says.
func (h *host) toolRight(ctx context.Context, name string) string {
	s, v, err := h.openFor(ctx, name)
	if err == nil && v.tools.Exact(name) == nil && (name == v.more.Name || v.standsIn(s, name) != nil) {
		return ""
	}
	if h.at.server != "" {
		name = qualified.Name(h.at.server, name)
	} else if err == nil {
		if t, _ := h.find(v, name); t != nil && t.Server != "" {
			name = qualified.Name(t.Server, t.Original)
		}
	}
	if !strings.Contains(strings.TrimPrefix(name, qualified.Separator), qualified.Separator) {
		return ""
	}
	return "tool:" + name
}

// InputSchema implements [mcp.Describer]. It is asked for with each request of a
// modern client over HTTP, which has a host of its own, just before its call.
func (h *host) InputSchema(ctx context.Context, name string) json.RawMessage {
	s, v, err := h.openFor(ctx, name)
	if err != nil {
		return nil
	}
	h.opening = &opening{name, s, v}
	if t, _ := h.find(v, name); t != nil && t.Server != "" && t.Quarantined == nil {
		return t.InputSchema
	}
	return nil
}

// Call implements [mcp.Host].
func (h *host) Call(ctx context.Context, call dragoman.Call) (dragoman.Result, error) {
	ctx, span := h.observed(ctx, &call)
	res, err := h.answer(ctx, call)
	told(span, &res, err)
	return res, err
}

// answer answers a request.
func (h *host) answer(ctx context.Context, call dragoman.Call) (dragoman.Result, error) {
	params, err := rawjson.ParseObject(orEmpty(call.Arguments))
	if err != nil {
		return dragoman.Result{}, &mcp.RPCError{Code: invalidParams, Message: "params are no object"}
	}
	switch call.Method {
	case "tools/call":
		name, _ := rawjson.String(params.Get("name"))
		s, v, err := h.openFor(ctx, name)
		if err != nil {
			return dragoman.Result{}, err
		}
		switch stand := v.standsIn(s, name); {
		case stand == nil:
			return h.callTool(ctx, s, v, call, params)
		case stand == v.stands().find:
			return h.findTools(ctx, stand, call, params)
		}
		return h.callNamed(ctx, call, params)
	case "subscriptions/listen": // whoever listens hears of servers that come
		s, v, err := h.opened(ctx, session.Want{NoTools: true})
		if err != nil {
			return dragoman.Result{}, err
		}
		return h.listen(ctx, s, v, call, params)
	}
	s, v, err := h.open(ctx)
	if err != nil {
		return dragoman.Result{}, err
	}
	switch call.Method {
	case "tools/list", "prompts/list", "resources/list", "resources/templates/list":
		return h.list(s, v, call, params)
	case "skills/list", "skills/get", "resources/directory/read":
		if !v.has(hasSkills) {
			break
		}
		return h.aboutSkill(ctx, s, v, call, params)
	case "prompts/get":
		return h.getPrompt(ctx, s, v, call, params)
	case "resources/read":
		return h.readResource(ctx, s, v, call, params)
	case "completion/complete":
		return h.complete(ctx, s, v, call, params)
	case "tasks/get", "tasks/result", "tasks/update", "tasks/cancel", "tasks/list":
		return h.aboutTask(ctx, s, v, call, params)
	}
	return dragoman.Result{}, &mcp.RPCError{Code: methodNotFound, Message: "there is no method " + call.Method}
}

// passed returns what a server answered, or the error that it gave, as its own.
func (h *host) passed(res dragoman.Result, err error) (dragoman.Result, error) {
	if err != nil {
		return res, err
	}
	if theirs := h.theirs(res.Problem); theirs != nil {
		return dragoman.Result{}, theirs
	}
	return res, nil
}

// theirs returns the error of the protocol that a server answered with; nil where a problem
// is none. A code that says something about the two ends of a connection is about that
// server and us: a client that took it for its own would make the call again, in another
// way, or go. And the modern era knows none of those that the legacy era had for itself
// (MCP 2026-07-28, "Error Codes").
func (h *host) theirs(p *dragoman.Problem) error {
	e, ok := errors.AsType[*mcp.RPCError](asError(p))
	if !ok {
		return nil
	}
	code := e.Code
	switch {
	case h.legacy && (code == resourceNotFound || code == urlRequired), code == missingCapability:
	case code == resourceNotFound:
		code = invalidParams
	case code <= firstReserved && code >= lastReserved:
		code = internalError
	}
	return &mcp.RPCError{Code: code, Message: e.Message, Data: e.Data}
}

func asError(p *dragoman.Problem) error {
	if p == nil {
		return nil
	}
	return p
}

// getPrompt passes on a request for a prompt.
func (h *host) getPrompt(ctx context.Context, s *session.Session, v *view, call dragoman.Call, params *rawjson.Object) (dragoman.Result, error) {
	name, _ := rawjson.String(params.Get("name"))
	if call.Entry = v.prompt(name); call.Entry == nil {
		return dragoman.Result{}, &mcp.RPCError{Code: invalidParams, Message: fmt.Sprintf("there is no prompt %q", name)}
	}
	res, err := h.passed(s.Tools.Call(ctx, call))
	res.Content = h.linked(v, call.Entry.Server, res.Content)
	return res, err
}

// complete passes on a request to complete an argument, with the name that the
// server knows.
func (h *host) complete(ctx context.Context, s *session.Session, v *view, call dragoman.Call, params *rawjson.Object) (dragoman.Result, error) {
	ref, err := rawjson.ParseObject(params.Get("ref"))
	if err != nil {
		return dragoman.Result{}, &mcp.RPCError{Code: invalidParams, Message: "ref is missing"}
	}
	var entry *dragoman.Entry
	key := "name"
	switch kind, _ := rawjson.String(ref.Get("type")); kind {
	case "ref/prompt":
		name, _ := rawjson.String(ref.Get("name"))
		entry = v.prompt(name)
	case "ref/resource":
		key = "uri"
		uri, _ := rawjson.String(ref.Get("uri"))
		entry = v.resource(uri)
	}
	if entry == nil {
		return dragoman.Result{}, &mcp.RPCError{Code: invalidParams, Message: "ref names nothing that is here"}
	}
	ref, params = ref.Clone(), params.Clone()
	ref.Set(key, rawjson.Quote(entry.Original))
	params.Set("ref", ref.Bytes())
	call.Server, call.Arguments = entry.Server, params.Bytes()
	return h.passed(s.Tools.Call(ctx, call))
}

// readResource passes on a request for a resource.
func (h *host) readResource(ctx context.Context, s *session.Session, v *view, call dragoman.Call, params *rawjson.Object) (dragoman.Result, error) {
	uri, _ := rawjson.String(params.Get("uri"))
	if call.Entry = v.resource(uri); call.Entry == nil {
		return dragoman.Result{}, h.notFound("resource", uri)
	}
	res, err := h.passed(s.Tools.Call(ctx, call))
	res.Content = h.linked(v, call.Entry.Server, res.Content)
	return res, err
}

// notFound is the answer to a URI that names nothing.
func (h *host) notFound(what, uri string) error {
	data := rawjson.Object{}
	data.Set("uri", rawjson.Quote(uri))
	code := int64(invalidParams) // MCP 2026-07-28 has no code of its own for it
	if h.legacy && what == "resource" {
		code = resourceNotFound
	}
	return &mcp.RPCError{Code: code, Message: what + " not found", Data: data.Bytes()}
}

func orEmpty(b json.RawMessage) json.RawMessage {
	if len(b) == 0 {
		return json.RawMessage(`{}`)
	}
	return b
}

// instructions are a server's own words; of one that wants a login, what to do about
// it, since its tools are not there to say so.
func instructions(s *dragoman.Server) string {
	if p := s.Problem; p != nil && p.Code == dragoman.CodeNeedsAuthorization {
		return "Nothing of this server can be used yet. " + p.Message + "."
	}
	return s.Instructions
}

// joined returns the instructions of servers, each under its label.
func joined(servers []dragoman.Server) string {
	const most = 16 << 10 // bytes: every conversation of the client pays for it
	var b strings.Builder
	for i := range servers {
		if said := strings.TrimSpace(instructions(&servers[i])); said != "" {
			fmt.Fprintf(&b, "# %s\n\n%s\n\n", servers[i].Label, said)
		}
	}
	text := strings.TrimSpace(b.String())
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
