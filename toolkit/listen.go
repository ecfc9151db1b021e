package toolkit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"time"
)

// stopTime bounds how long calls under way are waited for at the end, and then
// how long the hooks may take.
const stopTime = 10 * time.Second

// OnStop adds a hook that runs when [Main] or [CommandLine.Run] stops serving,
// after calls under way have ended, also when serving failed: the last added runs
// first. Together the hooks have ten seconds; their errors are reported.
func (s *Server) OnStop(f func(context.Context) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f == nil {
		s.problems = append(s.problems, errors.New("OnStop: no function"))
		return
	}
	s.atStop = append(s.atStop, f)
}

// finish closes the server and runs the hooks, each once.
func (s *Server) finish(ctx context.Context) error {
	s.Close()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer cancel()
	var problems []error
	for _, server := range slices.Backward(s.all()) {
		server.mu.Lock()
		hooks := server.atStop
		server.atStop = nil
		server.mu.Unlock()
		for _, f := range slices.Backward(hooks) {
			if err := f(ctx); err != nil {
				problems = append(problems, fmt.Errorf("%s: stop: %w", server.name, err))
			}
		}
	}
	return errors.Join(problems...)
}

var errUnguarded = errors.New("refusing to serve beyond this machine without authentication: set MCP_TOKEN, or give --keys")

// listen serves over HTTP until ctx ends, and then lets calls under way end.
func (s *Server) listen(ctx context.Context, line *CommandLine, errs io.Writer) error {
	address, err := loopbackByDefault(line.http)
	if err != nil {
		return &usageError{err}
	}
	if !s.opts.HTTP.guarded() && !isLoopback(address) {
		return &usageError{errUnguarded}
	}
	routes, err := s.Routes()
	if err != nil {
		return err
	}
	l, scheme, err := line.listener(ctx, address)
	if err != nil {
		return err
	}
	fmt.Fprintf(errs, "%s: serving MCP at %s://%s/mcp (and /sse for old clients)\n", s.name, scheme, l.Addr())
	server := &http.Server{
		Handler:           routes,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(s.logger().Handler(), slog.LevelWarn),
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer cancel()
	// Streams last as long as their sessions, so calls are waited for first,
	// then the sessions are closed, and then nothing keeps the listener.
	shut := make(chan error, 1)
	go func() { shut <- server.Shutdown(bound) }()
	s.calls.wait(bound)
	s.Close()
	if err := <-shut; err != nil {
		server.Close()
	}
	return nil
}

// loopbackByDefault makes ":8080" mean this machine only; to listen on all
// interfaces say 0.0.0.0:8080.
func loopbackByDefault(address string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", fmt.Errorf("--http %s: an address is a host and a port, such as 127.0.0.1:8080, or :8080 for loopback", address)
	}
	return net.JoinHostPort(cmp.Or(host, "127.0.0.1"), port), nil
}

func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback()
}
