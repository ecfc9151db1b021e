// Package node lets a test be a process among others on a store: a replica, as far as the
// store knows of it.
package node

import (
	"context"
	"log/slog"
	"sync"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/stage/storetest"
	"github.com/dragoman-mcp/dragoman/internal/state/nodes"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
	"github.com/dragoman-mcp/dragoman/internal/state/vault"
)

// A Process is one on a store, until the test ends.
type Process struct {
	DB   *store.DB
	Keys *vault.Vault
	Node *nodes.Node

	t testing.TB
}

// Join makes a process on a store. Those on one database have the same master key. It shows
// that it is alive however long the test takes.
func Join(t testing.TB, where store.Config) *Process {
	t.Helper()
	p := &Process{t: t}
	p.DB, p.Keys = storetest.OpenSealed(t, where)
	var err error
	if p.Node, err = nodes.Join(t.Context(), p.DB, nodes.Info{}); err != nil {
		t.Fatal(err)
	}
	p.Run(p.Node.Keep)
	return p
}

// Run runs what goes on until its context ends, which it does with the test.
func (p *Process) Run(what func(context.Context, *slog.Logger)) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { what(ctx, slog.New(slog.DiscardHandler)) })
	p.t.Cleanup(func() { cancel(); running.Wait() })
}
