package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/door/terminal"
	"github.com/dragoman-mcp/dragoman/internal/gateway"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/reach/servers"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// maxStart is how long the slowest server may take to start, and a second for its turn:
// by then each is there or has failed, and says why.
func maxStart(file *config.File) time.Duration {
	longest := time.Duration(0)
	for _, c := range file.MCPServers {
		if !c.Disabled {
			c.Complete()
			longest = max(longest, c.StartupTimeout)
		}
	}
	return cmp.Or(longest, servers.DefaultStartupTimeout) + time.Second
}

// open builds the gateway and waits for its servers, as [selection.wait] says. It fails when
// there are servers and none of them can be used, so that all commands that need
// them end in the same way.
func (s *selection) open(ctx context.Context) (*gateway.Gateway, *config.File, error) {
	file, err := s.load(config.Reader{Lookup: os.LookupEnv, Ask: person()})
	if err != nil {
		return nil, nil, err
	}
	g, err := s.openFile(ctx, file)
	return g, file, err
}

// openFile is open for a configuration that was read.
func (s *selection) openFile(ctx context.Context, file *config.File) (*gateway.Gateway, error) {
	s.warnLeftOut(file)
	g, err := s.start(ctx, file)
	if err != nil {
		return nil, err
	}
	down := unusable(g)
	if len(down) > 0 && len(down) == len(states(g)) {
		defer g.Close()
		return nil, s.noServer(g, down)
	}
	if !s.quiet {
		stderr := terminal.NewScreen(os.Stderr)
		for _, state := range down {
			stderr.Printf("%s server %q: %s\n", stderr.Warn("warning:"), state.Label, reason(g, state))
		}
		if slices.ContainsFunc(down, isStarting) {
			stderr.Printf("%s what comes later is used then; wait_for_servers in the configuration says how long it is waited for, startup_timeout of a server how long that may take\n", stderr.Faint("hint:"))
		}
		held := g.Held()
		for _, label := range slices.Sorted(maps.Keys(held)) {
			stderr.Printf("%s server %q: %s held until approved: dragoman pins\n", stderr.Warn("warning:"), label, toolsAndTexts(held[label]))
		}
	}
	return g, nil
}

// toolsAndTexts says how many there are of what is there.
func toolsAndTexts(h gateway.Held) string {
	var parts []string
	if h.Tools > 0 {
		parts = append(parts, terminal.Many(h.Tools, "tool"))
	}
	if h.Texts > 0 {
		parts = append(parts, terminal.Many(h.Texts, "text"))
	}
	return strings.Join(parts, " and ")
}

// start builds the gateway and waits for its servers, as [selection.wait] says. Ctrl-C
// ends the wait.
func (s *selection) start(ctx context.Context, file *config.File) (*gateway.Gateway, error) {
	g, err := s.build(file)
	if err != nil {
		return nil, err
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	s.wait(ctx, g, file)
	if ctx.Err() != nil {
		g.Close()
		return nil, &failure{errInterrupted, ""}
	}
	return g, nil
}

// build builds the gateway, which starts its servers.
func (s *selection) build(file *config.File) (*gateway.Gateway, error) {
	s.warn(terminal.NewScreen(os.Stderr), file)
	g, err := gateway.New(file, gateway.Options{Log: s.logger(), Version: version(), Can: canAsk(), Credentials: credentials()})
	if err != nil {
		return nil, unbuilt(err)
	}
	return g, nil
}

// unbuilt is why a gateway cannot be built: by its configuration, or by a store that is in
// trouble now. Whoever starts programs again does so for the latter alone.
func unbuilt(err error) error {
	if code, _ := store.Refusal(err); code != "" {
		return &failure{err, ""}
	}
	return &usageError{err, ""}
}

// warn shows what in a configuration deserves a look.
func (s *selection) warn(stderr *terminal.Screen, file *config.File) {
	if s.quiet {
		return
	}
	for _, w := range file.Warnings {
		stderr.Printf("%s %s\n", stderr.Warn("warning:"), terminal.Visible(w.Error()))
	}
}

// warnLeftOut says which servers of another client's file cannot be used here.
func (s *selection) warnLeftOut(file *config.File) {
	stderr := terminal.NewScreen(os.Stderr)
	for _, left := range file.LeftOut {
		if !s.quiet {
			stderr.Printf("%s %s\n", stderr.Warn("warning:"), terminal.Visible(left.Reason.Error()))
		}
	}
}

// states are those of the servers as a person at this machine has them.
func states(g *gateway.Gateway) []dragoman.Server {
	list, err := g.Of(caller.Local).List(context.Background())
	if err != nil {
		return nil
	}
	return list.Servers
}

// unusable returns the servers that are not connected.
func unusable(g *gateway.Gateway) (down []dragoman.Server) {
	for _, state := range states(g) {
		if state.State != dragoman.Connected {
			down = append(down, state)
		}
	}
	return down
}

// reason says in a line why a server cannot be used.
func reason(g *gateway.Gateway, state dragoman.Server) string {
	switch {
	case state.Problem != nil:
		return terminal.OneLine(state.Problem.Message, 400)
	case isStarting(state):
		text := fmt.Sprintf("it has not answered within %s", time.Since(state.Since).Round(time.Second))
		if said := g.Said(state.Label); said != "" {
			text += "; " + said
		}
		return terminal.OneLine(text, 400)
	}
	return string(state.State)
}

// noServer is the error when not one of the servers can be used.
func (s *selection) noServer(g *gateway.Gateway, down []dragoman.Server) error {
	hint := ""
	for _, state := range down {
		if state.Problem != nil && state.Problem.Code == dragoman.CodeNeedsAuthorization {
			hint = s.authorizationHint()
		}
	}
	if len(down) == 1 {
		return &failure{fmt.Errorf("the server %q cannot be used: %s", down[0].Label, reason(g, down[0])), hint}
	}
	lines := make([]string, len(down))
	for i, state := range down {
		lines[i] = fmt.Sprintf("\n  %s: %s", state.Label, reason(g, state))
	}
	return &failure{errors.New("none of the servers can be used:" + strings.Join(lines, "")), hint}
}

// authorizationHint says where a token for a server goes.
func (s *selection) authorizationHint() string {
	if s.url != "" {
		return `send a token that it knows: --header "Authorization: Bearer $TOKEN"`
	}
	return `log in there, with dragoman login LABEL, or give it a token that it knows: headers: {Authorization: "Bearer ${TOKEN}"}`
}
