package terminal

import (
	"fmt"
	"strings"

	"github.com/dragoman-mcp/dragoman"
)

// A Bar shows the progress of a call on a screen where lines can be written
// again, and nothing elsewhere.
type Bar struct {
	live  live
	title string
}

// NewBar returns a bar that is not drawn yet.
func NewBar(s *Screen, title string) *Bar { return &Bar{live: live{screen: s}, title: title} }

// Show draws the bar.
func (b *Bar) Show(p dragoman.Progress) { b.live.show(progressLine(b.live.screen, b.title, p)) }

// Clear removes the bar.
func (b *Bar) Clear() { b.live.clear() }

// progressLine says how far something is, as wide as the screen: the gauge takes
// what title and message leave.
func progressLine(s *Screen, title string, p dragoman.Progress) string {
	title, message := OneLine(title, 60), OneLine(p.Message, s.Width()/3)
	room := s.Width() - len([]rune(title)) - len([]rune(message)) - 30
	return strings.TrimSpace(title + " " + gauge(p.Progress, p.Total, min(max(room, 8), 60)) + " " + message)
}

// gauge draws how far something is; where its end is not known, it only counts.
func gauge(progress, total float64, width int) string {
	if total <= 0 {
		return fmt.Sprintf("%g", progress)
	}
	n := int(min(max(progress/total, 0), 1) * float64(width))
	return fmt.Sprintf("%s%s %g/%g", strings.Repeat("█", n), strings.Repeat("░", width-n), progress, total)
}
