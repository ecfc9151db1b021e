package store

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// notifyEvery bounds how often others are told: once for all that was raised since.
// The database has one lock for all that notify (PostgreSQL, NOTIFY).
const notifyEvery = 100 * time.Millisecond

// listenAgain is when a connection that was lost is made anew. Until then, looking
// every now and then is enough.
const listenAgain = 5 * time.Second

// news tells the other processes, in a transaction of its own after the commit, and
// hears from them on a connection of its own. Both are hints.
func (p *postgres) news(ctx context.Context, changed <-chan struct{}, look func()) {
	if p.listen == nil {
		return
	}
	var both sync.WaitGroup
	defer both.Wait()
	both.Go(func() {
		for ctx.Err() == nil {
			p.hear(ctx, look)
			pause(ctx, listenAgain)
		}
	})
	for {
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
		_, _ = p.reading.ExecContext(ctx, "SELECT pg_notify('dragoman', '')") // a hint
		pause(ctx, notifyEvery)
	}
}

// hear calls look whenever somebody has notified, and once it hears: what happened
// before that it has not heard.
func (p *postgres) hear(ctx context.Context, look func()) {
	conn, err := pgx.ConnectConfig(ctx, p.listen)
	if err != nil {
		return
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, "LISTEN dragoman"); err != nil {
		return
	}
	for {
		look()
		if _, err := conn.WaitForNotification(ctx); err != nil {
			return
		}
	}
}

// pause waits, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
