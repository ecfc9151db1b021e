package api

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/door"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/judge/policy"
	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
	"github.com/dragoman-mcp/dragoman/internal/session"
	"github.com/dragoman-mcp/dragoman/internal/state/seal"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/chat"
	"github.com/dragoman-mcp/dragoman/openai/messages"
	"github.com/dragoman-mcp/dragoman/openai/model"
	"github.com/dragoman-mcp/dragoman/result"
)

// messagesRoutes are those of Anthropic's API, but for the list of models.
func (a *API) messagesRoutes() []door.Route {
	return []door.Route{
		{Pattern: "POST /v1/messages", Serve: a.onceOnly(a.orNative(upstream.Messages, namesServers, a.ask(messagesWire))), Form: messages.WriteError},
		{Pattern: "POST /v1/messages/count_tokens", Serve: a.countTokens, Form: messages.WriteError},
	}
}

// messagesWire is Anthropic's Messages API.
var messagesWire = wire{name: "messages", form: messages.WriteError, idHeader: "Request-Id", read: func(a *API, r *http.Request, _ caller.Caller, body []byte) (asking, error) {
	request, err := messages.Parse(body)
	if err != nil {
		return nil, err
	}
	request.Flags(r.Header.Values("Anthropic-Beta"))
	return messagesOf(r, request, a.State.Seals), nil
}}

// fromClaudeCode reports whether Claude Code makes a request.
func fromClaudeCode(r *http.Request) bool { return r.Header.Get("X-Claude-Code-Session-Id") != "" }

// namesServers reports whether a request names MCP servers by labels of ours: an entry
// of mcp_servers that is not an address of somebody else's, or a toolset without one.
func namesServers(body []byte) bool {
	o, err := rawjson.ParseObject(body)
	if err != nil {
		return false
	}
	elsewhere := map[string]bool{}
	entries, _ := rawjson.Elements(o.Get("mcp_servers"))
	for _, raw := range entries {
		s, err := rawjson.ParseObject(raw)
		if err != nil {
			return false
		}
		name, _ := rawjson.String(s.Get("name"))
		if at, _ := rawjson.String(s.Get("url")); at == "" || at == messages.URL(name) {
			return true
		}
		elsewhere[name] = true
	}
	tools, _ := rawjson.Elements(o.Get("tools"))
	return slices.ContainsFunc(tools, func(raw json.RawMessage) bool {
		t, err := rawjson.ParseObject(raw)
		if err != nil {
			return false
		}
		kind, _ := rawjson.String(t.Get("type"))
		name, _ := rawjson.String(t.Get("mcp_server_name"))
		return kind == "mcp_toolset" && !elsewhere[name]
	})
}

// A messagesAsking is a request to POST /v1/messages that is answered here.
type messagesAsking struct {
	*messages.Request
	seals  *seal.Ring
	beside bool // an agent asks it beside its conversation, and
	search bool // it is a search of the web

	turn  string // of Claude Code's that it is part of; empty where it does not say
	agent string // whose turn that is: the session's own, or one that it started
}

func messagesOf(r *http.Request, request *messages.Request, seals *seal.Ring) messagesAsking {
	beside := fromClaudeCode(r) && (request.Beside() || besideByClass(r))
	search := beside && request.Search != nil
	turn, agent := claudeTurn(r, beside)
	return messagesAsking{request, seals, beside && !search, search, turn, agent}
}

// claudeTurn returns the names of the turn of Claude Code's that a request is part of, and of the
// agent whose it is; empty where it does not say. It sends a request again in a stream, too, and
// to its fallback model with other words of its own. Two agents that it starts with the same words
// are two.
func claudeTurn(r *http.Request, beside bool) (turn, agent string) {
	prompt, agent := r.Header.Get("X-Claude-Code-Prompt-Id"), r.Header.Get("X-Claude-Code-Agent-Id")
	if prompt == "" || beside || agent == "" && r.Header.Get("X-Claude-Code-Request-Class") != "main" || !fromClaudeCode(r) {
		return "", ""
	}
	session := r.Header.Get("X-Claude-Code-Session-Id")
	return session + " " + prompt + " " + agent, session + " " + agent
}

// besideByClass reports whether Claude Code says of a request that it is no turn of a
// conversation. Many such have the tools of one, for the sake of the model's cache: it asks a
// side question, a summary or what to type next behind the conversation, and has calls of its
// own tools denied. A search of the web is done by a tool of ours, and by no other.
func besideByClass(r *http.Request) bool {
	class := r.Header.Get("X-Claude-Code-Request-Class")
	return class == "auxiliary" || class == "compaction"
}

func (m messagesAsking) about() about {
	said := about{model: m.Model, stream: m.Stream, session: m.Session(), servers: m.Servers, search: m.Search, withhold: m.Withhold(), reads: m.Plans(), searches: m.search, turn: m.turn != "", claim: m.turn}
	if m.beside {
		said.beside = "Claude Code"
	}
	return said
}

func (m messagesAsking) rename(model string) { m.Rename(model) }

func (m messagesAsking) plain(context.Context, string) json.RawMessage { return nil }

func (m messagesAsking) converse(w http.ResponseWriter, options chat.Options, _ *session.Session) (conversation, error) {
	return messages.New(m.Request, w, messages.Options{Options: options, Seals: m.seals, Turn: m.turn, Agent: m.agent})
}

// countTokens answers POST /v1/messages/count_tokens: with the upstream's own count where
// it speaks the API, and an estimate that says so where it does not.
func (a *API) countTokens(w http.ResponseWriter, r *http.Request, who caller.Caller) {
	body, err := a.readBody(w, r)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	r.Body, r.ContentLength = door.ReadAgain(body), int64(len(body))
	if a.speaks(upstream.Messages, body) && !namesServers(body) {
		w.Header().Set(wireHeader, "relayed")
		a.relay(w, r, who)
		return
	}
	tokens, err := a.count(r, who, body)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	w.Header().Set(wireHeader, "chat")
	w.Header().Set("X-Dragoman-Estimate", "input_tokens")
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]int{"input_tokens": tokens})
}

// count returns about how many tokens a request is, with the tools of servers that the
// model would be offered with it.
func (a *API) count(r *http.Request, who caller.Caller, body []byte) (int, error) {
	request, err := messages.ParseCount(body)
	if err != nil {
		return 0, err
	}
	request.Flags(r.Header.Values("Anthropic-Beta"))
	named, err := queryModel(r)
	if err == nil {
		err = sameModel(named, request.Model)
	}
	if err == nil {
		err = a.judgeFurther(r.Context(), who, body)
	}
	if err != nil {
		return 0, err
	}
	leave, err := a.admit(r.Context(), who, policy.Model, request.Model)
	if err != nil {
		return 0, err
	}
	defer leave()
	said := a.about(messagesOf(r, request, nil))
	want, err := said.want()
	if err != nil {
		return 0, err
	}
	want.NoTools, want.Door = said.withhold != "", messagesWire.name
	s, err := a.open(r.Context(), who, want)
	if err != nil || want.NoTools {
		return request.Count(), err
	}
	list, err := s.Tools.List(r.Context())
	if err != nil {
		return 0, err
	}
	return request.Count() + offered(list, s.Search), nil
}

// offered returns about how many tokens tools cost in a request.
func offered(list *dragoman.List, search model.Search) (tokens int) {
	for _, t := range list.Tools.All() {
		if t.Quarantined == nil {
			tokens += 12 + result.EstimateTokens(t.Name+t.Description+string(t.InputSchema))
		}
	}
	most := cmp.Or(search.Tokens, model.DefaultSearchTokens)
	if search.When == model.Always && tokens > 0 || search.When == model.Auto && tokens > most {
		return searchTokens
	}
	return tokens
}

// searchTokens is about what the two tools cost that stand in for all others.
const searchTokens = 500

// errorsOf returns the form of errors that the client of a request reads.
func errorsOf(r *http.Request) door.Form {
	if caller.SpeaksMessages(r) {
		return messages.WriteError
	}
	return door.OpenAI
}
