package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/door/terminal"
	"github.com/dragoman-mcp/dragoman/internal/judge/pin"
	"github.com/dragoman-mcp/dragoman/internal/state/atomicfile"
	"github.com/dragoman-mcp/dragoman/internal/text/glob"
	"github.com/dragoman-mcp/dragoman/lint"
)

// audit is what the command line of lint says.
type audit struct {
	selection
	format, output string
	probe          string
	attack         []string
	yes            bool
	configOnly     bool
	legacy         bool
	failOn         string
	only, skip     []string
	dialects       []string
	suppressions   string
	lock           string
	writeLock      bool
	baseline       string
	writeBaseline  bool
	explain        string
	fix            bool
	prove          bool
	engines        string
	partial        bool // there are servers that are not audited
}

func lintCommand() *cobra.Command {
	var a audit
	cmd := &cobra.Command{
		Use:   "lint [FILE|- …] [-- SERVER-COMMAND …]",
		Short: "Tell the author of an MCP server what will hurt its users",
		Long: `Audits MCP servers: saved answers to tools/list, a command after "--", --url, or all
servers of a configuration together. It works offline and needs no model.

A running server is also watched: what it says on the wire, how it takes requests
that no client sends, and what its tools do. By default only tools are called that
say they only read; --probe none calls none, --probe all calls all. No identifier is
ever made up. --probe attack attacks the tools that --attack names, one by one: it looks
whether an argument leads to files outside, to addresses of this machine, into a shell or
into a statement of a database. What is known to be malicious is not started, and --config-only starts
nothing: it judges how servers are configured.

--prove also looks, as dragoman prove does, for calls on which a model and a server
cannot agree: by the grammar engine of a dialect where --engines has it, else by the
schema that is sent.

With --baseline only findings that the file does not know count; --write-baseline makes
it of what there is now. "dragoman lint init" writes what a service for continuous
integration runs.

Findings can be suppressed in ` + lint.SuppressionsName + `, and tools pinned in ` + pin.LockName + `; both are
looked for in the working directory. docs/lint.md lists the rules.

It exits with 1 when there is a finding of --fail-on or worse, and with 2 when the
command line or a file makes no sense.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			args, err := a.args(cmd, args)
			if err != nil {
				return err
			}
			if a.explain != "" {
				return a.explainRule()
			}
			return a.run(cmd.Context(), args)
		},
	}
	a.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&a.format, "format", "text", "`FORMAT` of the report: text, json, jsonl, sarif, junit or markdown")
	f.StringVarP(&a.output, "output", "o", "", "write the report to `FILE` instead of standard output")
	f.StringVar(&a.probe, "probe", "safe", "which tools of running servers to call: none, safe, all, or attack")
	f.StringSliceVar(&a.attack, "attack", nil, "the `TOOL` that --probe attack attacks; may be repeated")
	f.BoolVar(&a.yes, "yes", false, "do not ask before --probe all or attack")
	f.BoolVar(&a.configOnly, "config-only", false, "judge how servers are configured, and start none")
	f.BoolVar(&a.legacy, "legacy", false, "greet servers of both eras in the legacy one")
	f.StringVar(&a.failOn, "fail-on", "error", "`SEVERITY` from which on to exit with 1: error, warning, info or never")
	f.StringSliceVar(&a.only, "only", nil, "check these `RULES` alone; patterns such as X* are allowed")
	f.StringSliceVar(&a.skip, "skip", nil, "leave these `RULES` out; patterns are allowed")
	f.StringSliceVar(&a.dialects, "dialect", lint.DefaultDialects, "`DIALECTS` to convert tools into, or all; docs/dialects.md lists them")
	f.StringVar(&a.suppressions, "suppressions", "", "`FILE` of suppressions (default "+lint.SuppressionsName+", if it is there)")
	f.StringVar(&a.lock, "lock", "", "`FILE` of pins to compare with (default "+pin.LockName+", if it is there)")
	f.BoolVar(&a.writeLock, "write-lock", false, "pin the tools as they are now")
	f.StringVar(&a.baseline, "baseline", "", "`FILE` of findings that were there before, and do not count")
	f.BoolVar(&a.writeBaseline, "write-baseline", false, "write the findings as they are now into the file of --baseline")
	f.StringVar(&a.explain, "explain", "", "say what the rule `ID` is about; all for all rules")
	f.BoolVar(&a.prove, "prove", false, "look for calls on which model and server cannot agree; takes longer")
	f.StringVar(&a.engines, "engines", os.Getenv(envEngines), "`FOLDER` with grammar engines, which --prove runs (default $"+envEngines+")")
	f.BoolVar(&a.fix, "fix", false, "print a patch for what can be mended in one way only, instead of the report")
	cmd.AddCommand(lintInitCommand())
	return cmd
}

func (a *audit) explainRule() error {
	out := terminal.NewScreen(os.Stdout)
	if strings.EqualFold(a.explain, "all") {
		for i, r := range slices.Concat(lint.Rules(), proofRules(nil)) {
			if i > 0 {
				out.Printf("\n")
			}
			out.Rule(r)
		}
		return nil
	}
	r, ok := lint.Explain(a.explain)
	for _, proof := range proofRules(nil) {
		if strings.EqualFold(proof.ID, a.explain) {
			r, ok = proof, true
		}
	}
	if !ok {
		return &usageError{fmt.Errorf("there is no rule %q", a.explain), "dragoman lint --explain all lists them"}
	}
	out.Rule(r)
	return nil
}

// run audits what the command line names.
func (a *audit) run(ctx context.Context, files []string) (err error) {
	stderr := terminal.NewScreen(os.Stderr)
	status := terminal.NewStatus(stderr)
	showing := func(server, doing string) { status.Show(server + ": " + doing) }
	source, err := a.proofs(ctx, stderr, showing)
	if err != nil {
		return &usageError{err, "see: dragoman lint --help"}
	}
	defer source.Close()
	o, failOn, err := a.options(source)
	if err != nil {
		return &usageError{err, "see: dragoman lint --help"}
	}
	o.Progress, o.ConfigOnly = showing, a.configOnly
	targets, closing, err := a.targets(files)
	if err != nil {
		return err
	}
	defer closing()
	o.Partial = a.partial
	if err := a.confirm(o.Probe, targets); err != nil {
		return err
	}
	out, err := a.outlet(status, slices.ContainsFunc(targets, func(t lint.Target) bool { return t.List == nil }))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	o.Found = out.found
	report, err := lint.Run(ctx, targets, o)
	status.Clear()
	if err == nil && source.err != nil {
		return source.err
	}
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		return &usageError{err, `a saved list is {"tools":[…]}, as MCP's tools/list answers`}
	}
	if a.verbose {
		printLog(stderr, report)
	}
	if err := out.write(report, failOn); err != nil {
		return err
	}
	if err := a.keep(report); err != nil {
		return err
	}
	if report.Worst() >= failOn {
		return errFailed
	}
	return nil
}

// keep writes the files that later audits compare with, where that is wanted.
func (a *audit) keep(report *lint.Report) error {
	if a.writeLock {
		if err := atomicfile.Share(a.lockFile(), report.Lock()); err != nil {
			return fmt.Errorf("writing the lock: %w", err)
		}
	}
	if a.writeBaseline {
		var text bytes.Buffer
		if err := report.WriteJSON(&text); err != nil {
			return err
		}
		if err := atomicfile.Share(a.baseline, text.Bytes()); err != nil {
			return fmt.Errorf("writing the baseline: %w", err)
		}
	}
	return nil
}

// never is above every severity.
const never = lint.Error + 1

// options makes sense of the flags.
func (a *audit) options(source *proofSource) (o lint.Options, failOn lint.Severity, err error) {
	switch a.probe {
	case "none":
		o.Probe = lint.ProbeNone
	case "safe":
		o.Probe = lint.ProbeSafe
	case "all":
		o.Probe = lint.ProbeAll
	case "attack":
		o.Probe, o.Attack = lint.ProbeAttack, a.attack
	default:
		return o, 0, fmt.Errorf("--probe is none, safe, all or attack, not %q", a.probe)
	}
	if (a.probe == "attack") != (len(a.attack) > 0) {
		return o, 0, errors.New("--probe attack and --attack TOOL belong together: only what is named is attacked")
	}
	if failOn = never; a.failOn != "never" {
		if failOn, err = lint.ParseSeverity(a.failOn); err != nil {
			return o, 0, fmt.Errorf("--fail-on: %w; or never", err)
		}
	}
	if a.configOnly && a.writeLock {
		return o, 0, errors.New("--config-only asks no server, so that there is nothing to pin")
	}
	if !slices.Contains([]string{"text", "json", "jsonl", "sarif", "junit", "markdown"}, a.format) {
		return o, 0, fmt.Errorf("--format is text, json, jsonl, sarif, junit or markdown, not %q", a.format)
	}
	if o.Rules, o.LeftOut, err = a.rules(source); err != nil {
		return o, 0, err
	}
	if o.Dialects = a.dialects; slices.Equal(a.dialects, []string{"all"}) {
		o.Dialects = dialect.Names()
	}
	text, err := readOptional(a.suppressions, lint.SuppressionsName)
	if err == nil && text != nil {
		o.Suppressions, err = lint.ParseSuppressions(text)
	}
	if err == nil && !a.writeLock {
		o.Lock, err = readOptional(a.lock, pin.LockName)
	}
	if err == nil {
		o.Baseline, err = a.readBaseline()
	}
	return o, failOn, err
}

// readBaseline reads what --baseline names, unless that is to be written.
func (a *audit) readBaseline() (lint.Baseline, error) {
	switch {
	case a.writeBaseline && a.baseline == "":
		return nil, errors.New("--write-baseline needs the name of the file: --baseline FILE")
	case a.writeBaseline || a.baseline == "":
		return nil, nil
	}
	text, err := os.ReadFile(a.baseline)
	if err != nil {
		return nil, fmt.Errorf("%w; --write-baseline makes one of what is found now", err)
	}
	return lint.ParseBaseline(text)
}

// proofs is what the rules of --prove ask, and says what it goes by.
func (a *audit) proofs(ctx context.Context, stderr *terminal.Screen, showing func(server, doing string)) (*proofSource, error) {
	if !a.prove {
		return &proofSource{}, nil
	}
	dialects := a.dialects
	if slices.Equal(dialects, []string{"all"}) {
		dialects = dialect.Names()
	}
	source, err := newProofSource(ctx, a.engines, dialects, showing)
	if err != nil {
		return nil, err
	}
	for _, missing := range source.missing {
		stderr.Printf("%s %s: V001 and V002 go by the schema that is sent, not by what the engine does\n", stderr.Warn("NOT ASKED:"), terminal.OneLine(missing, 300))
	}
	return source, nil
}

// rules are those that --only, --skip and --prove leave, and the others.
func (a *audit) rules(source *proofSource) (run, leftOut []lint.Rule, err error) {
	all, proofs := lint.Rules(), proofRules(source)
	if a.prove {
		all = append(all, proofs...)
	} else {
		leftOut = proofs
	}
	for _, pattern := range slices.Concat(a.only, a.skip) {
		if !slices.ContainsFunc(all, func(r lint.Rule) bool { return glob.MatchAny([]string{pattern}, r.ID) }) {
			return nil, nil, fmt.Errorf("no rule is called %q", pattern)
		}
	}
	for _, r := range all {
		if len(a.only) > 0 && !glob.MatchAny(a.only, r.ID) || glob.MatchAny(a.skip, r.ID) {
			leftOut = append(leftOut, r)
		} else {
			run = append(run, r)
		}
	}
	return run, leftOut, nil
}

func (a *audit) lockFile() string {
	if a.lock != "" {
		return a.lock
	}
	return pin.LockName
}

// readOptional reads the file that a flag names, or the usual one if it is there.
func readOptional(flag, usual string) ([]byte, error) {
	name := flag
	if name == "" {
		name = usual
	}
	text, err := os.ReadFile(name)
	if flag == "" && errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return bytes.TrimPrefix(text, []byte("\ufeff")), err
}

// confirm asks before tools are called that may change something, or attacked.
func (a *audit) confirm(probe lint.Probe, targets []lint.Target) error {
	running := slices.ContainsFunc(targets, func(t lint.Target) bool { return t.List == nil })
	if probe != lint.ProbeAll && probe != lint.ProbeAttack || a.yes || !running {
		return nil
	}
	what := "All tools will be called, also those that change or delete something."
	if probe == lint.ProbeAttack {
		what = "Up to 200 hostile calls will be made of " + strings.Join(a.attack, ", ") + ". What it writes, it writes."
	}
	stderr := terminal.NewScreen(os.Stderr)
	if !stderr.Live || !terminal.NewScreen(os.Stdin).Live {
		return &usageError{fmt.Errorf("--probe %s makes calls that may change something, and there is nobody to ask", a.probe), "say --yes if that is meant"}
	}
	stderr.Printf("%s Go on? Type yes: ", terminal.Visible(what))
	answer, _ := bufio.NewReader(os.Stdin).ReadString('\n') // no answer is no
	if strings.TrimSpace(answer) != "yes" {
		return &usageError{errors.New("nothing was called"), ""}
	}
	return nil
}

// printLog shows what was sent to running servers.
func printLog(out *terminal.Screen, report *lint.Report) {
	for _, a := range report.Servers {
		if a.Server.Live == nil {
			continue
		}
		for _, line := range a.Server.Live.Log {
			out.Printf("%s %s\n", out.Faint(terminal.Visible(a.Server.Label)+" <-"), terminal.Visible(line))
		}
	}
}
