package gateway

import (
	"net"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"
)

// openFiles is how many files the process may open; 0 where nobody says.
func openFiles() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return int(min(limit.Cur, 1<<20))
}

// maxUnsent is how many bytes of an answer the system takes ahead of what the client
// has room for.
const maxUnsent = 128 << 10

// notSentLowat is TCP_NOTSENT_LOWAT of linux/tcp.h, which package syscall lacks.
const notSentLowat = 25

// boundUnsent has the system take no more than [maxUnsent] of what is written to a
// connection ahead of its other end. What is under way does not count, so the
// connection is as fast as before. Where that cannot be had, all works without it.
func boundUnsent(conn net.Conn) {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return
	}
	if raw, err := c.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) {
			_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, notSentLowat, maxUnsent)
		})
	}
}

// memoryMax is how much memory the process may have by its control group (version
// 2) and those above it, in bytes; 0 where nobody says.
func memoryMax() (least int64) {
	const root = "/sys/fs/cgroup"
	own, _ := os.ReadFile("/proc/self/cgroup")
	group := "/"
	for line := range strings.Lines(string(own)) {
		if at, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			group = path.Clean("/" + at)
		}
	}
	for ; ; group = path.Dir(group) {
		text, _ := os.ReadFile(root + path.Join("/", group, "memory.max")) // "max" is no number
		if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && (least == 0 || n < least) {
			least = n
		}
		if group == "/" {
			return least
		}
	}
}
