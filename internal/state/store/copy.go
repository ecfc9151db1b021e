package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Errors of copying a store.
var (
	// ErrNotEmpty: something is in the store that is to be filled.
	ErrNotEmpty = errors.New("it is not empty")
	// ErrNoBackup: the store cannot write a copy of itself.
	ErrNoBackup = errors.New("PostgreSQL is backed up with its own programs")
)

// bookkeeping are tables that each store writes itself.
var bookkeeping = []string{"migrations", "schema_steps"}

// Size returns how many bytes the store takes.
func (db *DB) Size(ctx context.Context) (int64, error) { return db.on.size(ctx) }

// Backup writes a copy of the store, as it is at one moment, to a file that is not there
// yet, while everybody goes on reading and writing. The file is there whole or not at all;
// check is given it before that, under another name, and may refuse it. Of
// PostgreSQL there is none ([ErrNoBackup], with the command that makes one).
func (db *DB) Backup(ctx context.Context, path string, check func(copied string) error) (err error) {
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("%s is there already: %w", path, fs.ErrExist)
	}
	dir, err := os.MkdirTemp(filepath.Dir(path), ".backup-*") // for this user alone
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	copied := filepath.Join(dir, filepath.Base(path))
	file, err := os.OpenFile(copied, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(file.Close(), db.on.backup(ctx, copied)); err != nil {
		return explained(err)
	}
	if err := check(copied); err != nil {
		return err
	}
	if err := synced(copied); err != nil {
		return err
	}
	if err := os.Link(copied, path); err != nil { // which replaces nothing
		return err
	}
	return synced(filepath.Dir(path))
}

// synced waits until a file, or the names in a folder, are on the disk.
func synced(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil { // a folder
		if file, err = os.Open(path); err != nil {
			return err
		}
		defer file.Close()
		_ = file.Sync() // not everywhere can a folder be
		return nil
	}
	return errors.Join(file.Sync(), file.Close())
}

// backup has SQLite write what is in use, and nothing of what was removed.
func (f *sqliteFile) backup(ctx context.Context, file string) error {
	if err := f.place.check(); err != nil {
		return err
	}
	pool, err := sql.Open("sqlite", dsn(f.path, "trusted_schema(0)"))
	if err != nil {
		return err
	}
	_, err = pool.ExecContext(ctx, "VACUUM INTO $1", file)
	return errors.Join(err, pool.Close())
}

// backup says the command that makes one. It names no password: that is pg_dump's own
// business, as it is ours.
func (p *postgres) backup(context.Context, string) error {
	return fmt.Errorf("%w: pg_dump --format=custom --host=%s --port=%d --username=%s --dbname=%s", ErrNoBackup,
		quoted(p.config.Host), p.config.Port, quoted(p.config.User), quoted(p.config.Database))
}

// quoted is a word as a shell reads it.
func quoted(word string) string {
	if word != "" && strings.Trim(strings.ToLower(word), "abcdefghijklmnopqrstuvwxyz0123456789_./-") == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

func (f *sqliteFile) size(ctx context.Context) (n int64, err error) {
	err = f.read(ctx, func(tx *Tx) error {
		return tx.Row("SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()", nil, &n)
	})
	if info, statErr := os.Stat(f.path + suffixes[1]); statErr == nil {
		n += info.Size()
	}
	return n, err
}

func (p *postgres) size(ctx context.Context) (n int64, err error) {
	err = p.read(ctx, func(tx *Tx) error {
		return tx.Row("SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace", nil, &n)
	})
	return n, err
}

// fill: nobody fills a file from elsewhere.
func (f *sqliteFile) fill(context.Context, func(*Tx) error) error {
	return errors.New("a store is copied to a PostgreSQL database")
}

func (p *postgres) fill(ctx context.Context, fn func(*Tx) error) error {
	tx, err := p.writer.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // where it was not committed
	if err := fn(&Tx{ctx: ctx, on: plainTexts{tx}, clock: "SELECT " + databaseTime, schema: postgresSchema, count: &p.count}); err != nil {
		return err
	}
	return tx.Commit()
}

// Counts are how many rows each table has.
type Counts map[string]int64

// CopyTo copies all that is here to another store, which has to be empty, in one
// transaction: all of it is there afterwards, or nothing. Nobody else writes here
// meanwhile. check looks at the copy before it is committed, and may refuse it.
func (db *DB) CopyTo(ctx context.Context, to *DB, check func(*Tx) error) (copied Counts, err error) {
	err = db.Write(ctx, func(from *Tx) error { // for its lock alone
		return to.alone(ctx, func() error {
			return to.on.fill(ctx, func(into *Tx) (err error) {
				if copied, err = copyAll(from, into); err == nil {
					err = check(into)
				}
				return err
			})
		})
	})
	return copied, err
}

func copyAll(from, into *Tx) (Counts, error) {
	here, err := from.Tables()
	if err != nil {
		return nil, err
	}
	there, err := into.Tables()
	if err != nil {
		return nil, err
	}
	if err := sameTables(here, there); err != nil {
		return nil, err
	}
	copied := Counts{}
	for _, t := range here {
		if slices.Contains(bookkeeping, t.Name) {
			continue
		}
		if _, err := into.Exec("LOCK TABLE " + t.Name + " IN EXCLUSIVE MODE"); err != nil { // nobody else fills it meanwhile
			return nil, err
		}
		var there int64
		if err := into.Row("SELECT count(*) FROM "+t.Name, nil, &there); err != nil {
			return nil, err
		}
		if there > 0 {
			return nil, fmt.Errorf("%w: rows in its table %s: %d", ErrNotEmpty, t.Name, there)
		}
		if copied[t.Name], err = copyTable(from, into, &t); err != nil {
			return nil, fmt.Errorf("table %s: %w", t.Name, err)
		}
	}
	return copied, nil
}

// sameTables refuses a copy in which something would be missing.
func sameTables(here, there []Table) error {
	for _, t := range here {
		same := slices.IndexFunc(there, func(o Table) bool { return o.Name == t.Name && o.names(false) == t.names(false) })
		if same < 0 {
			return fmt.Errorf("%w: the table %s is not one that this program makes", ErrNewer, t.Name)
		}
	}
	return nil
}

// Bounds of what is inserted by one statement.
const (
	copyRows  = 100
	copyBytes = 4 << 20
)

// copyTable copies a table, and counts what is there then.
func copyTable(from, into *Tx, t *Table) (count int64, err error) {
	var read int64
	var pending []any
	bytes := 0
	flush := func() error {
		if len(pending) == 0 {
			return nil
		}
		_, err := into.Exec(insertRows(t, len(pending)/len(t.Columns)), pending...)
		pending, bytes = pending[:0], 0
		return err
	}
	err = from.Rows("SELECT "+t.names(false)+" FROM "+t.Name, nil, func(scan func(...any) error) error {
		values, err := scanRow(t, scan)
		if err != nil {
			return err
		}
		read++
		for _, v := range values {
			switch v := v.(type) {
			case string:
				bytes += len(v)
			case []byte:
				bytes += len(v)
			}
		}
		if pending = append(pending, values...); len(pending) >= copyRows*len(t.Columns) || bytes >= copyBytes {
			return flush()
		}
		return nil
	})
	if err == nil {
		err = flush()
	}
	if err == nil {
		err = into.Row("SELECT count(*) FROM "+t.Name, nil, &count)
	}
	if err == nil && count != read {
		err = fmt.Errorf("%d rows were read, and %d are there", read, count)
	}
	return count, err
}

// scanRow reads a row as the types of its columns say, whatever SQLite has in them.
func scanRow(t *Table, scan func(...any) error) ([]any, error) {
	into := make([]any, len(t.Columns))
	for i, c := range t.Columns {
		switch c.Type {
		case "BYTEA":
			into[i] = new([]byte)
		case "BIGINT":
			into[i] = new(sql.NullInt64)
		default:
			into[i] = new(sql.NullString)
		}
	}
	if err := scan(into...); err != nil {
		return nil, err
	}
	values := make([]any, len(into))
	for i, v := range into {
		switch v := v.(type) {
		case *[]byte:
			if values[i] = *v; *v == nil {
				values[i] = nil
				if !t.Columns[i].Null {
					values[i] = []byte{}
				}
			}
		case *sql.NullInt64:
			values[i], _ = v.Value()
		case *sql.NullString:
			values[i], _ = v.Value()
		}
	}
	return values, nil
}

func insertRows(t *Table, rows int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "INSERT INTO %s (%s) VALUES ", t.Name, t.names(false))
	for i := range rows {
		for j := range t.Columns {
			switch {
			case j > 0:
				b.WriteString(", ")
			case i > 0:
				b.WriteString(", (")
			default:
				b.WriteString("(")
			}
			fmt.Fprintf(&b, "$%d", i*len(t.Columns)+j+1)
		}
		b.WriteString(")")
	}
	return b.String()
}
