package safehttp

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/dragoman-mcp/dragoman/internal/wire/addresses"
)

// ErrAddress is what a client for untrusted addresses returns, wrapped, when it
// is to connect to an address that is not public.
var ErrAddress = errors.New("address is not public")

// CheckAddress returns an error that wraps [ErrAddress] for an address that is
// not public; see [addresses.Public].
func CheckAddress(addr netip.Addr) error {
	if !addresses.Public(addr) {
		return fmt.Errorf("%w: %s", ErrAddress, addr)
	}
	return nil
}
