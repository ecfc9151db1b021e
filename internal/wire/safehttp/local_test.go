package safehttp_test

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/wire/safehttp"
)

func TestCheckLocal(t *testing.T) {
	for addr, fine := range map[string]bool{
		"10.1.2.3": true, "127.0.0.1": true, "192.168.1.1": true, "::1": true, "8.8.8.8": true, "fd00::1": true,
		"169.254.169.254": false, "::ffff:169.254.169.254": false, "fe80::1%eth0": false,
		"168.63.129.16": false, "100.100.100.200": false, "fd00:ec2::254": false, "192.0.0.192": false,
		"fd00:ec2::23": false, "fd20:ce::254": false, "fd00:c1::a9fe:a9fe": false, "fd00:42::42": false, "fd20:ce::255": true,
		"64:ff9b::a9fe:a9fe": false, "64:ff9b::168.63.129.16": false, "2002:a9fe:a9fe::1": false, "64:ff9b::10.1.2.3": true, "64:ff9b:1::a9fe:a9fe": true,
	} {
		err := safehttp.CheckLocal(netip.MustParseAddr(addr))
		if (err == nil) != fine || err != nil && !errors.Is(err, safehttp.ErrAddress) {
			t.Errorf("CheckLocal(%s) = %v", addr, err)
		}
	}
}
