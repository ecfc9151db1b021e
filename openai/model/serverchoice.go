package model

import (
	"encoding/json"
	"fmt"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// A ServerChoice chooses tools of one MCP server for a request. It has the form
// of the Responses API's "mcp" tool.
type ServerChoice struct {
	// Label is the server's label in our configuration (server_label).
	Label string
	// URL names a server that is not in our configuration (server_url); empty for one that
	// is, which a url may say, too ([ServerURL]).
	URL string
	// AllowedTools are the original names of the tools to offer; nil means all.
	AllowedTools []string
	// ReadOnly offers only tools that say they change nothing
	// (allowed_tools.read_only).
	ReadOnly bool
	// DeferLoading keeps the definitions of the server's tools out of the request
	// until the model searches for them (defer_loading).
	DeferLoading bool
	// RequireApproval is the raw require_approval member; nil when absent.
	RequireApproval json.RawMessage
}

// ServerURL returns what stands for the url of a configured server where a client's types
// want one.
func ServerURL(label string) string { return "dragoman:" + label }

// ReadServerChoice reads an entry of tools of the type "mcp", which stands at param.
// The error is an [*Error].
func ReadServerChoice(o *rawjson.Object, param string) (ServerChoice, error) {
	var c ServerChoice
	c.Label, _ = rawjson.String(o.Get("server_label"))
	c.URL, _ = rawjson.String(o.Get("server_url"))
	c.RequireApproval = o.Get("require_approval")
	if c.Label == "" {
		return c, Invalid(param+".server_label", "An mcp tool needs a server_label.")
	}
	if err := refuseStrangers(o, param); err != nil {
		return c, err
	}
	if c.URL == ServerURL(c.Label) {
		c.URL = ""
	}
	var err error
	if c.DeferLoading, err = Boolean(o, "defer_loading"); err != nil {
		return c, Invalid(param+".defer_loading", "\"defer_loading\" must be true or false.")
	}
	allowed := o.Get("allowed_tools")
	if rawjson.IsNull(allowed) {
		return c, nil
	}
	wrong := Invalid(param+".allowed_tools", "\"allowed_tools\" must be an array of tool names, or an object with tool_names or read_only.")
	if rawjson.Kind(allowed) == '{' {
		filter, err := rawjson.ParseObject(allowed)
		if err != nil {
			return c, wrong
		}
		if c.ReadOnly, err = Boolean(filter, "read_only"); err != nil {
			return c, err
		}
		if allowed = filter.Get("tool_names"); rawjson.IsNull(allowed) {
			return c, nil
		}
	}
	names, err := rawjson.Elements(allowed)
	if err != nil {
		return c, wrong
	}
	c.AllowedTools = []string{}
	for _, raw := range names {
		name, ok := rawjson.String(raw)
		if !ok {
			return c, wrong
		}
		c.AllowedTools = append(c.AllowedTools, name)
	}
	return c, nil
}

// refuseStrangers refuses what is about servers, or accounts at servers, that are not of
// our configuration. Left out in silence, a call would be made as somebody else.
func refuseStrangers(o *rawjson.Object, param string) error {
	for _, name := range []string{"authorization", "headers"} {
		switch value := o.Get(name); string(value) {
		case "{}", `""`:
		default:
			if !rawjson.IsNull(value) {
				return Invalid(param+"."+name, fmt.Sprintf("Credentials for a server stand in the configuration, or come of its login: leave %q out.", name))
			}
		}
	}
	for _, name := range []string{"connector_id", "tunnel_id"} {
		if !rawjson.IsNull(o.Get(name)) {
			return Invalid(param+"."+name, fmt.Sprintf("What %q names is at OpenAI, and there is nothing here of that name: name a configured server by its server_label.", name))
		}
	}
	return nil
}

// Boolean reads a member that is true, or else false, null or not there. The error is
// an [*Error].
func Boolean(o *rawjson.Object, name string) (bool, error) {
	switch v := o.Get(name); {
	case string(v) == "true":
		return true, nil
	case rawjson.IsNull(v), string(v) == "false":
		return false, nil
	}
	return false, Invalid(name, fmt.Sprintf("%q must be true or false.", name))
}
