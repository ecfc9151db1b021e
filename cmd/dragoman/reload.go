package main

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dragoman-mcp/dragoman/internal/door/ops"
	"github.com/dragoman-mcp/dragoman/internal/door/terminal"
)

func reloadCommand() *cobra.Command {
	var gateway string
	var check bool
	cmd := &cobra.Command{
		Use:   "reload",
		Short: "Have a running gateway read its configuration again",
		Long: `Has a running gateway read its configuration again, as a SIGHUP does. It is judged
whole: where anything is wrong, the one before it stays, and this command says what
and fails. What needs a restart is named.

Where the gateway asks for keys, DRAGOMAN_API_KEY has to be one with the right
` + ops.ReloadRight + `.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			g, err := newRemote(gateway, os.Getenv("DRAGOMAN_API_KEY"))
			if err != nil {
				return &usageError{err, ""}
			}
			if g.key == "" { // a gateway that asks nobody for a key knows its operator by the secret
				if own, err := secretOf(gateway); err == nil {
					g.key = own.Secret
				}
			}
			status, answer, err := g.post(cmd.Context(), http.MethodPost, "/ops/reload", ops.ReloadWish{Check: check})
			if err != nil {
				return err
			}
			if status != http.StatusOK {
				return refusedReload(status, answer)
			}
			var done ops.Reloaded
			if err := json.Unmarshal(answer, &done); err != nil {
				return errors.New("the answer is none of a gateway's")
			}
			sayReloaded(terminal.NewScreen(os.Stdout), done, check)
			return nil
		},
	}
	cmd.Flags().StringVar(&gateway, "gateway", "http://127.0.0.1:8787", "`ADDRESS` of the gateway")
	cmd.Flags().BoolVar(&check, "check", false, "only say what would change, and what is wrong")
	return cmd
}

// refusedReload is why a gateway does not take over its configuration, in its words: with
// the lines that are wrong.
func refusedReload(status int, answer []byte) error {
	var said struct {
		Error struct{ Message string }
	}
	if status != http.StatusUnprocessableEntity || json.Unmarshal(answer, &said) != nil {
		return refusal(status, answer)
	}
	all := strings.Split(said.Error.Message, "\n")
	for i, line := range all {
		all[i] = terminal.Visible(line)
	}
	return errors.New(strings.Join(all, "\n"))
}

// sayReloaded says what has changed, or would.
func sayReloaded(screen *terminal.Screen, done ops.Reloaded, check bool) {
	word := "in effect"
	if check {
		word = "would be in effect"
	}
	for _, key := range done.Now {
		screen.Printf("%s: %s\n", terminal.Visible(key), word)
	}
	for _, key := range done.Restart {
		screen.Printf("%s: needs a restart\n", terminal.Visible(key))
	}
	if len(done.Now)+len(done.Restart) == 0 {
		screen.Printf("nothing has changed\n")
	}
}
