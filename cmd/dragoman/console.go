package main

import (
	"context"
	"errors"
	"fmt"
	"html"
	"net/url"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/dragoman-mcp/dragoman/internal/door/terminal"
	"github.com/dragoman-mcp/dragoman/internal/identity/signin"
	"github.com/dragoman-mcp/dragoman/internal/state/atomicfile"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

func consoleCommand() *cobra.Command {
	var gateway string
	var open, secret bool
	cmd := &cobra.Command{
		Use:   "console",
		Short: "Print the address that signs in at the console of a running gateway",
		Long: `Prints the address of the web console with the secret that signs in the person who
started the gateway. The secret is good once; the next one is there at once.

A gateway that asks for keys has no secret: a key signs in at /console/.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkGateway("--gateway", gateway, ourGateway); err != nil {
				return err
			}
			key, err := secretOf(gateway)
			if err != nil {
				return &failure{err, "is it running as you, on this machine? --gateway names another address; one that asks for keys is opened at /console/ with a key"}
			}
			out := terminal.NewScreen(os.Stdout)
			if secret {
				out.Printf("%s\n", key.Secret)
				return nil
			}
			out.Printf("%s\n", key.Address())
			if open {
				return openConsole(cmd.Context(), key)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&gateway, "gateway", ourGateway, "`ADDRESS` of the gateway")
	cmd.Flags().BoolVar(&open, "open", false, "open it in a browser, too")
	cmd.Flags().BoolVar(&secret, "secret", false, "print the secret alone, for the routes of operators")
	cmd.MarkFlagsMutuallyExclusive("open", "secret")
	return cmd
}

// stateFolder is where a gateway writes down the secret of its console; empty for nowhere.
func stateFolder() string {
	path, err := store.DefaultPath()
	if err != nil {
		return ""
	}
	return filepath.Dir(path)
}

// secretOf reads the secret of the gateway at an address of this machine.
func secretOf(gateway string) (signin.Key, error) {
	u, err := url.Parse(gateway)
	if err != nil || u.Host == "" {
		return signin.Key{}, fmt.Errorf("--gateway: %q is no address", gateway)
	}
	folder := stateFolder()
	if folder == "" {
		return signin.Key{}, errors.New("there is no folder for state")
	}
	return signin.ReadKey(signin.PathFor(folder, u.Host))
}

// openConsole opens a browser without the secret on its command line, which others on the
// machine can read: by a page that only this person can read, and that leads on.
func openConsole(ctx context.Context, key signin.Key) error {
	path := filepath.Join(stateFolder(), "console-open.html")
	page := `<!DOCTYPE html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url=` + html.EscapeString(key.Address()) + `">` + "\n"
	if err := atomicfile.Replace(path, []byte(page)); err != nil {
		return err
	}
	openBrowser(ctx, (&url.URL{Scheme: "file", Path: filepath.ToSlash(path)}).String())
	return nil
}
