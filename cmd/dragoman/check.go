package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/door/terminal"
	"github.com/dragoman-mcp/dragoman/internal/gateway"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

func checkCommand() *cobra.Command {
	var s selection
	var rules policyCheck
	cmd := &cobra.Command{
		Use:   "check [-- SERVER-COMMAND …]",
		Short: "Connect to everything and say what models will see",
		Long: `Reads the configuration, connects to each server and each model API, and reports.
It exits with 1 when something does not work, and with 2 when the configuration
cannot be used.

With --policy it prints the rules as Cedar, and with --caller, too, what that caller
may do to everything there is.` + serverHelp,
		RunE: func(cmd *cobra.Command, args []string) error {
			args, err := s.args(cmd, args)
			if err != nil {
				return err
			}
			if len(args) > 0 {
				return &usageError{errors.New("check takes no arguments"), "a server's command comes after \"--\""}
			}
			reader := config.Reader{Lookup: os.LookupEnv, Ask: person()}
			if rules.show && rules.caller == "" {
				reader = only("policy*") // which connects to nothing
			}
			file, err := s.load(reader)
			if err != nil {
				return err
			}
			if rules.show {
				return rules.run(cmd.Context(), &s, file)
			}
			if rules.caller != "" || len(rules.scopes) > 0 {
				return &usageError{errors.New("--caller and --scope are for --policy"), ""}
			}
			g, err := s.build(file)
			if err != nil {
				return err
			}
			defer g.Close()
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt)
			defer stop()
			out := terminal.NewScreen(os.Stdout)
			path := file.Path
			if path == "" {
				path = "none; defaults"
			}
			out.Printf("configuration  %s\n", path)
			fine := checkCertificates(out, g)
			fine = s.checkServers(ctx, out, g, file) && fine
			fine = checkModels(ctx, out, g) && fine
			fine = checkTools(ctx, out, g) && fine
			fine = checkHosted(ctx, out, g, file) && fine
			fine = checkRules(ctx, out, g, file) && fine
			if ctx.Err() != nil {
				return &failure{errInterrupted, ""}
			}
			if !fine {
				return errFailed
			}
			return nil
		},
	}
	s.flags(cmd)
	rules.flags(cmd)
	return cmd
}

// checkCertificates says why the gateway could not speak HTTPS, where it is to.
func checkCertificates(out *terminal.Screen, g *gateway.Gateway) bool {
	err := g.CheckCertificates()
	if err != nil {
		out.Printf("listen  %s %s\n", out.Bad("✗"), terminal.OneLine(err.Error(), 300))
	}
	return err == nil
}

// checkServers says of each server whether it works, as soon as it is known. It waits for
// each as long as it may take to start, and says which requests would not have waited for.
func (s *selection) checkServers(ctx context.Context, out *terminal.Screen, g *gateway.Gateway, file *config.File) bool {
	fine := len(file.LeftOut) == 0
	for _, left := range file.LeftOut {
		out.Printf("server  %s %s\n", out.Bad("✗"), terminal.Visible(left.Reason.Error()))
	}
	ctx, cancel := context.WithTimeout(ctx, maxStart(file))
	defer cancel()
	waiting := map[string]bool{}
	known := make(chan string)
	for _, state := range states(g) {
		waiting[state.Label] = true
		go func() {
			_ = g.Of(caller.Local).Settle(ctx, state.Label)
			whole, cancel := context.WithTimeout(ctx, maxTexts)
			defer cancel()
			_ = g.Of(caller.Local).SettleWhole(whole, state.Label)
			known <- state.Label
		}()
	}
	stderr := terminal.NewScreen(os.Stderr)
	late := time.NewTimer(file.WaitForServers)
	defer late.Stop()
	for len(waiting) > 0 {
		said := s.saying(stderr, g, file, maxStart(file))
		select {
		case label := <-known:
			said()
			delete(waiting, label)
			fine = checkServer(out, g, file, label) && fine
		case <-late.C:
			said()
			for _, label := range slices.Sorted(maps.Keys(waiting)) {
				out.Printf("server  %s %s: requests go on without it after %s (wait_for_servers); waiting\n", out.Warn("!"), label, file.WaitForServers)
			}
		}
	}
	return fine
}

// checkServer says whether a server works.
func checkServer(out *terminal.Screen, g *gateway.Gateway, file *config.File, label string) bool {
	all := states(g)
	i := slices.IndexFunc(all, func(s dragoman.Server) bool { return s.Label == label })
	if i < 0 {
		return true
	}
	state := all[i]
	if state.State == dragoman.Connected {
		sandbox := ""
		if state.Sandbox != "" {
			sandbox = ", sandbox: " + state.Sandbox
		}
		out.Printf("server  %s %s: %s, %s era (%s)%s\n", out.Good("✓"), label, terminal.Many(state.Tools, "tool"), state.Era, state.Version, sandbox)
		for _, t := range state.Held {
			out.Printf("server  %s %s/%s is held: %s\n", out.Warn("!"), label, terminal.OneLine(t.Name, 100), terminal.OneLine(t.Problem.Message, 300))
		}
		return true
	}
	oauth := file.MCPServers[label].OAuth
	if oauth.PerCaller() && state.Problem != nil && state.Problem.Code == dragoman.CodeNeedsAuthorization {
		out.Printf("server  %s %s: callers have tokens of their own, and nobody at this machine has: %s\n", out.Warn("!"), label, reason(g, state))
		return true
	}
	out.Printf("server  %s %s: %s\n", out.Bad("✗"), label, reason(g, state))
	return false
}

// checkModels asks each model API for its models. An API that has no list may
// still answer chats, so that alone is a warning.
func checkModels(ctx context.Context, out *terminal.Screen, g *gateway.Gateway) bool {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	document, failures := g.Upstreams().Models(ctx, nil, false)
	failed := map[string]bool{}
	for _, f := range failures {
		failed[f.Host] = true
		out.Printf("models  %s %s: no list of models: %s\n", out.Warn("!"), f.Host, terminal.OneLine(f.Err.Error(), 200))
	}
	counts := countModels(document, g.Upstreams())
	told := map[string]bool{}
	for _, up := range g.Upstreams().Routes() {
		host := up.Host()
		if failed[host] || told[host] {
			continue
		}
		told[host] = true
		name := host
		if up.Rehearsal {
			name = "rehearsal, the built-in stand-in: set OPENAI_BASE_URL or models for a real one"
		}
		out.Printf("models  %s %s: %s\n", out.Good("✓"), name, terminal.Many(counts[host], "model"))
	}
	return len(failures) == 0
}

func checkTools(ctx context.Context, out *terminal.Screen, g *gateway.Gateway) bool {
	s, err := openSession(ctx, g, "")
	if err != nil {
		out.Printf("tools   %s %v\n", out.Bad("✗"), err)
		return false
	}
	list, err := s.Tools.List(ctx)
	if err != nil {
		out.Printf("tools   %s %v\n", out.Bad("✗"), err)
		return false
	}
	d := s.Dialect
	plans, offered, rest := split(d, list.Tools.All())
	left, searched := model.LeftOut(list.Tools, d, s.Search)
	size := 0
	for _, p := range plans {
		if !slices.Contains(left, p.Name()) {
			size += len(p.Function())
		}
	}
	for _, q := range rest {
		out.Printf("tools   %s %s/%s is quarantined: %s\n", out.Warn("!"), q.Server, terminal.OneLine(q.Tool, 60), terminal.OneLine(q.Reason, 300))
	}
	limit := d.Wire().MaxTools
	switch {
	case searched:
		out.Printf("tools   %s %d in dialect %s, which the model searches: with all of them a request would have %s more\n", out.Good("✓"), len(offered), d.Name(), kilobytes(size))
		return true
	case limit > 0 && len(offered) > limit:
		out.Printf("tools   %s a request to this API takes %d tools: %s\n", out.Warn("!"), limit, terminal.LeftOut(left))
		offered = offered[:limit]
	}
	out.Printf("tools   %s %d offered in dialect %s, %s per request\n", out.Good("✓"), len(offered), d.Name(), kilobytes(size))
	return true
}

// checkHosted says why the tool that is to search the web does not, where its server works.
func checkHosted(ctx context.Context, out *terminal.Screen, g *gateway.Gateway, file *config.File) bool {
	search := file.Hosted.WebSearch
	all := states(g)
	i := slices.IndexFunc(all, func(s dragoman.Server) bool { return s.Label == search.Server() })
	if i < 0 || all[i].State != dragoman.Connected {
		return true // none is wanted, or why it does not work is said of its server
	}
	list, err := g.Of(caller.Local).List(ctx)
	if err == nil {
		err = search.Lacks(list.Tools.All())
	}
	if err != nil {
		out.Printf("hosted  %s web_search: %s\n", out.Bad("✗"), terminal.OneLine(err.Error(), 300))
	}
	return err == nil
}

func kilobytes(n int) string { return fmt.Sprintf("%.1f KB", float64(n)/1000) }

// countModels returns how many models of a list each host serves.
func countModels(document []byte, upstreams *upstream.Set) map[string]int {
	counts := map[string]int{}
	var list struct{ Data []struct{ ID string } }
	if json.Unmarshal(document, &list) != nil {
		return counts
	}
	for _, m := range list.Data {
		if up, err := upstreams.For(m.ID); err == nil {
			counts[up.Host()]++
		}
	}
	return counts
}
