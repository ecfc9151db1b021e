//go:build !linux

package gateway

import "net"

// openFiles is how many files the process may open; 0 where nobody says.
func openFiles() int { return 0 }

// memoryMax is how much memory the process may have; 0 where nobody says.
func memoryMax() int64 { return 0 }

// boundUnsent leaves it to the system how much it takes of what is written to a
// connection ahead of its other end.
func boundUnsent(net.Conn) {}
