package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/state/mail"
	"github.com/dragoman-mcp/dragoman/internal/state/mcpsession"
	"github.com/dragoman-mcp/dragoman/internal/state/nodes"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// leaving bounds how long this process tries to tell the others that it ends.
const leaving = 3 * time.Second

// join makes this gateway a replica among those on the same PostgreSQL database, and opens
// its mail. On a file, and where it is not to serve, it is alone: that costs nothing.
func (g *Gateway) join(first *setup) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), openLedger)
	defer cancel()
	if g.ledger != nil && g.o.Replica && !g.file.Store.URL.IsZero() {
		info := nodes.Info{Version: g.o.Version, Setup: first.digest()}
		if g.node, err = nodes.Join(ctx, g.ledger.DB, info); err != nil {
			return fmt.Errorf("the store: this replica cannot be written down in it: %w", err)
		}
		g.log.Info("this is a replica", "node", g.node.ID(), "replicas", g.node.Count(), "setup", info.Setup)
	}
	if g.ledger != nil {
		g.ledger.Audit.Of(g.node.ID(), g.o.Version)
	}
	if g.node != nil {
		g.vault.Ring().Share(g.node.Ahead)
		g.mail = mail.New(g.ledger.DB, g.vault, g.node)
	} else {
		g.mail = mail.New(nil, nil, nil)
	}
	if g.ledger != nil && g.o.Replica {
		g.clients = mcpsession.New(g.ledger.DB, g.vault, g.mail)
	}
	return nil
}

// fleet is what the MCP endpoints of all processes on a store share: those that run now, and
// those that come after them. It is nil without a store.
func (g *Gateway) fleet() mcp.Fleet {
	if g.clients == nil {
		return nil
	}
	return g.clients
}

// leave tells the other replicas that this one ends.
func (g *Gateway) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), leaving)
	defer cancel()
	if err := g.node.Leave(ctx); err != nil {
		g.log.Warn("the other replicas could not be told that this one ends; they find out", "node", g.node.ID(), "after", nodes.Lease, "error", err)
	}
}

// digest is the same for all setups that are made of the same files, wherever they are.
func (s *setup) digest() string { return digestOf(s.read) }

func digestOf(read map[string]config.Sum) string {
	all := slices.SortedFunc(maps.Values(read), func(a, b config.Sum) int { return strings.Compare(string(a[:]), string(b[:])) })
	whole := sha256.New()
	for _, sum := range all {
		whole.Write(sum[:])
	}
	return hex.EncodeToString(whole.Sum(nil)[:6])
}
