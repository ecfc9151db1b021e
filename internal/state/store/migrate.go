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
// this one, goes on working; what it no longer needs is removed a release later. Its
// first line says so, "-- compatible_from: 5": who knows the tables of version 5 can
// work with these. Without it nobody can who does not know the step.
//
//go:embed migrations/*.sql
var migrations embed.FS

// A step brings the tables to a version.
type step struct {
	version int
	name    string
	sql     string
	// compatibleFrom is the least version that a program has to know to work with
	// these tables.
	compatibleFrom int
}

// firstBook is the last version whose programs know the table migrations alone, and
// start where its highest version is no higher than theirs. Of later steps that table
// has what has to be known, and schema_steps has all.
const firstBook = 5

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
		s := step{version: i + 1, name: name, sql: string(text), compatibleFrom: i + 1}
		if line, ok := strings.CutPrefix(s.sql, "-- compatible_from: "); ok {
			line, _, _ = strings.Cut(line, "\n")
			if s.compatibleFrom, err = strconv.Atoi(line); err != nil || s.compatibleFrom > s.version {
				return nil, fmt.Errorf("migration %s is compatible from %q", name, line)
			}
		}
		found[i] = s
	}
	return found, nil
}

// A schema is tables that are brought up to date, on a connection whose transaction
// nobody else has meanwhile.
type schema struct {
	on       querier
	portable func(string) string // makes what both databases read what this one does
}

// migrate runs the steps that are missing, inside a transaction.
func (s schema) migrate(ctx context.Context, all []step) error {
	for _, text := range []string{
		"CREATE TABLE IF NOT EXISTS migrations (version BIGINT NOT NULL PRIMARY KEY, name TEXT NOT NULL, applied BIGINT NOT NULL)",
		"CREATE TABLE IF NOT EXISTS schema_steps (version BIGINT NOT NULL PRIMARY KEY, name TEXT NOT NULL, compatible_from BIGINT NOT NULL, applied BIGINT NOT NULL)",
	} {
		if _, err := s.on.ExecContext(ctx, text); err != nil {
			return err
		}
	}
	have, needs, err := s.version(ctx)
	if err != nil {
		return err
	}
	if needs > len(all) {
		return fmt.Errorf("%w: its tables have version %d, and this one knows %d. Start the newer one, or name another store", ErrNewer, have, len(all))
	}
	for _, next := range all[min(have, len(all)):] {
		if err := s.apply(ctx, next); err != nil {
			return fmt.Errorf("migration %s: %w", next.name, err)
		}
	}
	return nil
}

func (s schema) apply(ctx context.Context, next step) error {
	if _, err := s.on.ExecContext(ctx, s.portable(next.sql)); err != nil {
		return err
	}
	now := Time(time.Now())
	if least := next.compatibleFrom; next.version <= firstBook || least > firstBook {
		if _, err := s.on.ExecContext(ctx, "INSERT INTO migrations (version, name, applied) VALUES ($1, $2, $3) ON CONFLICT (version) DO NOTHING", least, next.name, now); err != nil {
			return err
		}
	}
	_, err := s.on.ExecContext(ctx, "INSERT INTO schema_steps (version, name, compatible_from, applied) VALUES ($1, $2, $3, $4) ON CONFLICT (version) DO NOTHING", next.version, next.name, next.compatibleFrom, now)
	return err
}

// version returns the version of the tables, 0 for none, and the least that a program
// has to know to work with them.
func (s schema) version(ctx context.Context) (have, needs int, err error) {
	if err = s.on.QueryRowContext(ctx, "SELECT coalesce(max(version), 0) FROM migrations").Scan(&needs); err != nil {
		return 0, 0, err
	}
	var steps, from int
	err = s.on.QueryRowContext(ctx, "SELECT coalesce(max(version), 0), coalesce(max(compatible_from), 0) FROM schema_steps").Scan(&steps, &from)
	return max(steps, needs), max(from, needs), err
}
