package run

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// An Event is something that a run said.
type Event struct {
	Number int64
	Data   []byte
}

// maxRead is how many blocks are read at a time.
const maxRead = 64

// Follow returns the events of a run behind a number, which is -1 for all: those that there
// are, and those that come, until the run is over. An error is the last thing that comes:
// [ErrNone], [ErrGone], that of ctx, or the store's. Where a run takes up again what it has
// said, nobody who follows sees anything twice.
func (s *Runs) Follow(ctx context.Context, owner, id string, after int64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		changed := s.db.Changed(ctx, topic(id))
		look := time.NewTicker(s.config.Lease)
		defer look.Stop()
		for {
			events, r, err := s.read(ctx, owner, id, after)
			if err != nil {
				yield(Event{}, err)
				return
			}
			for _, e := range events {
				if !yield(e, nil) {
					return
				}
				after = e.Number
			}
			switch {
			case after < r.Last && len(events) > 0:
				continue // there are more
			case after < r.Last:
				yield(Event{}, ErrGone)
				return
			case r.State == Done:
				return
			}
			select {
			case <-changed:
			case <-look.C: // nobody tells of a run whose owner was erased, or that has expired
			case <-ctx.Done():
				yield(Event{}, context.Cause(ctx))
				return
			}
		}
	}
}

// read returns events behind a number, and the run as it was then.
func (s *Runs) read(ctx context.Context, owner, id string, after int64) (events []Event, r Run, err error) {
	err = s.db.Read(ctx, func(tx *store.Tx) error {
		events, r, err = s.readIn(tx, owner, id, after)
		return err
	})
	return events, r, err
}

// readIn is read in a transaction.
func (s *Runs) readIn(tx *store.Tx, owner, id string, after int64) (events []Event, r Run, err error) {
	if r, err = get(tx, owner, id); err != nil || after >= r.Last {
		return nil, r, err
	}
	type block struct {
		first  int64
		closed []byte
	}
	var blocks []block
	if err := tx.Rows("SELECT first, content FROM run_events WHERE owner = $1 AND run = $2 AND last > $3 ORDER BY first LIMIT $4", []any{store.Owner(owner), id, after, maxRead},
		func(scan func(...any) error) error {
			var b block
			err := scan(&b.first, &b.closed)
			blocks = append(blocks, b)
			return err
		}); err != nil {
		return nil, r, err
	}
	for _, b := range blocks {
		plain, err := s.vault.Open(tx, store.Owner(owner), fmt.Sprintf("events %s %d", id, b.first), b.closed)
		if err != nil {
			return nil, r, fmt.Errorf("%w: %w", ErrGone, err)
		}
		for i, data := range bytes.Split(plain, []byte("\n")) {
			if n := b.first + int64(i); n > after {
				events = append(events, Event{n, data})
			}
		}
	}
	if len(events) > 0 && events[0].Number != after+1 {
		return nil, r, ErrGone
	}
	return events, r, nil
}

// Said returns the events that a run of an owner has said so far, from the first one.
func (s *Runs) Said(ctx context.Context, owner, id string) (all [][]byte, err error) {
	return said(func(after int64) ([]Event, Run, error) { return s.read(ctx, owner, id, after) })
}

// SaidIn is Said in a transaction.
func (s *Runs) SaidIn(tx *store.Tx, owner, id string) (all [][]byte, err error) {
	return said(func(after int64) ([]Event, Run, error) { return s.readIn(tx, owner, id, after) })
}

func said(read func(after int64) ([]Event, Run, error)) (all [][]byte, err error) {
	for after := int64(-1); ; {
		events, r, err := read(after)
		if err != nil {
			return nil, err
		}
		for _, e := range events {
			all = append(all, e.Data)
			after = e.Number
		}
		if after >= r.Last || len(events) == 0 {
			return all, nil
		}
	}
}
