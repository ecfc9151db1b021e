// Package flood bounds what a peer says that nobody needs: comments of a stream,
// notifications, pieces of an answer that add nothing to it.
package flood

import (
	"context"
	"time"
)

// What a peer may say a second that nobody needs. One that says more has to wait
// until we read on: it holds up nobody but itself.
const (
	Bytes    = 4 << 20
	Messages = 4000
)

// A Meter counts, from second to second, what nobody needs.
type Meter struct {
	since           time.Time
	bytes, messages int
}

// Add counts a message of so many bytes.
func (m *Meter) Add(size int) {
	if now := time.Now(); now.Sub(m.since) >= time.Second {
		*m = Meter{since: now}
	}
	m.bytes += size
	m.messages++
}

// Wait waits, where it was too much, until the second is over or ctx is, and begins anew.
func (m *Meter) Wait(ctx context.Context) {
	if m.bytes <= Bytes && m.messages <= Messages {
		return
	}
	t := time.NewTimer(time.Second - time.Since(m.since))
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
	*m = Meter{}
}
