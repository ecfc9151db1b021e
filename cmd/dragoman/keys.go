package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/door/terminal"
	"github.com/dragoman-mcp/dragoman/internal/identity/apikey"
	"github.com/dragoman-mcp/dragoman/internal/identity/permission"
	"github.com/dragoman-mcp/dragoman/internal/identity/revocation"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

func keysCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "Make, list and revoke the keys of those who may call the gateway",
		Long: `Keys stand in a file beside the configuration, or where auth.keys_file says, as
hashes: a key is shown once, when it is made. The gateway reads the file again when
it changes. Once there is such a file, nobody gets in without a key; a gateway that
began without one asks for keys within two seconds.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newKeyCommand(), listKeysCommand(), revokeKeyCommand())
	return cmd
}

// keysFile returns where the keys are, by the flag --config.
func keysFile(flag string) (string, error) {
	s := selection{config: flag}
	file, err := s.load(only("auth.keys_file"))
	if err != nil {
		return "", err
	}
	path := file.KeysFile()
	if path == "" {
		return "", &usageError{errors.New("there is no place for a file of keys: you have no configuration directory"), "name one with auth.keys_file in a configuration"}
	}
	return path, nil
}

func configFlag(cmd *cobra.Command, path *string) {
	cmd.Flags().StringVar(path, "config", "", "configuration `FILE` (default $DRAGOMAN_CONFIG, then the user's configuration directory)")
}

// A keyWish is what --name and its like say.
type keyWish struct {
	name, expires         string
	tools, models, routes []string
	rights                []string
}

func newKeyCommand() *cobra.Command {
	var w keyWish
	var at string
	cmd := &cobra.Command{
		Use:   "new --name NAME",
		Short: "Make a key, and show it this once",
		Long: `Makes a key. It is written to standard output, and nothing else is; what it may do,
and when it ends, is said on standard error. Its hash is added to the file of keys.

Without more, a key may use every tool, model and route. --tools, --models and
--routes narrow each of them down to patterns with * and ?, or to none:

  dragoman keys new --name laptop
  dragoman keys new --name ci --tools 'github__*' --models none --routes none --expires 90d

Who answers what a rule asks, over HTTP or in an MCP client, has the right for it:

  dragoman keys new --name olga --tools none --models none --routes none --right 'approve:github__*'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			grants, err := w.grants()
			if err != nil {
				return err
			}
			life, err := lifetime(w.expires)
			if err != nil {
				return &usageError{err, "for example: --expires 90d"}
			}
			path, err := keysFile(at)
			if err != nil {
				return err
			}
			key, record, err := apikey.NewRecord(w.name, grants, life)
			if err != nil {
				return &usageError{err, ""}
			}
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				return err
			}
			_, absent := os.Stat(path)
			if err := apikey.Add(path, record); err != nil {
				return err
			}
			stderr := terminal.NewScreen(os.Stderr)
			stderr.Printf("key %s for %s, %s; it may use %s\n", record.ID, terminal.OneLine(record.User, 100), ending(record), strings.Join(grants, ", "))
			if unknown := slices.DeleteFunc(slices.Clone(grants), permission.Known); len(unknown) > 0 {
				stderr.Printf("The gateway itself asks for nothing like %s: that means something only to servers written with the toolkit.\n", strings.Join(unknown, ", "))
			}
			if errors.Is(absent, os.ErrNotExist) {
				stderr.Printf("It is the first one: from now on everybody needs a key. A gateway that runs without any asks for one within two seconds, and keeps its audit log from its next start on.\n")
			}
			stderr.Printf("Its hash is in %s. The key itself is shown this once:\n", path)
			if _, err := fmt.Fprintln(cmd.OutOrStdout(), key); err != nil {
				return &failure{fmt.Errorf("the key was made, and could not be shown: %w", err), "nobody knows it: dragoman keys revoke " + record.ID}
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&w.name, "name", "", "`NAME` of who, or what, has the key")
	f.StringSliceVar(&w.tools, "tools", nil, "`PATTERN` of tools, such as 'github__*', or none; may be repeated (default all)")
	f.StringSliceVar(&w.models, "models", nil, "`PATTERN` of models, such as 'gpt-*', or none; may be repeated (default all)")
	f.StringSliceVar(&w.routes, "routes", nil, "`PATTERN` of routes that are relayed, such as '/v1/files*', or none; may be repeated (default all)")
	f.StringSliceVar(&w.rights, "right", nil, "another `RIGHT`, kind:what, that the key is to have, such as 'approve:github__*'; may be repeated")
	f.StringVar(&w.expires, "expires", "", "`TIME` after which the key ends to be good, such as 12h or 90d (default never)")
	mustSay(f, "tools", "models", "routes", "expires")
	configFlag(cmd, &at)
	_ = cmd.MarkFlagRequired("name")
	return cmd
}

// grants are the rights and patterns that the flags stand for.
func (w *keyWish) grants() (grants []string, err error) {
	for _, kind := range []struct {
		name     string
		patterns []string
	}{{"tool", w.tools}, {"model", w.models}, {"route", w.routes}} {
		switch {
		case len(kind.patterns) == 0:
			grants = append(grants, kind.name+":*")
			continue
		case len(kind.patterns) == 1 && kind.patterns[0] == "none":
			continue
		case slices.Contains(kind.patterns, "none"):
			return nil, &usageError{fmt.Errorf("--%ss is none or patterns, not both", kind.name), ""}
		}
		for _, pattern := range kind.patterns {
			if word, rest, ok := strings.Cut(pattern, ":"); ok && slices.Contains(permission.Kinds, word) {
				hint := fmt.Sprintf("--right '%s'", pattern)
				if word == kind.name {
					hint = fmt.Sprintf("--%ss '%s'", word, rest)
				}
				return nil, &usageError{fmt.Errorf("--%ss: %q begins with a kind, and the flag says it already", kind.name, pattern), hint}
			}
			grants = append(grants, kind.name+":"+pattern)
		}
	}
	if grants = append(grants, w.rights...); len(grants) == 0 {
		return nil, &usageError{errors.New("this key could do nothing"), ""}
	}
	for _, grant := range grants {
		if err := permission.CheckUse(grant); err != nil {
			return nil, &usageError{err, ""}
		}
	}
	return grants, nil
}

// lifetime reads how long a key is good: a duration of Go, or days; empty for ever,
// which is zero.
func lifetime(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	life, err := time.ParseDuration(text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		var n int
		n, err = strconv.Atoi(days)
		life = time.Duration(n) * 24 * time.Hour
		if n > 100*365 {
			err = errors.New("too long")
		}
	}
	if err != nil || life <= 0 {
		return 0, fmt.Errorf("--expires: %q is no time for a key to be good", text)
	}
	return life, nil
}

// ending says when a key ends to be good.
func ending(r apikey.Record) string {
	switch {
	case r.Expires.IsZero():
		return "good for ever"
	case r.Expired():
		return "expired " + r.Expires.Local().Format("2006-01-02 15:04")
	}
	return "good until " + r.Expires.Local().Format("2006-01-02 15:04")
}

func listKeysCommand() *cobra.Command {
	var at string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the keys in the file: ids, names, times, rights",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			path, err := keysFile(at)
			if err != nil {
				return err
			}
			records, err := apikey.Read(path)
			if errors.Is(err, os.ErrNotExist) {
				terminal.NewScreen(os.Stderr).Printf("there is no file of keys at %s; dragoman keys new makes one\n", path)
				return nil
			}
			if err != nil {
				return err
			}
			table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			if len(records) > 0 {
				fmt.Fprintln(table, "ID\tNAME\tMADE\tENDS\tMAY USE")
			}
			for _, r := range records {
				fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", r.ID, terminal.OneLine(r.User, 60), r.Created.Local().Format(time.DateOnly), ending(r), strings.Join(r.Rights, " "))
			}
			return table.Flush()
		},
	}
	configFlag(cmd, &at)
	return cmd
}

// meantKey is a hint at which key was meant by what is no id: by its name, or with a slip.
func meantKey(text string, records []apikey.Record) string {
	var ids, named []string
	for _, r := range records {
		ids = append(ids, r.ID)
		if text == cmp.Or(r.Name, r.User) {
			named = append(named, r.ID)
		}
	}
	if named != nil {
		return "keys are revoked by id; of that name there is " + strings.Join(named, ", ")
	}
	return config.Nearest(text, ids)
}

func revokeKeyCommand() *cobra.Command {
	var at string
	cmd := &cobra.Command{
		Use:   "revoke ID",
		Short: "Take a key out of the file, so that it is good for nothing",
		Long: `Takes a key out of the file. Where there is a store, the key is revoked in it, too: then
it is good at no gateway that uses the store, whatever file or configuration names it.
So a key of the configuration, which the audit log calls key-0ac1e49b, and one of a file
that is mounted, are revoked by that name.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return revokeKey(cmd.Context(), at, args[0]) },
	}
	configFlag(cmd, &at)
	return cmd
}

// revokeKey revokes a key in the store, where there is one, and then in the file.
func revokeKey(ctx context.Context, at, said string) error {
	id, called := strings.CutPrefix(said, apikey.CallerPrefix)
	if whole, err := apikey.ID(id); err == nil {
		id = whole // somebody has the key, not its id
	}
	path, err := keysFile(at)
	if err != nil {
		return err
	}
	records, err := apikey.Read(path)
	known := slices.IndexFunc(records, func(r apikey.Record) bool { return r.ID == id })
	if known < 0 && !called {
		if err != nil {
			return err
		}
		return &failure{fmt.Errorf("there is no key %q in %s", terminal.OneLine(id, 100), path), meantKey(id, records)}
	}
	if known < 0 && !apikey.CouldBeID(id) { // it would be revoked, and the one that was meant stay good
		return &failure{fmt.Errorf("%q is the whole name of no key", terminal.OneLine(said, 100)), "as the audit log has it: key- and 8 hexadecimal digits, or 13 characters of a-z and 2-7"}
	}
	everywhere, err := revokeInStore(ctx, at, id)
	if err != nil {
		hint := "revoke it again once the store can be written"
		if known >= 0 {
			hint += fmt.Sprintf("; until then, gateways that read %s refuse it where its line is taken out, and then it is revoked as %s", path, apikey.CallerPrefix+id)
		}
		return &failure{fmt.Errorf("the key was not revoked, and is good still: %w", err), hint}
	}
	stderr := terminal.NewScreen(os.Stderr)
	if known < 0 {
		if !everywhere {
			return &failure{fmt.Errorf("there is no key %q in %s", terminal.OneLine(id, 100), path), "keys that stand elsewhere are revoked in a store, and there is none"}
		}
		stderr.Printf("revoked key %s in the store; it is in no file here\n", id)
		return nil
	}
	err = apikey.Change(path, func(now []apikey.Record) ([]apikey.Record, error) {
		return slices.DeleteFunc(now, func(r apikey.Record) bool { return r.ID == id }), nil
	})
	gone := records[known]
	if err != nil && !everywhere {
		return err
	}
	stderr.Printf("revoked key %s of %s\n", gone.ID, terminal.OneLine(gone.User, 100))
	if err != nil {
		stderr.Printf("It stands in the file still, and is good at no gateway that uses the store: %v\n", err)
	}
	return nil
}

// revokeInStore revokes a key in the store, and reports whether there is one. None is made
// for it.
func revokeInStore(ctx context.Context, at, id string) (bool, error) {
	s := selection{config: at}
	file, err := s.load(only("store.*"))
	if err != nil {
		return false, err
	}
	if file.Store.URL.IsZero() {
		place := file.Store.Path
		if place == "" {
			if place, err = store.DefaultPath(); err != nil {
				return false, nil // then there is none
			}
		}
		if _, err := os.Stat(place); errors.Is(err, os.ErrNotExist) {
			return false, nil
		}
	}
	db, err := store.Open(ctx, file.Store)
	if err != nil {
		return false, err
	}
	return true, errors.Join(revocation.Revoke(ctx, db, id), db.Close())
}
