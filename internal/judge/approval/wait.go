package approval

import (
	"context"
	"errors"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// Grace is how much longer than a question is good its answer is waited for, so that it is
// the store that says that nobody answered, and no other clock before it.
const Grace = time.Minute

// Wait returns an approval as soon as it is no longer pending: answered, here or
// by another process, or expired.
func (in *Inbox) Wait(ctx context.Context, id string) (Approval, error) {
	a, err := in.Get(ctx, id)
	if err != nil || a.State != Pending {
		return a, err
	}
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	changed := in.db.Changed(watching, topic)
	for {
		// Looked at again after watching began, so that no answer falls between.
		left := time.Duration(0)
		if a, left, err = in.left(ctx, a.ID); err != nil || a.State != Pending {
			return a, err
		}
		expired := time.NewTimer(left)
		select {
		case <-changed:
		case <-expired.C:
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		if expired.Stop(); err != nil {
			return a, err
		}
	}
}

// Settled reports, as part of a transaction, whether an approval waits for nobody any more.
func Settled(tx *store.Tx, id string) (bool, error) {
	now, err := tx.Now()
	if err != nil {
		return false, err
	}
	a, err := get(tx, id, now)
	if errors.Is(err, ErrNotFound) {
		return true, nil
	}
	return err == nil && a.State != Pending, err
}

// left returns an approval and how long it may wait, by the store's clock.
func (in *Inbox) left(ctx context.Context, id string) (a Approval, left time.Duration, err error) {
	err = in.db.Read(ctx, func(tx *store.Tx) error {
		now, err := in.now(tx)
		if err == nil {
			a, err = get(tx, id, now)
			left = a.Left
		}
		return err
	})
	return a, left, err
}

// maxUnanswered bounds the arguments that are kept of what nobody answered, in
// characters: otherwise a caller could fill the disk with questions.
const maxUnanswered = 4 << 10

// Expire writes down what has expired, and removes what was answered, or expired,
// so long ago that it is not kept. Long arguments of what nobody answered become
// null. What has expired cannot be used whether or not this was called. It returns how
// many were removed.
func (in *Inbox) Expire(ctx context.Context) (removed int64, err error) {
	err = in.db.Write(ctx, func(tx *store.Tx) error {
		if err := tx.Lock(topic, "expire"); err != nil {
			return err
		}
		now, err := in.now(tx)
		if err != nil {
			return err
		}
		var expired []Approval
		err = tx.Rows("SELECT "+columns+" FROM approvals WHERE state IN ($1, $2) AND expires <= $3 ORDER BY expires LIMIT 1000",
			[]any{string(Pending), string(Approved), store.Time(now)}, func(scan func(...any) error) error {
				a, err := scanned(scan, now)
				expired = append(expired, a)
				return err
			})
		if err != nil {
			return err
		}
		for _, a := range expired {
			changed, err := tx.Exec("UPDATE approvals SET state = $1, arguments = CASE WHEN length(arguments) > $2 THEN 'null' ELSE arguments END WHERE id = $3 AND state IN ($4, $5) AND expires <= $6",
				string(Expired), maxUnanswered, a.ID, string(Pending), string(Approved), store.Time(now))
			if err != nil {
				return err
			}
			if changed == 0 {
				continue // answered, or spent, meanwhile
			}
			tx.Raise(topic)
			if _, err := in.record(tx, a); err != nil {
				return err
			}
		}
		removed, err = tx.Exec("DELETE FROM approvals WHERE state IN ($1, $2, $3) AND expires < $4", string(Denied), string(Expired), string(Used), store.Time(now.Add(-in.config.Load().Keep)))
		return err
	})
	return removed, err
}

// Keep calls Expire now and every minute, until ctx ends. What goes wrong is given
// to failed, which may be nil; it is tried again.
func (in *Inbox) Keep(ctx context.Context, failed func(error)) {
	ticker := time.NewTicker(time.Minute)
	defer ticker.Stop()
	for {
		if _, err := in.Expire(ctx); err != nil && ctx.Err() == nil && failed != nil {
			failed(err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}
