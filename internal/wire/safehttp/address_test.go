package safehttp_test

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/wire/safehttp"
)

func TestCheckAddress(t *testing.T) {
	for addr, public := range map[string]bool{
		"8.8.8.8":              true,
		"1.1.1.1":              true,
		"172.15.255.255":       true,
		"172.32.0.0":           true,
		"100.63.255.255":       true,
		"100.128.0.0":          true,
		"192.0.1.1":            true,
		"223.255.255.255":      true,
		"2606:4700:4700::1111": true,
		"2a00:1450::1":         true,
		"::ffff:8.8.8.8":       true,

		"0.0.0.0":                        false,
		"0.1.2.3":                        false,
		"10.1.2.3":                       false,
		"100.64.0.1":                     false,
		"100.100.100.200":                false,
		"127.0.0.1":                      false,
		"127.255.255.254":                false,
		"168.63.129.16":                  false,
		"169.254.169.254":                false,
		"172.16.0.1":                     false,
		"172.31.255.255":                 false,
		"192.0.0.192":                    false,
		"192.0.2.1":                      false,
		"192.88.99.1":                    false,
		"192.168.1.1":                    false,
		"198.18.0.1":                     false,
		"198.19.255.255":                 false,
		"198.51.100.1":                   false,
		"203.0.113.1":                    false,
		"224.0.0.1":                      false,
		"240.0.0.1":                      false,
		"255.255.255.255":                false,
		"::":                             false,
		"::1":                            false,
		"::7f00:1":                       false,
		"::ffff:127.0.0.1":               false,
		"::ffff:169.254.169.254":         false,
		"64:ff9b::7f00:1":                false,
		"64:ff9b:1::1":                   false,
		"100::1":                         false,
		"2001::1":                        false,
		"2001:0:7f00:1::":                false,
		"2001:10::1":                     false,
		"2001:db8::1":                    false,
		"2002:7f00:1::":                  false,
		"3fff::1":                        false,
		"5f00::1":                        false,
		"fc00::1":                        false,
		"fd00:ec2::254":                  false,
		"fe80::1":                        false,
		"fe80::1%eth0":                   false,
		"2606:4700:4700::1111%eth0":      false,
		"fec0::1":                        false,
		"ff02::1":                        false,
		"2606:4700:4700:0:0:0:127.0.0.1": true, // no form that a machine takes for 127.0.0.1
		"64:ff9b::169.254.169.254":       false,
		"2002:a9fe:a9fe::":               false,
	} {
		err := safehttp.CheckAddress(netip.MustParseAddr(addr))
		if (err == nil) != public || err != nil && !errors.Is(err, safehttp.ErrAddress) {
			t.Errorf("CheckAddress(%s) = %v", addr, err)
		}
	}
}

func TestCheckAddressRefusesNoAddress(t *testing.T) {
	if err := safehttp.CheckAddress(netip.Addr{}); !errors.Is(err, safehttp.ErrAddress) {
		t.Errorf("got %v", err)
	}
}
