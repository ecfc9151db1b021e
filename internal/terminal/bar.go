package terminal

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/dragoman-mcp/dragoman"
)

// A Bar shows the progress of a call on a screen where lines can be written
// again, and nothing elsewhere.
type Bar struct {
	screen  *Screen
	title   string
	started time.Time

	mu    sync.Mutex
	drawn bool
}

// NewBar returns a bar that is not drawn yet.
func NewBar(s *Screen, title string) *Bar {
	return &Bar{screen: s, title: title, started: time.Now()}
}

// Show draws the bar.
func (b *Bar) Show(p dragoman.Progress) {
	if !b.screen.Live {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.screen.Printf("\r\x1b[2K%s %s %s %s", b.title, gauge(p.Progress, p.Total), b.screen.Faint(short(time.Since(b.started))), OneLine(p.Message, 60))
	b.drawn = true
}

// gauge draws how far something is; where its end is not known, it only counts.
func gauge(progress, total float64) string {
	const width = 24
	if total <= 0 {
		return fmt.Sprintf("%g", progress)
	}
	n := int(min(max(progress/total, 0), 1) * width)
	return fmt.Sprintf("%s%s %g/%g", strings.Repeat("█", n), strings.Repeat("░", width-n), progress, total)
}

// Clear removes the bar.
func (b *Bar) Clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.drawn {
		b.screen.Printf("\r\x1b[2K")
		b.drawn = false
	}
}
