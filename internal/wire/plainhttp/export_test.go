package plainhttp

import (
	"context"
	"time"
)

// WithoutPauses has servers that refuse be asked again at once, until the function that it
// returns is called. It returns how often that is.
func WithoutPauses() (again int64, restore func()) {
	kept := pauses
	pauses = make([]time.Duration, len(kept))
	return int64(len(kept)), func() { pauses = kept }
}

// Refusals returns what waits for the next connection to a host that refuses.
func Refusals() (wait func(ctx context.Context, host string) error) { return new(refusals).wait }
