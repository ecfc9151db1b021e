package main

import (
	"context"
	"os"

	"github.com/dragoman-mcp/dragoman/internal/gateway"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/observe"
)

// watched returns a context in which it is watched what the person at this terminal does, as
// a part of the trace that TRACEPARENT and TRACESTATE name (OpenTelemetry, "Environment
// variables as context propagation carriers").
func watched(ctx context.Context, g *gateway.Gateway) context.Context {
	return observe.From(g.Observed(ctx, caller.Local), observe.Remote{Traceparent: os.Getenv("TRACEPARENT"), Tracestate: os.Getenv("TRACESTATE")})
}
