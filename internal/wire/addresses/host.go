package addresses

import (
	"net/netip"
	"strconv"
	"strings"
)

// OfHost returns the address that the host of a URL is; false where it is a name, or nothing.
// An IPv4 address may be written as it is for inet_aton of POSIX, and so for browsers and
// Node.js (https://url.spec.whatwg.org/#concept-ipv4-parser): in one to four numbers, each
// decimal, octal (0177) or hexadecimal (0x7f), of which the last fills what is left:
// 127.1 and 2130706433 are 127.0.0.1. One that is mapped into IPv6 is what it is. The zone of
// an IPv6 address (RFC 6874) is no part of it: [::1%25lo] is where ::1 is.
func OfHost(host string) (netip.Addr, bool) {
	if inner, ok := strings.CutPrefix(host, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		addr, err := netip.ParseAddr(inner)
		return addr.WithZone("").Unmap(), ok && err == nil && addr.Is6()
	}
	parts := strings.Split(strings.TrimSuffix(host, "."), ".")
	if len(parts) > 4 {
		return netip.Addr{}, false
	}
	var value uint64
	for i, part := range parts {
		n, ok := number(part)
		size := uint64(1) << 8
		if i == len(parts)-1 {
			size <<= 8 * (4 - len(parts))
		}
		if !ok || n >= size {
			return netip.Addr{}, false
		}
		value = value*size + n
	}
	return netip.AddrFrom4([4]byte{byte(value >> 24), byte(value >> 16), byte(value >> 8), byte(value)}), true
}

// number reads a part of an IPv4 address. 0x alone is 0.
func number(text string) (uint64, bool) {
	base, digits := 10, text
	switch {
	case strings.HasPrefix(text, "0x"), strings.HasPrefix(text, "0X"):
		base, digits = 16, text[2:]
		if digits == "" {
			return 0, true
		}
	case len(text) > 1 && text[0] == '0':
		base, digits = 8, text[1:]
	}
	n, err := strconv.ParseUint(digits, base, 64)
	return n, err == nil
}
