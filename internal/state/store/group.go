package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
)

// A writer is the one connection that writes. Only the goroutine of [DB.write] uses it once
// it is open.
type writer struct {
	*sqliteConn
	pool   *sql.DB
	synced bool // as the connection is set now
	count  atomic.Int64
}

func (w *writer) close() error { return errors.Join(w.sqliteConn.close(), w.pool.Close()) }

// group runs jobs in one transaction and commits it. An error means that nothing
// of any of them was kept; that of a single job stands in the job.
func (w *writer) group(jobs []*job) error {
	sync := false
	for _, j := range jobs {
		sync = sync || j.sync
	}
	if err := w.setSync(sync); err != nil {
		return err
	}
	if err := w.exec(begin); err != nil {
		return err
	}
	tx := &Tx{ctx: context.Background(), on: w.conn, prep: w.prepare, schema: sqliteSchema, count: &w.count}
	tx.mark = func() error { return w.exec("SAVEPOINT one") }
	err := w.each(tx, jobs)
	if err != nil {
		_ = w.exec("ROLLBACK") // SQLite may have done so itself
		return err
	}
	if err := w.exec("COMMIT"); err != nil {
		_ = w.exec("ROLLBACK")
		return err
	}
	return nil
}

// each runs the jobs one after another, and writes down what they raised.
func (w *writer) each(tx *Tx, jobs []*job) error {
	var raised []string
	for _, j := range jobs {
		if err := w.guarded(tx, j); err != nil {
			return err
		}
		raised = append(raised, j.raised...)
	}
	return tx.finish(raised)
}

// guarded runs a job, which is behind a savepoint from its first change on. An error means
// that the transaction is lost.
func (w *writer) guarded(tx *Tx, j *job) error {
	tx.marked = false
	j.err = j.call(tx)
	switch {
	case !tx.marked:
		return nil
	case j.err == nil:
		return w.exec("RELEASE SAVEPOINT one")
	}
	if err := w.exec("ROLLBACK TO SAVEPOINT one"); err != nil {
		return fmt.Errorf("undoing after %w: %w", j.err, err)
	}
	return w.exec("RELEASE SAVEPOINT one")
}

// call runs the function. A panic is one of whoever waits for it; nobody waits
// for what was appended, so there it is an error.
func (j *job) call(tx *Tx) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in a transaction: %v", p)
			if j.ended != nil {
				j.panicked = p
			}
		}
	}()
	tx.raised, tx.wrote, tx.broken = nil, false, nil
	j.panicked, j.raised = nil, nil
	tx.undo = tx.undo[:0]
	defer func() {
		if err != nil {
			tx.unnote()
		}
	}()
	if err := j.fn(tx); err != nil {
		return err
	}
	j.raised = tx.raised
	return nil
}
