package upstream

import (
	"slices"
	"strings"
)

// Names of APIs among the wires of a [Model]: OpenAI's Chat and Responses, and Anthropic's
// Messages.
const (
	Chat      = "chat"
	Responses = "responses"
	Messages  = "messages"
)

// anthropicHost is where Anthropic's own API is.
const anthropicHost = "api.anthropic.com"

// Speaks reports whether one of the upstreams speaks one of the APIs.
func (s *Set) Speaks(wire string) bool { return slices.Contains(s.wires, wire) }

// Speaks reports whether the upstream speaks one of the APIs: as the configuration says,
// or else as is known of its host. Chat is spoken unless the configuration names Responses
// without it: one of the two it takes to answer at all.
func (u *Upstream) Speaks(wire string) bool {
	if wire == Chat {
		return !slices.Contains(u.wires, Responses) || slices.Contains(u.wires, Chat)
	}
	if u.wires != nil {
		return slices.Contains(u.wires, wire)
	}
	host := strings.ToLower(u.BaseURL.Hostname())
	if wire == Messages {
		return host == anthropicHost
	}
	return wire == Responses && (host == "api.openai.com" || strings.HasSuffix(host, ".openai.azure.com"))
}
