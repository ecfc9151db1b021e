package gateway

import (
	"os"
	"syscall"
	"testing"
)

// watchFile makes a file and returns what says whether anybody has opened it since.
func watchFile(t *testing.T, path string) (opened func() bool) {
	t.Helper()
	if err := os.WriteFile(path, []byte(`{"type":"string"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	fd, err := syscall.InotifyInit1(syscall.IN_NONBLOCK | syscall.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if _, err := syscall.InotifyAddWatch(fd, path, syscall.IN_OPEN|syscall.IN_ACCESS); err != nil {
		t.Fatal(err)
	}
	return func() bool {
		n, _ := syscall.Read(fd, make([]byte, 4096))
		return n > 0
	}
}
