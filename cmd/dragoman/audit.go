package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dragoman-mcp/dragoman/internal/door/terminal"
	auditlog "github.com/dragoman-mcp/dragoman/internal/judge/audit"
	"github.com/dragoman-mcp/dragoman/internal/judge/ledger"
	"github.com/dragoman-mcp/dragoman/internal/show"
)

func auditCommand() *cobra.Command {
	var w auditWish
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Show who did what, and check that nobody changed the record of it",
		Long: `Shows the last records of the audit log, the newest at the end: what was decided, what
was about to run, what came of it. --caller, --server and --tool take patterns with *
and ?, --caller for the ID of a caller or for the name that it had then, also when its
key has been revoked since; --since takes a time, or how long ago:

  dragoman audit --since 2h --verdict deny
  dragoman audit --caller ada --tool 'delete_*' --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f, l, err := w.open(cmd.Context())
			if err != nil {
				return err
			}
			defer l.Close()
			found, err := l.Audit.Find(cmd.Context(), f)
			if err != nil {
				return err
			}
			slices.Reverse(found)
			return showRecords(found, asJSON, l.DB.String())
		},
	}
	w.flags(cmd)
	cmd.Flags().IntVar(&w.limit, "limit", 50, "show at most so `MANY`, the newest; 0 for all")
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON, one record on a line, with its hash")
	cmd.AddCommand(auditVerifyCommand(), auditExportCommand())
	return cmd
}

// An auditWish is what the flags say.
type auditWish struct {
	config                                    string
	since, until                              string
	caller, server, tool, verdict, kind, call string
	limit                                     int
}

func (w *auditWish) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&w.since, "since", "", "only from this `TIME` on: 2h, 7d, 2026-11-21 or 2026-11-21T14:00:00Z")
	f.StringVar(&w.until, "until", "", "only before this `TIME`")
	f.StringVar(&w.caller, "caller", "", "only of callers whose ID, or name then, matches this `PATTERN`")
	f.StringVar(&w.server, "server", "", "only of servers whose label matches this `PATTERN`")
	f.StringVar(&w.tool, "tool", "", "only of tools whose name at their server matches this `PATTERN`")
	f.StringVar(&w.verdict, "verdict", "", "only with this `VERDICT`: allow, ask or deny")
	f.StringVar(&w.kind, "kind", "", "only of this `KIND`: decision, intent, outcome, approval, pin, …")
	f.StringVar(&w.call, "call", "", "only of the call with this `ID`")
	configFlag(cmd, &w.config)
}

// open returns what is wished for, and where it is found.
func (w *auditWish) open(ctx context.Context) (auditlog.Filter, *ledger.Ledger, error) {
	f, err := w.filter(time.Now())
	if err != nil {
		return f, nil, err
	}
	l, err := openLedger(ctx, w.config)
	return f, l, err
}

// filter reads the flags.
func (w *auditWish) filter(now time.Time) (auditlog.Filter, error) {
	f := auditlog.Filter{Kind: auditlog.Kind(w.kind), Call: w.call, Caller: w.caller, Server: w.server, Tool: w.tool, Verdict: w.verdict, Limit: w.limit}
	if w.limit < 0 {
		return f, &usageError{errors.New("--limit is a number of records"), ""}
	}
	if !slices.Contains([]string{"", auditlog.Allow, auditlog.Ask, auditlog.Deny}, w.verdict) {
		return f, &usageError{fmt.Errorf("there is no verdict %q", w.verdict), "verdicts are allow, ask and deny"}
	}
	if w.kind != "" && !slices.Contains(auditlog.Kinds, f.Kind) {
		return f, &usageError{fmt.Errorf("there is no kind %q", w.kind), fmt.Sprintf("kinds are %s", strings.Trim(fmt.Sprint(auditlog.Kinds), "[]"))}
	}
	for _, at := range []struct {
		flag, text string
		time       *time.Time
	}{{"--since", w.since, &f.Since}, {"--until", w.until, &f.Until}} {
		var err error
		if *at.time, err = moment(at.text, now); err != nil {
			return f, &usageError{fmt.Errorf("%s: %w", at.flag, err), "for example: " + at.flag + " 2h"}
		}
	}
	return f, nil
}

// moment reads a time: how long ago, a day or a second; none is the zero time.
func moment(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if ago, err := lifetime(text); err == nil {
		return now.Add(-ago), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04", time.DateOnly} {
		if at, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return at, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is neither a time nor how long ago", text)
}

func showRecords(found []auditlog.Record, asJSON bool, from string) error {
	out := terminal.NewScreen(os.Stdout)
	for i := range found {
		if !asJSON {
			shown := show.RecordOf(&found[i])
			out.Printf("%s\n", shown.Line(out))
			continue
		}
		line, err := found[i].Line()
		if err != nil {
			return err
		}
		out.Printf("%s", line)
	}
	if len(found) == 0 && !asJSON {
		terminal.NewScreen(os.Stderr).Printf("there are no such records in %s\n", from)
	}
	return nil
}

func auditVerifyCommand() *cobra.Command {
	var at string
	var heads []string
	cmd := &cobra.Command{
		Use:   "verify [FILE]",
		Short: "Check that no record was changed, removed or added",
		Long: `Reads the logs of all processes, or an export of them, and checks the chains of their
hashes, and what they say of each other. It exits with 1, and names the first record
that does not fit, when somebody changed one, or took one away.

Whoever can write to the store can write all of it anew, or take away its beginning. To
find that, too, keep the heads that this prints somewhere else, and name them the next
time. Logs name each other's heads, so it is one for each process that still writes, or
fewer. A line with ! says what could not be compared: a log that begins later than with
its first record, though no record tells of its retention, or a head older than what is
there:

  dragoman audit verify --head k2v5c7q4wz3a:4711:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var kept []auditlog.Head
			for _, text := range heads {
				head, err := auditlog.ParseHead(text)
				if err != nil {
					return &usageError{fmt.Errorf("--head %s: %w", text, err), ""}
				}
				kept = append(kept, head)
			}
			check, err := verify(cmd.Context(), at, args, kept)
			if bad, ok := errors.AsType[*auditlog.Bad](err); ok {
				return fmt.Errorf("the log does not hold together from %w", bad)
			}
			if err != nil {
				return err
			}
			out := terminal.NewScreen(os.Stdout)
			switch {
			case check.Records == 0:
				out.Printf("%s no records\n", out.Good("✓"))
			case len(check.Logs) == 1:
				only := check.Logs[0]
				out.Printf("%s %s, from %d to %d, hold together\n", out.Good("✓"), terminal.Many(int(check.Records), "record"), only.First, only.Head.Seq)
			default:
				out.Printf("%s %s in %d logs hold together\n", out.Good("✓"), terminal.Many(int(check.Records), "record"), len(check.Logs))
			}
			for _, head := range check.Heads() {
				out.Printf("head %s\n", head)
			}
			for _, log := range check.Logs {
				if log.Untold {
					out.Printf("%s %s begins with record %d, and no record says that those before it were removed\n", out.Warn("!"), logName(log.Head.Log), log.First)
				}
			}
			for _, head := range check.Unseen {
				out.Printf("%s the record of head %s was removed, and it cannot be compared\n", out.Warn("!"), head)
			}
			return nil
		},
	}
	cmd.Flags().StringArrayVar(&heads, "head", nil, "a `LOG:SEQ:HASH` that was noted before, and has to be there; may be repeated")
	configFlag(cmd, &at)
	return cmd
}

// logName names a log; that without a name is the one that all processes once shared.
func logName(log string) string {
	if log == "" {
		return "the shared log"
	}
	return "log " + log
}

// verify checks the log, or an export of it.
func verify(ctx context.Context, configuration string, files []string, kept []auditlog.Head) (auditlog.Check, error) {
	if len(files) == 1 {
		var in io.Reader = os.Stdin
		if files[0] != "-" {
			file, err := os.Open(files[0])
			if err != nil {
				return auditlog.Check{}, err
			}
			defer file.Close()
			in = file
		}
		return auditlog.VerifyExport(in, kept...)
	}
	l, err := openLedger(ctx, configuration)
	if err != nil {
		return auditlog.Check{}, err
	}
	defer l.Close()
	return l.Audit.Verify(ctx, kept...)
}

func auditExportCommand() *cobra.Command {
	var w auditWish
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write the records as JSON, one on a line",
		Long: `Writes all records, or those that the flags choose: log by log, one for each start of a
process, the oldest of each first. Each line ends with its hash, which is the SHA-256 of
the line without that last member; the member prev is the hash of the line before in the
same log.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f, l, err := w.open(cmd.Context())
			if err != nil {
				return err
			}
			defer l.Close()
			return l.Audit.Export(cmd.Context(), os.Stdout, f)
		},
	}
	w.flags(cmd)
	return cmd
}
