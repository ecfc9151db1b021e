//go:build !linux

package safehttp

import (
	"syscall"
	"time"
)

const tellsArrival = false

func arrival(syscall.RawConn) (missing, due bool, heard time.Duration, open bool) {
	return false, false, 0, false
}
