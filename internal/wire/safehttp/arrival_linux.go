package safehttp

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const tellsArrival = true

// arrival reports whether something that was written has not been acknowledged, whether an
// answer to what was sent is due, how long ago anything came from the other end, and whether
// the connection is open at all. A server that is there says so of what it has no room for,
// but the system asks it more and more rarely: with such a one nothing is due until four
// questions in a row have had no answer.
func arrival(raw syscall.RawConn) (missing, due bool, heard time.Duration, open bool) {
	var info *unix.TCPInfo
	var err error
	if raw.Control(func(fd uintptr) { info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) }) != nil || err != nil {
		return false, false, 0, false
	}
	missing = info.Unacked > 0 || info.Notsent_bytes > 0
	due = info.Unacked > 0 && info.Snd_wnd > 0 || info.Probes >= 4
	return missing, due, time.Duration(min(info.Last_ack_recv, info.Last_data_recv)) * time.Millisecond, true
}
