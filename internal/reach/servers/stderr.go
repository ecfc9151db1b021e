package servers

import (
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// What a server writes to its standard error goes to our log: so many lines a
// second, and as many at once as a server needs that says how it starts.
const (
	stderrRate  = 20
	stderrBurst = 200
	stderrLine  = 4 << 10 // bytes of one line
	stderrCount = 10 * time.Second
)

// stderrLines returns what takes the lines that a local server writes to its
// standard error. Of a flood it lets some through to the log, and counts the rest. Why
// the server ends may be behind those.
func (c *connection) stderrLines() func(line string) {
	limit := rate.NewLimiter(stderrRate, stderrBurst)
	var mu sync.Mutex
	var left int // out of the log
	return func(line string) {
		line = c.mask.Hide(line) // before a cut could leave a part of a secret
		c.stderr.add(line)
		if !limit.Allow() {
			mu.Lock()
			defer mu.Unlock()
			if left++; left == 1 {
				time.AfterFunc(stderrCount, func() {
					mu.Lock()
					defer mu.Unlock()
					c.log.Warn("stderr lines were left out", "lines", left)
					left = 0
				})
			}
			return
		}
		if len(line) > stderrLine {
			line = strings.ToValidUTF8(line[:stderrLine], "") + "…"
		}
		c.log.Info("stderr", "line", line)
	}
}
