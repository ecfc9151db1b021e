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
	const width = 24
	done, of := "", ""
	if p.Total > 0 {
		n := int(min(max(p.Progress/p.Total, 0), 1) * width)
		done, of = strings.Repeat("█", n)+strings.Repeat("░", width-n), fmt.Sprintf("/%g", p.Total)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.screen.Printf("\r\x1b[2K%s %s %g%s %s %s", b.title, done, p.Progress, of, b.screen.Faint(short(time.Since(b.started))), OneLine(p.Message, 60))
	b.drawn = true
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
