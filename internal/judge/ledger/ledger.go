// Package ledger opens what the gateway and the commands beside it share: the
// store, the audit log, the inbox of approvals and the book of what is approved of
// servers in it, wired so that no answer to a question goes without its record,
// whichever process gives it.
package ledger

import (
	"context"
	"errors"
	"log/slog"

	"github.com/dragoman-mcp/dragoman/internal/judge/approval"
	"github.com/dragoman-mcp/dragoman/internal/judge/audit"
	"github.com/dragoman-mcp/dragoman/internal/judge/pinning"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// Config is the part of the configuration that it needs.
type Config struct {
	Store     store.Config
	Audit     audit.Config
	Approvals approval.Config
	Pins      pinning.Config
}

// A Ledger is an open store with what is in it.
type Ledger struct {
	DB    *store.DB
	Audit *audit.Log
	Inbox *approval.Inbox
	Book  *pinning.Book

	log *slog.Logger
}

// Open opens the store, or makes it. A log of nil discards what goes wrong.
func Open(ctx context.Context, config Config, log *slog.Logger) (*Ledger, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	db, err := store.Open(ctx, config.Store)
	if err != nil {
		return nil, err
	}
	l := &Ledger{DB: db, Audit: audit.New(db, config.Audit, log), log: log}
	l.Inbox = approval.New(db, config.Approvals, func(tx *store.Tx, a approval.Approval) (string, error) {
		at, err := l.Audit.Tx(record(a))(tx)
		if at.Seq == 0 || err != nil {
			return "", err
		}
		return at.String(), nil
	})
	l.Book, err = pinning.New(db, config.Pins, func(tx *store.Tx, e pinning.Event) error {
		_, err := l.Audit.Tx(pinned(e))(tx)
		return err
	}, log)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return l, nil
}

// record is what stands in the audit log about an approval that was answered,
// expired or given back.
func record(a approval.Approval) audit.Record {
	return audit.Record{
		Kind: audit.Approval, Approval: a.ID, State: string(a.State), By: a.By, ByName: a.ByName, Why: a.Why, Call: a.Call, Door: a.Door,
		Caller: a.Caller, CallerName: a.CallerName, Server: a.Server, Target: a.Tool, Pin: a.Pin, Digest: a.Digest, Arguments: a.Arguments, Rule: a.Rule,
	}
}

// pinned is what stands in the audit log about a definition that was trusted, held,
// approved or forgotten.
func pinned(e pinning.Event) audit.Record {
	return audit.Record{Kind: audit.Pin, State: string(e.What), By: e.By, Why: e.Why, Server: e.Server, Target: e.Key.String(), Pin: audit.Hash(e.Pin)}
}

// Use makes these the configurations of the audit log and of the inbox.
func (l *Ledger) Use(log audit.Config, approvals approval.Config) {
	l.Audit.Use(log)
	l.Inbox.Use(approvals)
}

// Keep removes what is older than the configuration keeps it and writes down what
// has expired, until ctx ends. It is for the process that stays; where there are
// several, each may do so. At both ends it says in the log of the process what the
// last record of the audit log is: a head that is kept elsewhere.
func (l *Ledger) Keep(ctx context.Context) {
	l.sayHead()
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.Audit.Keep(ctx)
	}()
	l.Inbox.Keep(ctx, func(err error) {
		if !errors.Is(err, store.ErrClosed) {
			l.log.Error("approvals that have expired cannot be written down", "error", err)
		}
	})
	<-done
	l.sayHead()
}

func (l *Ledger) sayHead() {
	if head, err := l.Audit.Head(context.Background()); err == nil && head.Seq > 0 {
		l.log.Info("audit log", "head", head)
	}
}

// Close writes what was appended and closes the store.
func (l *Ledger) Close() error { return l.DB.Close() }
