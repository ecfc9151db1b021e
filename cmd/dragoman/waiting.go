package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/door/terminal"
	"github.com/dragoman-mcp/dragoman/internal/gateway"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
)

// maxTexts is how long servers that have listed their tools are waited for with what
// else they have, where it is shown.
const maxTexts = 5 * time.Second

// wait waits for the servers of a gateway as requests do: no longer than
// wait_for_servers, whatever becomes of those that are not there by then. Where not one
// is, it waits on until one comes, or all have failed: there is nothing to go on with.
func (s *selection) wait(ctx context.Context, g *gateway.Gateway, file *config.File) {
	stderr := terminal.NewScreen(os.Stderr)
	part := g.Of(caller.Local)
	soon, cancel := context.WithTimeout(ctx, file.WaitForServers)
	defer cancel()
	said := s.saying(stderr, g, file, file.WaitForServers)
	_ = part.Settle(soon)
	said()
	if soon.Err() != nil && ctx.Err() == nil && nothingYet(states(g)) {
		longer, cancel := context.WithTimeout(ctx, maxStart(file))
		defer cancel()
		if !s.quiet {
			stderr.Printf("%s\n", stderr.Faint(fmt.Sprintf("no server is there after %s: waiting on, since there is no other", file.WaitForServers)))
		}
		said := s.saying(stderr, g, file, maxStart(file))
		for nothingYet(states(g)) && longer.Err() == nil {
			list, err := part.List(longer)
			if err != nil {
				break
			}
			if !nothingYet(list.Servers) {
				break
			}
			select {
			case <-list.Changed:
			case <-longer.Done():
			}
		}
		said()
	}
	if s.texts {
		whole, cancel := context.WithTimeout(soon, maxTexts)
		defer cancel()
		_ = part.SettleWhole(whole)
	}
}

// nothingYet reports whether no server is there, and one may still come.
func nothingYet(all []dragoman.Server) bool {
	there := func(s dragoman.Server) bool { return s.State == dragoman.Connected }
	return slices.ContainsFunc(all, isStarting) && !slices.ContainsFunc(all, there)
}

func isStarting(s dragoman.Server) bool { return s.State == dragoman.Starting }

// patience is how long a wait may take before people who see no live line are told of it.
const patience = time.Second

// saying says which servers are waited for until the returned function is called: at once
// and all the time on a live screen, once and for all elsewhere.
func (s *selection) saying(stderr *terminal.Screen, g *gateway.Gateway, file *config.File, most time.Duration) (done func()) {
	if s.quiet || s.toldStarting {
		return func() {}
	}
	if stderr.Live {
		return terminal.While(stderr, func() string { return starting(g, file) })
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		timer := time.NewTimer(patience)
		defer timer.Stop()
		select {
		case <-timer.C:
			if text := starting(g, file); text != "" {
				stderr.Printf("%s; at most %s\n", text, most)
				s.toldStarting = true
			}
		case <-stop:
		}
	}()
	return func() {
		close(stop)
		<-stopped
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
