package toolkit

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"
)

// stopTime bounds how long calls under way are waited for at the end.
const stopTime = 10 * time.Second

// Main is all that a server's main function needs:
//
//	func main() { toolkit.Main(server()) }
//
// It reads the command line (--help lists it), reports everything that is wrong
// with the server at once, tries the keys, and serves: on standard input and
// output, or over HTTP with --http. Errors and the audit trail go to standard
// error. An interrupt or SIGTERM lets calls under way end, for at most ten
// seconds. The exit status is 0, 1 if something failed, or 2 for wrong usage or
// a server that cannot start.
func Main(s *Server) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := s.run(ctx, os.Args, os.Getenv, os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// A commandLine is what was typed.
type commandLine struct {
	http, audit    string
	hosts, origins words
	version, check bool
	asHelp         bool
}

// words is a flag that may be repeated.
type words []string

func (w *words) String() string { return strings.Join(*w, ",") }

// Set adds a value.
func (w *words) Set(value string) error {
	*w = append(*w, value)
	return nil
}

func (s *Server) run(ctx context.Context, args []string, env func(string) string, in io.Reader, out, errs io.Writer) int {
	line, err := s.parse(args, out, errs)
	switch {
	case err != nil:
		return 2
	case line.asHelp:
		return 0
	case line.version:
		fmt.Fprintln(out, s.name, s.version())
		return 0
	}
	if s.opts.Logger == nil {
		s.opts.Logger = slog.New(slog.NewTextHandler(errs, &slog.HandlerOptions{Level: slog.LevelWarn}))
		s.log = s.opts.Logger
	}
	closeAudit, err := s.openAudit(line.audit, errs)
	if err != nil {
		fmt.Fprintf(errs, "%s: %v\n", s.name, err)
		return 2
	}
	defer closeAudit()
	h := &s.opts.HTTP
	h.Hosts, h.Origins = append(h.Hosts, line.hosts...), append(h.Origins, line.origins...)
	if line.http != "" && !h.guarded() {
		h.Token = env("MCP_TOKEN")
	}
	if err := s.prepare(ctx); err != nil {
		fmt.Fprintln(errs, err)
		return 2
	}
	if line.check {
		fmt.Fprintf(out, "%s is ready to serve.\n", s.name)
		return 0
	}
	defer s.Close()
	if line.http != "" {
		err = s.listen(ctx, line, errs)
	} else {
		err = s.ServeStdio(ctx, in, out)
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintf(errs, "%s: %v\n", s.name, err)
		if errors.Is(err, errUnguarded) {
			return 2
		}
		return 1
	}
	return 0
}

func (s *Server) parse(args []string, out, errs io.Writer) (commandLine, error) {
	var line commandLine
	flags := flag.NewFlagSet(s.name, flag.ContinueOnError)
	flags.SetOutput(errs)
	flags.StringVar(&line.http, "http", "", "serve over HTTP at this `address`, such as 127.0.0.1:8080 or :8080 for loopback; without it, on standard input and output")
	flags.Var(&line.hosts, "host", "a host `name` under which the server may be reached, besides loopback (may be repeated)")
	flags.Var(&line.origins, "origin", "the `origin` of a web page that may use the server, such as https://inspector.example (may be repeated)")
	flags.StringVar(&line.audit, "audit", "-", "`file` that gets a line for each call; - is standard error, off is none")
	flags.BoolVar(&line.check, "check", false, "check that everything is in place, and end")
	flags.BoolVar(&line.version, "version", false, "print the version, and end")
	flags.Usage = func() {
		to := flags.Output()
		fmt.Fprintf(to, "%s is an MCP server", s.name)
		if s.opts.Title != "" {
			fmt.Fprintf(to, " (%s)", s.opts.Title)
		}
		fmt.Fprintf(to, ".\n\nusage: %s [flags]\n\n", args[0])
		flags.PrintDefaults()
		fmt.Fprintf(to, "\nenvironment:\n  MCP_TOKEN\n    \tbearer token that HTTP requests must carry; needed beyond loopback\n")
		for _, k := range s.opts.Keys {
			fmt.Fprintf(to, "  %s\n    \t%s\n", k.Env, cmp.Or(k.Hint, "needed"))
		}
	}
	for _, a := range args[1:] { // asked for, so it belongs on standard output
		if a == "-h" || a == "-help" || a == "--help" {
			flags.SetOutput(out)
			flags.Usage()
			line.asHelp = true
			return line, nil
		}
	}
	if err := flags.Parse(args[1:]); err != nil {
		return line, err
	}
	if flags.NArg() > 0 {
		fmt.Fprintf(errs, "unexpected argument %q; --help shows what is possible\n", flags.Arg(0))
		return line, errors.New("unexpected argument")
	}
	return line, nil
}

// version is that of the options, else that of the build.
func (s *Server) version() string {
	if info, ok := debug.ReadBuildInfo(); ok && s.opts.Version == "dev" && info.Main.Version != "" {
		return info.Main.Version
	}
	return s.opts.Version
}

// openAudit opens the trail where the options name none.
func (s *Server) openAudit(file string, errs io.Writer) (func(), error) {
	switch {
	case file == "off":
		s.trail.out = nil
	case file == "-":
		if s.trail.out == nil {
			s.trail.out = errs
		}
	default:
		f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			return nil, fmt.Errorf("audit: %w", err)
		}
		s.trail.out = f
		return func() { f.Close() }, nil
	}
	return func() {}, nil
}

// prepare checks what can be checked before anybody connects.
func (s *Server) prepare(ctx context.Context) error {
	if _, err := s.SDK(); err != nil {
		return err
	}
	var problems []error
	for _, k := range s.opts.Keys {
		if err := k.try(ctx); err != nil {
			problems = append(problems, err)
		}
	}
	if len(problems) > 0 {
		return &Problems{s.name, problems}
	}
	return nil
}

var errUnguarded = errors.New("refusing to serve beyond this machine without authentication: set MCP_TOKEN")

// listen serves over HTTP until ctx ends, and then lets calls under way end.
func (s *Server) listen(ctx context.Context, line commandLine, errs io.Writer) error {
	address, err := loopbackByDefault(line.http)
	if err != nil {
		return err
	}
	if !s.opts.HTTP.guarded() && !isLoopback(address) {
		return errUnguarded
	}
	routes, err := s.Routes()
	if err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	fmt.Fprintf(errs, "%s: serving MCP at http://%s/mcp (and /sse for old clients)\n", s.name, l.Addr())
	server := &http.Server{
		Handler:           routes,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
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
		return "", fmt.Errorf("--http %s: %w", address, err)
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
