//go:build unix

package main

import (
	"syscall"
	"testing"
)

// A SIGHUP has the configuration read again, and ends nothing.
func TestHangup(t *testing.T) {
	read := make(chan struct{}, 1)
	stop := hangup(func() { read <- struct{}{} })
	if err := syscall.Kill(syscall.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	<-read
	stop()
}
