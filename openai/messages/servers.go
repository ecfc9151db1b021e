package messages

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// URL returns what may stand as url of an entry of mcp_servers that means the label of a
// configured server, since typed clients cannot leave the member out. Nothing is ever
// connected to by it.
func URL(label string) string { return model.ServerURL(label) }

// readServers reads mcp_servers. An entry names a server of the configuration. Which of
// its tools are meant may stand there or in an mcp_toolset, which wins.
func (r *Request) readServers() error {
	raw := r.object.Get("mcp_servers")
	if rawjson.IsNull(raw) {
		return nil
	}
	entries, err := rawjson.Elements(raw)
	if err != nil {
		return model.Invalid("mcp_servers", "mcp_servers: must be an array.")
	}
	for i, raw := range entries {
		param := fmt.Sprintf("mcp_servers.%d", i)
		o, err := rawjson.ParseObject(raw)
		if err != nil {
			return model.Invalid(param, param+": must be an object.")
		}
		choice, wanted, err := readServer(o, param)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(r.Servers, func(c model.ServerChoice) bool { return c.Label == choice.Label }) {
			return model.Invalid(param+".name", param+".name: the server is named twice.")
		}
		if wanted {
			r.Servers = append(r.Servers, choice)
		}
	}
	return nil
}

func readServer(o *rawjson.Object, param string) (choice model.ServerChoice, wanted bool, err error) {
	choice.Label, _ = rawjson.String(o.Get("name"))
	if choice.Label == "" {
		return choice, false, model.Invalid(param+".name", param+".name: must be the label of a configured server.")
	}
	if at, _ := rawjson.String(o.Get("url")); at != "" && at != URL(choice.Label) {
		return choice, false, model.Invalid(param+".url", fmt.Sprintf(
			"%s.url: servers are those of the configuration, and no other address is connected to. Name one by its label and leave url out, or let it be %q.", param, URL(choice.Label)))
	}
	if !rawjson.IsNull(o.Get("authorization_token")) {
		return choice, false, model.Invalid(param+".authorization_token", param+".authorization_token: credentials for a server stand in the configuration, or come of its login. Leave it out.")
	}
	raw := o.Get("tool_configuration")
	if rawjson.IsNull(raw) {
		return choice, true, nil
	}
	of, err := rawjson.ParseObject(raw)
	if err != nil {
		return choice, false, model.Invalid(param+".tool_configuration", param+".tool_configuration: must be an object.")
	}
	enabled, err := onOff(of, "enabled", true, param+".tool_configuration")
	if err != nil || !enabled {
		return choice, false, err
	}
	choice.AllowedTools, err = texts(of.Get("allowed_tools"), param+".tool_configuration.allowed_tools")
	return choice, true, err
}

// texts reads an array of strings; nil where there is none.
func texts(raw json.RawMessage, param string) ([]string, error) {
	if rawjson.IsNull(raw) {
		return nil, nil
	}
	wrong := model.Invalid(param, param+": must be an array of strings.")
	elements, err := rawjson.Elements(raw)
	if err != nil {
		return nil, wrong
	}
	all := make([]string, len(elements))
	for i, each := range elements {
		var ok bool
		if all[i], ok = rawjson.String(each); !ok {
			return nil, wrong
		}
	}
	return all, nil
}

// onOff reads a member that is true or false, or not there.
func onOff(o *rawjson.Object, name string, absent bool, param string) (bool, error) {
	if rawjson.IsNull(o.Get(name)) {
		return absent, nil
	}
	on, err := model.Boolean(o, name)
	if err != nil {
		return false, model.Invalid(param+"."+name, param+"."+name+": must be true or false.")
	}
	return on, nil
}

// A toolConfig is default_config, or one of configs, of an mcp_toolset.
type toolConfig struct{ enabled, deferred bool }

func readToolConfig(raw json.RawMessage, absent toolConfig, param string) (toolConfig, error) {
	if rawjson.IsNull(raw) {
		return absent, nil
	}
	o, err := rawjson.ParseObject(raw)
	if err != nil {
		return absent, model.Invalid(param, param+": must be an object.")
	}
	c := absent
	if c.enabled, err = onOff(o, "enabled", absent.enabled, param); err != nil {
		return c, err
	}
	c.deferred, err = onOff(o, "defer_loading", absent.deferred, param)
	return c, err
}

// readToolset reads an entry of tools of the type mcp_toolset. Its server needs no entry
// in mcp_servers.
func (r *Request) readToolset(o *rawjson.Object, param string) error {
	label, _ := rawjson.String(o.Get("mcp_server_name"))
	if label == "" {
		return model.Invalid(param+".mcp_server_name", param+".mcp_server_name: must be the label of a configured server.")
	}
	every, err := readToolConfig(o.Get("default_config"), toolConfig{enabled: true}, param+".default_config")
	if err != nil {
		return err
	}
	choice := model.ServerChoice{Label: label, DeferLoading: every.deferred}
	at := slices.IndexFunc(r.Servers, func(c model.ServerChoice) bool { return c.Label == label })
	if at >= 0 {
		choice.AllowedTools = r.Servers[at].AllowedTools
	}
	if !every.enabled {
		choice.AllowedTools = []string{}
	}
	if raw := o.Get("configs"); !rawjson.IsNull(raw) {
		configs, err := rawjson.ParseObject(raw)
		if err != nil {
			return model.Invalid(param+".configs", param+".configs: must be an object, by the names of tools.")
		}
		for name, raw := range configs.All() {
			own, err := readToolConfig(raw, every, param+".configs."+name)
			switch {
			case err != nil:
				return err
			case !own.enabled:
				r.off[serverTool{label, name}] = true
			case !every.enabled:
				choice.AllowedTools = append(choice.AllowedTools, name)
			}
			if own.enabled && !own.deferred {
				choice.DeferLoading = false // it has to be there from the start
			}
		}
	}
	if !rawjson.IsNull(o.Get("tools")) {
		r.listed[label] = true // the client has a listing
	}
	if at < 0 {
		r.Servers = append(r.Servers, choice)
	} else {
		r.Servers[at] = choice
	}
	return nil
}
