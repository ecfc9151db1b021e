package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/gateway"
	"github.com/dragoman-mcp/dragoman/internal/servers"
	"github.com/dragoman-mcp/dragoman/internal/terminal"
)

// selection is how the servers of a command are named on its command line.
type selection struct {
	config    string
	mcpConfig string
	url       string
	command   []string
	verbose   bool
}

// flags adds the flags that choose servers to a command.
func (s *selection) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.config, "config", "", "configuration `FILE` (default $DRAGOMAN_CONFIG, then the user's configuration directory)")
	f.StringVar(&s.mcpConfig, "mcp-config", "", "take the servers from another client's mcpServers `FILE`")
	f.StringVar(&s.url, "url", "", "take the one server at this `URL`")
	f.BoolVarP(&s.verbose, "verbose", "v", false, "log what happens, and what servers write, to standard error")
	cmd.MarkFlagsMutuallyExclusive("mcp-config", "url")
}

// args splits a command's arguments from the command of a server after "--".
func (s *selection) args(cmd *cobra.Command, args []string) ([]string, error) {
	at := cmd.ArgsLenAtDash()
	if at < 0 {
		return args, nil
	}
	s.command = args[at:]
	if len(s.command) == 0 {
		return nil, &usageError{errors.New("there is no command after \"--\""), ""}
	}
	if s.url != "" || s.mcpConfig != "" {
		return nil, &usageError{errors.New("a command after \"--\" and --url or --mcp-config exclude each other"), ""}
	}
	return args[:at], nil
}

// load reads the configuration and puts the chosen servers in.
func (s *selection) load() (*config.File, error) {
	path, err := config.Find(s.config, os.LookupEnv)
	if err != nil {
		return nil, &usageError{err, ""}
	}
	file := config.Default()
	if path != "" {
		if file, err = config.Load(path, os.LookupEnv); err != nil {
			return nil, &usageError{err, ""}
		}
	}
	switch {
	case s.mcpConfig != "":
		other, err := config.ReadMCP(s.mcpConfig, os.LookupEnv)
		if err != nil {
			return nil, &usageError{err, ""}
		}
		file.UseServers(other)
	case s.url != "":
		server := servers.Config{URL: s.url}
		if err := server.Validate(); err != nil {
			return nil, &usageError{fmt.Errorf("--url: %w", err), ""}
		}
		file.UseServers(&config.File{MCPServers: map[string]servers.Config{"server": server}})
	case len(s.command) > 0:
		server := servers.Config{Command: s.command[0], Args: s.command[1:]}
		file.UseServers(&config.File{MCPServers: map[string]servers.Config{label(s.command): server}})
	}
	return file, nil
}

// label makes a label for a server from its command: the name of the package or
// program that it starts.
func label(command []string) string {
	name := command[0]
	if starters[filepath.Base(name)] {
		for _, arg := range command[1:] {
			if !strings.HasPrefix(arg, "-") && arg != "run" {
				name = arg
				break
			}
		}
	}
	// Of a path, the last part that says something.
	parts := strings.FieldsFunc(name, func(r rune) bool { return r == '/' || r == '\\' })
	for i := len(parts) - 1; i >= 0; i-- {
		part, _, _ := strings.Cut(parts[i], "@")
		part = strings.TrimSuffix(part, filepath.Ext(part))
		var b strings.Builder
		for _, r := range part {
			if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' && b.Len() > 0 {
				b.WriteRune(r)
			}
		}
		if label := b.String(); !wrappers[label] && servers.CheckLabel(label) == nil {
			return label
		}
	}
	return "server"
}

// starters start a program that the next argument names, and wrappers are names
// of folders and files that say nothing about what is in them.
var (
	starters = map[string]bool{
		"npx": true, "bunx": true, "uvx": true, "uv": true, "node": true, "bun": true, "deno": true,
		"python": true, "python3": true, "go": true, "java": true,
	}
	wrappers = map[string]bool{
		"index": true, "main": true, "server": true, "cli": true, "dist": true, "build": true,
		"src": true, "bin": true, "lib": true, "out": true, "cmd": true,
	}
)

// open builds the gateway and waits for its servers, at most 30 s.
func (s *selection) open(ctx context.Context) (*gateway.Gateway, *config.File, error) {
	file, err := s.load()
	if err != nil {
		return nil, nil, err
	}
	stderr := terminal.NewScreen(os.Stderr)
	for _, w := range file.Warnings {
		stderr.Printf("%s %s\n", stderr.Warn("warning:"), terminal.Visible(w.Error()))
	}
	g, err := gateway.New(file, gateway.Options{Log: s.logger(), Version: version(), Can: canAsk()})
	if err != nil {
		return nil, nil, &usageError{err, ""}
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	_ = g.Wait(ctx) // what is not there by then shows as starting
	for _, state := range g.Servers() {
		if state.State == dragoman.Failed {
			stderr.Printf("%s server %q: %s\n", stderr.Warn("warning:"), state.Label, terminal.OneLine(state.Problem.Message, 400))
		}
	}
	return g, file, nil
}

func (s *selection) logger() *slog.Logger {
	level := slog.LevelError
	if s.verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
}
