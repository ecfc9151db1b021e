package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// Memory is the path of a store that is in no file and ends with the process.
const Memory = ":memory:"

// begin takes the lock for writing at once: a transaction that reads first and
// writes later could fail halfway where another process wrote in between.
const begin = "BEGIN IMMEDIATE"

// applicationID marks our files in SQLite's header, so that no other program's
// database is taken for ours: "DGMN".
const applicationID = 0x44474d4e

// dsn names the file with settings that each of its connections has.
func dsn(path string, pragmas ...string) string {
	values := url.Values{"_pragma": append([]string{fmt.Sprintf("busy_timeout(%d)", BusyTimeout.Milliseconds())}, pragmas...)}
	if path == Memory {
		return "file::memory:?" + values.Encode()
	}
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // C:/… is /C:/… in a URI
	}
	return "file://" + (&url.URL{Path: path}).EscapedPath() + "?" + values.Encode()
}

func openWriter(ctx context.Context, path string, maxBytes int64) (*writer, error) {
	pool, err := sql.Open("sqlite", dsn(path, "trusted_schema(0)", "fullfsync(1)", "checkpoint_fullfsync(1)", "journal_size_limit(67108864)"))
	if err != nil {
		return nil, err
	}
	pool.SetMaxOpenConns(1)
	conn, err := pool.Conn(ctx)
	if err != nil {
		pool.Close()
		return nil, err
	}
	w := &writer{pool: pool, conn: conn, prepared: map[string]*sql.Stmt{}, synced: true}
	if err := w.prepareStore(ctx, path, maxBytes); err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

// prepareStore makes the file ours, or finds out that it is somebody else's.
func (w *writer) prepareStore(ctx context.Context, path string, maxBytes int64) error {
	if err := w.recognise(ctx); err != nil {
		return err
	}
	if path != Memory {
		if err := w.useLog(ctx); err != nil {
			return err
		}
	}
	if err := w.exec("PRAGMA synchronous=FULL"); err != nil {
		return err
	}
	var size int64
	if err := w.conn.QueryRowContext(ctx, "PRAGMA page_size").Scan(&size); err != nil {
		return err
	}
	if maxBytes > 0 {
		if _, err := w.conn.ExecContext(ctx, fmt.Sprintf("PRAGMA max_page_count=%d", max(1, maxBytes/size))); err != nil {
			return err
		}
	}
	return w.migrate(ctx)
}

// recognise refuses a database that another program made. The mark and the tables
// are read in one transaction: between two, another process of ours may make them.
func (w *writer) recognise(ctx context.Context) error {
	tx, err := w.conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // nothing is written
	var id, tables int64
	if err := tx.QueryRowContext(ctx, "PRAGMA application_id").Scan(&id); err != nil {
		return err
	}
	if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_master").Scan(&tables); err != nil {
		return err
	}
	if id != applicationID && (id != 0 || tables > 0) {
		return fmt.Errorf("%w but a database of another program; name another file in store.path", ErrForeign)
	}
	return nil
}

// useLog switches the file to write-ahead logging. Where two processes make the
// file at the same time, SQLite tells one of them at once that it is locked.
func (w *writer) useLog(ctx context.Context) error {
	for until := time.Now().Add(BusyTimeout); ; {
		var mode string
		err := w.conn.QueryRowContext(ctx, "PRAGMA journal_mode=WAL").Scan(&mode)
		switch {
		case err == nil && mode == "wal":
			return nil
		case err == nil:
			return fmt.Errorf("the file system cannot share files between processes (journal mode %s); name a file on a local disk in store.path", mode)
		case !isBusy(err) || time.Now().After(until):
			return err
		}
		timer := time.NewTimer(20 * time.Millisecond)
		select {
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		case <-timer.C:
		}
	}
}

func openReaders(path string) (*sql.DB, error) {
	pool, err := sql.Open("sqlite", dsn(path, "query_only(1)", "trusted_schema(0)"))
	if err != nil {
		return nil, err
	}
	pool.SetMaxOpenConns(readers)
	pool.SetMaxIdleConns(readers)
	return pool, nil
}

// setSync says whether the next commit waits for the disk. What a commit that
// does not wait has written is in the log's file all the same, in order: it
// survives the process, and the next commit that waits takes it along.
func (w *writer) setSync(sync bool) error {
	if w.synced == sync {
		return nil
	}
	mode := "PRAGMA synchronous=NORMAL"
	if sync {
		mode = "PRAGMA synchronous=FULL"
	}
	err := w.exec(mode)
	if err == nil {
		w.synced = sync
	}
	return err
}

func isBusy(err error) bool {
	code, ok := resultCode(err)
	return ok && (code == sqlite3.SQLITE_BUSY || code == sqlite3.SQLITE_LOCKED)
}

func cannotOpen(err error) bool {
	code, ok := resultCode(err)
	return ok && code == sqlite3.SQLITE_CANTOPEN
}

// resultCode returns SQLite's primary result code.
func resultCode(err error) (int, bool) {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code() & 0xff, true
	}
	return 0, false
}

// explanations say what a person can do about errors of SQLite.
var explanations = map[int]string{
	sqlite3.SQLITE_FULL:     "the disk is full, or the store has reached its max_bytes",
	sqlite3.SQLITE_IOERR:    "the disk fails",
	sqlite3.SQLITE_READONLY: "the file cannot be written",
	sqlite3.SQLITE_CANTOPEN: "the file cannot be opened",
	sqlite3.SQLITE_CORRUPT:  "the file is damaged: keep a copy of it, and start with another one",
	sqlite3.SQLITE_NOTADB:   ErrForeign.Error() + ", or is damaged: keep a copy of it, and name another file in store.path",
	sqlite3.SQLITE_BUSY:     "another process has been writing to the file for too long",
}

// An explainedError says in plain words what SQLite says in its own.
type explainedError struct {
	words string
	err   error
}

func (e *explainedError) Error() string { return e.words + " (" + e.err.Error() + ")" }
func (e *explainedError) Unwrap() error { return e.err }

// Is lets a file that is no database be a foreign one.
func (e *explainedError) Is(target error) bool {
	code, _ := resultCode(e.err)
	return target == ErrForeign && code == sqlite3.SQLITE_NOTADB
}

func explained(err error) error {
	if _, ok := errors.AsType[*explainedError](err); ok {
		return err
	}
	if code, ok := resultCode(err); ok && explanations[code] != "" {
		return &explainedError{explanations[code], err}
	}
	return err
}
