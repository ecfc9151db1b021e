// Package cputime says for tests how much work something is, which a busy machine does
// not change much, as it does the time that passes.
package cputime

import "time"

// Of returns the processor time that this process has used while f ran, its collector
// of garbage included; on systems that do not tell it, the time that has passed. What
// else the process does meanwhile counts, so nothing should run beside it.
func Of(f func()) time.Duration {
	start := used()
	f()
	return used() - start
}
