package audit

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// witnessEvery is how often a log says how far the others have come.
const witnessEvery = time.Minute

// Witness writes down how far other logs have come since it last did. It writes nothing
// where they have said nothing but how far others have come.
func (l *Log) Witness(ctx context.Context) error {
	if l.config.Load().Off {
		return nil
	}
	l.witnessing.Lock()
	defer l.witnessing.Unlock()
	var fresh []Head
	look := func(tx *store.Tx) (err error) {
		fresh, err = l.unseen(tx)
		return err
	}
	if err := l.db.Read(ctx, look); err != nil || len(fresh) == 0 {
		return err
	}
	r := Record{Kind: Heads, Node: l.node, Version: l.version}
	l.prepare(&r)
	err := l.db.Write(ctx, func(tx *store.Tx) error {
		if err := look(tx); err != nil || len(fresh) == 0 {
			return err
		}
		if err := named(tx, fresh); err != nil {
			return err
		}
		r := r
		r.Seen = fresh
		_, err := l.insert(tx, r)
		return err
	})
	if err != nil {
		return err
	}
	for _, h := range fresh {
		l.seen[h.Log] = h.Seq
	}
	return nil
}

// unseen returns the heads of other logs that this one has not named since it began, and
// before which there is more than names of others. l.witnessing is held.
func (l *Log) unseen(tx *store.Tx) (fresh []Head, err error) {
	all, err := headsWhere(tx, "AND h.log <> $1", l.name)
	if err != nil {
		return nil, err
	}
	if l.seen == nil { // what no log named, the first record of this one does
		open, err := openHeads(tx, l.name)
		if err != nil {
			return nil, err
		}
		l.seen = map[string]uint64{}
		for _, h := range all {
			if !slices.Contains(open, h) {
				l.seen[h.Log] = h.Seq
			}
		}
	}
	for _, h := range all {
		known := l.seen[h.Log]
		if h.Seq <= known {
			continue
		}
		var more bool
		if err := tx.Row("SELECT EXISTS (SELECT 1 FROM audit_all WHERE log = $1 AND seq > $2 AND kind <> $3)", []any{inStore(h.Log), int64(known), string(Heads)}, &more); err != nil {
			return nil, err
		}
		if more {
			fresh = append(fresh, h)
		}
	}
	return fresh, nil
}

// Keep says every minute how far other logs have come, and prunes now and every hour,
// until ctx ends.
func (l *Log) Keep(ctx context.Context) {
	pruning, witnessing := time.NewTicker(time.Hour), time.NewTicker(witnessEvery)
	defer pruning.Stop()
	defer witnessing.Stop()
	l.pruneNow(ctx)
	for {
		select {
		case <-pruning.C:
			l.pruneNow(ctx)
		case <-witnessing.C:
			if err := l.Witness(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, store.ErrClosed) {
				l.failed(err)
			}
		case <-ctx.Done():
			return
		}
	}
}

func (l *Log) pruneNow(ctx context.Context) {
	if n, err := l.Prune(ctx); err != nil && ctx.Err() == nil {
		l.log.Error("old records of the audit log cannot be removed", "error", err)
	} else if n > 0 {
		l.log.Info("old records of the audit log were removed", "records", n)
	}
}
