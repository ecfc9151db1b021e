package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/door/terminal"
	"github.com/dragoman-mcp/dragoman/internal/identity/apikey"
	"github.com/dragoman-mcp/dragoman/internal/judge/ledger"
	"github.com/dragoman-mcp/dragoman/internal/state/keeping"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
	"github.com/dragoman-mcp/dragoman/internal/state/vault"
)

func storeEraseCommand() *cobra.Command {
	var at, name, user string
	var lost, yes, asJSON bool
	cmd := &cobra.Command{
		Use:   "erase --caller NAME | --user ID | --lost-key",
		Short: "Remove all that is kept of a caller, or of a person",
		Long: `Removes all that is kept of a caller, and of everybody behind it, or of one person, and
the keys that it was encrypted under. Shows before what there is, and asks; --yes asks
nobody.

--caller is the name or the ID of a key, or the ID of a caller that the audit log has.
--user is a person behind any key, as requests name one (user, safety_identifier), or
the ID of whoever comes with an access token, ISSUER#SUBJECT.

--lost-key is for a store whose master key is lost: it removes what nobody can read any
more, of all owners, and a gateway makes new keys then. It is refused while the key fits.

The audit log stays as it is, and this says so. Backups that were made before still have
everything. The key itself is revoked with dragoman keys revoke.

  dragoman store erase --caller laptop
  dragoman store erase --user ada@example.org --yes`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if said := cmd.Flags().Changed; lost == (name != "" || user != "") || said("caller") && said("user") {
				return &usageError{errors.New("say whose: --caller NAME, --user ID or --lost-key"), ""}
			}
			p := questioner()
			if p == nil && !yes {
				return &usageError{errors.New("there is nobody at a terminal to ask"), "use --yes"}
			}
			file, l, err := openStore(cmd.Context(), at)
			if err != nil {
				return err
			}
			defer l.Close()
			if lost {
				return eraseUnreadable(cmd.Context(), file, l, yes, asJSON, p)
			}
			whose := keeping.Whose{User: user}
			if name != "" {
				if whose.Caller, err = calledSo(cmd.Context(), file, l, name); err != nil {
					return err
				}
			}
			found, err := keeping.Find(cmd.Context(), l.DB, whose)
			if err != nil {
				return err
			}
			if !slices.ContainsFunc(found, func(s keeping.Share) bool { return s.Stays == "" }) {
				return &failure{fmt.Errorf("nothing is kept of %s but what stays", terminal.OneLine(name+user, 200)), ""}
			}
			if !yes {
				showShares(terminal.NewScreen(os.Stderr), found, "will go")
				if err := agreed(p); err != nil {
					return err
				}
			}
			found, err = keeping.Erase(cmd.Context(), l.DB, whose)
			if err == nil {
				err = forgetLogins(whose)
			}
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(map[string]any{"caller": whose.Caller, "user": whose.User, "tables": found})
			}
			showShares(terminal.NewScreen(os.Stdout), found, "erased")
			terminal.NewScreen(os.Stderr).Printf("Backups that were made before still have it.\n")
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&name, "caller", "", "`NAME` or ID of a key, or the ID of another caller")
	f.StringVar(&user, "user", "", "`ID` of a person")
	f.BoolVar(&lost, "lost-key", false, "remove what nobody can read, since the master key is lost")
	f.BoolVar(&yes, "yes", false, "ask nobody")
	f.BoolVar(&asJSON, "json", false, "write JSON")
	configFlag(cmd, &at)
	return cmd
}

// forgetLogins removes the logins of a caller from the file that the store took them over
// from: they would be good there.
func forgetLogins(whose keeping.Whose) error {
	file := credentials()
	if file == nil {
		return nil
	}
	all, err := file.Sealed()
	for a := range all {
		if a.Caller != "" && (a.Caller == whose.Caller || a.Caller == whose.User) {
			err = errors.Join(err, file.Delete(a))
		}
	}
	return err
}

// eraseUnreadable begins anew where the master key is lost, and nowhere else.
func eraseUnreadable(ctx context.Context, file *config.File, l *ledger.Ledger, yes, asJSON bool, p *prompter) error {
	keys, err := vault.Look(ctx, l.DB, file.Store)
	if err != nil {
		return err
	}
	if keys.Trouble != nil && !errors.Is(keys.Trouble, vault.ErrOtherKey) {
		return keys.Trouble // it may be there all the same
	}
	if keys.Trouble == nil {
		return &failure{errors.New("the master key fits, or nothing was ever encrypted: nothing is lost"), ""}
	}
	if !yes {
		p.out.Printf("%s: what %s kept, and all that was sealed, goes\n", keys.Trouble, terminal.Many(keys.Owners, "owner"))
		if err := agreed(p); err != nil {
			return err
		}
	}
	found, err := keeping.EraseUnreadable(ctx, l.DB)
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(map[string]any{"tables": found})
	}
	showShares(terminal.NewScreen(os.Stdout), found, "erased")
	return nil
}

// agreed asks whether to go on. Only a plain yes is one.
func agreed(p *prompter) error {
	p.out.Printf("%s ", p.out.Bold("Erase it for good? [y]es, [n]o:"))
	text, err := p.line(false)
	if err != nil {
		return err
	}
	if answer := strings.ToLower(strings.TrimSpace(text)); answer != "y" && answer != "yes" {
		p.out.Printf("nothing was erased\n")
		return errFailed
	}
	return nil
}

func showShares(out *terminal.Screen, found []keeping.Share, gone string) {
	for _, s := range found {
		what := terminal.Many(int(s.Rows), "row")
		if s.Stays != "" {
			out.Printf("%-16s %s stay: %s\n", s.Table, what, s.Stays)
			continue
		}
		out.Printf("%-16s %s %s\n", s.Table, what, gone)
	}
}

// calledSo returns the ID of the one caller that a name, or an ID, means. A name that
// several keys have, or had, means none of them.
func calledSo(ctx context.Context, file *config.File, l *ledger.Ledger, name string) (string, error) {
	ids := map[string]bool{}
	if path := file.KeysFile(); path != "" {
		records, err := apikey.Read(path)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", err
		}
		for _, r := range records {
			id := "key-" + r.ID
			if name == r.ID || name == id {
				return id, nil
			}
			if name == r.User || name == r.Name {
				ids[id] = true
			}
		}
	}
	known, err := l.Audit.Callers(ctx, name)
	if err != nil {
		return "", err
	}
	for _, id := range known {
		if id == name {
			return name, nil
		}
		ids[id] = true
	}
	all := slices.Sorted(maps.Keys(ids))
	switch len(all) {
	case 0:
		return name, nil // of which there may be something all the same
	case 1:
		return all[0], nil
	}
	return "", &usageError{fmt.Errorf("%s is the name of %d callers", terminal.OneLine(name, 100), len(all)), "name one by its ID: " + strings.Join(all, ", ")}
}

func storePruneCommand() *cobra.Command {
	var at string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Remove now what has been kept long enough",
		Long: `Removes what has expired, as a gateway does by itself every minute, and records of the
audit log that are older than audit.retention, as it does every hour.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, l, err := openStore(cmd.Context(), at)
			if err != nil {
				return err
			}
			defer l.Close()
			removed, err := prune(cmd.Context(), l)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(map[string]any{"removed": removed})
			}
			out := terminal.NewScreen(os.Stdout)
			for _, table := range slices.Sorted(maps.Keys(removed)) {
				out.Printf("%-16s %s removed\n", table, terminal.Many(int(removed[table]), "row"))
			}
			if len(removed) == 0 {
				terminal.NewScreen(os.Stderr).Printf("nothing has been kept long enough to go\n")
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	configFlag(cmd, &at)
	return cmd
}

// prune removes what may go, and returns how many rows of which tables.
func prune(ctx context.Context, l *ledger.Ledger) (map[string]int64, error) {
	removed, err := keeping.New(l.DB, store.Quota{}, nil).Sweep(ctx)
	if err != nil {
		return nil, err
	}
	records, err := l.Audit.Prune(ctx)
	if err != nil {
		return nil, err
	}
	if records > 0 {
		removed["audit"] += int64(records)
	}
	approvals, err := l.Inbox.Expire(ctx)
	if approvals > 0 {
		removed["approvals"] += approvals
	}
	return removed, err
}
