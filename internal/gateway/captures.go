package gateway

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/session"
	"github.com/dragoman-mcp/dragoman/internal/state/captured"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
	"github.com/dragoman-mcp/dragoman/internal/state/vault"
	"github.com/dragoman-mcp/dragoman/internal/text/glob"
)

// captures are the conversations and calls that are kept: the book of what runs, and what
// the console reads.
type captures struct {
	g    *Gateway
	kept *captured.Captures
}

var _ session.Book = (*captures)(nil)

// openCaptures has what runs kept in the store, for whom the configuration says so.
func (g *Gateway) openCaptures(db *store.DB, keys *vault.Vault) {
	g.captures = &captures{g, captured.New(db, keys, g.file.Capture, g.log)}
	g.live.Book = g.captures
}

// On reports whether anybody's are kept now.
func (c *captures) On() bool {
	now := c.g.now.Load()
	if now == nil || now.file.Capture.Retention <= 0 {
		return false
	}
	switch now.file.Capture.Keep {
	case captured.On:
		return true
	case captured.Off:
		return false
	}
	return !c.g.callers.Required()
}

// Lost counts what could not be kept since this process began.
func (c *captures) Lost() int { return int(c.kept.Lost()) }

// Wants implements [session.Book].
func (c *captures) Wants(who caller.Caller) bool {
	if !c.On() {
		return false
	}
	whose := c.g.now.Load().file.Capture.Callers
	return len(whose) == 0 || slices.ContainsFunc(whose, func(pattern string) bool {
		return glob.Match(pattern, who.ID) || who.RuleName() != "" && glob.Match(pattern, who.RuleName())
	})
}

// Keep implements [session.Book].
func (c *captures) Keep(run session.Run) {
	run.Hide(c.g.hide)
	head, steps, err := run.Encode()
	if err != nil {
		c.g.log.Error("a conversation could not be kept for the console", "error", err)
		return
	}
	c.kept.Keep(captured.Capture{ID: run.Key, Caller: run.Caller, Person: run.Person, Began: run.Began, Head: head, Body: steps})
}

// List returns those of a caller, or of all where that is empty, that began before a time,
// the newest first, without their steps.
func (c *captures) List(ctx context.Context, whose string, before time.Time, most int) ([]session.Run, error) {
	found, err := c.kept.List(ctx, whose, before, most)
	all := make([]session.Run, 0, len(found))
	for _, one := range found {
		run, damaged := session.DecodeRun(one.ID, one.Caller, one.Head, nil)
		if damaged != nil {
			return nil, damaged
		}
		all = append(all, run)
	}
	return all, err
}

// Get returns one of a caller, or whosever it is where that is empty.
func (c *captures) Get(ctx context.Context, whose, key string) (session.Run, bool, error) {
	one, err := c.kept.Get(ctx, whose, key)
	if errors.Is(err, captured.ErrNone) {
		return session.Run{}, false, nil
	}
	if err != nil {
		return session.Run{}, false, err
	}
	run, err := session.DecodeRun(one.ID, one.Caller, one.Head, one.Body)
	return run, err == nil, err
}
