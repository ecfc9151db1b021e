package store

import "time"

// Time has each transaction told to who measures: "read" or "write", and how long it took
// with the wait for its turn. Nobody is told of what is appended.
func (db *DB) Time(tell func(kind string, took time.Duration)) { db.tell.Store(&tell) }

// timed calls fn and tells how long it took.
func (db *DB) timed(kind string, fn func() error) error {
	tell := db.tell.Load()
	if tell == nil {
		return fn()
	}
	began := time.Now()
	err := fn()
	(*tell)(kind, time.Since(began))
	return err
}

// Queued returns how many functions wait to be written.
func (db *DB) Queued() int {
	db.queue.mu.Lock()
	defer db.queue.mu.Unlock()
	return len(db.queue.jobs)
}
