package addresses_test

import (
	"net/netip"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/wire/addresses"
)

func TestPublic(t *testing.T) {
	for addr, want := range map[string]bool{
		"8.8.8.8": true, "172.15.255.255": true, "172.32.0.0": true, "100.128.0.0": true, "223.255.255.255": true,
		"168.63.129.15": true, "2606:4700:4700::1111": true, "::ffff:8.8.8.8": true,

		"168.63.129.16": false, "::ffff:168.63.129.16": false, // Azure's host
		"0.0.0.0": false, "127.0.0.1": false, "10.0.0.1": false, "100.100.100.200": false, "169.254.169.254": false,
		"192.0.0.192": false, "224.0.0.1": false, "255.255.255.255": false,
		"::1": false, "::7f00:1": false, "64:ff9b::7f00:1": false, "2001::1": false, "2002:7f00:1::": false,
		"2620:4f:8000::1": false, "4000::1": false, "fd00:ec2::254": false, "fe80::1%eth0": false,
		"2606:4700:4700::1111%eth0": false,
	} {
		if got := addresses.Public(netip.MustParseAddr(addr)); got != want {
			t.Errorf("Public(%s) = %v, want %v", addr, got, want)
		}
	}
	if addresses.Public(netip.Addr{}) {
		t.Error("no address is public")
	}
}
