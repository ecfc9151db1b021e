package model

import (
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/stage/resetting"
)

// The client of programs that name none sends a request once, too, whose stream is reset.
func TestResetIsSentOnce(t *testing.T) { resetting.Posts(t, fallbackTransport()) }
