package safehttp

import (
	"fmt"
	"net/netip"

	"github.com/dragoman-mcp/dragoman/internal/wire/addresses"
)

// CheckLocal returns an error that wraps [ErrAddress] for a link-local address,
// or that of a cloud's metadata service. Other private addresses pass: servers
// that an operator configures often have one.
func CheckLocal(addr netip.Addr) error {
	if addresses.Metadata(addr) {
		return fmt.Errorf("%w: %s", ErrAddress, addr)
	}
	return nil
}
