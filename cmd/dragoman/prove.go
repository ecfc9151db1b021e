package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/door/terminal"
	"github.com/dragoman-mcp/dragoman/internal/prove"
	"github.com/dragoman-mcp/dragoman/internal/text/glob"
)

// envEngines names the folder with grammar engines where no flag does.
const envEngines = "DRAGOMAN_ENGINES"

// proving is what the command line of prove says.
type proving struct {
	selection
	dialects []string
	tools    []string
	engines  string
	format   string
	failOn   []string
	effort   int
	seed     uint64
}

// proofs is the document that prove prints as JSON.
type proofs struct {
	Proofs []*prove.Proof `json:"proofs"`
	// Missing are the dialects whose engine is not here.
	Missing []missingEngine `json:"missing"`
	// Left is how many proofs were not made, since the search was interrupted.
	Left int `json:"left,omitempty"`
}

type missingEngine struct {
	Dialect string `json:"dialect"`
	Why     string `json:"why"`
}

// What a proof can fail on, beside the kinds of witnesses.
const (
	failUnusable = "unusable"
	failMissing  = "missing"
)

var failures = []string{failUnusable, string(prove.Unsaid), string(prove.Refused), string(prove.Undeclared), failMissing}

func proveCommand() *cobra.Command {
	var p proving
	cmd := &cobra.Command{
		Use:   "prove [FILE …] [-- SERVER-COMMAND …]",
		Short: "Look for calls on which a model and a server cannot agree",
		Long: `Takes the tools of the servers, or of files with what tools/list answered, and
looks in each dialect for the shortest call that the model can write and the
server refuses, and for the shortest one that the server takes and the model
cannot write. Where it finds none it says how hard it looked.

What a model can write is said by the engine of the dialect where that is
installed (XGrammar for vllm and sglang, llama.cpp for llamacpp and lmstudio,
Ollama's types for ollama), and by the schema that is sent elsewhere. --engines
names the folder with them; docs/prove.md says how to get them.

No tool is called. It exits with 1 when it finds what --fail-on names. Ctrl-C ends
the search: it then says what was found so far, and exits with 3.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			files, err := p.args(cmd, args)
			if err != nil {
				return err
			}
			if err := p.check(files); err != nil {
				return err
			}
			out := terminal.NewScreen(os.Stdout)
			show := func(proof *prove.Proof) { printProof(out, proof) }
			if p.format == "json" {
				show = func(*prove.Proof) {}
			}
			found, err := p.run(cmd.Context(), files, show)
			if err != nil {
				return err
			}
			if p.format == "json" {
				if err := printJSON(found); err != nil {
					return err
				}
			} else {
				out.Printf("%s\n", summary(found))
			}
			switch {
			case found.Left > 0:
				return exitCode(exitCut)
			case found.fails(p.failOn):
				return errFailed
			}
			return nil
		},
	}
	p.flags(cmd)
	f := cmd.Flags()
	f.StringSliceVar(&p.dialects, "dialect", nil, "`DIALECTS` to prove, with commas, or all (default: that of the first model)")
	f.StringSliceVar(&p.tools, "tool", nil, "only tools with these `NAMES`, which may hold * and ?")
	mustSay(f, "tool")
	f.StringVar(&p.engines, "engines", os.Getenv(envEngines), "`FOLDER` with grammar engines, which are run (default $"+envEngines+")")
	f.StringVar(&p.format, "format", "text", "text or json")
	f.StringSliceVar(&p.failOn, "fail-on", []string{failUnusable, string(prove.Unsaid)}, "what to fail on, of "+strings.Join(failures, ", ")+"; none for nothing")
	f.IntVar(&p.effort, "effort", 1, "look `N` times as hard")
	f.Uint64Var(&p.seed, "seed", 0, "`NUMBER` that other candidates follow from")
	return cmd
}

func (p *proving) check(files []string) error {
	if len(files) > 0 && (len(p.command) > 0 || p.url != "" || p.mcpConfig != "") {
		return &usageError{errors.New("files with tools and servers exclude each other"), ""}
	}
	if p.format != "text" && p.format != "json" {
		return &usageError{fmt.Errorf("unknown format %q", p.format), "it is text or json"}
	}
	for _, f := range p.failOn {
		if f != "none" && !slices.Contains(failures, f) {
			return &usageError{fmt.Errorf("--fail-on does not know %q", f), "known are " + strings.Join(failures, ", ") + " and none"}
		}
	}
	if p.effort < 1 || p.effort > 1000 {
		return &usageError{errors.New("--effort goes from 1 to 1000"), ""}
	}
	return nil
}

// run proves each tool in each dialect, and shows each proof as soon as it is made. A
// signal ends the search, not what was found; a second one ends the process.
func (p *proving) run(ctx context.Context, files []string, show func(*prove.Proof)) (*proofs, error) {
	tools, dialects, err := p.load(ctx, files)
	if err != nil {
		return nil, err
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	context.AfterFunc(ctx, stop)
	engines := prove.Engines{Dir: p.engines}
	defer engines.Close()
	stderr := terminal.NewScreen(os.Stderr)
	found := &proofs{Proofs: []*prove.Proof{}, Missing: []missingEngine{}}
	defer func() {
		if ctx.Err() != nil {
			found.Left = len(tools)*len(dialects) - len(found.Proofs)
		}
	}()
	for _, d := range dialects {
		engine, err := engines.For(ctx, d.Name())
		if errors.Is(err, prove.ErrMissing) {
			found.Missing = append(found.Missing, missingEngine{d.Name(), err.Error()})
			stderr.Printf("%s %s is held by %s: this goes by the schema that is sent, not by what the engine does\n", stderr.Warn("NOT ASKED:"), d.Name(), terminal.OneLine(err.Error(), 300))
			engine = prove.Sent{}
		} else if ctx.Err() != nil {
			return found, nil
		} else if err != nil {
			return nil, err
		}
		prover := &prove.Prover{Dialect: d, Engine: engine, Effort: p.effort, Seed: p.seed}
		for _, tool := range tools {
			proof, err := prover.Tool(ctx, tool)
			if ctx.Err() != nil {
				return found, nil // the proof is no whole one
			}
			if err != nil {
				return nil, err
			}
			found.Proofs = append(found.Proofs, proof)
			show(proof)
		}
	}
	return found, nil
}

// load returns the tools and the dialects that the command line names.
func (p *proving) load(ctx context.Context, files []string) (tools []dragoman.Tool, dialects []*dialect.Dialect, err error) {
	var table *dialect.Table
	if len(files) > 0 {
		tools, table, err = p.fromFiles(files)
	} else {
		tools, table, err = p.fromServers(ctx)
	}
	if err != nil {
		return nil, nil, err
	}
	if len(p.tools) > 0 {
		tools = slices.DeleteFunc(tools, func(t dragoman.Tool) bool {
			return !slices.ContainsFunc(p.tools, func(pattern string) bool { return glob.Match(pattern, t.Name) })
		})
	}
	if len(tools) == 0 {
		return nil, nil, &usageError{errors.New("there are no tools to prove"), ""}
	}
	names := p.dialects
	if slices.Equal(names, []string{"all"}) {
		names = table.Names()
	}
	for _, name := range names {
		d, err := table.For(name)
		if err != nil {
			return nil, nil, &usageError{err, ""}
		}
		dialects = append(dialects, d)
	}
	return tools, dialects, nil
}

// fromServers asks the servers, and lets the first model name the dialect.
func (p *proving) fromServers(ctx context.Context) (tools []dragoman.Tool, table *dialect.Table, err error) {
	g, file, err := p.open(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer g.Close()
	open, err := openSession(ctx, g, "")
	if err != nil {
		return nil, nil, err
	}
	if len(p.dialects) == 0 {
		p.dialects = []string{open.Dialect.Name()}
	}
	list, err := open.Tools.List(ctx)
	if err != nil {
		return nil, nil, err
	}
	table, err = file.Table()
	return slices.Clone(list.Tools.All()), table, err
}

// fromFiles reads lists of tools that were saved, each named after its file.
func (p *proving) fromFiles(files []string) (tools []dragoman.Tool, table *dialect.Table, err error) {
	file, err := p.selection.load(environment())
	if err != nil {
		return nil, nil, err
	}
	if table, err = file.Table(); err != nil {
		return nil, nil, &usageError{err, ""}
	}
	if len(p.dialects) == 0 {
		p.dialects = []string{"openai"}
	}
	for _, name := range files {
		list, err := readInput([]string{name})
		if err != nil {
			return nil, nil, &usageError{err, ""}
		}
		label := strings.TrimSuffix(filepath.Base(name), filepath.Ext(name))
		read, err := savedTools(label, list)
		if err != nil {
			return nil, nil, &usageError{fmt.Errorf("%s: %w", name, err), `it should be {"tools":[…]}, as MCP's tools/list answers`}
		}
		tools = append(tools, read...)
	}
	return tools, table, nil
}

// savedTools reads a list of tools. A tool that cannot be read is quarantined.
func savedTools(label string, list []byte) (tools []dragoman.Tool, err error) {
	var frame struct{ Tools []json.RawMessage }
	if strings.HasPrefix(strings.TrimSpace(string(list)), "[") {
		err = json.Unmarshal(list, &frame.Tools)
	} else if err = json.Unmarshal(list, &frame); err == nil && frame.Tools == nil {
		err = errors.New("there is no member tools")
	}
	if err != nil {
		return nil, err
	}
	for i, raw := range frame.Tools {
		var entry struct {
			Name, Description         string
			InputSchema, OutputSchema json.RawMessage
		}
		tool := dragoman.Tool{Server: label, Definition: raw}
		if err := json.Unmarshal(raw, &entry); err != nil {
			tool.Name = fmt.Sprintf("(entry %d)", i)
			tool.Quarantined = &dragoman.Problem{Code: dragoman.CodeInvalidTool, Message: "The entry cannot be read: " + err.Error()}
		} else {
			tool.Name, tool.Original, tool.Description = entry.Name, entry.Name, entry.Description
			tool.InputSchema, tool.OutputSchema = entry.InputSchema, entry.OutputSchema
		}
		tools = append(tools, tool)
	}
	return tools, nil
}

// fails reports whether the proofs hold something that the command is to fail on.
func (p *proofs) fails(on []string) bool {
	if slices.Contains(on, failMissing) && len(p.Missing) > 0 {
		return true
	}
	return slices.ContainsFunc(p.Proofs, func(proof *prove.Proof) bool {
		return proof.Unusable != "" && slices.Contains(on, failUnusable) ||
			slices.ContainsFunc(proof.Witnesses, func(w prove.Witness) bool { return slices.Contains(on, string(w.Kind)) })
	})
}
