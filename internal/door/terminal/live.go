package terminal

import (
	"sync"
	"time"

	"github.com/charmbracelet/x/ansi"
)

// A live line is one at the bottom of a screen that is written again and again, as
// long as something goes on. On a screen where that cannot be, there is none.
type live struct {
	screen *Screen

	mu      sync.Mutex
	text    string // empty: nothing is drawn
	since   time.Time
	running bool
}

// spin is how often a live line moves.
const spin = 120 * time.Millisecond

var wheel = []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")

// show draws text, or replaces it.
func (l *live) show(text string) {
	if !l.screen.Live || text == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.text == "" {
		l.since = time.Now()
	}
	l.text = text
	l.draw()
	if !l.running {
		l.running = true
		go l.turn()
	}
}

// turn draws the line again until it is gone.
func (l *live) turn() {
	tick := time.NewTicker(spin)
	defer tick.Stop()
	for range tick.C {
		l.mu.Lock()
		if l.text == "" {
			l.running = false
			l.mu.Unlock()
			return
		}
		l.draw()
		l.mu.Unlock()
	}
}

// draw writes the line; mu is held.
func (l *live) draw() {
	age := time.Since(l.since)
	text := string(wheel[int(age/spin)%len(wheel)]) + " " + l.text
	if age > 2*time.Second {
		text += " " + l.screen.Faint(short(age))
	}
	l.screen.Printf("\r\x1b[2K%s", ansi.Truncate(text, l.screen.Width()-1, "…"))
}

// clear removes the line.
func (l *live) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.text != "" {
		l.text = ""
		l.screen.Printf("\r\x1b[2K")
	}
}

// While shows on a live screen what a piece of work is waiting for, until the
// returned function is called. what is asked now and then; "" shows nothing.
func While(s *Screen, what func() string) (done func()) {
	if !s.Live {
		return func() {}
	}
	l := &live{screen: s}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(2 * spin)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if text := what(); text != "" {
					l.show(text)
				} else {
					l.clear()
				}
			case <-stop:
				l.clear()
				return
			}
		}
	}()
	return func() { close(stop); <-stopped }
}
