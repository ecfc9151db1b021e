package safehttp

import (
	"fmt"
	"net/netip"
)

// ownCloud are the addresses at which a machine is told about itself: link-local
// ones, which hold the metadata services of most clouds, and those of Azure,
// Alibaba, Oracle and Amazon that lie elsewhere.
var ownCloud = prefixes("169.254.0.0/16", "fe80::/10", "168.63.129.16/32", "100.100.100.200/32", "192.0.0.192/32", "fd00:ec2::254/128")

// CheckLocal returns an error that wraps [ErrAddress] for a link-local address,
// or that of a cloud's metadata service. Other private addresses pass: servers
// that an operator configures often have one.
func CheckLocal(addr netip.Addr) error {
	plain := addr.Unmap().WithZone("")
	for _, block := range ownCloud {
		if block.Contains(plain) {
			return fmt.Errorf("%w: %s", ErrAddress, addr)
		}
	}
	return nil
}
