package turns

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// Times of those who keep turns in one store.
const (
	// sayEvery is how often a process that may not be alone says that it is there.
	sayEvery = 5 * time.Second
	// quietFor is how long nobody else has said anything where a process is alone: as long
	// as one that is replaced may have to end what runs.
	quietFor = 30 * time.Second
)

// keepers is the topic by which processes tell each other that they keep turns.
const keepers = "turns.keepers"

// others tells whether other processes keep turns in the same store: two gateways may run on
// one file, one after the other, for an upgrade. Each says that it is there when it begins, and
// again as long as it hears anybody else. One that is alone is silent, and writes nothing.
type others struct {
	db      *store.DB
	changed func() // it is alone from now on, or is not any more

	alone atomic.Bool
	began bool
	seen  int64     // how often the topic was raised when we looked last
	heard time.Time // when somebody else said something, or we began
	said  time.Time // when we did
}

// look sees what others have said, and says that we are there where they may want to know.
func (o *others) look(ctx context.Context, now time.Time) error {
	var raised int64
	read := func(tx *store.Tx) (err error) { raised, err = tx.Raised(keepers); return err }
	if err := o.db.Read(ctx, read); err != nil {
		return err
	}
	switch {
	case !o.began:
		o.began, o.heard = true, now
	case raised != o.seen:
		o.hear(now)
	}
	o.seen = raised
	if o.alone.Load() || now.Sub(o.said).Round(time.Second) < sayEvery { // a tick may come a little early
		return nil
	}
	if now.Sub(o.heard) >= quietFor {
		o.become(true)
		return nil
	}
	err := o.db.Write(ctx, func(tx *store.Tx) error {
		tx.Raise(keepers)
		return read(tx)
	})
	if err != nil {
		return err
	}
	if raised != o.seen { // somebody was between
		o.hear(now)
	}
	o.seen, o.said = raised+1, now
	return nil
}

// hear takes down that somebody else is there.
func (o *others) hear(now time.Time) {
	o.heard = now
	o.become(false)
}

func (o *others) become(alone bool) {
	if o.alone.Load() == alone {
		return
	}
	if !alone {
		o.alone.Store(false)
	}
	o.changed()
	o.alone.Store(alone)
}

// watch looks until ctx ends, from when on it is not known.
func (o *others) watch(ctx context.Context) {
	changed := o.db.Changed(ctx, keepers)
	ticker := time.NewTicker(sayEvery)
	defer ticker.Stop()
	defer o.become(false)
	for {
		if o.look(ctx, time.Now()) != nil {
			o.hear(time.Now()) // there may be somebody
		}
		for wait := true; wait; {
			select {
			case <-changed:
				wait = false
			case <-ticker.C:
				wait = o.alone.Load()
			case <-ctx.Done():
				return
			}
		}
	}
}
