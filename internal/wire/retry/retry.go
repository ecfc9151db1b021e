// Package retry bounds how much of what a peer is sent is sent again. Repetitions
// help where one request in many fails; where all fail they are the load that keeps
// the peer down. It also reads when a peer wants to be asked again.
package retry

import (
	"sync"
	"time"
)

// share is how much of a repetition each request pays for, so that a tenth may be
// sent again; reserve is what a peer may get beyond that, at once and then one a
// second, so that it need not be asked often for one repetition.
const (
	share   = 0.1
	reserve = 10
	regain  = 1.0 // a second
)

// A Budget is what one peer may be sent again. The zero value is full. It is safe
// for concurrent use.
type Budget struct {
	mu    sync.Mutex
	spent float64
	at    time.Time // when spent was right
}

// Sent counts a request that is not a repetition.
func (b *Budget) Sent() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spent = max(0, b.spent-share)
}

// Spend reports whether a request may be sent again, and counts it.
func (b *Budget) Spend() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	b.spent = max(0, b.spent-regain*now.Sub(b.at).Seconds())
	b.at = now
	if b.spent+1 > reserve {
		return false
	}
	b.spent++
	return true
}
