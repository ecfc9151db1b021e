package upstream

import (
	"slices"
	"strings"
)

// Responses is the name of the Responses API among the wires of a [Model].
const Responses = "responses"

// Speaks reports whether the upstream speaks one of the APIs beside Chat: as the
// configuration says, or else as is known of its host.
func (u *Upstream) Speaks(wire string) bool {
	if u.wires != nil {
		return slices.Contains(u.wires, wire)
	}
	host := strings.ToLower(u.BaseURL.Hostname())
	return wire == Responses && (host == "api.openai.com" || strings.HasSuffix(host, ".openai.azure.com"))
}
