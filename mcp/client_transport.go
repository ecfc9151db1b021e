package mcp

import "context"

// A Transport is a way to a server: a [Command], a [Pipe] or [HTTP]. Other ways,
// such as a socket, go through Pipe.
type Transport interface {
	open(context.Context, *peer) (connection, error)
}

// A connection is one open connection to a server. It carries messages, and knows
// nothing of what they mean beyond which answer belongs to which request.
type connection interface {
	// roundTrip sends a request and returns its answer. When ctx ends, it tells
	// the server and returns the context's error.
	roundTrip(ctx context.Context, x *exchange) (message, error)
	// send sends a notification, or an answer to a request of the server.
	send(ctx context.Context, body []byte) error
	// established tells the connection how the handshake ended. Legacy HTTP starts
	// its listening stream.
	established(*session)
	// down is closed when the connection can carry nothing any more; cause then says
	// why.
	down() <-chan struct{}
	cause() error
	// close ends the connection in order.
	close() error
	// network is what the connection goes over, as network.transport says it.
	network() string
	// tidy frees what is left when nothing uses the connection any more.
	tidy()
}

// An exchange is one request on its way, and what has to be known of it while
// it is.
type exchange struct {
	id      int64
	method  string
	body    []byte
	name    string   // Mcp-Name
	headers []header // Mcp-Param-*
	version string   // MCP-Protocol-Version; empty before there is one
	modern  bool
	pending *pendingCall // the call that it is for; nil for requests of our own
}

// markSent is called by a connection before the first byte of the request leaves. It may
// be called again.
func (x *exchange) markSent() {
	if x.pending != nil {
		x.pending.markSent()
	}
}

// cancelable reports whether the server is told when nobody waits any more.
// initialize must not be cancelled (MCP 2025-11-25, "Cancellation"), and a
// server that does not know server/discover must not be confused by more that
// it does not know.
func (x *exchange) cancelable() bool {
	return x.method != "initialize" && x.method != "server/discover"
}

// A header is one HTTP header, its name in canonical form.
type header struct{ name, value string }
