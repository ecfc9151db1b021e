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
	progress int           // how many notifications are progress
	bytes    int           // of all notifications
	news     chan struct{} // has room for one; nil while nobody listens
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
	if m.news != nil {
		select {
		case m.news <- struct{}{}:
		default:
		}
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
// of its own, until the returned function is called. That one hands over what is
// left and returns when no function runs any more.
func (m *notificationQueue) deliver(progress func(dragoman.Progress), note func(dragoman.Notification)) (end func()) {
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
				note(l.notification)
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
