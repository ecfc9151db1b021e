package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/door/terminal"
)

// conversion is how convert and arguments read tools and choose a dialect.
type conversion struct {
	selection
	dialect string
	options dialect.Options
}

func (c *conversion) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&c.config, "config", "", "configuration `FILE` with dialects of your own")
	f.StringVar(&c.dialect, "dialect", "openai", "`DIALECT` to convert into; docs/dialects.md lists them")
	register(cmd, "dialect", c.dialects)
	f.BoolVar(&c.options.Loose, "loose", false, "make no tool strict")
	f.BoolVar(&c.options.ForceStrict, "force-strict", false, "make tools strict also where that loses the difference between null and absent")
	f.BoolVar(&c.options.KeepMaps, "keep-maps", false, "keep objects with arbitrary names as they are, though the tool is not strict then")
	f.IntVar(&c.options.Depth, "depth", 0, "flatten what is nested deeper than `N` (default: what the dialect takes)")
}

// convert reads a list of tools from a file, or from standard input, and
// converts it.
func (c *conversion) convert(args []string) (*dialect.Dialect, *dialect.Document, json.RawMessage, error) {
	file, err := c.load(environment())
	if err != nil {
		return nil, nil, nil, err
	}
	table, err := file.Table()
	if err != nil {
		return nil, nil, nil, &usageError{err, ""}
	}
	d, err := table.For(c.dialect)
	if err != nil {
		return nil, nil, nil, &usageError{err, ""}
	}
	list, err := readInput(args)
	if err != nil {
		return nil, nil, nil, &usageError{err, ""}
	}
	d = d.With(c.options)
	doc, err := d.Convert(list)
	if err != nil {
		return nil, nil, nil, &usageError{err, `it should be {"tools":[…]}, as MCP's tools/list answers`}
	}
	return d, doc, list, nil
}

// maxInput bounds what is read from a file or from standard input.
const maxInput = 64 << 20

func readInput(args []string) ([]byte, error) {
	in := io.Reader(os.Stdin)
	if len(args) > 0 && args[0] != "-" {
		f, err := os.Open(args[0])
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	b, err := io.ReadAll(io.LimitReader(in, maxInput+1))
	switch {
	case err != nil:
	case len(b) > maxInput:
		err = fmt.Errorf("the list is larger than %d MiB", maxInput>>20)
	case bytes.HasPrefix(b, []byte("\xff\xfe")), bytes.HasPrefix(b, []byte("\xfe\xff")):
		err = errors.New("the list is UTF-16 text, as > of Windows PowerShell writes it, and has to be UTF-8")
	}
	return bytes.TrimPrefix(b, []byte("\ufeff")), err
}

func convertCommand() *cobra.Command {
	var c conversion
	var explain, all bool
	cmd := &cobra.Command{
		Use:   "convert [FILE|-]",
		Short: "Convert MCP tools to function tools of a dialect",
		Long: `Reads {"tools":[…]}, as MCP's tools/list answers, and prints the function tools
that a provider accepts, with a report of every change and the tools that cannot
be used or have no room in one request. Names get no prefix. Nothing is called, and no network is used.

  dragoman tools --raw -- npx -y @modelcontextprotocol/server-memory > tools.json
  dragoman convert --explain tools.json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, doc, list, err := c.convert(args)
			if err != nil {
				return err
			}
			if !all {
				doc.Fit(d, dialect.Budget{})
			}
			if explain {
				explainConversion(terminal.NewScreen(os.Stdout), doc, list)
				return nil
			}
			return printJSON(doc)
		},
	}
	c.flags(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "convert all tools, also those for which one request has no room")
	cmd.Flags().BoolVar(&explain, "explain", false, "print for people: what came, what the model sees, and each change")
	return cmd
}

func argumentsCommand() *cobra.Command {
	var c conversion
	var tool, raw, finish string
	cmd := &cobra.Command{
		Use:   "arguments [FILE|-] --tool NAME --raw TEXT",
		Short: "Bring a model's arguments back into the form that the server asked for",
		Long: `Reads {"tools":[…]} like convert, and the arguments that a model wrote for one of
them. Prints {"arguments":…,"repairs":[…]}, or {"error":{"code","message","path"}}
and exits with 1 when they cannot be made valid.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if tool == "" || !cmd.Flags().Changed("raw") {
				return &usageError{errors.New("--tool and --raw are needed"), "see: dragoman arguments --help"}
			}
			_, doc, _, err := c.convert(args)
			if err != nil {
				return err
			}
			for _, plan := range doc.Plans {
				if plan.Name() == tool {
					return printArguments(plan, raw, finish)
				}
			}
			for _, q := range doc.Quarantined {
				if q.Tool == tool {
					return &usageError{fmt.Errorf("the tool %q cannot be used: %s", tool, q.Reason), ""}
				}
			}
			return &usageError{fmt.Errorf("there is no tool %q in the list", tool), config.Nearest(tool, planNames(doc))}
		},
	}
	c.flags(cmd)
	cmd.Flags().StringVar(&tool, "tool", "", "`NAME` of the tool, as convert prints it")
	// The list is the one argument; "-" would wait for the shell's own input.
	_ = cmd.RegisterFlagCompletionFunc("tool", func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 || args[0] == "-" {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		_, doc, _, err := c.convert(args)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return planNames(doc), cobra.ShellCompDirectiveNoFileComp
	})
	cmd.Flags().StringVar(&raw, "raw", "", "the arguments, as the model wrote them")
	cmd.Flags().StringVar(&finish, "finish-reason", "", "the finish_reason of the model's message")
	return cmd
}

func planNames(doc *dialect.Document) []string {
	names := make([]string, len(doc.Plans))
	for i, plan := range doc.Plans {
		names[i] = plan.Name()
	}
	return names
}

// printArguments prints what becomes of a model's arguments.
func printArguments(plan *dialect.Plan, raw, finish string) error {
	arguments, repairs, problem := plan.Decode(raw, finish)
	if problem == nil {
		if repairs == nil {
			repairs = []dialect.Repair{}
		}
		return printJSON(struct {
			Arguments json.RawMessage  `json:"arguments"`
			Repairs   []dialect.Repair `json:"repairs"`
		}{arguments, repairs})
	}
	type failure struct {
		Code    string `json:"code"`
		Message string `json:"message"`
		Path    string `json:"path"`
	}
	f := failure{Code: problem.Code, Message: problem.Message}
	if len(problem.Fields) > 0 {
		f.Path = problem.Fields[0].Path
	}
	if err := printJSON(struct {
		Error failure `json:"error"`
	}{f}); err != nil {
		return err
	}
	return errFailed
}

// explainConversion shows people what became of each tool: what the server sent
// beside what the model sees, and why they differ.
func explainConversion(out *terminal.Screen, doc *dialect.Document, list json.RawMessage) {
	came := definitions(list)
	for i, plan := range doc.Plans {
		form := "not strict"
		if plan.Strict() {
			form = "strict"
		}
		if i > 0 {
			out.Printf("\n")
		}
		out.Printf("%s  %s\n", out.Bold(plan.Name()), out.Faint(form))
		var function struct {
			Function struct{ Parameters json.RawMessage }
		}
		_ = json.Unmarshal(plan.Function(), &function) // our own bytes
		out.Beside("the server sent", came[plan.Name()], "the model sees", function.Function.Parameters)
		changes := 0
		for _, r := range doc.Report {
			if r.Tool != plan.Name() {
				continue
			}
			changes++
			mark := out.Good("lossless")
			switch {
			case r.Narrows:
				mark = out.Bad("narrows ")
			case !r.Lossless:
				mark = out.Warn("lossy   ")
			}
			pointer := r.Pointer
			if pointer == "" {
				pointer = "(root)"
			}
			out.Printf("  %s %s %s\n           %s\n", mark, r.Pass, out.Faint(terminal.Visible(pointer)), terminal.Visible(r.Why))
		}
		for _, what := range plan.Unchecked() {
			out.Printf("  %s %s\n", out.Warn("unchecked"), terminal.Visible(what))
		}
		if changes == 0 {
			out.Printf("  %s\n", out.Good("unchanged"))
		}
	}
	for _, l := range doc.LeftOut {
		out.Printf("\n%s  %s\n  %s\n", out.Bold(terminal.OneLine(l.Tool, 80)), out.Warn("left out"), terminal.Visible(l.Reason))
	}
	for _, q := range doc.Quarantined {
		out.Printf("\n%s  %s\n  %s\n", out.Bold(terminal.OneLine(q.Tool, 80)), out.Bad("quarantined"), terminal.Visible(q.Reason))
	}
	out.Printf("\n%s, %s, %d quarantined", terminal.Many(len(doc.Tools), "tool"), terminal.Many(len(doc.Report), "change"), len(doc.Quarantined))
	if len(doc.LeftOut) > 0 {
		out.Printf(", %d left out", len(doc.LeftOut))
	}
	out.Printf("\n")
}

// definitions returns the input schemas of a list by tool.
func definitions(list json.RawMessage) map[string]json.RawMessage {
	type entry struct {
		Name        string
		InputSchema json.RawMessage
	}
	var frame struct{ Tools []json.RawMessage }
	if strings.HasPrefix(strings.TrimSpace(string(list)), "[") {
		_ = json.Unmarshal(list, &frame.Tools)
	} else {
		_ = json.Unmarshal(list, &frame)
	}
	schemas := map[string]json.RawMessage{}
	for _, raw := range frame.Tools {
		var e entry
		if json.Unmarshal(raw, &e) == nil {
			schemas[e.Name] = e.InputSchema
		}
	}
	return schemas
}
