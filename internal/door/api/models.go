package api

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/judge/policy"
	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// models answers GET /v1/models, with those that the caller may use: as OpenAI has them
// under data, and as Codex's catalogue has them under models; or, for clients that speak
// Anthropic's API, as that has them.
func (a *API) models(w http.ResponseWriter, r *http.Request, who caller.Caller) {
	list, usable, err := a.listed(r, who)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	var document json.RawMessage
	if caller.SpeaksMessages(r) {
		document = a.anthropicModels(usable)
	} else {
		data, catalogue := make([]json.RawMessage, len(usable)), make([]json.RawMessage, len(usable))
		for i, m := range usable {
			data[i], catalogue[i] = m.entry, a.catalogued(m.id, i)
		}
		list.Set("data", rawjson.AppendArray(nil, data))
		list.Set("models", rawjson.AppendArray(nil, catalogue))
		document = list.Bytes()
	}
	sum := sha256.Sum256(document)
	tag := `"` + base64.RawURLEncoding.EncodeToString(sum[:16]) + `"`
	w.Header().Set("Cache-Control", "private")
	w.Header().Set("ETag", tag)
	if strings.Contains(r.Header.Get("If-None-Match"), tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	writeJSON(w, document)
}

// model answers GET /v1/models/{model}: as Anthropic's API has it for clients that speak that,
// where the list has it. Else the model's upstream is asked, as one is that speaks that API itself
// and calls the model so, too.
func (a *API) model(w http.ResponseWriter, r *http.Request, who caller.Caller) {
	name := strings.TrimPrefix(r.URL.Path, "/v1/models/")
	if up, err := a.upstream(name); !caller.SpeaksMessages(r) || err != nil || up.Speaks(upstream.Messages) && up.ModelName(name) == name {
		a.relay(w, r, who)
		return
	}
	_, usable, err := a.listed(r, who)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	i := slices.IndexFunc(usable, func(m listedModel) bool { return m.id == name })
	if i < 0 {
		a.relay(w, r, who)
		return
	}
	leave, err := a.admit(r.Context(), who, policy.Route, r.URL.Path) // as where it is relayed
	if err != nil {
		a.fail(w, r, err)
		return
	}
	defer leave()
	m, err := rawjson.ParseObject(usable[i].entry)
	if err != nil {
		a.fail(w, r, fmt.Errorf("reading a model: %w", err)) // it has an id
		return
	}
	w.Header().Set("Cache-Control", "private")
	writeJSON(w, a.anthropicModel(name, m))
}

// listed returns the list of all models, and those of it that the caller may use.
func (a *API) listed(r *http.Request, who caller.Caller) (list *rawjson.Object, usable []listedModel, err error) {
	document, failures := a.Upstreams.Models(r.Context(), r.Header, a.clientCredentials())
	for _, f := range failures {
		a.Log.Warn("models of an upstream are missing", "upstream", f.Host, "error", f.Err)
	}
	if list, err = rawjson.ParseObject(document); err != nil {
		return nil, nil, fmt.Errorf("listing models: %w", err) // we made it
	}
	return list, a.usable(who, list), nil
}

// A listedModel is an entry of a list of models, as its upstream wrote it.
type listedModel struct {
	id    string
	entry json.RawMessage
}

// usable returns those of a list of models that a caller may use.
func (a *API) usable(who caller.Caller, list *rawjson.Object) []listedModel {
	all, err := rawjson.Elements(list.Get("data"))
	if err != nil {
		return nil
	}
	var kept []listedModel
	for _, entry := range all {
		id := idOf(entry)
		if a.Sessions.Gate().Sees(who, policy.Model, id) {
			kept = append(kept, listedModel{id, entry})
		}
	}
	return kept
}

// catalogued returns a model as Codex's catalogue has it. The values are for a model that
// speaks Chat and of which nothing is known: no grammars it would not be held to, and
// instructions that are short. Codex asks for a summary of what a model thinks where that
// is ours to give: an API that speaks Responses may refuse to.
func (a *API) catalogued(id string, place int) json.RawMessage {
	window, summed := upstream.DefaultContext, false
	if up, err := a.Upstreams.For(id); err == nil {
		if up.Context > 0 {
			window = up.Context
		}
		summed = !up.Speaks(upstream.Responses)
	}
	entry := map[string]any{
		"slug": id, "display_name": id, "description": "Through Dragoman.", "priority": place,
		"supported_reasoning_levels": []string{}, "shell_type": "shell_command", "visibility": "list", "supported_in_api": true,
		"support_verbosity": false, "truncation_policy": map[string]any{"mode": "tokens", "limit": 10_000},
		"experimental_supported_tools": []string{}, "base_instructions": codexInstructions,
		"context_window": window, "max_context_window": window, "auto_compact_token_limit": window * 8 / 10,
		"supports_parallel_tool_calls": true, "apply_patch_tool_type": nil, "supports_search_tool": false,
		"input_modalities": []string{"text", "image"}, "supports_reasoning_summary_parameter": summed,
		"prefer_websockets": false, "use_responses_lite": false, "tool_mode": nil, "multi_agent_version": nil,
	}
	document, err := json.Marshal(entry)
	if err != nil {
		return json.RawMessage("null") // it always can
	}
	return document
}

// codexInstructions are what Codex tells a model first, in place of its own, which are
// about models of OpenAI's and take four thousand tokens of each request.
const codexInstructions = "You are a coding agent that works in a person's terminal. Read the code before you change it, change as little as does the job, " +
	"run the tests that there are, and say in a few words what you did. Use the tools that you are offered: run commands for reading, searching and editing files. " +
	"Never undo changes that are not yours, and ask before anything that cannot be undone."
