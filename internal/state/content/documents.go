package content

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// Documents are those of a kind without keys, for who does not wait for the disk. Make
// them with [NewDocuments]; they are safe for concurrent use.
type Documents struct {
	db      *store.DB
	kind    Kind
	log     *slog.Logger
	waiting atomic.Int64 // bytes
}

// Bounds of what waits for the disk, in bytes: of one document, and of all.
const (
	maxDocument = 16 << 20
	maxWaiting  = 64 << 20
)

// NewDocuments returns the documents of a kind in db. A log of nil discards what goes
// wrong.
func NewDocuments(db *store.DB, kind Kind, log *slog.Logger) *Documents {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Documents{db: db, kind: kind, log: log}
}

// Keep keeps a document soon. One for which there is no room is not kept.
func (d *Documents) Keep(owner, id string, document []byte) {
	size := int64(len(document))
	if size > maxDocument {
		return
	}
	if d.waiting.Add(size) > maxWaiting {
		d.waiting.Add(-size)
		return
	}
	d.db.Append(func(tx *store.Tx) error { return d.kind.Put(tx, owner, id, document) }, func(err error) {
		if d.waiting.Add(-size); err != nil {
			d.log.Error("a "+d.kind.Name+" is known to this process alone", "error", err)
		}
	})
}

// late is after what times a document that is not there is looked for again: another
// process may have told of one that is still on its way to the disk.
var late = []time.Duration{50 * time.Millisecond, 150 * time.Millisecond, 500 * time.Millisecond}

// Find returns a document; nil where there is none, for most of a second, or it cannot be
// read, which is said in the log.
func (d *Documents) Find(ctx context.Context, owner, id string) []byte {
	for tries := 0; ; tries++ {
		var document []byte
		err := d.db.Read(ctx, func(tx *store.Tx) (err error) {
			document, err = d.kind.Get(tx, owner, id)
			return err
		})
		switch {
		case err == nil:
			return document
		case !errors.Is(err, ErrNone) && ctx.Err() == nil:
			d.log.Error("a "+d.kind.Name+" cannot be read", "error", err)
			return nil
		case tries == len(late):
			return nil
		}
		again := time.NewTimer(late[tries])
		select {
		case <-again.C:
		case <-ctx.Done():
			again.Stop()
			return nil
		}
	}
}
