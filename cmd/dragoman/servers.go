package main

import (
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
)

// maxStart is how long a command waits for its servers: as long as one may need that
// has to be downloaded first, where there is such a one.
func maxStart(file *config.File) time.Duration {
	for _, c := range file.MCPServers {
		if c.Downloads() && !c.Disabled {
			return servers.DownloadTimeout
		}
	}
	return servers.DefaultStartupTimeout
}

// open builds the gateway and waits for its servers, as [maxStart] says. It fails when
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
	g, err := s.start(ctx, file)
	if err != nil {
		return nil, err
	}
	down := unusable(g)
	if len(down) > 0 && len(down) == len(states(g)) {
		g.Close()
		return nil, s.noServer(down)
	}
	if !s.quiet {
		stderr := terminal.NewScreen(os.Stderr)
		for _, state := range down {
			stderr.Printf("%s server %q: %s\n", stderr.Warn("warning:"), state.Label, reason(state))
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

// maxTexts is how long servers that have listed their tools are waited for with what
// else they have, where it is shown.
const maxTexts = 5 * time.Second

// start builds the gateway and waits for its servers, at most 30 s, or two minutes
// for those that may have to be downloaded, whatever becomes of them. Ctrl-C ends
// the wait.
func (s *selection) start(ctx context.Context, file *config.File) (*gateway.Gateway, error) {
	stderr := terminal.NewScreen(os.Stderr)
	stderr.Live = stderr.Live && !s.quiet
	s.warn(stderr, file)
	g, err := gateway.New(file, gateway.Options{Log: s.logger(), Version: version(), Can: canAsk(), Credentials: credentials()})
	if err != nil {
		return nil, &usageError{err, ""}
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	limited, cancel := context.WithTimeout(ctx, maxStart(file))
	defer cancel()
	defer terminal.While(stderr, func() string { return starting(g, file) })()
	_ = g.Of(caller.Local).Settle(limited) // what is not there by then shows as starting
	if s.texts {
		whole, cancel := context.WithTimeout(limited, maxTexts)
		defer cancel()
		_ = g.Of(caller.Local).SettleWhole(whole)
	}
	if ctx.Err() != nil {
		g.Close()
		return nil, &failure{errInterrupted, ""}
	}
	return g, nil
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

// starting says which servers are still being waited for.
func starting(g *gateway.Gateway, file *config.File) string {
	var labels []string
	slow := false
	for _, state := range states(g) {
		if state.State == dragoman.Starting {
			labels = append(labels, state.Label)
			config := file.MCPServers[state.Label]
			slow = slow || config.Downloads()
		}
	}
	if len(labels) == 0 {
		return ""
	}
	text := "starting " + strings.Join(labels, ", ")
	if slow {
		text += ", which may have to be downloaded first"
	}
	return text
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
func reason(state dragoman.Server) string {
	switch {
	case state.Problem != nil:
		return terminal.OneLine(state.Problem.Message, 400)
	case state.State == dragoman.Starting:
		return fmt.Sprintf("it has not answered within %s", time.Since(state.Since).Round(time.Second))
	}
	return string(state.State)
}

// noServer is the error when not one of the servers can be used.
func (s *selection) noServer(down []dragoman.Server) error {
	hint := ""
	for _, state := range down {
		if state.Problem != nil && state.Problem.Code == dragoman.CodeNeedsAuthorization {
			hint = s.authorizationHint()
		}
	}
	if len(down) == 1 {
		return &failure{fmt.Errorf("the server %q cannot be used: %s", down[0].Label, reason(down[0])), hint}
	}
	lines := make([]string, len(down))
	for i, state := range down {
		lines[i] = fmt.Sprintf("\n  %s: %s", state.Label, reason(state))
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
