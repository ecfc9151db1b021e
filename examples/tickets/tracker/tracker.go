// Package tracker keeps tickets in an SQLite file. It knows nothing of MCP: the
// two servers beside it, one with the toolkit and one with the bare SDK, use it
// alike.
package tracker

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	_ "modernc.org/sqlite" // the driver
)

// ErrNotFound means that there is no such ticket.
var ErrNotFound = errors.New("no such ticket")

// A Ticket is something to be done.
type Ticket struct {
	ID       int64
	Title    string
	Body     string
	Status   string // open, doing or done
	Due      string // a date such as 2026-05-01, or empty
	Author   string
	Created  time.Time
	Comments []Comment // only from Get
}

// A Comment belongs to a ticket.
type Comment struct {
	Author string
	Text   string
	At     time.Time
}

// A Change is what is to be different; nil: stays as it is.
type Change struct{ Title, Body, Status, Due *string }

// A Tracker is safe for concurrent use.
type Tracker struct {
	db  *sql.DB
	now func() time.Time
}

const tables = `
CREATE TABLE IF NOT EXISTS ticket (
	id INTEGER PRIMARY KEY AUTOINCREMENT, title TEXT NOT NULL, body TEXT NOT NULL, status TEXT NOT NULL DEFAULT 'open',
	due TEXT NOT NULL, author TEXT NOT NULL, created INTEGER NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS comment (
	ticket INTEGER NOT NULL REFERENCES ticket ON DELETE CASCADE, author TEXT NOT NULL, text TEXT NOT NULL, at INTEGER NOT NULL
) STRICT;`

// Open opens a file, and makes it if there is none.
func Open(ctx context.Context, file string) (*Tracker, error) {
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=journal_mode(wal)&_pragma=busy_timeout(5000)&_pragma=foreign_keys(on)")
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", file, err)
	}
	if _, err := db.ExecContext(ctx, tables); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", file, err), db.Close())
	}
	return &Tracker{db: db, now: time.Now}, nil
}

// Close closes the file.
func (t *Tracker) Close() error { return t.db.Close() }

// Create adds a ticket and returns it as it is then.
func (t *Tracker) Create(ctx context.Context, title, body, due, author string) (Ticket, error) {
	res, err := t.db.ExecContext(ctx, `INSERT INTO ticket (title, body, due, author, created) VALUES (?, ?, ?, ?, ?)`, title, body, due, author, t.now().Unix())
	if err != nil {
		return Ticket{}, fmt.Errorf("create: %w", err)
	}
	id, err := res.LastInsertId()
	if err != nil {
		return Ticket{}, fmt.Errorf("create: %w", err)
	}
	return t.Get(ctx, id)
}

const columns = `id, title, body, status, due, author, created`

func scan(row interface{ Scan(...any) error }) (k Ticket, err error) {
	var created int64
	err = row.Scan(&k.ID, &k.Title, &k.Body, &k.Status, &k.Due, &k.Author, &created)
	k.Created = time.Unix(created, 0).UTC()
	return k, err
}

// Get returns a ticket with its comments.
func (t *Tracker) Get(ctx context.Context, id int64) (Ticket, error) {
	k, err := scan(t.db.QueryRowContext(ctx, `SELECT `+columns+` FROM ticket WHERE id = ?`, id))
	if errors.Is(err, sql.ErrNoRows) {
		return Ticket{}, ErrNotFound
	}
	if err != nil {
		return Ticket{}, fmt.Errorf("get: %w", err)
	}
	rows, err := t.db.QueryContext(ctx, `SELECT author, text, at FROM comment WHERE ticket = ? ORDER BY rowid`, id)
	if err != nil {
		return Ticket{}, fmt.Errorf("get: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var c Comment
		var at int64
		if err := rows.Scan(&c.Author, &c.Text, &at); err != nil {
			return Ticket{}, fmt.Errorf("get: %w", err)
		}
		c.At = time.Unix(at, 0).UTC()
		k.Comments = append(k.Comments, c)
	}
	return k, rows.Err()
}

// Search returns tickets, newest first, and how many there are in all. Empty
// words and status match everything.
func (t *Tracker) Search(ctx context.Context, words, status string, limit, offset int) (list []Ticket, total int, err error) {
	pattern := "%" + strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`).Replace(words) + "%"
	const where = ` FROM ticket WHERE (title LIKE ?1 ESCAPE '\' OR body LIKE ?1 ESCAPE '\') AND (?2 = '' OR status = ?2)`
	if err := t.db.QueryRowContext(ctx, `SELECT count(*)`+where, pattern, status).Scan(&total); err != nil {
		return nil, 0, fmt.Errorf("search: %w", err)
	}
	rows, err := t.db.QueryContext(ctx, `SELECT `+columns+where+` ORDER BY id DESC LIMIT ?3 OFFSET ?4`, pattern, status, limit, offset)
	if err != nil {
		return nil, 0, fmt.Errorf("search: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		k, err := scan(rows)
		if err != nil {
			return nil, 0, fmt.Errorf("search: %w", err)
		}
		list = append(list, k)
	}
	return list, total, rows.Err()
}

// Update changes a ticket and returns it as it is then.
func (t *Tracker) Update(ctx context.Context, id int64, c Change) (Ticket, error) {
	res, err := t.db.ExecContext(ctx, `UPDATE ticket SET title = coalesce(?, title), body = coalesce(?, body), status = coalesce(?, status), due = coalesce(?, due) WHERE id = ?`,
		c.Title, c.Body, c.Status, c.Due, id)
	if err := found(res, err); err != nil {
		return Ticket{}, err
	}
	return t.Get(ctx, id)
}

// Comment adds a comment to a ticket and returns the ticket.
func (t *Tracker) Comment(ctx context.Context, id int64, author, text string) (Ticket, error) {
	res, err := t.db.ExecContext(ctx, `INSERT INTO comment (ticket, author, text, at) SELECT id, ?, ?, ? FROM ticket WHERE id = ?`, author, text, t.now().Unix(), id)
	if err := found(res, err); err != nil {
		return Ticket{}, err
	}
	return t.Get(ctx, id)
}

// Delete deletes a ticket with its comments.
func (t *Tracker) Delete(ctx context.Context, id int64) error {
	res, err := t.db.ExecContext(ctx, `DELETE FROM ticket WHERE id = ?`, id)
	return found(res, err)
}

// found turns a change of nothing into ErrNotFound.
func found(res sql.Result, err error) error {
	if err != nil {
		return fmt.Errorf("change: %w", err)
	}
	n, err := res.RowsAffected()
	if err == nil && n == 0 {
		return ErrNotFound
	}
	return err
}
