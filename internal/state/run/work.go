package run

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// Work says who makes what this process has; [Runs.Watch] does, too. What work leaves
// without an end, by a panic as well, is tried again a little later, here or elsewhere, as
// if the process had died with it.
func (s *Runs) Work(work func(*Held)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.work = work
}

// Go lets work have a run that this process has.
func (s *Runs) Go(h *Held) {
	s.mu.Lock()
	work, stopped := s.work, s.stopped
	if work != nil && !stopped {
		s.working.Add(1)
	}
	s.mu.Unlock()
	if work == nil || stopped {
		_ = h.Release(context.Background())
		return
	}
	go func() {
		defer s.working.Done()
		defer s.leave(h)
		defer h.abandon()
		defer func() {
			if p := recover(); p != nil {
				s.config.Log.Error("what makes a run has panicked", "run", h.ID, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			}
		}()
		work(h)
	}()
}

// How long a run rests that was left without an end.
const (
	firstRest = time.Second
	maxRest   = time.Minute
)

// abandon gives a run up that was left without an end: it is taken again after a rest.
func (h *Held) abandon() {
	if h.ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	rest := min(firstRest<<min(h.Attempt, 6), maxRest)
	err := h.over(ctx, ErrLost, nil, func(tx *store.Tx) error {
		now, err := tx.Now()
		if err != nil {
			return err
		}
		if _, err := tx.Exec("UPDATE runs SET attempt = attempt + 1 WHERE owner = $1 AND id = $2", store.Owner(h.Owner), h.ID); err != nil {
			return err
		}
		return h.put(tx, Waiting, "", now.Add(rest))
	})
	if err != nil {
		h.runs.config.Log.Warn("a run was left without an end", "run", h.ID, "error", err)
		h.stop(ErrLost) // its lease ends by itself
	}
}
