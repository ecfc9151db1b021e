package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/door/terminal"
	auditlog "github.com/dragoman-mcp/dragoman/internal/judge/audit"
	"github.com/dragoman-mcp/dragoman/internal/judge/ledger"
	"github.com/dragoman-mcp/dragoman/internal/state/nodes"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
	"github.com/dragoman-mcp/dragoman/internal/state/vault"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

func storeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "store",
		Short: "Look after what is kept: back it up, move it to PostgreSQL, erase somebody",
		Long: `Looks after the store that the configuration names: a SQLite file, or a PostgreSQL
database. A gateway may run meanwhile, but for copy. docs/store.md is the guide.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(storeStatusCommand(), storeBackupCommand(), storeCopyCommand(), storeEraseCommand(), storePruneCommand())
	return cmd
}

// openStore opens the store of the configuration, where there is one, and returns what the
// configuration says of it.
func openStore(ctx context.Context, at string) (*config.File, *ledger.Ledger, error) {
	s := selection{config: at}
	file, err := s.load(only(append(ledgerKeys, "auth.keys_file")...))
	if err != nil {
		return nil, nil, err
	}
	l, err := openLedger(ctx, at)
	return file, l, err
}

// A storeStatus is what "store status" says.
type storeStatus struct {
	Store    string         `json:"store"`
	Database string         `json:"database"`
	Version  int            `json:"version"`
	Ours     int            `json:"this_program"`
	Bytes    int64          `json:"bytes"`
	Tables   []tableStatus  `json:"tables"`
	Key      vault.Standing `json:"master_key"`
	Trouble  string         `json:"master_key_trouble,omitempty"`
	// Audit are the heads of logs that no other log names.
	Audit []string `json:"audit_heads"`
	// Replicas are the gateways that serve on it, and Doubts what to look at about them.
	Replicas []replicaStatus `json:"replicas"`
	Doubts   []string        `json:"replica_doubts,omitempty"`
	nodes    []nodes.Standing
}

type tableStatus struct {
	Name   string    `json:"name"`
	Rows   int64     `json:"rows"`
	Oldest time.Time `json:"oldest,omitzero"`
}

func storeStatusCommand() *cobra.Command {
	var at string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show which database it is, how much is in it, who serves on it, and whether the master key fits",
		Long: `Shows which database it is and how large, how many rows each table has and since when,
the fingerprint of the master key and the keys that it opens, and the heads of the
audit log, which are worth keeping elsewhere (dragoman audit verify --head). It exits
with 1 where the master key does not fit.

Of a PostgreSQL database it shows the gateways that serve on it: when each was heard last,
and what to look at, such as clocks that differ, other configurations, or one that died.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			file, l, err := openStore(cmd.Context(), at)
			if err != nil {
				return err
			}
			defer l.Close()
			status, err := statusOf(cmd.Context(), l.DB, file.Store)
			if err != nil {
				return err
			}
			if asJSON {
				err = printJSON(status)
			} else {
				err = showStatus(status)
			}
			if err == nil && status.Key.Trouble != nil {
				err = &failure{status.Key.Trouble, "docs/store.md says what works without it, and how to begin anew"}
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	configFlag(cmd, &at)
	return cmd
}

func statusOf(ctx context.Context, db *store.DB, where store.Config) (s storeStatus, err error) {
	s = storeStatus{Store: db.String(), Database: "SQLite", Tables: []tableStatus{}, Audit: []string{}}
	if !where.URL.IsZero() {
		s.Database = "PostgreSQL"
	}
	if s.Bytes, err = db.Size(ctx); err != nil {
		return s, err
	}
	if s.Key, err = vault.Look(ctx, db, where); err != nil {
		return s, err
	}
	if s.Key.Trouble != nil {
		s.Trouble = s.Key.Trouble.Error()
	}
	heads, err := auditlog.OpenHeads(ctx, db)
	if err != nil {
		return s, err
	}
	for _, head := range heads {
		s.Audit = append(s.Audit, head.String())
	}
	err = db.Read(ctx, func(tx *store.Tx) error {
		standings, err := tx.Standings()
		for _, t := range standings {
			s.Tables = append(s.Tables, tableStatus{t.Name, t.Rows, t.Oldest})
		}
		if err == nil {
			s.Version, s.Ours, err = tx.Versions()
		}
		if err == nil {
			s.nodes, err = nodes.List(tx)
		}
		return err
	})
	s.Replicas, s.Doubts = replicasOf(s.nodes), doubts(s.nodes)
	return s, err
}

func showStatus(s storeStatus) error {
	out := terminal.NewScreen(os.Stdout)
	out.Printf("%s  %s, %s, tables of version %d (this program makes %d)\n\n", s.Store, s.Database, size(s.Bytes), s.Version, s.Ours)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "TABLE\tROWS\tOLDEST")
	for _, t := range s.Tables {
		oldest := ""
		if !t.Oldest.IsZero() {
			oldest = t.Oldest.Local().Format(time.DateTime)
		}
		fmt.Fprintf(table, "%s\t%d\t%s\n", t.Name, t.Rows, oldest)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if err := showReplicas(out, s.nodes, out.Warn); err != nil {
		return err
	}
	out.Printf("\n")
	if s.Key.Fingerprint == "" {
		out.Printf("master key   none yet\n")
	} else {
		out.Printf("master key   %s in %s\n", s.Key.Fingerprint, s.Key.Where)
	}
	for _, g := range s.Key.Generations {
		out.Printf("  seals      generation %d, made %s\n", g.ID, g.Made.Local().Format(time.DateTime))
	}
	out.Printf("  encrypts   %s\n", terminal.Many(s.Key.Owners, "owner"))
	for _, head := range s.Audit {
		out.Printf("audit head   %s\n", head)
	}
	return nil
}

// size is a number of bytes for people.
func size(n int64) string {
	for _, unit := range []struct {
		name  string
		bytes int64
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if n >= unit.bytes {
			return fmt.Sprintf("%.1f %s", float64(n)/float64(unit.bytes), unit.name)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}

// A copyReport is what "store backup" and "store copy" say.
type copyReport struct {
	To      string           `json:"to"`
	Rows    map[string]int64 `json:"rows"`
	Records uint64           `json:"audit_records_verified"`
	Heads   []string         `json:"audit_heads,omitempty"`
	// Key is the master key that the copy needs and does not have.
	Key vault.Standing `json:"master_key"`
}

func (r *copyReport) show(what string) {
	out := terminal.NewScreen(os.Stdout)
	rows := int64(0)
	for _, n := range r.Rows {
		rows += n
	}
	out.Printf("%s %s %s: %d rows of %d tables, and an audit log of %s that holds together\n", out.Good("✓"), what, r.To, rows, len(r.Rows), terminal.Many(int(r.Records), "record"))
	for _, head := range r.Heads {
		out.Printf("head %s\n", head)
	}
}

func storeBackupCommand() *cobra.Command {
	var at string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Write a copy of the store as it is now, while everything goes on",
		Long: `Writes all of the SQLite file, as it is at one moment, to a FILE that is not there yet,
reads it again and checks the audit log in it. The gateway goes on meanwhile. FILE is a
store: to restore it, put it where store.path says, with no -wal and -shm of another one
beside it.

The master key is not in it, and without that key what is encrypted in it cannot be
read: keep a copy of the key at another place than the backups.

PostgreSQL is backed up with pg_dump; this says how.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			file, l, err := openStore(cmd.Context(), at)
			if err != nil {
				return err
			}
			defer l.Close()
			report, err := backup(cmd.Context(), l, file.Store, args[0])
			switch {
			case errors.Is(err, store.ErrNoBackup):
				return &usageError{fmt.Errorf("%w --file=%s", err, args[0]), "pg_restore puts it back; the master key is not in it"}
			case err != nil:
				return err
			case asJSON:
				return printJSON(report)
			}
			report.show("backed up to")
			if report.Key.Fingerprint != "" {
				terminal.NewScreen(os.Stderr).Printf("The master key (%s, in %s) is not in it. Keep a copy of that, and not beside this one.\n", report.Key.Fingerprint, report.Key.Where)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	configFlag(cmd, &at)
	return cmd
}

// backup writes a copy, and looks whether it is one.
func backup(ctx context.Context, l *ledger.Ledger, where store.Config, to string) (r copyReport, err error) {
	if r.Key, err = vault.Look(ctx, l.DB, where); err != nil {
		return r, err
	}
	r.To = to
	err = l.DB.Backup(ctx, to, func(copied string) error {
		again, err := ledger.Open(ctx, ledger.Config{Store: store.Config{Path: copied}}, nil)
		if err != nil {
			return fmt.Errorf("the copy cannot be opened: %w", err)
		}
		defer again.Close()
		return again.DB.Read(ctx, func(tx *store.Tx) error { return r.read(tx) })
	})
	return r, err
}

// read looks at a copy: what is in it, and whether its audit log holds together and has
// the records that were known before.
func (r *copyReport) read(tx *store.Tx, known ...auditlog.Head) error {
	check, err := auditlog.VerifyTx(tx, known...)
	if err != nil {
		return fmt.Errorf("the audit log in the copy does not hold together: %w", err)
	}
	r.Records, r.Heads = check.Records, nil
	for _, head := range check.Heads() {
		r.Heads = append(r.Heads, head.String())
	}
	standings, err := tx.Standings()
	r.Rows = map[string]int64{}
	for _, t := range standings {
		r.Rows[t.Name] = t.Rows
	}
	return err
}

func storeCopyCommand() *cobra.Command {
	var at, to string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "copy --to URL",
		Short: "Copy the SQLite file to a PostgreSQL database, all of it or nothing",
		Long: `Copies everything to a PostgreSQL database that is empty, in one transaction, and looks
whether each row and the audit log arrived. Stop the gateway before: nothing can be
written to the file meanwhile, and what is written afterwards is not in the copy. The
file stays as it is.

Everybody who may list processes sees a command line: leave the password out of the URL
and in PGPASSWORD or ~/.pgpass, which the gateway reads as well.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			file, l, err := openStore(cmd.Context(), at)
			if err != nil {
				return err
			}
			defer l.Close()
			if !file.Store.URL.IsZero() {
				return &usageError{errors.New("the store is a PostgreSQL database already"), "pg_dump and pg_restore copy one"}
			}
			report, err := copyStore(cmd.Context(), l, file.Store, to)
			switch {
			case errors.Is(err, store.ErrNotEmpty):
				return &failure{err, "name a database that nothing was ever written to"}
			case err != nil:
				return err
			case asJSON:
				return printJSON(report)
			}
			report.show("copied to")
			terminal.NewScreen(os.Stderr).Printf("Now set store.url to it, and store.key_file to %s (or to a copy of it), in place of store.path.\n", report.Key.Where)
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&to, "to", "", "the `URL` of the database, such as postgres://dragoman@db.example/dragoman?sslmode=verify-full")
	f.BoolVar(&asJSON, "json", false, "write JSON")
	configFlag(cmd, &at)
	_ = cmd.MarkFlagRequired("to")
	return cmd
}

func copyStore(ctx context.Context, l *ledger.Ledger, where store.Config, to string) (r copyReport, err error) {
	if r.Key, err = vault.Look(ctx, l.DB, where); err != nil {
		return r, err
	}
	heads, err := auditlog.HeadsOf(ctx, l.DB)
	if err != nil {
		return r, err
	}
	there, err := store.Open(ctx, store.Config{URL: secret.New(to)})
	if err != nil {
		return r, err
	}
	defer there.Close()
	r.To = there.String()
	_, err = l.DB.CopyTo(ctx, there, func(tx *store.Tx) error { return r.read(tx, heads...) })
	return r, err
}
