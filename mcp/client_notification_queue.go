package mcp

import (
	"sync"

	"github.com/dragoman-mcp/dragoman"
)

// Bounds of what a queue holds for somebody who is slow.
const (
	maxProgress    = 16
	maxQueued      = 64
	maxQueuedBytes = 256 << 10 // bytes
)

// A notificationQueue holds what a server says to a call, until whoever made the call has
// heard it: in order, and with somebody slow only the newest. Putting something
// in never blocks. It outlives the legs of a call.
type notificationQueue struct {
	mu       sync.Mutex
	queue    []queuedNotification
	progress int // how many notifications are progress
	bytes    int // of all notifications

	listening  bool // somebody is there, who hears with these
	onProgress func(dragoman.Progress)
	onNote     func(dragoman.Notification)
	handing    chan struct{} // closed when nothing is handed over any more; nil while nothing is
	failure    any           // with which one of them panicked
}

// A queuedNotification is progress or a notification.
type queuedNotification struct {
	progress     *dragoman.Progress
	notification dragoman.Notification
}

func (l *queuedNotification) size() int {
	n := 64 + len(l.notification.Method) + len(l.notification.Params)
	if l.progress != nil {
		n += len(l.progress.Message)
	}
	return n
}

// put adds a notification. Where there is no room, progress takes the place of the
// last progress, and anything else that of the oldest notification.
func (m *notificationQueue) put(l queuedNotification) {
	size := l.size()
	if size > maxQueuedBytes {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if l.progress != nil && m.progress >= maxProgress {
		for i := len(m.queue) - 1; i >= 0; i-- {
			if m.queue[i].progress != nil {
				m.count(&m.queue[i], -1)
				m.queue = append(m.queue[:i], m.queue[i+1:]...)
				break
			}
		}
	}
	for len(m.queue) >= maxQueued || m.bytes+size > maxQueuedBytes {
		m.take()
	}
	m.queue = append(m.queue, l)
	m.count(&l, 1)
	m.start()
}

// start hands over what there is, where somebody listens and nobody does so yet: most calls
// hear of nothing. mu is held.
func (m *notificationQueue) start() {
	if m.listening && m.handing == nil && m.failure == nil && len(m.queue) > 0 {
		m.handing = make(chan struct{})
		go m.hand(m.handing)
	}
}

// take returns the oldest notification. mu is held.
func (m *notificationQueue) take() (l queuedNotification, ok bool) {
	if len(m.queue) == 0 {
		return l, false
	}
	l, m.queue = m.queue[0], m.queue[1:]
	m.count(&l, -1)
	return l, true
}

func (m *notificationQueue) count(l *queuedNotification, n int) {
	m.bytes += n * l.size()
	if l.progress != nil {
		m.progress += n
	}
}

// deliver hands the notifications to those functions that are not nil, from a goroutine
// of its own, until leave is called.
func (m *notificationQueue) deliver(progress func(dragoman.Progress), note func(dragoman.Notification)) {
	if progress == nil && note == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.listening, m.onProgress, m.onNote = true, progress, note
	m.start()
}

// hand hands over what there is, until there is nothing. That there is nothing, and that
// nothing is handed over any more, is one step: what is put in between would wait for
// somebody who leaves.
func (m *notificationQueue) hand(done chan struct{}) {
	over := false
	defer func() {
		if over {
			return
		}
		failure := recover()
		m.mu.Lock()
		defer m.mu.Unlock()
		m.failure, m.handing = failure, nil
		close(done)
		m.start() // where a function ended this goroutine
	}()
	for {
		m.mu.Lock()
		l, ok := m.take()
		progress, note := m.onProgress, m.onNote
		if !ok {
			over, m.handing = true, nil
			close(done)
		}
		m.mu.Unlock()
		switch {
		case !ok:
			return
		case l.progress == nil && note != nil:
			note(l.notification)
		case l.progress != nil && progress != nil:
			progress(*l.progress)
		}
	}
}

// leave returns when what there is was handed over and no function runs any more. A panic
// in one is the caller's own, and goes on here.
func (m *notificationQueue) leave() {
	m.mu.Lock()
	m.listening = false
	if handing := m.handing; handing != nil {
		m.mu.Unlock()
		<-handing
		m.mu.Lock()
	}
	m.onProgress, m.onNote = nil, nil
	failure := m.failure
	m.failure = nil
	m.mu.Unlock()
	if failure != nil {
		panic(failure)
	}
}
