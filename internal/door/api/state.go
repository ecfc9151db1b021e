package api

import (
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/dragoman-mcp/dragoman/internal/state/idempotency"
	"github.com/dragoman-mcp/dragoman/internal/state/run"
	"github.com/dragoman-mcp/dragoman/internal/state/seal"
	"github.com/dragoman-mcp/dragoman/openai/memory"
	"github.com/dragoman-mcp/dragoman/openai/responses"
)

// Kept says where requests leave what belongs to those that follow.
type Kept struct {
	// Memory keeps what clients do not see of their conversations; nil forgets it.
	Memory memory.Store
	// Responses keeps responses that are to be gone on from; nil keeps none.
	Responses responses.Store
	// Conversations keeps those that responses go on from and add to; nil keeps none.
	Conversations responses.Conversations
	// Room says why nothing more may be stored for an owner; nil for
	// nobody to say so.
	Room func(owner string) error
	// Seals has the keys of what clients keep for us; nil makes one that ends with the
	// process.
	Seals *seal.Ring
	// Once says which answers are kept for requests that come again with their
	// Idempotency-Key.
	Once idempotency.Config
	// Claims keeps those answers for all processes; nil keeps them in this one.
	Claims *idempotency.Claims
	// Runs returns where responses in the background are kept; nil: none are made.
	Runs func() (*run.Runs, error)
	// Log is told what goes wrong; nil discards it.
	Log *slog.Logger
}

// State is what requests leave behind for those that follow. It is the process's, and
// the same for doors that come one after another. Make it with [NewState]; it is safe for
// concurrent use.
type State struct {
	Kept
	running memory.Running
	once    *idempotency.Requests
	sockets *sockets

	door     atomic.Pointer[API] // the newest
	admitted sync.Map            // what goes with runs that this process was asked for, by id
}

// KeepAnswers makes this the configuration of answers that are kept for requests that come
// again.
func (s *State) KeepAnswers(config idempotency.Config) { s.once.Use(config) }

// NewState returns a State.
func NewState(kept Kept) *State {
	if kept.Seals == nil {
		kept.Seals = seal.New()
	}
	return &State{Kept: kept, once: idempotency.New(kept.Once, kept.Claims, kept.Log), sockets: newSockets()}
}
