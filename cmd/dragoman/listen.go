package main

import (
	"errors"
	"net"
	"runtime"
	"syscall"
)

// portInUse is WSAEADDRINUSE, which Windows says instead of EADDRINUSE.
const portInUse syscall.Errno = 10048

// listenError adds what to do when a port is taken; other errors stay as they
// are. instead is a flag with another address.
func listenError(err error, instead string) error {
	if errors.Is(err, syscall.EADDRINUSE) || runtime.GOOS == "windows" && errors.Is(err, portInUse) {
		return &failure{err, "another program listens there; stop it, or choose another address: " + instead}
	}
	return err
}

// elsewhere is an address beside another one: the same host, and any free port.
func elsewhere(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, "0")
}
