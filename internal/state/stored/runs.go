package stored

import (
	"context"
	"errors"

	"github.com/dragoman-mcp/dragoman/internal/state/run"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
	"github.com/dragoman-mcp/dragoman/openai/responses"
)

// Transactional is what keeps responses in the store that runs are in, so that both change
// in one transaction: [Responses] does.
type Transactional interface {
	PutIn(tx *store.Tx, caller string, s *responses.Stored) error
	DeleteIn(tx *store.Tx, caller, id string) (bool, error)
	SpendIn(tx *store.Tx, caller, id string) (first bool, err error)
}

var _ Transactional = (*Responses)(nil)

// Cancel ends the run that makes a response, wherever that is, and writes down that it was
// cancelled, unless it has ended. It reports whether it did.
func Cancel(ctx context.Context, runs *run.Runs, in responses.Store, owner, id string) (cancelled bool, err error) {
	found, err := in.Get(ctx, owner, id)
	if err != nil || found == nil || !found.Unfinished() {
		return false, err
	}
	endedBy := func(said [][]byte, err error) (*responses.Stored, error) {
		if err != nil && !errors.Is(err, run.ErrNone) && !errors.Is(err, run.ErrGone) {
			return nil, err
		}
		return found.Cancelled(said), nil
	}
	together, _ := in.(Transactional)
	put := false
	now, err := runs.Cancel(ctx, owner, id, func(tx *store.Tx) error {
		cancelled, put = true, true
		// All that it has said: nothing more is, once its row is locked.
		ended, err := endedBy(runs.SaidIn(tx, owner, id))
		if err != nil {
			return err
		}
		if together == nil { // and so before anybody can hear of the end
			return in.Put(context.WithoutCancel(ctx), owner, ended)
		}
		if ended.Conversation != "" { // its turn in it is over
			if err := releaseIn(tx, owner, ended.Conversation, id); err != nil {
				return err
			}
		}
		return together.PutIn(tx, owner, ended)
	})
	if err == nil && now.Outcome != run.Cancelled { // what was done before was undone, and it ended meanwhile
		cancelled, put = false, false
	}
	switch {
	case errors.Is(err, run.ErrNone): // nobody makes it any more
	case err != nil:
		return false, err
	case !cancelled && now.Outcome != run.Cancelled:
		// It ended this moment; or it has no end, where nobody could write one.
		if found, err = in.Get(ctx, owner, id); err != nil || found == nil || !found.Unfinished() {
			return false, err
		}
	}
	if put {
		return true, nil
	}
	ended, err := endedBy(runs.Said(ctx, owner, id))
	if err != nil {
		return false, err
	}
	return true, in.Put(context.WithoutCancel(ctx), owner, ended)
}
