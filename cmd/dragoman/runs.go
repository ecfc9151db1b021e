package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/door/terminal"
	"github.com/dragoman-mcp/dragoman/internal/judge/approval"
	"github.com/dragoman-mcp/dragoman/internal/judge/ledger"
	runs "github.com/dragoman-mcp/dragoman/internal/state/run"
	"github.com/dragoman-mcp/dragoman/internal/state/stored"
	"github.com/dragoman-mcp/dragoman/internal/state/vault"
)

func runsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "runs",
		Short: "Show what runs in the background, follow it and cancel it",
		Long: `Looks after responses that clients let run in the background ("background": true), of all
callers, in the store that the configuration names. A gateway may run meanwhile: both use
the same store. An ID is a response's, or the beginning that no other has:

  dragoman runs list --state waiting
  dragoman runs follow resp_dg7kq2m0
  dragoman runs cancel resp_dg7kq2m0

Over HTTP the same is at /ops/runs; docs/use.md says more.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(runsListCommand(), runsShowCommand(), runsFollowCommand(), runsCancelCommand())
	return cmd
}

// A runsStore is what there is of runs in the store of a configuration.
type runsStore struct {
	*ledger.Ledger
	file *config.File
	runs *runs.Runs
	made *stored.Responses
}

func openRuns(ctx context.Context, at string) (*runsStore, error) {
	file, l, err := openStore(ctx, at)
	if err != nil {
		return nil, err
	}
	keys, err := vault.Open(ctx, l.DB, file.Store)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return &runsStore{
		Ledger: l, file: file, runs: runs.Open(l.DB, keys, runs.Config{Life: file.Store.Retention, Woken: approval.Settled}),
		made: stored.New(l.DB, keys, file.Store.Retention),
	}, nil
}

func runsListCommand() *cobra.Command {
	var at string
	var f runs.Filter
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List what runs, waits or is done, the newest first",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.State != "" && !slices.Contains(runs.States, f.State) {
				return &usageError{fmt.Errorf("--state: %q is none of %s", f.State, strings.Join(runs.States, ", ")), ""}
			}
			s, err := openRuns(cmd.Context(), at)
			if err != nil {
				return err
			}
			defer s.Close()
			if f.Owner != "" {
				if f.Owner, err = calledSo(cmd.Context(), s.file, s.Ledger, f.Owner); err != nil {
					return err
				}
			}
			all, err := s.runs.List(cmd.Context(), f)
			if err != nil {
				return err
			}
			if asJSON {
				e := json.NewEncoder(terminal.Documents(os.Stdout))
				for _, r := range all {
					if err := e.Encode(r); err != nil {
						return err
					}
				}
				return nil
			}
			if len(all) == 0 {
				terminal.NewScreen(os.Stderr).Printf("nothing runs in the background in %s\n", s.DB.String())
				return nil
			}
			w := tabwriter.NewWriter(terminal.NewScreen(os.Stdout), 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "id\tstate\tcaller\tmodel\tbegun\twaits for")
			for _, r := range all {
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", r.ID, stateOf(r), terminal.OneLine(r.Owner, 200), terminal.OneLine(r.Label, 100), r.Made.Local().Format(time.DateTime), r.Waits)
			}
			return w.Flush()
		},
	}
	cmd.Flags().StringVar(&f.State, "state", "", "only those in this `STATE`: "+strings.Join(runs.States, ", "))
	cmd.Flags().StringVar(&f.Owner, "caller", "", "only those of the caller with this `NAME` or ID")
	cmd.Flags().IntVar(&f.Most, "limit", 100, "at most so many")
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON, one on a line")
	configFlag(cmd, &at)
	return cmd
}

// stateOf is what a run is at: how it ended, where it is done.
func stateOf(r runs.Run) string {
	if r.State == runs.Done {
		return r.Outcome
	}
	return r.State
}

func runsShowCommand() *cobra.Command {
	var at string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show one, and with --json the response as it is now",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, ids []string) error {
			s, r, err := foundRun(cmd.Context(), at, ids[0])
			if err != nil {
				return err
			}
			defer s.Close()
			if asJSON {
				response, err := s.made.Get(cmd.Context(), r.Owner, r.ID)
				if err != nil {
					return err
				}
				shown := struct {
					runs.Run
					Response json.RawMessage `json:"response,omitempty"`
				}{Run: r}
				if response != nil {
					shown.Response = response.Response
				}
				return printJSON(shown)
			}
			showRun(r)
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON, with the response")
	configFlag(cmd, &at)
	return cmd
}

func showRun(r runs.Run) {
	out := terminal.NewScreen(os.Stdout)
	line := func(name, value string) {
		if value != "" {
			out.Printf("%-10s %s\n", name, terminal.OneLine(value, 400))
		}
	}
	line("id", r.ID)
	line("state", stateOf(r))
	line("caller", r.Owner)
	line("model", r.Label)
	line("begun", r.Made.Local().Format(time.DateTime))
	if !r.Ended.IsZero() {
		line("ended", r.Ended.Local().Format(time.DateTime))
	}
	line("events", fmt.Sprint(r.Last+1))
	if r.Attempt > 0 {
		line("taken up", fmt.Sprintf("%d times, after a process died with it", r.Attempt))
	}
	if r.Waits != "" {
		line("waits for", fmt.Sprintf("approval %s: dragoman approve %s", r.Waits, r.Waits))
	}
}

// foundRun opens the store and finds a run in it. Who gets no error closes the store.
func foundRun(ctx context.Context, at, id string) (*runsStore, runs.Run, error) {
	s, err := openRuns(ctx, at)
	if err != nil {
		return nil, runs.Run{}, err
	}
	r, err := s.runs.Find(ctx, "", id)
	if err != nil {
		s.Close()
		return nil, r, &failure{fmt.Errorf("%s: %w", id, err), "dragoman runs list shows those that there are"}
	}
	return s, r, nil
}

func runsFollowCommand() *cobra.Command {
	var at string
	var after int64
	cmd := &cobra.Command{
		Use:   "follow ID",
		Short: "Write the events of one as they come, a line of JSON each, until it is over",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, ids []string) error {
			s, r, err := foundRun(cmd.Context(), at, ids[0])
			if err != nil {
				return err
			}
			defer s.Close()
			out := terminal.Documents(os.Stdout)
			for event, err := range s.runs.Follow(cmd.Context(), r.Owner, r.ID, after) {
				if err != nil {
					return err
				}
				if _, err := fmt.Fprintf(out, "%s\n", event.Data); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().Int64Var(&after, "after", -1, "begin behind the event with this `NUMBER`")
	configFlag(cmd, &at)
	return cmd
}

func runsCancelCommand() *cobra.Command {
	var at string
	cmd := &cobra.Command{
		Use:   "cancel ID …",
		Short: "End what runs or waits; what a tool has done stays done",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, ids []string) error {
			s, err := openRuns(cmd.Context(), at)
			if err != nil {
				return err
			}
			defer s.Close()
			var failed error
			for _, id := range ids {
				if err := s.cancel(cmd.Context(), id); err != nil {
					terminal.NewScreen(os.Stderr).Error(fmt.Errorf("%s: %w", id, err), "")
					failed = errFailed
				}
			}
			return failed
		},
	}
	configFlag(cmd, &at)
	return cmd
}

func (s *runsStore) cancel(ctx context.Context, id string) error {
	r, err := s.runs.Find(ctx, "", id)
	if err != nil {
		return err
	}
	if _, err = stored.Cancel(ctx, s.runs, s.made, r.Owner, r.ID); err != nil {
		return err
	}
	if r, err = s.runs.Get(ctx, r.Owner, r.ID); err == nil {
		terminal.NewScreen(os.Stdout).Printf("%s  %s\n", r.ID, stateOf(r))
	}
	return err
}
