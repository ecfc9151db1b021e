package run

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// Keep keeps a step: what the run has from others, and does not ask for again. Where the store
// cannot be used, that is tried again: who has it from others may have changed something.
func (h *Held) Keep(ctx context.Context, step string, document []byte) error {
	for began := time.Now(); ; {
		err := h.KeepWith(ctx, step, document, nil) // a second time it changes nothing
		if err == nil || !h.passes(err, began) {
			return err
		}
		select {
		case <-time.After(store.LookEvery):
		case <-ctx.Done():
			return err
		case <-h.ctx.Done():
			return err
		}
	}
}

// KeepWith is Keep with what also does in the same transaction; nil for nothing.
func (h *Held) KeepWith(ctx context.Context, step string, document []byte, also func(*store.Tx) error) error {
	h.runs.config.at("before " + step)
	defer h.runs.config.at("after " + step)
	return h.write(ctx, func(tx *store.Tx) error {
		if also != nil {
			if err := also(tx); err != nil {
				return err
			}
		}
		now, err := tx.Now()
		if err != nil {
			return err
		}
		owner := store.Owner(h.Owner)
		closed, err := h.runs.vault.Close(tx, owner, "step "+h.ID+" "+step, document)
		if err != nil {
			return err
		}
		_, err = tx.Exec(`INSERT INTO run_steps (owner, run, step, content, size, expires) VALUES ($1, $2, $3, $4, $5, $6)
			ON CONFLICT (owner, run, step) DO UPDATE SET content = excluded.content, size = excluded.size`,
			owner, h.ID, step, closed, len(document), store.Time(now.Add(h.runs.config.Life)))
		return err
	})
}

// Forget forgets a step.
func (h *Held) Forget(ctx context.Context, step string) error {
	return h.write(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec("DELETE FROM run_steps WHERE owner = $1 AND run = $2 AND step = $3", store.Owner(h.Owner), h.ID, step)
		return err
	})
}

// Step returns a step that was kept; nil where there is none.
func (h *Held) Step(ctx context.Context, step string) (document []byte, err error) {
	err = h.runs.db.Read(ctx, func(tx *store.Tx) error {
		var closed []byte
		owner := store.Owner(h.Owner)
		err := tx.Row("SELECT content FROM run_steps WHERE owner = $1 AND run = $2 AND step = $3", []any{owner, h.ID, step}, &closed)
		if errors.Is(err, sql.ErrNoRows) {
			document = nil
			return nil
		}
		if err == nil {
			document, err = h.runs.vault.Open(tx, owner, "step "+h.ID+" "+step, closed)
		}
		return err
	})
	return document, err
}
