package servers

import (
	"context"
	"errors"
	"net"
	"net/http"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/dragoman-mcp/dragoman/mcp"
)

// Turns let local servers start a few at a time. Where many start together, each takes
// as long as all: those that would be there in a second wait for those that need a
// minute, and all of them run out of their time.
type turns chan struct{}

// A turn ends when its server is there or has failed, and in any case after turnTime: one
// that hangs holds up nobody for longer.
const turnTime = time.Second

func newTurns() turns { return make(turns, max(4, 2*runtime.GOMAXPROCS(0))) }

// take waits for a turn. done ends it, and may be called again.
func (t turns) take(ctx context.Context) (done func(), err error) {
	select {
	case t <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	end := sync.OnceFunc(func() { <-t })
	timer := time.AfterFunc(turnTime, end)
	return func() {
		timer.Stop()
		end()
	}, nil
}

// A server over HTTP that is not there yet is asked for again so soon that it is used
// within 2 s of its coming. That costs next to nothing: nobody answers.
const comesLate = 1500 * time.Millisecond

// absentFor is how long after the start what may be somebody in front of a server, or
// its name, is taken for a server that is still to come.
const absentFor = 5 * time.Minute

// refused is WSAECONNREFUSED, which Windows says instead of ECONNREFUSED.
const refused syscall.Errno = 10061

// absent reports whether an error says that no server is there: nobody listens, or,
// shortly after the start, its name is not known yet or what is in front of it does not
// reach it.
func absent(err error, since time.Duration) bool {
	if errors.Is(err, syscall.ECONNREFUSED) || runtime.GOOS == "windows" && errors.Is(err, refused) {
		return true
	}
	if since > absentFor {
		return false
	}
	if name, ok := errors.AsType[*net.DNSError](err); ok && name.IsNotFound {
		return true
	}
	status, ok := errors.AsType[*mcp.StatusError](err)
	return ok && status.RetryAfter == 0 && (status.Status == http.StatusBadGateway || status.Status == http.StatusServiceUnavailable || status.Status == http.StatusGatewayTimeout)
}
