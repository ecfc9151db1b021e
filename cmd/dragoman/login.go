package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/credential"
	"github.com/dragoman-mcp/dragoman/internal/servers"
	"github.com/dragoman-mcp/dragoman/internal/store"
	"github.com/dragoman-mcp/dragoman/internal/terminal"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// loginPatience is how long a person has to log in.
const loginPatience = 10 * time.Minute

// credentials is where tokens of logins are kept; nil where the user has no place for
// anything.
func credentials() *credential.Store {
	path, err := store.DefaultPath()
	if err != nil {
		return nil
	}
	return &credential.Store{Path: filepath.Join(filepath.Dir(path), "credentials.json")}
}

func loginCommand() *cobra.Command {
	var s selection
	var quiet, forget bool
	cmd := &cobra.Command{
		Use:   "login SERVER",
		Short: "Log in at an MCP server that wants it, for the gateway to use",
		Long: `Opens the browser at the server's login, waits for its answer, and keeps the access
token that comes of it for the gateway, which shows it to that server alone and
renews it. On another machine's terminal, open the address that is printed on a
machine whose browser can reach this one at 127.0.0.1, such as through ssh -L.

SERVER is the label of a server with a url in the configuration, or of --mcp-config.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := s.load(environment())
			if err != nil {
				return err
			}
			server, ok := file.MCPServers[args[0]]
			switch {
			case !ok:
				labels := make([]string, 0, len(file.MCPServers))
				for label := range file.MCPServers {
					labels = append(labels, label)
				}
				return &usageError{fmt.Errorf("there is no server %q", args[0]), config.Nearest(args[0], labels)}
			case server.URL == "":
				return &usageError{fmt.Errorf("the server %q is a command, which nobody logs in at", args[0]), "give it what it needs in env"}
			case server.OAuth.Grant == credential.ClientCredentialsGrant:
				return &usageError{fmt.Errorf("the gateway logs itself in at %q, by oauth.grant", args[0]), ""}
			}
			kept := credentials()
			if kept == nil {
				return &failure{errors.New("there is no place to keep tokens: you have no home directory"), "set XDG_STATE_HOME"}
			}
			screen := terminal.NewScreen(os.Stderr)
			if forget {
				if err := kept.Delete(server.URL); err != nil {
					return err
				}
				screen.Printf("nothing is kept any more for %s\n", args[0])
				return nil
			}
			return login(cmd.Context(), screen, args[0], server, kept, !quiet)
		},
	}
	f := cmd.Flags()
	f.StringVar(&s.config, "config", "", "configuration `FILE` (default $DRAGOMAN_CONFIG, then the user's configuration directory)")
	f.StringVar(&s.mcpConfig, "mcp-config", "", "take the servers from another client's mcpServers `FILE`")
	f.BoolVar(&quiet, "no-browser", false, "print the address, and open no browser")
	f.BoolVar(&forget, "forget", false, "forget what is kept for the server, in place of logging in")
	return cmd
}

func login(ctx context.Context, screen *terminal.Screen, label string, server servers.Config, kept *credential.Store, browser bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, loginPatience, errors.New("nobody logged in"))
	defer cancel()
	// As the gateway reaches the server, so that nothing else gets its requests.
	client := server.Client()
	defer client.CloseIdleConnections()
	err := credential.Login(ctx, server.URL, client.Transport, credential.LoginOptions{
		Config: server.OAuth, Store: kept,
		Show: func(ctx context.Context, address string) {
			screen.Printf("Log in here:\n\n  %s\n\n", terminal.Visible(address))
			if browser {
				openBrowser(ctx, address)
			}
		},
		Use: func(ctx context.Context, client *http.Client) error {
			header := http.Header{}
			for name, value := range server.Headers {
				header.Set(name, value)
			}
			c, err := mcp.Connect(ctx, mcp.HTTP{URL: server.URL, Header: header, Client: client, SSE: server.Transport == servers.SSE},
				&mcp.ClientOptions{Label: label, Name: "dragoman", Version: version(), Passive: true, Timeout: loginPatience, ProbeTimeout: loginPatience})
			if err != nil {
				return err
			}
			defer c.Close()
			return c.Refresh(ctx)
		},
	})
	switch {
	case errors.Is(err, credential.ErrNoLogin):
		screen.Printf("%s asks for no login\n", label)
		return nil
	case err != nil && context.Cause(ctx) != nil:
		return fmt.Errorf("logging in at %s: %w", label, context.Cause(ctx))
	case err != nil:
		return fmt.Errorf("logging in at %s: %w", label, err)
	}
	screen.Printf("logged in at %s\n", label)
	return nil
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
