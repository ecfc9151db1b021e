package servers

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/dragoman-mcp/dragoman/mcp"
)

// How servers are looked after while nothing else shows that they are there.
const (
	checkEvery    = 30 * time.Second // while no call runs
	checkAgain    = 2 * time.Second  // after a check that failed
	checkPatience = 10 * time.Second // for the answer
	refreshEvery  = 5 * time.Minute  // lists of servers over HTTP, which can be replaced without our noticing
)

// checks ask a server now and then whether it is still there: one that hangs, or
// one over HTTP that is gone, shows it in no other way.
type checks struct {
	c         *connection
	client    *mcp.Client
	remote    bool
	timer     *time.Timer
	refreshed time.Time // when the lists were asked for last
	missed    bool      // the last check failed
	mute      bool      // it is asked though calls run: any word of it since heard is an answer
	heard     uint64
}

func newChecks(c *connection, client *mcp.Client) *checks {
	select {
	case <-c.doubt: // that was about an earlier session
	default:
	}
	c.mute.Store(false)
	return &checks{c: c, client: client, remote: c.config.URL != "", timer: time.NewTimer(spread(checkEvery)), refreshed: time.Now()}
}

func (k *checks) stop() { k.timer.Stop() }

// run checks the server. An error says that it is gone: it has failed twice.
func (k *checks) run(ctx context.Context) error {
	mute := k.c.mute.Swap(false)
	switch {
	case k.missed:
	case k.client.Idle():
		k.mute = false
	case mute:
		// A call had all of its time in silence, and others may wait behind it in vain.
		k.mute, k.heard = true, k.client.Heard()
	default:
		k.timer.Reset(spread(checkEvery)) // a server may be busy with one call, which has a time limit of its own
		return nil
	}
	err := k.ask(ctx, k.client.Ping)
	if _, answered := errors.AsType[*mcp.RPCError](err); answered || k.mute && k.client.Heard() != k.heard {
		err = nil
	}
	switch {
	case err != nil && k.missed:
		err = fmt.Errorf("the server does not answer: %w", err)
		if !errors.Is(err, context.DeadlineExceeded) && !k.client.EndIdle(err) {
			// It did not hang, but was not there, and may be back by now. Calls on their way
			// either have reached it since, or find out by themselves.
			k.timer.Reset(checkAgain)
			return nil
		}
		return err
	case err != nil:
		k.missed = true
		k.timer.Reset(checkAgain)
		return nil
	}
	if k.missed || k.remote && time.Since(k.refreshed) > refreshEvery {
		k.refreshed = time.Now()
		_ = k.ask(ctx, k.client.Refresh) // the old lists stay
	}
	k.missed = false
	k.timer.Reset(spread(checkEvery))
	return nil
}

func (k *checks) ask(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, checkPatience)
	defer cancel()
	return f(ctx)
}

// doubted says that a call has not reached the server, or not come back; mute, that the
// server said nothing at all in all the time that the call had.
func (c *connection) doubted(mute bool) {
	if mute {
		c.mute.Store(true)
	}
	select {
	case c.doubt <- struct{}{}:
	default:
	}
}

// spread returns d and up to a tenth more, so that servers are not all asked at
// the same moment.
func spread(d time.Duration) time.Duration { return d + rand.N(d/10) }
