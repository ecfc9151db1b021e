package upstream

import (
	"slices"
	"strings"
)

// Names of APIs among the wires of a [Model]: OpenAI's Responses, and Anthropic's
// Messages.
const (
	Responses = "responses"
	Messages  = "messages"
)

// anthropicHost is where Anthropic's own API is.
const anthropicHost = "api.anthropic.com"

// Speaks reports whether the upstream speaks one of the APIs beside Chat: as the
// configuration says, or else as is known of its host.
func (u *Upstream) Speaks(wire string) bool {
	if u.wires != nil {
		return slices.Contains(u.wires, wire)
	}
	host := strings.ToLower(u.BaseURL.Hostname())
	if wire == Messages {
		return host == anthropicHost
	}
	return wire == Responses && (host == "api.openai.com" || strings.HasSuffix(host, ".openai.azure.com"))
}
