package recall

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/dragoman-mcp/dragoman/openai/memory"
)

// A brokenMemory keeps nothing.
type brokenMemory struct{ memory.Store }

func (brokenMemory) Keep(ctx context.Context, _ string, _ []string, _ *memory.Turn) error {
	return errors.Join(context.Cause(ctx), errors.New("the disk is full"))
}

// That a client leaves is no trouble of ours: it is told from a turn that cannot be kept.
func TestForgottenTurnsAreSaid(t *testing.T) {
	left, leave := context.WithCancel(t.Context())
	leave()
	for ctx, want := range map[context.Context]bool{t.Context(): true, left: false} {
		var log bytes.Buffer
		thread := Thread{Memory: brokenMemory{}, Log: slog.New(slog.NewTextHandler(&log, nil))}
		thread.keep(ctx, []string{"key"}, open())
		if said := log.Len() > 0; said != want {
			t.Errorf("a client that left: %t; said: %t", !want, said)
		}
	}
}
