//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
	"testing"
)

// A SIGHUP has the configuration read again, and ends nothing, also where it comes while the
// gateway starts.
func TestHangup(t *testing.T) {
	hangups, read := make(chan os.Signal, 1), make(chan struct{}, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	come := func() {
		if err := syscall.Kill(syscall.Getpid(), syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, syscall.SIGHUP)
	defer signal.Stop(heard)
	come()
	<-heard
	stop := hangup(hangups, func() { read <- struct{}{} })
	<-read
	come()
	<-read
	stop()
}
