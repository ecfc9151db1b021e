package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/dragoman-mcp/dragoman/openai/model"
)

// ErrOpen means that the gateway would listen beyond this machine without
// knowing its callers.
var ErrOpen = errors.New("listening beyond this machine needs a key: make one with \"dragoman keys new\", or set DRAGOMAN_API_KEY, or auth in the configuration")

// errStopping is why requests end that outlast the drain timeout, as their clients are
// told.
var errStopping error = &model.Error{
	Status: http.StatusServiceUnavailable, Type: model.TypeServer, Code: "stopping",
	Message: "The gateway is stopping, and did not wait longer for this request.",
}

// idleTimeout is how long a connection without a request is kept. What stands before the
// gateway keeps its own for later requests, and has to be the first to give them up: where the
// gateway closes one just as a request is sent on it, the proxy cannot know whether that
// arrived, and answers 502. Caddy keeps them for 2 minutes, load balancers of clouds for up
// to 10. Where all connections that may be are taken, they go earlier: see [spareAfter].
const idleTimeout = 11 * time.Minute

// Serve listens and serves until ctx ends, then lets running requests finish.
// started is told the address; it may be nil.
func (g *Gateway) Serve(ctx context.Context, started func(net.Addr)) error {
	secured, err := g.certificates()
	if err != nil {
		return err
	}
	listener, err := g.listen()
	if err != nil {
		return err
	}
	g.warnOfProxies()
	limitMemory()
	keeping, stop := context.WithCancel(ctx)
	kept := make(chan struct{})
	go func() { defer close(kept); g.keep(keeping, secured) }()
	defer func() { stop(); <-kept }()
	defer paceHeap(time.Now, liveHeap)()
	requests, cut := context.WithCancelCause(context.Background())
	defer cut(nil)
	clients := limited(thrifty{listener}, g.maxConnections, g.crowded())
	server := &http.Server{
		Handler:           g.Handler(),
		BaseContext:       func(net.Listener) context.Context { return requests },
		ReadHeaderTimeout: g.file.HTTP.HeaderTimeout,
		IdleTimeout:       idleTimeout,
		ConnState:         clients.state,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(g.log.Handler(), slog.LevelDebug),
	}
	accept := server.Serve
	if secured != nil {
		server.TLSConfig = secured.config()
		accept = func(l net.Listener) error { return server.ServeTLS(l, "", "") }
	}
	g.background.watch(g.apiState.Work)
	g.node.Listens(listener.Addr().String())
	g.publish(listener.Addr())
	defer g.secret.Close()
	if started != nil {
		started(listener.Addr())
	}
	defer g.showMetrics()()
	failed := make(chan error, 1)
	go func() { failed <- accept(clients) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serving: %w", err)
	case <-ctx.Done():
		return g.end(server, cut)
	}
}

// listen listens at the address of the configuration, unless anybody could come there
// from beyond this machine and would not be asked for a key.
func (g *Gateway) listen() (net.Listener, error) {
	if !loopback(g.file.Listen) && !g.callers.Required() {
		return nil, fmt.Errorf("listen is %s: %w", g.file.Listen, ErrOpen)
	}
	listener, err := net.Listen("tcp", g.file.Listen)
	if err != nil {
		return nil, fmt.Errorf("listening: %w", err)
	}
	// A name such as localhost is whatever this machine takes it for.
	if at := listener.Addr().String(); !loopback(at) && !g.callers.Required() {
		listener.Close()
		return nil, fmt.Errorf("%s is %s: %w", g.file.Listen, at, ErrOpen)
	}
	return listener, nil
}

// showMetrics shows metrics where they have an address of their own, until the function
// that it returns is called.
func (g *Gateway) showMetrics() (stop func()) {
	address := g.file.Telemetry.Metrics.Listen
	if address == "" || !g.telemetry.Measuring() {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := g.telemetry.Listen(ctx, address, g.checked); err != nil {
			g.log.Error("the metrics cannot be shown", "address", address, "error", err)
		}
	}()
	return func() { cancel(); <-served }
}

// end lets what runs finish within the drain timeout, and ends the rest with cut.
func (g *Gateway) end(server *http.Server, cut context.CancelCauseFunc) error {
	if !g.draining.Swap(true) {
		close(g.stopping)
	}
	g.notice()
	g.mcp.Drain()
	patience := g.now.Load().file.HTTP.DrainTimeout
	g.log.Info("stopping", "drain", patience)
	drain, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	g.apiState.Stop()
	var draining sync.WaitGroup
	draining.Go(func() { g.background.drain(drain) })
	draining.Go(func() { g.relay.Drain(drain) })
	defer draining.Wait()
	if errors.Join(server.Shutdown(drain), g.apiState.Stopped(drain)) == nil {
		return nil
	}
	// What still runs is ended, and has a moment to tell its client.
	cut(errStopping)
	last, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if errors.Join(server.Shutdown(last), g.apiState.Stopped(last)) != nil {
		server.Close()
	}
	return fmt.Errorf("some requests were still running after %s and were cut off", patience)
}

// notice lets the load balancer see that this replica is to stop, while it still takes
// what comes.
func (g *Gateway) notice() {
	if notice := g.now.Load().file.Replicas.Notice; g.node != nil {
		g.log.Info("stopping: /readyz says so", "notice", notice)
		time.Sleep(notice)
	}
}

// maxConnections is how many connections clients may have at a time; 0 for any
// number.
func (g *Gateway) maxConnections() int {
	if n := g.now.Load().file.HTTP.MaxConnections; n > 0 {
		return n
	}
	return openFiles() / 4 * 3
}

// crowded returns what says, once a minute, that clients wait for others to go, or
// for the system to take their connections: net/http tries again, and says so to who
// debugs alone.
func (g *Gateway) crowded() func(error) {
	var said time.Time
	return func(err error) {
		if time.Since(said) <= time.Minute {
			return
		}
		said = time.Now()
		if err != nil {
			g.log.Warn("connections of clients cannot be taken, who wait; where too many files are open, raise what the process may open (ulimit -n), or lower http.max_connections", "error", err)
		} else {
			g.log.Warn("no connections are left for further clients, who wait; see http.max_connections", "connections", g.maxConnections())
		}
	}
}

// warnOfProxies warns where others than this machine are meant to reach a gateway
// that asks nobody: something before it has to.
func (g *Gateway) warnOfProxies() {
	if g.callers.Required() {
		return
	}
	for _, host := range g.file.AllowedHosts {
		if !loopback(net.JoinHostPort(host, "0")) && !strings.HasSuffix(host, ".localhost") {
			g.log.Warn("whoever reaches this gateway as the host in allowed_hosts can use it, as nobody is asked for a key: let what stands before it ask, or make a key with \"dragoman keys new\"", "host", host)
			return
		}
	}
}

// loopback reports whether an address to listen on can be reached from this
// machine only.
func loopback(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}
