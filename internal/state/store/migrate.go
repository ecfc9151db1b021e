package store

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"
)

// migrations make the tables, in the order of their names: 0001_audit.sql is the
// step to version 1. They only ever go forward, and one that was released is never
// changed. A step adds, so that the version before, which may still run beside
// this one, goes on working; what it no longer needs is removed a release later.
//
//go:embed migrations/*.sql
var migrations embed.FS

// A step brings the tables to a version.
type step struct {
	version int
	name    string
	sql     string
}

// steps reads the embedded files. They are part of the program, so what is wrong
// with them is a mistake of ours.
func steps(files fs.FS) ([]step, error) {
	names, err := fs.Glob(files, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	found := make([]step, len(names))
	for i, name := range names { // fs.Glob sorts
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		name = strings.TrimPrefix(name, "migrations/")
		number, _, _ := strings.Cut(name, "_")
		if version, err := strconv.Atoi(number); err != nil || version != i+1 {
			return nil, fmt.Errorf("migration %s has to be number %04d", name, i+1)
		}
		found[i] = step{i + 1, name, portable(string(text))}
	}
	return found, nil
}

// portable turns the SQL that both databases read into that of SQLite: a key that
// counts is its row's own number there only under the name INTEGER.
func portable(text string) string {
	return strings.ReplaceAll(text, "BIGINT PRIMARY KEY", "INTEGER PRIMARY KEY")
}

// migrate brings the tables up to date. Processes that start at the same time
// take turns, and the second finds nothing to do.
func (w *writer) migrate(ctx context.Context) error {
	all, err := steps(migrations)
	if err != nil {
		return err
	}
	return w.migrateTo(ctx, all)
}

func (w *writer) migrateTo(ctx context.Context, all []step) error {
	if version, err := w.version(ctx); err == nil && version == len(all) {
		return nil // without taking the lock
	}
	if err := w.exec(begin); err != nil {
		return err
	}
	err := w.apply(ctx, all)
	if err == nil {
		err = w.exec("COMMIT")
	}
	if err != nil {
		_ = w.exec("ROLLBACK")
	}
	return err
}

// apply runs the steps that are missing, inside a transaction.
func (w *writer) apply(ctx context.Context, all []step) error {
	for _, text := range []string{
		fmt.Sprintf("PRAGMA application_id=%d", applicationID),
		"CREATE TABLE IF NOT EXISTS migrations (version BIGINT NOT NULL PRIMARY KEY, name TEXT NOT NULL, applied BIGINT NOT NULL)",
	} {
		if _, err := w.conn.ExecContext(ctx, text); err != nil {
			return err
		}
	}
	have, err := w.version(ctx)
	if err != nil {
		return err
	}
	if have > len(all) {
		return fmt.Errorf("%w: its tables have version %d, and this one knows %d. Start the newer one, or name another file in store.path", ErrNewer, have, len(all))
	}
	for _, s := range all[have:] {
		if _, err := w.conn.ExecContext(ctx, s.sql); err != nil {
			return fmt.Errorf("migration %s: %w", s.name, err)
		}
		if _, err := w.conn.ExecContext(ctx, "INSERT INTO migrations (version, name, applied) VALUES ($1, $2, $3)", s.version, s.name, Time(time.Now())); err != nil {
			return fmt.Errorf("migration %s: %w", s.name, err)
		}
	}
	return nil
}

// version returns the version of the tables; 0 for none.
func (w *writer) version(ctx context.Context) (version int, err error) {
	err = w.conn.QueryRowContext(ctx, "SELECT coalesce(max(version), 0) FROM migrations").Scan(&version)
	return version, err
}
