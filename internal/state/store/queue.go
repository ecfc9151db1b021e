package store

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// linger is how long functions that nobody waits for may wait for company.
const linger = 10 * time.Millisecond

// A job is a function that waits for the writer.
type job struct {
	fn    func(*Tx) error
	sync  bool          // it has to be on disk before anybody is told
	ended chan struct{} // closed when err is there; nil for what was appended
	done  func(error)   // told instead
	alone func() error  // runs by itself, in place of fn; nil for one of a group
	since time.Time     // when it was added

	state    atomic.Uint32
	err      error
	panicked any
	raised   []string // topics
}

// States of a job.
const (
	waiting = iota
	taken
	withdrawn
)

func (j *job) withdraw() bool { return j.state.CompareAndSwap(waiting, withdrawn) }
func (j *job) take() bool     { return j.state.CompareAndSwap(waiting, taken) }

// finish tells whoever is to be told.
func (j *job) finish() {
	if j.ended != nil {
		close(j.ended)
		return
	}
	j.done(j.err)
}

// A queue holds the jobs of the next groups, in order.
type queue struct {
	urgent  chan struct{} // somebody waits
	lazy    chan struct{} // there is something
	closing chan struct{}

	most int // jobs of a group

	mu       sync.Mutex
	jobs     []*job
	appended int // of jobs
	closed   bool
	running  time.Time // since when somebody has waited for the group that runs, or nobody and it runs; zero for none
}

func newQueue(most int) *queue {
	return &queue{most: most, urgent: make(chan struct{}, 1), lazy: make(chan struct{}, 1), closing: make(chan struct{})}
}

func (q *queue) add(j *job) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	wake := q.urgent
	switch {
	case q.closed:
		return ErrClosed
	case j.ended == nil && q.appended >= maxAppends:
		return ErrBehind
	case j.ended == nil:
		q.appended++
		wake = q.lazy
	}
	j.since = time.Now()
	q.jobs = append(q.jobs, j)
	signal(wake)
	return nil
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// next returns the jobs of the next group; none means that the queue is closed
// and empty. Where nobody waits it waits a moment for more.
func (q *queue) next() []*job {
	for {
		select {
		case <-q.urgent:
		case <-q.closing:
		case <-q.lazy:
			timer := time.NewTimer(linger)
			select {
			case <-q.urgent:
			case <-q.closing:
			case <-timer.C:
			}
			timer.Stop()
		}
		if jobs, end := q.cut(); len(jobs) > 0 || end {
			return jobs
		}
	}
}

// cut takes a group from the front, or one job that runs alone.
func (q *queue) cut() (jobs []*job, end bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(len(q.jobs), q.most)
	if i := slices.IndexFunc(q.jobs[:n], func(j *job) bool { return j.alone != nil }); i >= 0 {
		n = max(1, i)
	}
	for _, j := range q.jobs[:n] {
		if j.ended == nil {
			q.appended--
		}
		if j.take() {
			jobs = append(jobs, j)
		}
	}
	if q.running = (time.Time{}); len(jobs) > 0 {
		if q.running = waited(jobs); q.running.IsZero() {
			q.running = time.Now()
		}
	}
	rest := copy(q.jobs, q.jobs[n:])
	clear(q.jobs[rest:])
	if q.jobs = q.jobs[:rest]; rest > 0 {
		signal(q.urgent)
	}
	return jobs, q.closed && rest == 0
}

// behind returns how long somebody has waited for the oldest job that is not done yet, or how
// long a group has run that nobody waits for: what was appended before the process was stopped
// for a while says nothing about the disk.
func (q *queue) behind() time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	since := q.running
	if since.IsZero() {
		since = waited(q.jobs)
	}
	if since.IsZero() {
		return 0
	}
	return time.Since(since)
}

// waited is since when somebody has waited for one of the jobs; zero for nobody.
func waited(jobs []*job) time.Time {
	for _, j := range jobs {
		if j.ended != nil {
			return j.since
		}
	}
	return time.Time{}
}

// idle says that the group has ended.
func (q *queue) idle() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.running = time.Time{}
}

// close reports whether it was this call that closed the queue.
func (q *queue) close() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	q.closed = true
	close(q.closing)
	return true
}

func (q *queue) isClosed() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed
}
