//go:build unix

package pgtest

import (
	"strconv"
	"syscall"
	"testing"
	"time"
)

// Crash has the server of a database crash, all databases of it, and returns when it has
// recovered: what was acknowledged is there, and no connection is.
func Crash(t testing.TB, url string) {
	t.Helper()
	const writer = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'"
	before := SQL(t, url, writer)
	pid, err := strconv.Atoi(before)
	if err != nil {
		t.Fatalf("the server has no process that writes: %q", before)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for range 3000 {
		if now, err := Try(url, writer); err == nil && now != "" && now != before {
			return
		}
		<-time.After(10 * time.Millisecond)
	}
	t.Fatal("the server has not recovered")
}
