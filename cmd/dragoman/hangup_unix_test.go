//go:build unix

package main

import (
	"log/slog"
	"strings"
	"syscall"
	"testing"
)

// lines is a log that hands each line on.
type lines chan string

func (l lines) Write(b []byte) (int, error) { l <- string(b); return len(b), nil }

// A SIGHUP is heard and said, and ends nothing.
func TestHangup(t *testing.T) {
	log := make(lines, 1)
	stop := hangup(slog.New(slog.NewTextHandler(log, nil)))
	if err := syscall.Kill(syscall.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if line := <-log; !strings.Contains(line, "SIGHUP") {
		t.Errorf("logged %s", line)
	}
	stop()
}
