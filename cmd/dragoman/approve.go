package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/user"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dragoman-mcp/dragoman/internal/door/terminal"
	"github.com/dragoman-mcp/dragoman/internal/judge/approval"
	"github.com/dragoman-mcp/dragoman/internal/judge/ledger"
	"github.com/dragoman-mcp/dragoman/internal/show"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

func approveCommand() *cobra.Command {
	var at string
	var all, asJSON bool
	cmd := &cobra.Command{
		Use:   "approve [ID …]",
		Short: "Say yes to calls that wait for a person",
		Long: `Shows the calls that a rule wants a person to approve, with all of their arguments.
On a terminal it asks about each of them; elsewhere it lists them. With IDs, or the
beginnings of IDs, it approves those:

  dragoman approve
  dragoman approve 7kq2m0x3ef
  dragoman deny 7kq2m0x3ef --why "not on a Friday"

An approval is for that one call, with those very arguments, and is used once. The
gateway learns of it within a second: both use the file that store.path names.`,
		RunE: func(cmd *cobra.Command, ids []string) error {
			l, err := openLedger(cmd.Context(), at)
			if err != nil {
				return err
			}
			defer l.Close()
			switch {
			case len(ids) > 0 && (all || asJSON):
				return &usageError{errors.New("--all and --json list, and take no IDs"), ""}
			case len(ids) > 0:
				return decideAll(cmd, ids, func(ctx context.Context, id string) (approval.Approval, error) {
					return l.Inbox.Approve(ctx, id, operator())
				})
			case all || asJSON:
				return listApprovals(cmd, l, all, asJSON)
			}
			if p := questioner(); p != nil {
				return answerAll(cmd.Context(), l, p)
			}
			return listApprovals(cmd, l, false, false)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "list those that were answered, too, the last 100")
	cmd.Flags().BoolVar(&asJSON, "json", false, "list as JSON, one on a line")
	configFlag(cmd, &at)
	return cmd
}

func denyCommand() *cobra.Command {
	var at, why string
	cmd := &cobra.Command{
		Use:   "deny ID …",
		Short: "Say no to calls that wait for a person",
		Long:  `Denies calls that "dragoman approve" lists. The model is told so, and why.`,
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, ids []string) error {
			l, err := openLedger(cmd.Context(), at)
			if err != nil {
				return err
			}
			defer l.Close()
			return decideAll(cmd, ids, func(ctx context.Context, id string) (approval.Approval, error) {
				return l.Inbox.Deny(ctx, id, operator(), why)
			})
		},
	}
	cmd.Flags().StringVar(&why, "why", "", "`REASON`, which the model is told")
	configFlag(cmd, &at)
	return cmd
}

// ledgerKeys are the keys of the configuration that say what is kept, and where.
var ledgerKeys = []string{"store.*", "audit.*", "approvals.*", "pins.*"}

// openLedger opens the store of the configuration, where there is one. Only a gateway makes
// it: who looks at a store may be somebody else, such as root, whose file the gateway could
// not open.
func openLedger(ctx context.Context, configuration string) (*ledger.Ledger, error) {
	c, log, err := ledgerConfig(configuration)
	if err != nil {
		return nil, err
	}
	if path := c.Store.Path; c.Store.URL.IsZero() {
		if path == "" {
			if path, err = store.DefaultPath(); err != nil {
				return nil, err
			}
		}
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return nil, &failure{fmt.Errorf("there is no store yet at %s", path), "a gateway makes it where there are keys, rules or limits, or where the configuration says store.path; --config names another configuration"}
		}
	}
	return ledger.Open(ctx, c, log)
}

// ledgerConfig is what the configuration says of the store. A gateway that keeps everything
// in memory has nothing that another process could see.
func ledgerConfig(configuration string) (ledger.Config, *slog.Logger, error) {
	s := selection{config: configuration}
	file, err := s.load(only(ledgerKeys...))
	if err != nil {
		return ledger.Config{}, nil, err
	}
	if file.Store.Path == store.Memory {
		return ledger.Config{}, nil, &usageError{errors.New("store.path is :memory:, which only the gateway's own process can see"), "name a file there"}
	}
	return ledger.Config{Store: file.Store, Audit: file.Audit, Approvals: file.Approvals}, s.logger(), nil
}

// operator is the person at this terminal, by the name that the system has for
// them. It is never the caller that programs on this machine are.
func operator() approval.Person {
	name := "unknown"
	if u, err := user.Current(); err == nil && u.Username != "" {
		name = u.Username
	}
	return approval.Person{ID: "terminal:" + name, Name: name}
}

// decideAll answers each of ids. One that cannot be answered keeps nobody from
// the others.
func decideAll(cmd *cobra.Command, ids []string, decide func(context.Context, string) (approval.Approval, error)) error {
	out := terminal.NewScreen(os.Stdout)
	var failed error
	for _, id := range ids {
		a, err := decide(cmd.Context(), id)
		if err != nil {
			terminal.NewScreen(os.Stderr).Error(err, "")
			failed = errFailed
			continue
		}
		shown := show.ApprovalOf(&a)
		out.Printf("%s%s\n", out.Fold(shown.Text(out)), shown.Verdict(out))
	}
	return failed
}

// listApprovals writes what waits, or everything, for people or for programs.
func listApprovals(cmd *cobra.Command, l *ledger.Ledger, all, asJSON bool) error {
	f := approval.Filter{State: approval.Pending, Limit: 1000}
	if all {
		f = approval.Filter{}
	}
	found, err := l.Inbox.List(cmd.Context(), f)
	if err != nil {
		return err
	}
	out, documents := terminal.NewScreen(os.Stdout), json.NewEncoder(terminal.Documents(os.Stdout))
	for i := range found {
		a := &found[i]
		if asJSON {
			if err := documents.Encode(a); err != nil {
				return err
			}
			continue
		}
		shown := show.ApprovalOf(a)
		out.Printf("%s%s\n\n", out.Fold(shown.Text(out)), shown.Verdict(out))
	}
	if len(found) == 0 && !asJSON {
		terminal.NewScreen(os.Stderr).Printf("nothing waits for an answer in %s\n", l.DB.String())
	}
	return nil
}

// questioner asks the person at the terminal; nil where there is none.
func questioner() *prompter {
	if !attended() {
		return nil
	}
	return &prompter{out: terminal.NewScreen(os.Stderr), line: func(hidden bool) (string, error) { return readTerminal(os.Stdin, hidden) }}
}

// answerAll asks about everything that waits, those that were asked first first.
func answerAll(ctx context.Context, l *ledger.Ledger, p *prompter) error {
	found, err := l.Inbox.List(ctx, approval.Filter{State: approval.Pending, Limit: 1000})
	if err != nil {
		return err
	}
	if len(found) == 0 {
		p.out.Printf("nothing waits for an answer in %s\n", l.DB.String())
	}
	for i := range found {
		p.out.Printf("%s of %d\n", p.out.Faint(fmt.Sprint(i+1)), len(found))
		switch err := answer(ctx, l.Inbox, &found[i], p); {
		case errors.Is(err, errQuit):
			return nil
		case err != nil:
			return err
		}
	}
	return nil
}

var errQuit = errors.New("the person has had enough")

// answer asks about one call, until there is an answer. Only a plain yes is one.
func answer(ctx context.Context, inbox *approval.Inbox, a *approval.Approval, p *prompter) error {
	shown := show.ApprovalOf(a)
	p.out.Printf("%s", p.out.Fold(shown.Text(p.out)))
	for {
		p.out.Printf("%s ", p.out.Bold("May it run? [y]es, [n]o, [s]kip, [q]uit:"))
		text, err := p.line(false)
		if err != nil {
			return err
		}
		var decided approval.Approval
		switch strings.ToLower(strings.TrimSpace(text)) {
		case "y", "yes":
			decided, err = inbox.Approve(ctx, a.ID, operator())
		case "n", "no":
			p.out.Printf("Why, for the model (may be empty): ")
			why, lineErr := p.line(false)
			if lineErr != nil {
				return lineErr
			}
			decided, err = inbox.Deny(ctx, a.ID, operator(), strings.TrimSpace(why))
		case "s", "skip":
			return nil
		case "q", "quit":
			return errQuit
		default:
			continue
		}
		if err != nil { // somebody else was quicker, or the rule names others
			p.out.Printf("%s\n\n", p.out.Warn(err.Error()))
			return nil
		}
		shown = show.ApprovalOf(&decided)
		p.out.Printf("%s\n\n", shown.Verdict(p.out))
		return nil
	}
}
