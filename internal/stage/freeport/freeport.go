// Package freeport finds ports of loopback for programs that have to be told one.
package freeport

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// The ports lie below those that systems give out by themselves (from 32768 on Linux,
// 49152 elsewhere): nobody's connection or test server comes between finding one and
// listening there.
const first, last = 18_000, 32_000

var (
	mu   sync.Mutex
	next = first + rand.IntN(last-first) // other processes look elsewhere
)

// Address returns a host and port at which nobody listens, each time another one.
func Address() (string, error) {
	mu.Lock()
	defer mu.Unlock()
	for range last - first {
		next = first + (next+1-first)%(last-first)
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(next))
		l, err := net.Listen("tcp", address)
		if err != nil {
			continue
		}
		return address, l.Close()
	}
	return "", errors.New("all ports are taken")
}
