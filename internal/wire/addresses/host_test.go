package addresses_test

import (
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/wire/addresses"
)

// TestOfHost has hosts as Node.js 20 reads them (new URL), and what inet_aton takes.
func TestOfHost(t *testing.T) {
	for host, want := range map[string]string{
		"127.0.0.1": "127.0.0.1", "127.0.0.1.": "127.0.0.1", "127.1": "127.0.0.1", "127.0.1": "127.0.0.1",
		"2130706433": "127.0.0.1", "0x7f000001": "127.0.0.1", "0X7F.1": "127.0.0.1", "017700000001": "127.0.0.1",
		"0177.0.0.01": "127.0.0.1", "169.254.43518": "169.254.169.254", "0": "0.0.0.0", "0x": "0.0.0.0", "1.0xffffff": "1.255.255.255",
		"4294967295": "255.255.255.255", "[::1]": "::1", "[0:0:0::1]": "::1", "[::ffff:7f00:1]": "127.0.0.1",
		"[::ffff:127.0.0.1]": "127.0.0.1", "[2001:DB8::1]": "2001:db8::1",

		"4294967296": "", "256.1": "", "1.256.1": "", "1.2.3.4.5": "", "1.2.3.256": "", "08": "", "0x1g": "", "+1": "", "1_0": "",
		"": "", ".": "", "1..2": "", "127.0.0.1..": "", "example": "", "1.example": "", "::1": "", "[::1": "", "[127.0.0.1]": "", "-1": "",
	} {
		addr, ok := addresses.OfHost(host)
		if got := addr.String(); ok != (want != "") || ok && got != want {
			t.Errorf("%s: %s, %v, want %q", host, got, ok, want)
		}
	}
}
