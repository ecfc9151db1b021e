package main

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/door/terminal"
)

// Shells ask for completions through the hidden command __complete. Labels,
// dialects and models are read from the configuration. Names of tools are known
// to the servers alone, so completing one starts those that the command line
// names, as the command itself would, and waits a few seconds.

// maxComplete is how long somebody who pressed Tab waits for servers.
const maxComplete = 8 * time.Second

// complete completes the flags of a selection.
func (s *selection) complete(cmd *cobra.Command) {
	register(cmd, "server", func() []string {
		file := s.settled()
		var labels []string
		for _, label := range slices.Sorted(maps.Keys(file.MCPServers)) {
			if !file.MCPServers[label].Disabled {
				labels = append(labels, cobra.CompletionWithDesc(label, file.MCPServers[label].String()))
			}
		}
		return labels
	})
	register(cmd, "env", func() []string {
		var names []string
		for _, variable := range os.Environ() {
			if name, _, _ := strings.Cut(variable, "="); isVariable(name) {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		return names
	})
}

// register completes a flag's value with what values returns.
func register(cmd *cobra.Command, flag string, values func() []string) {
	err := cmd.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return values(), cobra.ShellCompDirectiveNoFileComp
	})
	if err != nil {
		panic(err) // the flag has just been added
	}
}

// settled returns the configuration without asking anybody; the defaults where
// it cannot be read.
func (s *selection) settled() *config.File {
	all := *s
	all.labels = nil
	file, err := all.load(environment())
	if err != nil {
		return config.Default()
	}
	return file
}

// dialects are the dialects that there are.
func (s *selection) dialects() []string {
	table, err := s.settled().Table()
	if err != nil {
		return nil
	}
	return table.Names()
}

// models are the models that the configuration names in full.
func (s *selection) models() []string {
	var names []string
	for _, m := range s.settled().Models {
		if m.Match != "" && !strings.ContainsAny(m.Match, "*?") {
			names = append(names, m.Match)
		}
	}
	if len(names) == 0 {
		names = []string{"rehearsal"}
	}
	return names
}

// completeCall completes the name of a tool, then the names of its arguments.
func (s *selection) completeCall(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	none := cobra.ShellCompDirectiveNoFileComp
	// cobra puts a "--" of its own at the end.
	if at := cmd.ArgsLenAtDash(); at >= 0 && at < len(args) { // the command of a server
		return nil, cobra.ShellCompDirectiveDefault
	}
	tools := s.toolsNow(cmd.Context())
	if len(args) == 0 {
		var names []string
		for _, t := range tools {
			names = append(names, cobra.CompletionWithDesc(t.Name, terminal.OneLine(t.Description, 60)))
		}
		return names, none
	}
	i := slices.IndexFunc(tools, func(t dragoman.Tool) bool { return t.Name == args[0] })
	if i < 0 {
		return nil, none
	}
	return argumentNames(tools[i].InputSchema, args[1:]), none | cobra.ShellCompDirectiveNoSpace
}

// toolsNow returns the tools that can be had in a moment.
func (s *selection) toolsNow(ctx context.Context) []dragoman.Tool {
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, maxComplete)
	defer cancel()
	now := *s
	now.quiet, now.verbose = true, false
	g, _, err := now.open(ctx)
	if err != nil {
		return nil
	}
	defer g.Close()
	open, err := openSession(ctx, g, "")
	if err != nil {
		return nil
	}
	list, err := open.Tools.List(ctx)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(list.Tools.All()), func(t dragoman.Tool) bool { return t.Quarantined != nil })
}

// argumentNames are the arguments of a schema, as NAME=, without those that are
// given.
func argumentNames(schema json.RawMessage, given []string) []string {
	var object struct {
		Properties map[string]struct{ Description string }
	}
	if json.Unmarshal(schema, &object) != nil {
		return nil
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(object.Properties)) {
		if !slices.ContainsFunc(given, func(arg string) bool { return strings.HasPrefix(arg, name+"=") || strings.HasPrefix(arg, name+":=") }) {
			names = append(names, cobra.CompletionWithDesc(name+"=", terminal.OneLine(object.Properties[name].Description, 60)))
		}
	}
	return names
}
