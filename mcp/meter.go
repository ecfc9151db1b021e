package mcp

import "time"

// What a server may say a second that nobody has asked for. One that says more
// has to wait until we read on: it holds up nobody but itself.
const (
	floodBytes    = 4 << 20
	floodMessages = 4000
)

// A meter counts, from second to second, what nobody has asked for.
type meter struct {
	since           time.Time
	bytes, messages int
}

func (m *meter) add(size int) {
	if now := time.Now(); now.Sub(m.since) >= time.Second {
		*m = meter{since: now}
	}
	m.bytes += size
	m.messages++
}

// over reports whether it was too much.
func (m *meter) over() bool { return m.bytes > floodBytes || m.messages > floodMessages }

// pause returns how long to wait, and begins anew.
func (m *meter) pause() time.Duration {
	d := time.Second - time.Since(m.since)
	*m = meter{}
	return max(d, 0)
}
