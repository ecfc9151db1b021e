package approval

import (
	"context"
	"errors"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// lookEvery is how often somebody who waits looks whether another process has
// answered. Answers of this process are seen at once.
const lookEvery = 250 * time.Millisecond

// Wait returns an approval as soon as it is no longer pending: answered, here or
// by another process, or expired.
func (in *Inbox) Wait(ctx context.Context, id string) (Approval, error) {
	changed := make(chan struct{}, 1)
	a, err := in.Get(ctx, id)
	if err != nil || a.State != Pending {
		return a, err
	}
	in.listen(a.ID, changed)
	defer in.leave(a.ID, changed)
	for {
		// Looked at again after listening, so that no answer falls between.
		if a, err = in.Get(ctx, a.ID); err != nil || a.State != Pending {
			return a, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return a, context.Cause(ctx)
		}
	}
}

// listen wakes changed when something may have happened to id.
func (in *Inbox) listen(id string, changed chan struct{}) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.waiting[id] == nil {
		in.waiting[id] = map[chan struct{}]bool{}
	}
	in.waiting[id][changed] = true
	if !in.polling {
		in.polling = true
		go in.poll()
	}
}

func (in *Inbox) leave(id string, changed chan struct{}) {
	in.mu.Lock()
	defer in.mu.Unlock()
	delete(in.waiting[id], changed)
	if len(in.waiting[id]) == 0 {
		delete(in.waiting, id)
	}
}

// wake wakes those who wait for id.
func (in *Inbox) wake(id string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for changed := range in.waiting[id] {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
}

// poll looks for answers of other processes, with one query however many wait, as
// long as anybody does.
func (in *Inbox) poll() {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for range ticker.C {
		in.mu.Lock()
		if len(in.waiting) == 0 {
			in.polling = false
			in.mu.Unlock()
			return
		}
		in.mu.Unlock()
		pending := map[string]bool{}
		err := in.db.Read(context.Background(), func(tx *store.Tx) error {
			return tx.Rows("SELECT id FROM approvals WHERE state = $1 AND expires > $2", []any{string(Pending), store.Time(in.now())}, func(scan func(...any) error) error {
				var id string
				err := scan(&id)
				pending[id] = true
				return err
			})
		})
		if err != nil && !errors.Is(err, store.ErrClosed) {
			continue // those who wait go on waiting
		}
		for _, id := range in.waited() {
			if !pending[id] {
				in.wake(id) // also when the store is closed: they are told so
			}
		}
	}
}

func (in *Inbox) waited() (ids []string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for id := range in.waiting {
		ids = append(ids, id)
	}
	return ids
}

// maxUnanswered bounds the arguments that are kept of what nobody answered, in
// characters: otherwise a caller could fill the disk with questions.
const maxUnanswered = 4 << 10

// Expire writes down what has expired, and removes what was answered, or expired,
// so long ago that it is not kept. Long arguments of what nobody answered become
// null. What has expired cannot be used whether or not this was called.
func (in *Inbox) Expire(ctx context.Context) error {
	now := in.now()
	return in.db.Write(ctx, func(tx *store.Tx) error {
		var expired []Approval
		err := tx.Rows("SELECT "+columns+" FROM approvals WHERE state IN ($1, $2) AND expires <= $3 ORDER BY expires LIMIT 1000",
			[]any{string(Pending), string(Approved), store.Time(now)}, func(scan func(...any) error) error {
				a, err := scanned(scan, now)
				expired = append(expired, a)
				return err
			})
		if err != nil {
			return err
		}
		for _, a := range expired {
			if _, err := tx.Exec("UPDATE approvals SET state = $1, arguments = CASE WHEN length(arguments) > $2 THEN 'null' ELSE arguments END WHERE id = $3",
				string(Expired), maxUnanswered, a.ID); err != nil {
				return err
			}
			if err := in.record(tx, a); err != nil {
				return err
			}
		}
		_, err = tx.Exec("DELETE FROM approvals WHERE state IN ($1, $2, $3) AND expires < $4", string(Denied), string(Expired), string(Used), store.Time(now.Add(-in.config.Keep)))
		return err
	})
}

// Keep calls Expire now and every minute, until ctx ends. What goes wrong is given
// to failed, which may be nil; it is tried again.
func (in *Inbox) Keep(ctx context.Context, failed func(error)) {
	ticker := time.NewTicker(time.Minute)
	defer ticker.Stop()
	for {
		if err := in.Expire(ctx); err != nil && ctx.Err() == nil && failed != nil {
			failed(err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}
