package mcp

import "time"

// What a server may say a second that nobody has asked for. One that says more
// has to wait until we read on: it holds up nobody but itself.
const (
	floodBytes    = 4 << 20
	floodMessages = 4000
)

// A floodMeter counts, from second to second, what nobody has asked for.
type floodMeter struct {
	since           time.Time
	bytes, messages int
}

func (m *floodMeter) add(size int) {
	if now := time.Now(); now.Sub(m.since) >= time.Second {
		*m = floodMeter{since: now}
	}
	m.bytes += size
	m.messages++
}

// over reports whether it was too much.
func (m *floodMeter) over() bool { return m.bytes > floodBytes || m.messages > floodMessages }

// pause returns how long to wait, and begins anew.
func (m *floodMeter) pause() time.Duration {
	d := time.Second - time.Since(m.since)
	*m = floodMeter{}
	return max(d, 0)
}
