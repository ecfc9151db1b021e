package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/door/terminal"
	"github.com/dragoman-mcp/dragoman/internal/gateway"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/reach/find"
	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
	"github.com/dragoman-mcp/dragoman/internal/session"
)

func toolsCommand() *cobra.Command {
	var s selection
	var asJSON, raw bool
	var name, search string
	cmd := &cobra.Command{
		Use:   "tools [-- SERVER-COMMAND …]",
		Short: "List the tools that models will see",
		Long: `Connects to the servers and lists their tools: as a table, or with --json as the
function tools of a request, or with --raw as the servers sent them, which is what
convert and arguments read:

  dragoman tools --raw -- npx -y @modelcontextprotocol/server-memory > tools.json
  dragoman convert --explain tools.json

With --search it lists those that match some words, the best first:

  dragoman tools --search "read a file"` + serverHelp,
		RunE: func(cmd *cobra.Command, args []string) error {
			args, err := s.args(cmd, args)
			if err != nil {
				return err
			}
			if len(args) > 0 {
				return &usageError{fmt.Errorf("tools takes no arguments, got %q", args[0]), "a server's command comes after \"--\""}
			}
			s.texts = true
			g, _, err := s.open(cmd.Context())
			if err != nil {
				return err
			}
			defer g.Close()
			open, err := openSession(cmd.Context(), g, name)
			if err != nil {
				return err
			}
			list, err := open.Tools.List(cmd.Context())
			if err != nil {
				return err
			}
			tools := list.Tools.All()
			if cmd.Flags().Changed("search") {
				tools = matching(list.Tools, search)
			}
			switch {
			case raw:
				return printDefinitions(tools)
			case asJSON || name != "":
				return printFunctions(open.Dialect, tools)
			}
			printTools(open.Dialect, tools, list.Servers, s.quiet)
			return nil
		},
	}
	s.flags(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the function tools as a request carries them")
	cmd.Flags().BoolVar(&raw, "raw", false, "print {\"tools\":[…]} as the servers sent it, byte for byte and without prefixes")
	cmd.Flags().StringVar(&search, "search", "", "only the tools that match `WORDS` best, the best first")
	cmd.Flags().StringVar(&name, "dialect", "", "print them as JSON in this `DIALECT` (default: that of the first model)")
	cmd.MarkFlagsMutuallyExclusive("json", "raw")
	cmd.MarkFlagsMutuallyExclusive("dialect", "raw")
	register(cmd, "dialect", s.dialects)
	return cmd
}

// maxMatches is how many tools a search lists: what is further down is a worse match
// than other words would give.
const maxMatches = 20

// matching returns the tools that match words, the best first.
func matching(tools *dragoman.Tools, words string) []dragoman.Tool {
	found := []dragoman.Tool{}
	for _, t := range find.NewIndex(tools, nil).Search(words, maxMatches, nil) {
		found = append(found, *t)
	}
	return found
}

// openSession opens a session for a person at this machine: for a dialect, or, where
// name is empty, for the default model.
func openSession(ctx context.Context, g *gateway.Gateway, name string) (*session.Session, error) {
	want := session.Want{Dialect: name}
	if name == "" {
		want.Model = g.Upstreams().DefaultModel()
	}
	s, err := g.Open(ctx, caller.Local, want)
	if errors.Is(err, upstream.ErrUnknownModel) {
		s, err = g.Open(ctx, caller.Local, session.Want{})
	}
	if errors.Is(err, session.ErrUnknownDialect) {
		return nil, &usageError{err, ""}
	}
	return s, err
}

// quarantined is a tool that no model gets to see, as the command prints it.
type quarantined struct {
	Server string `json:"server"`
	Tool   string `json:"tool"`
	Reason string `json:"reason"`
}

// split plans the tools: those that models get, and those that they do not.
func split(d *dialect.Dialect, tools []dragoman.Tool) (plans []*dialect.Plan, offered []dragoman.Tool, rest []quarantined) {
	for _, t := range tools {
		problem := t.Quarantined
		var plan *dialect.Plan
		if problem == nil {
			plan, problem = d.Plan(t)
		}
		if problem != nil {
			rest = append(rest, quarantined{t.Server, t.Original, problem.Message})
			continue
		}
		plans, offered = append(plans, plan), append(offered, t)
	}
	return plans, offered, rest
}

func printFunctions(d *dialect.Dialect, tools []dragoman.Tool) error {
	plans, _, rest := split(d, tools)
	document := struct {
		Dialect     string            `json:"dialect"`
		Tools       []json.RawMessage `json:"tools"`
		Quarantined []quarantined     `json:"quarantined"`
	}{d.Name(), []json.RawMessage{}, []quarantined{}}
	for _, p := range plans {
		document.Tools = append(document.Tools, p.Function())
	}
	document.Quarantined = append(document.Quarantined, rest...)
	return printJSON(document)
}

// printJSON prints a document for programs: indented, and with no character
// escaped that need not be.
func printJSON(document any) error {
	e := json.NewEncoder(terminal.Documents(os.Stdout))
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(document)
}

// printDefinitions prints the tools as their servers sent them.
func printDefinitions(tools []dragoman.Tool) error {
	var out bytes.Buffer
	out.WriteString(`{"tools":[`)
	for i, t := range tools {
		if i > 0 {
			out.WriteString(",")
		}
		out.WriteString("\n")
		out.Write(t.Definition)
	}
	out.WriteString("\n]}\n")
	_, err := out.WriteTo(terminal.Documents(os.Stdout))
	return err
}

func printTools(d *dialect.Dialect, tools []dragoman.Tool, servers []dragoman.Server, quiet bool) {
	out := terminal.NewScreen(os.Stdout)
	_, offered, rest := split(d, tools)
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	for _, t := range offered {
		fmt.Fprintf(w, "%s\t%s\t%s\n", t.Name, hints(t), terminal.OneLine(t.Description, 90))
	}
	w.Flush()
	for _, q := range rest {
		out.Printf("%s %s/%s: %s\n", out.Bad("quarantined"), q.Server, terminal.OneLine(q.Tool, 60), terminal.OneLine(q.Reason, 200))
	}
	for _, server := range servers {
		for _, t := range server.Held {
			out.Printf("%s %s/%s: %s\n", out.Bad("held"), server.Label, terminal.OneLine(t.Name, 100), terminal.OneLine(t.Problem.Message, 200))
		}
	}
	if quiet {
		return
	}
	stderr := terminal.NewScreen(os.Stderr)
	stderr.Printf("%s\n", stderr.Faint(fmt.Sprintf("%s, %d quarantined, dialect %s", terminal.Many(len(offered), "tool"), len(rest), d.Name())))
}

// hints says what a server says of a tool, and what the operator does.
func hints(t dragoman.Tool) string {
	switch {
	case t.Declared != dragoman.MayChange:
		return t.Declared.String()
	case t.Hints.ReadOnly != nil && *t.Hints.ReadOnly:
		return "reads"
	case t.Hints.Destructive != nil && *t.Hints.Destructive:
		return "destructive"
	case t.Hints.ReadOnly != nil:
		return "writes"
	}
	return "-"
}
