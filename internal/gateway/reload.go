package gateway

import (
	"context"
	"errors"
	"reflect"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/door/ops"
	"github.com/dragoman-mcp/dragoman/internal/state/turns"
	"github.com/dragoman-mcp/dragoman/openai/memory"
)

// ErrNoFile: the process was given nothing to read again.
var ErrNoFile = errors.New("this gateway has no configuration that it could read again")

// errNothing: a file that somebody is writing begins by being empty, and an empty one is a
// whole configuration, of the demo.
var errNothing = errors.New("the configuration has neither models nor mcpServers any more, as one that is just being written: if that is meant, start again")

// Reload reads the configuration again and, unless it is only to be checked, puts what it
// says in the place of what counts now. It is judged whole: where anything is wrong, all
// stays as it is, and the error says what. What needs another start is named, and stays
// as it is, too.
func (g *Gateway) Reload(_ context.Context, check bool) (config.Changes, error) {
	g.reloading.Lock()
	defer g.reloading.Unlock()
	changes, err := g.replace(check)
	if !check {
		g.reloaded(err)
	}
	switch {
	case check:
	case err != nil:
		text := err.Error()
		g.refused.Store(&text)
		g.log.Error("the configuration was read again, and the one before it stays", "error", err)
	default:
		g.refused.Store(nil)
		g.log.Info("the configuration was read again", "changed", changes.Now, "needs_restart", changes.Restart)
	}
	return changes, err
}

// asked is [Gateway.Reload] for the door of those who operate.
func (g *Gateway) asked(ctx context.Context, check bool) (ops.Reloaded, error) {
	changes, err := g.Reload(ctx, check)
	return ops.Reloaded{Now: changes.Now, Restart: changes.Restart}, err
}

// replace replaces the setup by what the file says now. What is denied is denied first,
// and nobody is offered what is not there yet.
func (g *Gateway) replace(check bool) (config.Changes, error) {
	if g.o.Read == nil {
		return config.Changes{}, ErrNoFile
	}
	file, err := g.o.Read()
	if err != nil {
		return config.Changes{}, err
	}
	before := g.now.Load()
	if !file.Serves() && before.file.Serves() {
		return config.Changes{}, errNothing
	}
	if !check {
		named := file.Files()
		g.named.Store(&named)
	}
	changes := file.Follow(g.file, before.file)
	next, err := judge(file, &g.o)
	if err != nil {
		return changes, err
	}
	next.accepted, err = g.callers.Judge(file.Auth)
	if err == nil && next.keepsRecords() && g.ledger == nil {
		err = errNoStore
	}
	if err != nil {
		next.upstreams.Close()
		return changes, err
	}
	if string(next.rules.Cedar()) != string(before.rules.Cedar()) && reflect.DeepEqual(file.Policy, before.file.Policy) && file.PolicyFile == before.file.PolicyFile {
		changes.Now = append(changes.Now, "policy_file")
	}
	if check {
		next.upstreams.Close()
		return changes, nil
	}
	if reflect.DeepEqual(file.Models, before.file.Models) {
		next.upstreams.Close()
		next.upstreams = before.upstreams
	}
	ctx, cancel := context.WithTimeout(context.Background(), openLedger)
	defer cancel()
	if err := g.limits.Use(ctx, file.Limits); err != nil {
		next.upstreams.Close()
		return changes, err
	}
	g.budgets.Use(file.Budgets)
	next.complete(g, before)
	g.callers.Use(next.accepted)
	g.gate.Use(next.rules)
	g.learn(before.file, file) // what began with the one before goes on
	g.use(next)
	g.servers.Apply(file.MCPServers, g.builtin(next), next.bounds())
	g.mcp.Use(next.mcp())
	g.now.Store(next)
	g.node.Use(next.digest())
	before.sessions.Retire()
	if next.upstreams != before.upstreams {
		before.upstreams.Close()
	}
	return changes, nil
}

// use gives those parts of the process that a file bounds what it says of them.
func (g *Gateway) use(s *setup) {
	file := s.file
	g.cache.Use(file.Cache)
	g.apiState.KeepAnswers(file.Idempotency)
	switch m := g.remembered.(type) {
	case *turns.Turns:
		m.Use(turns.Bounds{Bytes: file.Memory.Bytes, TTL: file.Memory.TTL})
	case *memory.Memory:
		m.Bound(file.Memory.Bytes, file.Memory.TTL)
	}
	if g.captures != nil {
		g.captures.kept.Use(file.Capture)
	}
	if g.ledger != nil {
		g.ledger.Use(file.Audit, file.Approvals)
	}
	if g.o.Used != nil {
		g.o.Used(file)
	}
}

// maxBody bounds the body of a request, in bytes.
func (g *Gateway) maxBody() int64 { return g.now.Load().file.HTTP.MaxBody }
