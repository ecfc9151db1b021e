package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"slices"
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

// A sqliteFile is a store in a file, or in memory.
type sqliteFile struct {
	*writer
	path    string
	place   *place       // nil in memory
	reading *readingPool // nil where the writer's connection is the only one: in memory
}

func openFile(ctx context.Context, config Config) (database, error) {
	path := config.Path
	var err error
	switch path {
	case Memory:
	case "":
		path, err = DefaultPath()
	default:
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return nil, err
	}
	f := &sqliteFile{path: path}
	if err = f.open(ctx, config.MaxBytes); cannotOpen(err) {
		err = cmp.Or(refused(openFor(path)), err)
	}
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", path, explained(err))
	}
	return f, nil
}

func (f *sqliteFile) open(ctx context.Context, maxBytes int64) (err error) {
	if f.path != Memory {
		if err := prepareFile(f.path); err != nil {
			return err
		}
		if f.place, err = hold(f.path); err != nil {
			return err
		}
	}
	if f.writer, err = openWriter(ctx, f.path, maxBytes); err != nil {
		f.place.release()
		return err
	}
	if f.path == Memory {
		return nil
	}
	if f.reading, err = openReaders(f.path); err != nil {
		f.writer.close()
		f.place.release()
	}
	return err
}

// group runs jobs, unless their file is not there any more: before, and after for whoever
// waits for the disk.
func (f *sqliteFile) group(jobs []*job) error {
	if err := f.place.check(); err != nil {
		return err
	}
	err := f.writer.group(jobs)
	if err == nil && slices.ContainsFunc(jobs, func(j *job) bool { return j.sync }) {
		err = f.place.check()
	}
	return err
}

func (f *sqliteFile) name() string { return f.path }

func (f *sqliteFile) statements() int64 { return f.count.Load() }

func (f *sqliteFile) most() int { return maxGroup }

func (f *sqliteFile) read(ctx context.Context, fn func(*Tx) error) error {
	if f.reading == nil {
		return errNoReaders
	}
	return f.reading.read(ctx, func(c *sqliteConn) error {
		return fn(&Tx{ctx: ctx, on: c.conn, prep: c.prepare, schema: sqliteSchema, count: &f.count, found: map[any]any{}})
	})
}

func (f *sqliteFile) close() (err error) {
	f.place.releaseLog()
	if f.reading != nil {
		err = f.reading.close()
	}
	err = errors.Join(err, f.writer.close())
	f.place.release()
	return err
}

// news has nobody to tell: other processes look.
func (f *sqliteFile) news(context.Context, <-chan struct{}, func()) {}

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
	w := &writer{sqliteConn: newSQLiteConn(conn), pool: pool, synced: true}
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

// migrate brings the tables up to date. Processes that start at the same time take
// turns, and the second finds nothing to do.
func (w *writer) migrate(ctx context.Context) error {
	all, err := steps(migrations)
	if err != nil {
		return err
	}
	return w.migrateTo(ctx, all)
}

func (w *writer) migrateTo(ctx context.Context, all []step) error {
	tables := schema{w.conn, withRowNumbers}
	if have, _, err := tables.version(ctx); err == nil && have == len(all) {
		return nil // without taking the lock
	}
	if err := w.exec(begin); err != nil {
		return err
	}
	_, err := w.conn.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id=%d", applicationID))
	if err == nil {
		err = tables.migrate(ctx, all)
	}
	if err == nil {
		err = w.exec("COMMIT")
	}
	if err != nil {
		_ = w.exec("ROLLBACK")
	}
	return err
}

// withRowNumbers makes of a key that counts its row's own number, which it is in
// SQLite only under the name INTEGER.
func withRowNumbers(text string) string {
	return strings.ReplaceAll(text, "BIGINT PRIMARY KEY", "INTEGER PRIMARY KEY")
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

// noRoomBeside is SQLITE_IOERR_SHMSIZE: the file beside the store's that processes share cannot
// be made as long as it has to be, as on a disk that is full.
const noRoomBeside = sqlite3.SQLITE_IOERR | 19<<8

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
	if e, ok := errors.AsType[*sqlite.Error](err); ok && e.Code() == noRoomBeside {
		return &explainedError{explanations[sqlite3.SQLITE_FULL], err}
	}
	if code, ok := resultCode(err); ok && explanations[code] != "" {
		return &explainedError{explanations[code], err}
	}
	if _, ok := errors.AsType[*fs.PathError](err); ok { // before PostgreSQL: an errno in it has the methods of a net.Error
		return &explainedError{explanations[sqlite3.SQLITE_CANTOPEN], err}
	}
	if words := postgresWords(err); words != "" {
		return &explainedError{words, err}
	}
	return err
}
