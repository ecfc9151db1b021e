package mcpserve

import (
	"context"
	"crypto/sha256"
	"encoding/binary"

	"github.com/dragoman-mcp/dragoman/mcp"
)

// Digests implements [mcp.Digester]: of what a legacy client is listed.
func (h *host) Digests(ctx context.Context) (all [3]uint64) {
	_, v, err := h.open(ctx)
	if err != nil {
		return all
	}
	return v.digests()
}

// listsOf are the methods whose items are of each of the lists of [mcp.Digester].
var listsOf = [3][]string{{"tools/list"}, {"prompts/list"}, {"resources/list", "resources/templates/list"}}

// digest returns a number for the lists of the view. They are read once.
func (v *view) digest() (all [3]uint64) {
	as := form{legacy: true, raw: true}
	for i, methods := range listsOf {
		sum := sha256.New()
		for _, method := range methods {
			for _, item := range v.listing(method, as).items {
				_, _ = sum.Write(item.json)
				_, _ = sum.Write([]byte{0})
			}
			_, _ = sum.Write([]byte{1})
		}
		all[i] = binary.BigEndian.Uint64(sum.Sum(nil))
	}
	return all
}

var _ mcp.Digester = (*host)(nil)
