package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/gateway"
	"github.com/dragoman-mcp/dragoman/internal/observe/logbuffer"
	"github.com/dragoman-mcp/dragoman/internal/observe/loglevel"
	"github.com/dragoman-mcp/dragoman/internal/text/invalid"
)

func serveCommand() *cobra.Command {
	var s selection
	var listen string
	var hosts []string
	var stdio bool
	cmd := &cobra.Command{
		Use:   "serve [-- SERVER-COMMAND …]",
		Short: "Run the gateway: an OpenAI API whose models have tools",
		Long: `Serves the OpenAI API at http://127.0.0.1:8787/v1. Any OpenAI client that has this
as its base_url gets models that use the tools of all configured MCP servers. MCP
clients find all servers as one at http://127.0.0.1:8787/mcp; those that start
their servers themselves start "dragoman serve --stdio".

Clients in containers come by another name of this machine, which has to be allowed:

  dragoman serve --listen 0.0.0.0:8787 --host-allowed host.docker.internal

Beyond this machine it listens only where callers are known: make a key with
"dragoman keys new", set DRAGOMAN_API_KEY, or say in auth whose tokens are good.
SIGTERM and Ctrl-C let running requests finish. SIGHUP, or "dragoman reload", has the
configuration read again: requests and servers that did not change go on.` + serverHelp,
		RunE: func(cmd *cobra.Command, args []string) error {
			args, err := s.args(cmd, args)
			if err != nil {
				return err
			}
			if len(args) > 0 {
				return &usageError{errors.New("serve takes no arguments; a server's command comes after \"--\""), ""}
			}
			read := func(ask func(config.Input) (string, error)) (*config.File, error) {
				file, err := s.load(config.Reader{Lookup: os.LookupEnv, Ask: ask})
				if err == nil {
					err = listenAs(file, listen, hosts)
				}
				return file, err
			}
			file, err := read(person())
			if err != nil {
				return err
			}
			// A client may leave our standard error, or whoever keeps the log may start anew; what
			// is written there is then lost, and not the calls. To be notified, unlike to ignore,
			// is not passed on to servers. A SIGHUP while we start, or close what is open, ends
			// nothing either; what changed since we read the configuration is read once we can.
			signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE, syscall.SIGHUP)
			hangups := make(chan os.Signal, 1)
			signal.Notify(hangups, syscall.SIGHUP)
			lines := logbuffer.New(os.Stderr)
			defer lines.Close()
			log, level := newLogger(lines, file, s.verbose, s.quiet)
			defer hearLibraries(log)()
			for _, w := range file.Warnings {
				log.Warn("configuration", "warning", w)
			}
			for _, left := range file.LeftOut {
				log.Warn("configuration", "warning", left.Reason)
			}
			g, err := gateway.New(file, gateway.Options{Read: func() (*config.File, error) { return read(nil) }, Log: log, Version: version(), Replica: true, Used: level, Can: clientsCan(file), Apps: !file.MCP.Off, Credentials: credentials(), StateFolder: stateFolder()})
			if err != nil {
				return unbuilt(err)
			}
			defer g.Close()
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt)
			defer stop()
			context.AfterFunc(ctx, stop)                                    // a second signal ends us at once
			context.AfterFunc(ctx, lines.End)                               // whoever reads the log may have stalled
			defer hangup(hangups, func() { _, _ = g.Reload(ctx, false) })() // which logs what came of it
			if g.Unprefixed() {
				log.Info("names of tools have no prefix while there is one server; a second one renames them to label__name, which names.strategy: none forgoes")
			}
			if stdio {
				err := g.ServeLines(ctx, os.Stdin, os.Stdout)
				if ctx.Err() != nil {
					return nil // as we were told
				}
				return err
			}
			err = g.Serve(ctx, func(at net.Addr) {
				announce(log, file, g, at)
			})
			if errors.Is(err, gateway.ErrOpen) {
				return &usageError{err, "or listen on 127.0.0.1 only"}
			}
			if err != nil && file.Log.Format == "json" {
				log.Error("stopped", "error", err) // a plain line has no place in this log
				return errFailed
			}
			return listenError(err, "--listen "+elsewhere(file.Listen))
		},
	}
	s.flags(cmd)
	cmd.Flags().BoolVar(&stdio, "stdio", false, "serve MCP over standard input and output to the program that starts this, and nothing else")
	cmd.Flags().StringVar(&listen, "listen", "", "`ADDRESS` to listen on (default 127.0.0.1:8787)")
	cmd.Flags().StringSliceVar(&hosts, "host-allowed", nil, "a `NAME` that clients may call the gateway by, such as host.docker.internal, beside allowed_hosts of the configuration; may be repeated")
	cmd.MarkFlagsMutuallyExclusive("stdio", "listen")
	cmd.MarkFlagsMutuallyExclusive("stdio", "host-allowed")
	return cmd
}

// listenAs puts what the command line says of the listener into a configuration: an
// address in place of its own, and names beside its own.
func listenAs(file *config.File, address string, hosts []string) error {
	if address != "" {
		file.Listen = address
	}
	file.AllowedHosts = append(file.AllowedHosts[:len(file.AllowedHosts):len(file.AllowedHosts)], hosts...)
	err := file.Validate()
	if wrong, ok := errors.AsType[*invalid.Error](err); ok && wrong.Key == "allowed_hosts" {
		return &usageError{fmt.Errorf("--host-allowed: %s", wrong.Reason), ""}
	}
	if err != nil {
		return &usageError{err, ""}
	}
	return nil
}

// clientsCan is what clients of the gateway can be asked: those of the OpenAI API
// nothing, those of the MCP endpoint what each says.
func clientsCan(file *config.File) dragoman.Kind {
	if file.MCP.Off {
		return 0
	}
	return dragoman.AskForm | dragoman.AskURL | dragoman.AskSampling | dragoman.AskTools | dragoman.AskRoots
}

// hangup calls reload for each SIGHUP, also for one that came before, until the returned
// function is called.
func hangup(hangups chan os.Signal, reload func()) (stop func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range hangups {
			reload()
		}
	}()
	return func() {
		signal.Stop(hangups)
		close(hangups)
		<-done
	}
}

// newLogger returns the log that the configuration describes, of these lines, and what gives
// it the level of another one. Flags win over both.
func newLogger(lines *logbuffer.Writer, file *config.File, verbose, quiet bool) (log *slog.Logger, use func(*config.File)) {
	level := new(slog.LevelVar)
	use = func(file *config.File) {
		switch {
		case verbose:
			level.Set(slog.LevelDebug)
		case quiet:
			level.Set(slog.LevelError)
		default:
			_ = level.UnmarshalText([]byte(file.Log.Level)) // checked when it was read
		}
	}
	use(file)
	levels := loglevel.New(level, file.Log.Levels)
	options := &slog.HandlerOptions{Level: levels}
	return slog.New(lines.Handler(func(w io.Writer) slog.Handler {
		if file.Log.Format == "json" {
			return levels.Handler(slog.NewJSONHandler(w, options))
		}
		return levels.Handler(slog.NewTextHandler(w, options))
	})), use
}
