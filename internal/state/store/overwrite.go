package store

import (
	"context"
	"errors"
	"fmt"
)

// ErrLingers: what was removed is gone, and the files still have it: another process has
// been reading for so long that the log could not be emptied. The next one that is can.
var ErrLingers = errors.New("it is removed, and the file's log still has it: another process has been reading for too long; do it again once that has ended")

// Overwrite is [DB.Write] for what is to be gone from the disk, too: what fn removes from
// the file is overwritten, there and in its log ([ErrLingers]). PostgreSQL gives the space
// back to be used again. Copies that were made before still have it.
func (db *DB) Overwrite(ctx context.Context, fn func(*Tx) error) error {
	return db.alone(ctx, func() error { return db.on.overwrite(&job{fn: fn, sync: true}) })
}

// alone runs fn while nothing else writes in this process.
func (db *DB) alone(ctx context.Context, fn func() error) error {
	return db.run(ctx, &job{alone: fn, ended: make(chan struct{})})
}

// overwrite has SQLite fill with zeros what is removed, and empties the log, which has the
// pages as they were.
func (f *sqliteFile) overwrite(j *job) error {
	if err := f.exec("PRAGMA secure_delete=1"); err != nil {
		return err
	}
	err := f.group([]*job{j})
	if err = errors.Join(err, j.err, f.exec("PRAGMA secure_delete=0")); err != nil || f.place == nil {
		return err
	}
	var busy, frames, moved int
	if err := f.conn.QueryRowContext(context.Background(), "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &frames, &moved); err != nil {
		return err
	}
	if busy != 0 {
		return ErrLingers
	}
	return nil
}

// overwrite has the space of what is removed cleaned, which is no part of a transaction.
func (p *postgres) overwrite(j *job) error {
	if err := errors.Join(p.group([]*job{j}), j.err); err != nil {
		return err
	}
	ctx := context.Background()
	var tables []Table
	if err := p.read(ctx, func(tx *Tx) (err error) { tables, err = tx.Tables(); return err }); err != nil {
		return err
	}
	for _, t := range tables {
		if !t.Owned() {
			continue
		}
		if _, err := p.reading.ExecContext(ctx, "VACUUM "+t.Name); err != nil {
			return fmt.Errorf("it is removed, and the space that it had was not cleaned: %w", err)
		}
	}
	return nil
}
