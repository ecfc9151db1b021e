package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/door"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/judge/policy"
	"github.com/dragoman-mcp/dragoman/internal/observe"
	"github.com/dragoman-mcp/dragoman/internal/observe/logbuffer"
	"github.com/dragoman-mcp/dragoman/internal/reach/catalog"
	"github.com/dragoman-mcp/dragoman/internal/session"
	"github.com/dragoman-mcp/dragoman/internal/state/idempotency"
	"github.com/dragoman-mcp/dragoman/internal/text/clip"
	"github.com/dragoman-mcp/dragoman/openai/chat"
	"github.com/dragoman-mcp/dragoman/openai/hosted"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// loggedName bounds what lines of the log have of a model's name, in bytes: any name will do
// where an entry of models matches them all.
const loggedName = 200

// A wire is one of the APIs by which clients ask a model: all that is different about it.
type wire struct {
	// name names it in logs and in the audit log.
	name string
	// form is how it tells of errors.
	form door.Form
	// idHeader is where its clients look for the id of their request in an answer.
	idHeader string
	// read reads the body of a request.
	read func(a *API, r *http.Request, who caller.Caller, body []byte) (asking, error)
}

// An asking is a request to ask a model, as the client half of its API has read it.
type asking interface {
	// about says what is to be known of it here.
	about() about
	// rename gives it the name by which the upstream knows its model.
	rename(model string)
	// plain returns its body without what is for us alone, for an upstream of the same
	// API where none of our tools is offered: there is none, or why is not empty. It is
	// nil where the upstream speaks another one, or the history has to be made whole, so
	// that a conversation without tools has to do.
	plain(ctx context.Context, why string) json.RawMessage
	// converse makes a conversation of it that answers on w, in a session.
	converse(w http.ResponseWriter, options chat.Options, s *session.Session) (conversation, error)
}

// A conversation is one that also tells whether it may have changed something, and what
// it has cost.
type conversation interface {
	dragoman.Conversation
	Wrote() bool
	// Tokens returns what it has cost at the model's API, in and out, and whether some
	// of it is an estimate.
	Tokens() (n int64, estimated bool)
}

// about is what a request says that the door goes by.
type about struct {
	// model names the model, as the client spells it.
	model string
	// stream says that the answer is to be a stream.
	stream bool
	// session names the conversation among those of its caller; empty for none.
	session string
	// begun are the names under which that was begun which it goes on from here.
	begun []string
	// servers are those of our servers that it chooses; none: it does not choose.
	servers []model.ServerChoice
	// search is what it says of searches of the web; nil where it declares none.
	search *hosted.Wanted
	// withhold says why our tools would break it; empty where they would not.
	withhold string
	// reads says that its client is not to have anything changed yet.
	reads bool
	// searches says that it is a search of the web and nothing else, which its client asks
	// beside its conversation.
	searches bool
	// approves says that its client can be asked whether a call may run.
	approves bool
	// beside names the agent that asks it beside its conversation; empty for none.
	beside string
	// claim names the turn that it is part of, of whose requests one runs at a time; empty for
	// none.
	claim string
	// turn says that it names its turn, so that no two requests are the same: one that
	// is, is one sent again.
	turn bool
}

// Why tools are withheld from a request that wants none, and from one whose model gets
// those that are named.
const (
	notAsked = "tool_choice is none"
	notNamed = "models[].offer is named, and the request names no server"
)

// about says what is to be known of a request, and of its model.
func (a *API) about(request asking) about {
	said := request.about()
	if said.withhold != "" || len(said.servers) > 0 {
		return said
	}
	if said.beside != "" {
		said.withhold = said.beside + " asks it beside its conversation"
	} else if up, err := a.upstream(said.model); err == nil && up.OffersNamed {
		said.withhold = notNamed
	}
	return said
}

// ask returns the route of one of the wires.
func (a *API) ask(on wire) onceRoute {
	return func(w http.ResponseWriter, r *http.Request, who caller.Caller, run *idempotency.Run) {
		if err := a.answer(on, w, r, who, run); err != nil {
			door.Fail(a.Log, on.form, w, r, err)
		}
	}
}

// answer answers a request on a wire. An error is still to be told.
func (a *API) answer(on wire, w http.ResponseWriter, r *http.Request, who caller.Caller, run *idempotency.Run) error {
	request, err := a.read(on, w, r, who)
	if err != nil {
		return err
	}
	if q, ok := request.(responsesAsking); ok && q.Background {
		return a.background(w, r, who, q.Request, run)
	}
	end, err := a.hold(r, request.about(), who, run)
	if err != nil {
		return err
	}
	defer end()
	leave, err := a.admit(r.Context(), who, policy.Model, request.about().model)
	if err != nil {
		return err
	}
	defer leave()
	if q, ok := request.(responsesAsking); ok {
		add, leave, err := a.join(r.Context(), who.ID, q.Request)
		if err != nil {
			return err
		}
		defer leave()
		q.add = add
		request = q
	}
	return a.respond(on, w, r, request, who, run)
}

// respond answers a request that was admitted.
func (a *API) respond(on wire, w http.ResponseWriter, r *http.Request, request asking, who caller.Caller, run *idempotency.Run) error {
	said := a.about(request)
	why, err := said.withheld(w.Header())
	if err != nil {
		return err
	}
	want, err := said.want()
	if err != nil {
		return err
	}
	want.NoTools, want.Door, want.Claim = why != "", on.name, claiming(run)
	switch {
	case want.NoTools:
	case want.SearchOnly:
		w.Header().Set("X-Dragoman-Tools", "only the search of the web: the client asks for nothing else")
	case want.Reads:
		w.Header().Set("X-Dragoman-Tools", "only those that change nothing: the client plans")
	}
	if said.stream {
		want.Patience = a.Patience // the stream is kept alive meanwhile
	}
	s, err := a.open(r.Context(), who, want)
	if err != nil {
		return err
	}
	if away := tapeOf(request).away(s.Missing); away != nil {
		return unavailable(away)
	}
	request.rename(s.Model)
	tellMissing(w, s)
	offer := why == ""
	if offer {
		if offer, err = offers(r.Context(), s); err != nil {
			return err
		}
	}
	if !offer && s.Upstream.Speaks(on.name) {
		if plain := request.plain(r.Context(), why); plain != nil {
			w.Header().Set(wireHeader, "relayed")
			a.relayTo(w, r, s.Upstream, relayed{who: who, body: plain, model: said.model, meter: a.Sessions.Gate().Meter(who, said.model)})
			run.Answered = true
			return nil
		}
	}
	return a.converse(on, w, r, request, s, offer, run)
}

// read reads a request, and refuses one that names a model which the caller may not use.
func (a *API) read(on wire, w http.ResponseWriter, r *http.Request, who caller.Caller) (asking, error) {
	body, err := a.readBody(w, r)
	if err != nil {
		return nil, err
	}
	request, err := on.read(a, r, who, body)
	if err != nil {
		return nil, err
	}
	named, err := queryModel(r) // which goes with it
	if err == nil {
		err = sameModel(named, request.about().model)
	}
	if err == nil {
		err = a.judgeFurther(r.Context(), who, body)
	}
	if err == nil {
		_, err = lastUsage(r)
	}
	return request, err
}

// UsageHeader says what usage of an answer is to tell: the sum of its rounds, which is the
// default, or "last", what its last round took. That is how long the conversation is by
// now, which agents such as Codex take usage for when they decide whether to summarise.
const UsageHeader = "X-Dragoman-Usage"

// lastUsage reads it.
func lastUsage(r *http.Request) (bool, error) {
	switch v := r.Header.Get(UsageHeader); v {
	case "", "sum":
		return false, nil
	case "last":
		return true, nil
	default:
		return false, model.Invalid(UsageHeader, fmt.Sprintf("%s is sum or last, not %q.", UsageHeader, v))
	}
}

// withheld says why no tools are to be offered to a request, which then goes through as
// it is; "" where they are.
func (said about) withheld(h http.Header) (why string, err error) {
	switch why = said.withhold; {
	case why == "":
	case len(said.servers) > 0 && why != notAsked:
		return "", &model.Error{
			Status: http.StatusBadRequest, Type: model.TypeInvalidRequest, Code: model.CodeToolConflict, Param: "tools",
			Message: "MCP tools cannot be used in this request: " + why + ".",
		}
	default:
		h.Set("X-Dragoman-Tools", "withheld: "+why)
	}
	return why, nil
}

// want returns the session that a request wants.
func (said about) want() (session.Want, error) {
	want := session.Want{Model: said.model, Session: said.session, Begun: said.begun, WebSearch: said.search, Reads: said.reads}
	want.SearchOnly = said.searches && len(said.servers) == 0
	for _, s := range said.servers {
		if s.URL != "" {
			return want, model.Invalid("tools", "server_url is not allowed here; name a configured server by its server_label, and leave server_url out or let it be \"dragoman:\" and the label.")
		}
		if !said.approves && s.RequireApproval != nil && string(s.RequireApproval) != `"never"` {
			return want, model.Invalid("tools", "require_approval can only be \"never\" here.")
		}
		if s.AllowedTools != nil && strings.HasPrefix(s.Label, session.SetPrefix) {
			return want, model.Invalid("tools", "A set says itself which tools it has; leave allowed_tools out.")
		}
		want.Servers = append(want.Servers, catalog.Choice{Server: s.Label, Tools: s.AllowedTools, ReadOnly: s.ReadOnly})
	}
	return want, nil
}

// offers reports whether a session has tools to offer.
func offers(ctx context.Context, s *session.Session) (bool, error) {
	list, err := s.Tools.List(ctx)
	if err != nil {
		return false, fmt.Errorf("listing tools: %w", err)
	}
	return slices.ContainsFunc(list.Tools.All(), func(t dragoman.Tool) bool { return t.Quarantined == nil }), nil
}

// converse runs a conversation, with tools where there are some to offer.
func (a *API) converse(on wire, w http.ResponseWriter, r *http.Request, request asking, s *session.Session, offer bool, run *idempotency.Run) error {
	id := observe.RequestOf(r.Context())
	if id == "" {
		id = model.NewRequestID()
	}
	s.Request = id
	said := request.about()
	api := s.API()
	if q, ok := request.(responsesAsking); ok && q.Native() {
		api = model.ResponsesAPI // which is what both speak
	}
	way := wayName(api)
	log := s.Caller.Log(a.Log, slog.String("request", id), slog.String("model", clip.Text(said.model, loggedName)), slog.String("upstream_api", way))
	client := s.ClientOf(api, a.of(r), log)
	taped, sampled := tapeOf(request), *client
	ask, can := s.Sampler(&sampled, 0, nil) // what servers ask the model is part of their calls
	taped.client(client)
	last, err := lastUsage(r)
	if err != nil {
		return err
	}
	w.Header().Set(wireHeader, way)
	w.Header().Set(on.idHeader, id)
	var hold func(ctx context.Context, request string) (again bool, err error)
	if run.Hold != nil { // else there is nothing to claim
		hold = a.holding(r, s.Caller, run)
	}
	c, err := request.converse(w, chat.Options{
		Model:   client,
		Can:     can,
		Shape:   s.Shape,
		Guide:   s.Guide,
		Offers:  &a.offers,
		Search:  s.Search,
		Memory:  a.memory(),
		Running: &a.State.running,
		Caller:  s.Caller.ID,
		Retried: taped == nil && retried(r, said), // who asks again for a response in the background gets one of its own
		Session: agentSession(r),
		Again:   run.Again,
		Hold:    hold,
		Held:    held(run),
		ID:      id,
		Log:     log,
		Missing: s.Missing,

		LastUsage: last,
	}, s)
	if err != nil {
		return err
	}
	started, calls := time.Now(), 0
	loop := s.Loop(log, func(e dragoman.Event) {
		if e.Phase == dragoman.Execute && e.Result != nil {
			calls++
		}
	}, ask)
	if !offer {
		loop.Tools = none{loop.Tools}
	}
	taped.loop(loop)
	defer func() { run.Changed = c.Wrote() }() // however it ends
	err = loop.Run(r.Context(), c)
	if why := taped.left(); err != nil && why != nil {
		err = why
	}
	s.Over(err)
	run.Answered = err == nil
	line := [...]slog.Attr{slog.Int("calls", calls), slog.Duration("took", time.Since(started).Round(time.Millisecond)), spent(c)}
	switch {
	case err == nil:
		logbuffer.Line(r.Context(), log, slog.LevelInfo, on.name, line[:]...)
	case taped.left() != nil:
		logbuffer.Line(r.Context(), log, slog.LevelInfo, on.name+" left", append(line[:], slog.Any("why", err))...)
	case errors.Is(context.Cause(r.Context()), context.Canceled):
		logbuffer.Line(r.Context(), log, slog.LevelInfo, on.name+" cancelled by the client", line[:]...)
	default:
		logbuffer.Line(r.Context(), log, slog.LevelWarn, on.name+" failed", append(line[:], slog.Any("error", err))...)
	}
	return nil // the client has been told
}

// wayName names an API of models in headers and logs.
func wayName(api model.API) string {
	if api == model.ResponsesAPI {
		return "responses"
	}
	return "chat"
}

// spent is what a conversation has cost, as a line of a log says it.
func spent(c conversation) slog.Attr {
	tokens, estimated := c.Tokens()
	if estimated {
		return slog.Int64("tokens_estimated", tokens)
	}
	return slog.Int64("tokens", tokens)
}

// none is a toolset without its tools.
type none struct{ dragoman.Toolset }

// List returns a list of nothing.
func (none) List(context.Context) (*dragoman.List, error) { return &dragoman.List{}, nil }

// agentSession returns the session of an agent's that a request is part of; empty for none.
// The history of one grows with each of its requests, so that one that is the same is sent
// again, and those of two sessions that begin with the same words are two.
func agentSession(r *http.Request) string {
	by := r.UserAgent()
	if slices.ContainsFunc([]string{"opencode/", "Kilo-Code/", "QwenCode/"}, func(agent string) bool { return strings.HasPrefix(by, agent) }) {
		id := r.Header.Get("X-Session-Id")
		if strings.Contains(id, "${") {
			return "" // settings name it, and a release fills nothing in: all sessions of everybody say the same
		}
		return id
	}
	// Pi has no name of its own, but gives each request of a session the same id.
	if id := r.Header.Get("X-Client-Request-Id"); id == r.Header.Get("X-Session-Affinity") || id == r.Header.Get("Session_id") {
		return id
	}
	return ""
}

// fromCopilot reports whether GitHub's Copilot CLI asks on its own account, which is how it
// also sends again what a person asked. What people and agents ask there has the time in it, to
// the millisecond, so that no two requests are the same. Copilot in editors says who asks, too,
// and has the date alone; it is told by not asking through an official client.
func fromCopilot(r *http.Request) bool {
	return r.Header.Get("X-Initiator") == "agent" && r.Header.Get("X-Stainless-Retry-Count") != ""
}

// retried reports whether a client sends a request again: official ones say so, and
// agents that do not show it.
func retried(r *http.Request, said about) bool {
	n := r.Header.Get("X-Stainless-Retry-Count")
	return n != "" && n != "0" || said.turn || agentSession(r) != "" || fromCopilot(r) ||
		!said.stream && said.beside == "" && fromClaudeCode(r) // what failed in a stream it asks without one
}
