package store

import (
	"context"
	"database/sql"
	"time"
)

// A Tx is a transaction, for the function that it is given to and no longer.
type Tx struct {
	// ctx is here, and not in every method, because a Tx lives no longer than one
	// call of Read or Write. That of a writer never ends: a group is not given up
	// halfway because one of its callers left.
	ctx  context.Context
	on   querier
	prep func(string) (*sql.Stmt, error) // nil for readers
}

type querier interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
	QueryContext(context.Context, string, ...any) (*sql.Rows, error)
	QueryRowContext(context.Context, string, ...any) *sql.Row
}

// Exec runs a statement and returns how many rows it changed.
func (tx *Tx) Exec(query string, args ...any) (changed int64, err error) {
	result, err := tx.exec(query, args)
	if err != nil {
		return 0, explained(err)
	}
	return result.RowsAffected()
}

func (tx *Tx) exec(query string, args []any) (sql.Result, error) {
	if tx.prep == nil {
		return tx.on.ExecContext(tx.ctx, query, args...)
	}
	stmt, err := tx.prep(query)
	if err != nil {
		return nil, err
	}
	return stmt.ExecContext(tx.ctx, args...)
}

// Row runs a query and scans its one row into dest. It returns [sql.ErrNoRows]
// when there is none.
func (tx *Tx) Row(query string, args []any, dest ...any) error {
	if tx.prep == nil {
		return explained(tx.on.QueryRowContext(tx.ctx, query, args...).Scan(dest...))
	}
	stmt, err := tx.prep(query)
	if err != nil {
		return explained(err)
	}
	return explained(stmt.QueryRowContext(tx.ctx, args...).Scan(dest...))
}

// Rows runs a query and calls each for every row, until it returns an error.
func (tx *Tx) Rows(query string, args []any, each func(scan func(dest ...any) error) error) (err error) {
	rows, err := tx.on.QueryContext(tx.ctx, query, args...)
	if err != nil {
		return explained(err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := each(rows.Scan); err != nil {
			return err
		}
	}
	return explained(rows.Err())
}

// Time returns a time as it is stored: microseconds since 1970. The zero time is
// stored as 0.
func Time(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// FromTime returns the time that [Time] stored, in UTC.
func FromTime(stored int64) time.Time {
	if stored == 0 {
		return time.Time{}
	}
	return time.UnixMicro(stored).UTC()
}
