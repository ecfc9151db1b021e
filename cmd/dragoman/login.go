package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/door/terminal"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/reach/credential"
	"github.com/dragoman-mcp/dragoman/internal/reach/logins"
	"github.com/dragoman-mcp/dragoman/internal/reach/servers"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// credentials is the file in which tokens of logins are kept where there is no store; nil
// where the user has no place for anything.
func credentials() *credential.File {
	path, err := store.DefaultPath()
	if err != nil {
		return nil
	}
	return &credential.File{Path: filepath.Join(filepath.Dir(path), "credentials.json")}
}

// loginsOf is where tokens of logins are kept, by a configuration: in its store where there
// is one, else in the file.
func loginsOf(file *config.File) (*logins.Where, error) {
	kept := credentials()
	if kept == nil {
		return nil, &failure{errors.New("there is no place to keep tokens: you have no home directory"), "set XDG_STATE_HOME"}
	}
	return &logins.Where{Store: file.Store, File: kept}, nil
}

func loginCommand() *cobra.Command {
	var s selection
	var quiet, forget, list bool
	var who, gateway string
	cmd := &cobra.Command{
		Use:   "login SERVER",
		Short: "Log in at an MCP server that wants it, for the gateway to use",
		Long: `Opens the browser at the server's login, waits for its answer, and keeps the access
token that comes of it for the gateway, which shows it to that server alone and
renews it. On another machine's terminal, open the address that is printed on a
machine whose browser can reach this one at 127.0.0.1, such as through ssh -L.

SERVER is the label of a server with a url in the configuration, or of --mcp-config.

Where each caller logs in for itself (oauth.whose: caller), this is the login of
whoever uses the gateway at this machine without a key, or of --caller. Callers of a
gateway elsewhere log in through it, with their own key or access token:

  DRAGOMAN_API_KEY=… dragoman login tickets --gateway https://gateway.example`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case list && len(args) > 0:
				return &usageError{errors.New("--list lists all logins, and takes no SERVER"), ""}
			case !list && len(args) != 1:
				return &usageError{errors.New("name one SERVER, by its label"), "dragoman login --list lists the logins that are kept"}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if list {
				return listLogins(cmd, &s)
			}
			label, screen := args[0], terminal.NewScreen(os.Stderr)
			if gateway != "" {
				g, err := newRemote(gateway, os.Getenv("DRAGOMAN_API_KEY"))
				if err != nil {
					return err
				}
				if forget {
					return g.forget(cmd.Context(), screen, label)
				}
				return g.login(cmd.Context(), screen, label, !quiet)
			}
			file, err := s.load(only("mcpServers."+label+".*", "store.*"))
			if err != nil {
				return err
			}
			server, err := loggedInAt(file, label)
			if err != nil {
				return err
			}
			if !server.OAuth.PerCaller() && who != "" {
				return &usageError{fmt.Errorf("all callers share the login at %q", label), "with oauth.whose: caller each has its own"}
			}
			kept, err := loginsOf(file)
			if err != nil {
				return err
			}
			defer kept.Close()
			account := server.Account(cmp.Or(who, caller.Local.ID))
			if forget {
				if err := kept.Delete(account); err != nil {
					return err
				}
				screen.Printf("nothing is kept any more for %s\n", label)
				return nil
			}
			return login(cmd.Context(), screen, label, account.Caller, server, kept, !quiet)
		},
	}
	f := cmd.Flags()
	f.StringVar(&s.config, "config", "", "configuration `FILE` (default $DRAGOMAN_CONFIG, then the user's configuration directory)")
	f.StringVar(&s.mcpConfig, "mcp-config", "", "take the servers from another client's mcpServers `FILE`")
	f.BoolVar(&quiet, "no-browser", false, "print the address, and open no browser")
	f.BoolVar(&forget, "forget", false, "forget what is kept for the server, in place of logging in")
	f.BoolVar(&list, "list", false, "list the logins that are kept, and whose they are")
	f.StringVar(&who, "caller", "", "log in on behalf of the caller with this `ID`, which the audit log has")
	f.StringVar(&gateway, "gateway", "", "log in through the gateway at this `URL`, as the caller that $DRAGOMAN_API_KEY is the key or token of")
	mustSay(f, "mcp-config", "gateway", "caller")
	for _, other := range []string{"config", "mcp-config", "caller", "list"} {
		cmd.MarkFlagsMutuallyExclusive("gateway", other)
	}
	for _, other := range []string{"forget", "no-browser", "caller"} {
		cmd.MarkFlagsMutuallyExclusive("list", other)
	}
	return cmd
}

// listLogins lists the logins of this machine's store, under the labels of the servers
// where those are configured.
func listLogins(cmd *cobra.Command, s *selection) error {
	file, err := s.load(environment())
	if err != nil {
		return err
	}
	var accounts []credential.Account
	if kept, err := loginsOf(file); err == nil {
		defer kept.Close()
		if accounts, err = kept.Accounts(); err != nil {
			return err
		}
	}
	if len(accounts) == 0 {
		terminal.NewScreen(os.Stderr).Printf("there are no logins\n")
		return nil
	}
	table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "SERVER\tWHOSE")
	for _, a := range accounts {
		var labels []string
		for label, server := range file.MCPServers {
			if server.URL == a.Server {
				labels = append(labels, label)
			}
		}
		slices.Sort(labels)
		fmt.Fprintf(table, "%s\t%s\n", terminal.OneLine(cmp.Or(strings.Join(labels, ", "), a.Server), 100), terminal.OneLine(cmp.Or(a.Caller, "the gateway's"), 200))
	}
	return table.Flush()
}

// loggedInAt returns the server of a label, where people log in.
func loggedInAt(file *config.File, label string) (*servers.Config, error) {
	server, ok := file.MCPServers[label]
	switch {
	case !ok:
		return nil, &usageError{fmt.Errorf("there is no server %q", label), config.Nearest(label, slices.Collect(maps.Keys(file.MCPServers)))}
	case server.URL == "":
		return nil, &usageError{fmt.Errorf("the server %q is a command, which nobody logs in at", label), "give it what it needs in env"}
	case server.OAuth.Grant == credential.TokenExchangeGrant:
		return nil, &usageError{fmt.Errorf("nobody logs in at %q: the gateway exchanges the access tokens of its callers, by oauth.grant", label), ""}
	case !server.OAuth.LogsIn():
		return nil, &usageError{fmt.Errorf("the gateway logs itself in at %q, by oauth.grant", label), ""}
	}
	return &server, nil
}

// loggedIn returns the access token that a login at a server gave to the person at this
// machine; empty for none. It is for those who make requests of their own, and is not
// renewed while they do.
func loggedIn(file *config.File, label string, server *servers.Config) (string, error) {
	var from servers.Tokens
	if kept, err := loginsOf(file); err == nil {
		defer kept.Close()
		from.Store = kept
	}
	client, tokens := server.Authorized(label, caller.Local.ID, from)
	defer client.CloseIdleConnections()
	if tokens == nil || !server.OAuth.LogsIn() {
		return "", nil
	}
	return tokens.Token(context.Background())
}

// login logs a person at this machine in, on behalf of a caller.
func login(ctx context.Context, screen *terminal.Screen, label, who string, server *servers.Config, kept credential.Store, browser bool) error {
	back, err := credential.ListenLoopback()
	if err != nil {
		return err
	}
	defer back.Close()
	err = server.LogIn(ctx, label, who, version(), credential.LoginOptions{
		Store: kept, Redirect: back.Redirect(),
		Visit: func(ctx context.Context, address string) (credential.Answer, error) {
			return back.Visit(ctx, address, shower(screen, browser))
		},
	})
	switch {
	case errors.Is(err, credential.ErrNoLogin):
		screen.Printf("%s asks for no login\n", label)
		return nil
	case err != nil:
		return fmt.Errorf("logging in at %s: %w", label, err)
	}
	whose := ""
	if server.OAuth.PerCaller() {
		whose = " for the caller " + terminal.OneLine(who, 200)
	}
	screen.Printf("logged in at %s%s\n", label, whose)
	return nil
}

// shower returns what shows a person the address to log in at, in a browser where
// that is wanted.
func shower(screen *terminal.Screen, browser bool) func(context.Context, string) {
	return func(ctx context.Context, address string) {
		screen.Printf("Log in here:\n\n  %s\n\n", terminal.Visible(address))
		if browser {
			openBrowser(ctx, address)
		}
	}
}

// openBrowser opens an address, which is https or on this machine, if it can. That
// it cannot is no trouble: the address is on the screen.
func openBrowser(ctx context.Context, address string) {
	name, args := "xdg-open", []string{address}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", address}
	default:
		if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
			return
		}
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), name, args...)
	if cmd.Start() == nil {
		go func() { _ = cmd.Wait() }()
	}
}
