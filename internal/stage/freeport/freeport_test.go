package freeport

import (
	"net"
	"testing"
)

// Each address is another one, and can be listened on.
func TestAddress(t *testing.T) {
	seen := map[string]bool{}
	for range 50 {
		address, err := Address()
		if err != nil {
			t.Fatal(err)
		}
		if seen[address] {
			t.Errorf("%s is given twice", address)
		}
		seen[address] = true
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
	}
}
