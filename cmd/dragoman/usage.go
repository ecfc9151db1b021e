package main

import (
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/dragoman-mcp/dragoman/internal/door/terminal"
	"github.com/dragoman-mcp/dragoman/internal/judge/budget"
	"github.com/dragoman-mcp/dragoman/internal/judge/usage"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
	"github.com/dragoman-mcp/dragoman/internal/text/money"
)

func usageCommand() *cobra.Command {
	var at, by, since, who string
	var asJSON, asCSV, onlyBudgets bool
	cmd := &cobra.Command{
		Use:   "usage",
		Short: "Show what callers used of models and tools, and what it cost",
		Long: `Adds up what was used, from the store of the gateway, which writes it down within five
seconds: calls, errors, time, tokens, repairs of arguments, results that were cut, and
what it cost, where models have a price and tools have prices. Half of the calls took no
longer than p50_seconds, and 95 of a hundred no longer than p95_seconds, to within a
factor of two. --by tells apart by some of day, hour, caller, model, server and tool:

  dragoman usage --since 7d
  dragoman usage --by caller,model --since 30d --csv

Budgets of the configuration, with what is left of them, stand behind that; --budgets shows
them alone, and with --json one on a line.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var q usage.Query
			var err error
			if q.By, err = usage.ParseBy(by); err != nil {
				return &usageError{fmt.Errorf("--by: %w", err), "for example: --by caller,model"}
			}
			if q.Since, err = usage.ParseSince(since, time.Now()); err != nil {
				return &usageError{fmt.Errorf("--since: %w", err), "for example: --since 7d"}
			}
			if asJSON && asCSV || onlyBudgets && asCSV {
				return &usageError{errors.New("--json and --csv are two forms, and budgets have no CSV; choose one"), ""}
			}
			s := selection{config: at}
			file, err := s.load(only("budgets.*", "usage.*"))
			if err != nil {
				return err
			}
			keys, l, err := openStore(cmd.Context(), at)
			if err != nil {
				return err
			}
			defer l.Close()
			if who != "" {
				if who, err = calledSo(cmd.Context(), keys, l, who); err != nil {
					return err
				}
				q.Caller = who
			}
			if onlyBudgets {
				return budgets(cmd.Context(), l.DB, file.Budgets, who, asJSON)
			}
			rows, err := usage.Read(cmd.Context(), l.DB, q)
			switch {
			case err != nil:
				return err
			case asJSON:
				e := json.NewEncoder(terminal.Documents(os.Stdout))
				for _, r := range rows {
					if err := e.Encode(r); err != nil {
						return err
					}
				}
				return nil
			case asCSV:
				return csvUsage(q.By, rows)
			}
			if err := showUsage(q.By, rows, l.DB.String()); err != nil || len(file.Budgets) == 0 {
				return err
			}
			fmt.Println()
			return budgets(cmd.Context(), l.DB, file.Budgets, who, false)
		},
	}
	f := cmd.Flags()
	f.StringVar(&by, "by", "caller,model,tool", "tell apart by a `LIST` of day, hour, caller, model, server and tool")
	f.StringVar(&since, "since", "7d", "from so `LONG` ago on, such as 12h or 30d; empty for all that is kept")
	f.StringVar(&who, "caller", "", "only of the caller with this `NAME` or ID")
	f.BoolVar(&onlyBudgets, "budgets", false, "show only what is spent of the budgets, and what is left")
	f.BoolVar(&asJSON, "json", false, "write JSON, one row on a line")
	f.BoolVar(&asCSV, "csv", false, "write CSV with a line of names")
	configFlag(cmd, &at)
	return cmd
}

// names of what is told apart, in the order of the columns.
func told(by []string) (names []string) {
	for _, name := range usage.Columns {
		if slices.Contains(by, name) {
			names = append(names, name)
		}
	}
	return names
}

func value(r *usage.Row, column string) string {
	return map[string]string{usage.ByDay: r.Day, usage.ByHour: r.Hour, usage.ByCaller: r.Caller, usage.ByModel: r.Model, usage.ByServer: r.Server, usage.ByTool: r.Tool}[column]
}

// sums are the columns behind those that rows are told apart by.
var sums = []string{"calls", "errors", "seconds", "p50_seconds", "p95_seconds", "input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens", "repairs", "truncated", "cost"}

func numbers(s *usage.Row) []string {
	n := func(n int64) string { return strconv.FormatInt(n, 10) }
	seconds := func(micros int64) string { return strconv.FormatFloat(float64(micros)/1e6, 'f', 3, 64) }
	return []string{
		n(s.Calls), n(s.Errors), seconds(s.Micros), seconds(s.P50), seconds(s.P95), n(s.Input), n(s.Output), n(s.Cached), n(s.Reasoning),
		n(s.Repairs), n(s.Cuts), money.Format(s.Cost),
	}
}

func csvUsage(by []string, rows []usage.Row) error {
	w := csv.NewWriter(os.Stdout)
	_ = w.Write(append(told(by), sums...))
	for i := range rows {
		var line []string
		for _, column := range told(by) {
			text := value(&rows[i], column)
			if text != "" && (text[0] == '=' || text[0] == '+' || text[0] == '-' || text[0] == '@') {
				text = "'" + text // a program for tables would take it for a formula
			}
			line = append(line, text)
		}
		_ = w.Write(append(line, numbers(&rows[i])...))
	}
	w.Flush()
	return w.Error()
}

func showUsage(by []string, rows []usage.Row, from string) error {
	if len(rows) == 0 {
		fmt.Fprintln(os.Stderr, "Nothing was used in that time, by what "+from+" says.")
		return nil
	}
	screen := terminal.NewScreen(os.Stdout)
	w := tabwriter.NewWriter(screen, 0, 0, 2, ' ', 0)
	for _, name := range append(told(by), sums...) {
		fmt.Fprint(w, name, "\t")
	}
	fmt.Fprintln(w)
	for i := range rows {
		for _, column := range told(by) {
			text := value(&rows[i], column)
			if text == "" {
				text = "-"
			}
			fmt.Fprint(w, text, "\t")
		}
		for _, n := range numbers(&rows[i]) {
			fmt.Fprint(w, n, "\t")
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}

// budgets shows what is spent of the budgets of the configuration; of one caller where who
// is its ID, with what it shares with others.
func budgets(ctx context.Context, db *store.DB, all []budget.Budget, who string, asJSON bool) error {
	spending, err := usage.ReadSpending(ctx, db, time.Now())
	if err != nil {
		return err
	}
	states := budget.Read(all, spending)
	if who != "" {
		states = slices.DeleteFunc(states, func(s budget.State) bool { return s.Caller != "" && s.Caller != who })
	}
	if asJSON {
		e := json.NewEncoder(terminal.Documents(os.Stdout))
		for i := range states {
			if err := e.Encode(&states[i]); err != nil {
				return err
			}
		}
		return nil
	}
	if len(states) == 0 {
		fmt.Fprintln(os.Stderr, "Nothing was spent of any budget.")
		return nil
	}
	w := tabwriter.NewWriter(terminal.NewScreen(os.Stdout), 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "budget\tcaller\tspent\ttokens\tleft\tcost\tleft\tuntil\tstate\t")
	for _, s := range states {
		tokens, cost := "-", "-"
		if s.TokensOf > 0 {
			tokens = strconv.FormatInt(s.TokensLeft, 10)
		}
		if s.Money() {
			cost = money.Format(s.CostLeft)
		}
		fmt.Fprintf(w, "%s\t%s\t%d %%\t%d\t%s\t%s\t%s\t%s\t%s\t\n", s.Budget, cmp.Or(s.Caller, "all of them"), s.Percent,
			s.Tokens, tokens, money.Format(s.Cost), cost, s.Ends.Format(time.DateOnly), strings.ReplaceAll(s.Level, "_", " "))
	}
	return w.Flush()
}
