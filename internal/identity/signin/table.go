package signin

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// inStore is a book of rows, which several processes share. Nothing in a row signs
// anybody in.
type inStore struct{ db *store.DB }

func (b inStore) add(ctx context.Context, s Session) error {
	who, err := json.Marshal(s.Caller)
	if err != nil {
		return err
	}
	return b.db.Write(ctx, func(tx *store.Tx) error {
		if err := tx.Lock("console_sessions", s.Caller.ID); err != nil {
			return err
		}
		if _, err := tx.Exec("DELETE FROM console_sessions WHERE ends <= $1 OR used <= $2", store.Time(s.Began), store.Time(s.Began.Add(-Idle))); err != nil {
			return err
		}
		_, err := tx.Exec(`DELETE FROM console_sessions WHERE caller = $1 AND digest NOT IN
			(SELECT digest FROM console_sessions WHERE caller = $1 ORDER BY began DESC, digest LIMIT $2)`, s.Caller.ID, maxSessions-1)
		if err != nil {
			return err
		}
		_, err = tx.Exec("INSERT INTO console_sessions (digest, caller, who, mark, began, used, ends) VALUES ($1, $2, $3, $4, $5, $6, $7)",
			s.digest, s.Caller.ID, string(who), s.mark, store.Time(s.Began), store.Time(s.used), store.Time(s.Ends))
		return err
	})
}

func (b inStore) get(ctx context.Context, digest string) (s Session, err error) {
	var who string
	var began, used, ends int64
	err = b.db.Read(ctx, func(tx *store.Tx) error {
		return tx.Row("SELECT who, mark, began, used, ends FROM console_sessions WHERE digest = $1", []any{digest}, &who, &s.mark, &began, &used, &ends)
	})
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return Session{}, ErrNone
	case err != nil:
		return Session{}, err
	}
	if err := json.Unmarshal([]byte(who), &s.Caller); err != nil {
		return Session{}, fmt.Errorf("a session of the console is damaged: %w", err)
	}
	s.digest, s.Began, s.used, s.Ends = digest, store.FromTime(began), store.FromTime(used), store.FromTime(ends)
	return s, nil
}

func (b inStore) touch(ctx context.Context, digest string, used time.Time) error {
	return b.db.Write(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec("UPDATE console_sessions SET used = $1 WHERE digest = $2 AND used < $1", store.Time(used), digest)
		return err
	})
}

func (b inStore) remove(ctx context.Context, digest string) error {
	return b.db.Write(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec("DELETE FROM console_sessions WHERE digest = $1", digest)
		return err
	})
}
