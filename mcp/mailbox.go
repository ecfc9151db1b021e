package mcp

import (
	"sync"

	"github.com/dragoman-mcp/dragoman"
)

// Bounds of what a mailbox holds for somebody who is slow.
const (
	maxProgress = 16
	maxLetters  = 64
	maxMail     = 256 << 10 // bytes
)

// A mailbox holds what a server says to a call, until whoever made the call has
// heard it: in order, and with somebody slow only the newest. Putting something
// in never blocks. It outlives the legs of a call.
type mailbox struct {
	mu       sync.Mutex
	letters  []letter
	progress int           // how many letters are progress
	bytes    int           // of all letters
	news     chan struct{} // has room for one; nil while nobody listens
}

// A letter is progress or a notification.
type letter struct {
	progress *dragoman.Progress
	note     dragoman.Notification
}

func (l *letter) size() int {
	n := 64 + len(l.note.Method) + len(l.note.Params)
	if l.progress != nil {
		n += len(l.progress.Message)
	}
	return n
}

// put adds a letter. Where there is no room, progress takes the place of the
// last progress, and anything else that of the oldest letter.
func (m *mailbox) put(l letter) {
	size := l.size()
	if size > maxMail {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if l.progress != nil && m.progress >= maxProgress {
		for i := len(m.letters) - 1; i >= 0; i-- {
			if m.letters[i].progress != nil {
				m.count(&m.letters[i], -1)
				m.letters = append(m.letters[:i], m.letters[i+1:]...)
				break
			}
		}
	}
	for len(m.letters) >= maxLetters || m.bytes+size > maxMail {
		m.take()
	}
	m.letters = append(m.letters, l)
	m.count(&l, 1)
	if m.news != nil {
		select {
		case m.news <- struct{}{}:
		default:
		}
	}
}

// take returns the oldest letter. mu is held.
func (m *mailbox) take() (l letter, ok bool) {
	if len(m.letters) == 0 {
		return l, false
	}
	l, m.letters = m.letters[0], m.letters[1:]
	m.count(&l, -1)
	return l, true
}

func (m *mailbox) count(l *letter, n int) {
	m.bytes += n * l.size()
	if l.progress != nil {
		m.progress += n
	}
}

// deliver hands the letters to those functions that are not nil, from a goroutine
// of its own, until the returned function is called. That one hands over what is
// left and returns when no function runs any more.
func (m *mailbox) deliver(progress func(dragoman.Progress), note func(dragoman.Notification)) (end func()) {
	if progress == nil && note == nil {
		return func() {}
	}
	m.mu.Lock()
	m.news = make(chan struct{}, 1)
	news := m.news
	m.mu.Unlock()
	stop, stopped := make(chan struct{}), make(chan struct{})
	hand := func() {
		for {
			m.mu.Lock()
			l, ok := m.take()
			m.mu.Unlock()
			switch {
			case !ok:
				return
			case l.progress == nil && note != nil:
				note(l.note)
			case l.progress != nil && progress != nil:
				progress(*l.progress)
			}
		}
	}
	var failure any
	go func() {
		defer close(stopped)
		defer func() { failure = recover() }()
		for last := false; ; {
			if hand(); last {
				return
			}
			select {
			case <-news:
			case <-stop:
				last = true
			}
		}
	}()
	return func() {
		close(stop)
		<-stopped
		m.mu.Lock()
		m.news = nil
		m.mu.Unlock()
		if failure != nil {
			panic(failure) // it is the caller's own, and ends the call
		}
	}
}
