//go:build !linux

package e2e

import "time"

var began = time.Now()

// threadTime is the time on the clock, where nothing better is known.
func threadTime() time.Duration { return time.Since(began) }
