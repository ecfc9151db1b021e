package policy

import (
	"slices"

	"github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/ast"
	"github.com/cedar-policy/cedar-go/types"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/text/glob"
)

type publicPolicy = ast.Policy

// The types of entities.
const (
	typeCaller   = "Caller"
	typeAction   = "Action"
	typeTool     = "Tool"
	typePrompt   = "Prompt"
	typeResource = "Resource"
	typeTemplate = "Template"
	typeSkill    = "Skill"
	typeServer   = "Server"
	typeModel    = "Model"
	typeRoute    = "Route"
	typePattern  = "Pattern" // a group: all that a pattern with a ? matches
	typeJSON     = "JSON"    // values that Cedar has no word for
)

// What a server can say against its tool.
const (
	hintDestructive = "destructive" // destructiveHint: true
	hintOpenWorld   = "open_world"  // openWorldHint: true
	hintWrites      = "writes"      // readOnlyHint: false
)

// entities are the two that a request is about.
type entities struct{ caller, target types.Entity }

// Get implements [types.EntityGetter].
func (e *entities) Get(uid types.EntityUID) (types.Entity, bool) {
	switch uid {
	case e.target.UID:
		return e.target, true
	case e.caller.UID:
		return e.caller, true
	}
	return types.Entity{}, false
}

// callerEntity says who asks.
func (p *Policy) callerEntity(c caller.Caller) types.Entity {
	name := c.RuleName()
	scopes := make([]types.Value, len(c.Scopes))
	for i, s := range c.Scopes {
		scopes[i] = types.String(s)
	}
	var groups []types.EntityUID
	for _, pattern := range p.callerGroups {
		if inGroup(pattern, c.ID, name) {
			groups = append(groups, types.NewEntityUID(typePattern, types.String(pattern)))
		}
	}
	return types.Entity{
		UID:     types.NewEntityUID(typeCaller, types.String(c.ID)),
		Parents: types.NewEntityUIDSet(groups...),
		Attributes: types.NewRecord(types.RecordMap{
			"id": types.String(c.ID), "name": types.String(name), "issuer": types.String(c.Issuer),
			"client": types.String(c.Client), "scopes": types.NewSet(scopes...),
		}),
	}
}

// targetEntity says what is asked for.
func (p *Policy) targetEntity(t target) types.Entity {
	name := t.name()
	attributes := types.RecordMap{"name": types.String(name)}
	kind := types.EntityType(cedarTypes[t.kind])
	if t.kind == "server" {
		kind = typeServer
	}
	var groups []types.EntityUID
	if t.server != "" {
		attributes["server"], attributes["original"] = types.String(t.server), types.String(t.original)
		groups = append(groups, types.NewEntityUID(typeServer, types.String(t.server)))
	}
	if t.tool != nil {
		attributes["effect"], attributes["hints"] = types.String(t.tool.Effect().String()), against(t.tool.Hints)
		attributes["open_world"] = types.Boolean(!t.tool.Closed())
	}
	for _, pattern := range p.targetGroups {
		if glob.Match(pattern, name) {
			groups = append(groups, types.NewEntityUID(typePattern, types.String(pattern)))
		}
	}
	id := types.String(name)
	if t.kind == "server" {
		id = types.String(t.server)
		groups = slices.DeleteFunc(groups, func(g types.EntityUID) bool { return g.Type == typeServer })
	}
	return types.Entity{UID: types.NewEntityUID(kind, id), Parents: types.NewEntityUIDSet(groups...), Attributes: types.NewRecord(attributes)}
}

// against is what a server says against its tool. What it says for it is not
// here: silence and a harmless word are the same.
func against(h dragoman.Hints) types.Set {
	var words []types.Value
	if h.Destructive != nil && *h.Destructive {
		words = append(words, types.String(hintDestructive))
	}
	if h.OpenWorld != nil && *h.OpenWorld {
		words = append(words, types.String(hintOpenWorld))
	}
	if h.ReadOnly != nil && !*h.ReadOnly {
		words = append(words, types.String(hintWrites))
	}
	return types.NewSet(words...)
}

// request makes Cedar's request of ours.
func (e *entities) request(action Action, context types.Record) cedar.Request {
	return cedar.Request{Principal: e.caller.UID, Action: types.NewEntityUID(typeAction, types.String(action)), Resource: e.target.UID, Context: context}
}
