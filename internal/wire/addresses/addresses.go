// Package addresses knows which addresses belong to the public Internet. It is
// the one list of this module: what the gateway fetches for others and what
// authors of servers fetch for a model must not differ.
package addresses

import "net/netip"

// notPublic are the blocks that are no public unicast addresses, from the
// special-purpose registries of IANA (RFC 6890 and its updates), and single
// public addresses at which clouds serve the machine itself.
var notPublic = prefixes(
	"0.0.0.0/8",         // this network
	"10.0.0.0/8",        // private
	"100.64.0.0/10",     // behind carriers' NAT; holds Alibaba's metadata
	"127.0.0.0/8",       // loopback
	"168.63.129.16/32",  // Azure's host
	"169.254.0.0/16",    // link local; holds most clouds' metadata
	"172.16.0.0/12",     // private
	"192.0.0.0/24",      // protocol assignments; holds Oracle's metadata
	"192.0.2.0/24",      // documentation
	"192.31.196.0/24",   // AS112
	"192.52.193.0/24",   // AMT
	"192.88.99.0/24",    // 6to4 relays
	"192.168.0.0/16",    // private
	"192.175.48.0/24",   // AS112
	"198.18.0.0/15",     // benchmarks
	"198.51.100.0/24",   // documentation
	"203.0.113.0/24",    // documentation
	"224.0.0.0/4",       // multicast
	"240.0.0.0/4",       // reserved, broadcast
	"2001::/23",         // protocol assignments; Teredo holds IPv4 addresses
	"2001:db8::/32",     // documentation
	"2002::/16",         // 6to4 holds IPv4 addresses
	"2620:4f:8000::/48", // AS112
	"3fff::/20",         // documentation
)

// unicast6 is the only block of IPv6 from which public addresses are given out.
// Everything else, such as ::1, fe80::, fc00:: and the addresses of NAT64, is
// refused for being outside.
var unicast6 = netip.MustParsePrefix("2000::/3")

func prefixes(texts ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		out[i] = netip.MustParsePrefix(text)
	}
	return out
}

// Public reports whether an address belongs to the public Internet. Loopback,
// private, link-local, multicast and reserved addresses do not, nor do those
// with a zone, those that hold another address inside (except an IPv4 address
// mapped into IPv6, which counts as what it is), and the zero Addr.
func Public(addr netip.Addr) bool {
	if addr.Zone() != "" {
		return false
	}
	plain := addr.Unmap()
	if !plain.IsValid() || plain.Is6() && !unicast6.Contains(plain) {
		return false
	}
	for _, block := range notPublic {
		if block.Contains(plain) {
			return false
		}
	}
	return true
}

// metadata are the addresses at which a machine is told about itself: link-local
// ones, which hold the metadata services of most clouds, and those that lie elsewhere.
var metadata = prefixes(
	"169.254.0.0/16",         // link local
	"fe80::/10",              // link local
	"100.100.100.200/32",     // Alibaba
	"168.63.129.16/32",       // Azure's host
	"192.0.0.192/32",         // Oracle
	"fd00:c1::a9fe:a9fe/128", // Oracle
	"fd00:ec2::/32",          // Amazon: metadata (::254), credentials of pods (::23), and more
	"fd00:42::42/128",        // Scaleway
	"fd20:ce::254/128",       // Google
)

// Metadata reports whether an address is link-local or that of a cloud's metadata
// service, which nobody's server is. One that holds such an IPv4 address is.
func Metadata(addr netip.Addr) bool {
	plain := inside(addr.Unmap().WithZone(""))
	for _, block := range metadata {
		if block.Contains(plain) {
			return true
		}
	}
	return false
}

// Where IPv6 addresses hold IPv4 ones, that a network of IPv6 alone translates (NAT64, RFC
// 6052) or wraps (6to4, RFC 3056).
var (
	nat64     = netip.MustParsePrefix("64:ff9b::/96")
	sixToFour = netip.MustParsePrefix("2002::/16")
)

// inside returns the IPv4 address that an IPv6 address holds; addr where it holds none.
func inside(addr netip.Addr) netip.Addr {
	b := addr.As16()
	switch {
	case nat64.Contains(addr):
		return netip.AddrFrom4([4]byte(b[12:]))
	case sixToFour.Contains(addr):
		return netip.AddrFrom4([4]byte(b[2:6]))
	}
	return addr
}
