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

// A rereading is what a gateway is asked for that has its file read again.
type rereading struct {
	gateway string
	check   bool // changes nothing
	json    bool
}

func (r *rereading) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&r.gateway, "gateway", ourGateway, "`ADDRESS` of the gateway")
	cmd.Flags().BoolVar(&r.json, "json", false, "print the answer of the gateway, for programs")
}

// rereadingKey is what both commands say of keys.
const rereadingKey = `Where the gateway asks for keys, DRAGOMAN_API_KEY has to be one with the right
` + ops.ReloadRight + `.`

func reloadCommand() *cobra.Command {
	var r rereading
	cmd := &cobra.Command{
		Use:   "reload",
		Short: "Have a running gateway read its configuration again",
		Long: `Has a running gateway read its configuration again, as a SIGHUP does. It is judged
whole: where anything is wrong, the one before it stays, and this command says what
and fails. What needs a restart is named.

` + rereadingKey,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := r.ask(cmd)
			return err
		},
	}
	r.flags(cmd)
	cmd.Flags().BoolVar(&r.check, "check", false, "only say what would change, and what is wrong")
	return cmd
}

func configDiffCommand() *cobra.Command {
	r := rereading{check: true}
	cmd := &cobra.Command{
		Use:   "diff",
		Short: "Compare the file of a running gateway with what is in effect",
		Long: `Has a running gateway compare its file, as it is now, with what is in effect: which
keys a reload would change, and which need a restart. It changes nothing.

The exit code is 0 where nothing differs, 3 where a reload does for all that does, 4
where some of it needs a restart, 2 where the file is wrong, and 1 where the gateway
cannot be asked.

` + rereadingKey,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			done, err := r.ask(cmd)
			switch {
			case err != nil:
				return err
			case len(done.Restart) > 0:
				return exitCode(exitRestart)
			case len(done.Now) > 0:
				return exitCode(exitDiffers)
			}
			return nil
		},
	}
	r.flags(cmd)
	return cmd
}

// ask has the gateway read its file, and says what has changed, or would.
func (r *rereading) ask(cmd *cobra.Command) (done ops.Reloaded, err error) {
	g, err := newRemote(r.gateway, os.Getenv("DRAGOMAN_API_KEY"))
	if err != nil {
		return done, err
	}
	if g.key == "" { // a gateway that asks nobody for a key knows its operator by the secret
		if own, err := secretOf(r.gateway); err == nil {
			g.key = own.Secret
		}
	}
	status, answer, err := g.post(cmd.Context(), http.MethodPost, "/ops/reload", ops.ReloadWish{Check: r.check})
	if err != nil {
		return done, err
	}
	if status != http.StatusOK {
		return done, refusedReload(status, answer)
	}
	if err := json.Unmarshal(answer, &done); err != nil {
		return done, errors.New("the answer is none of a gateway's")
	}
	if r.json {
		return done, json.NewEncoder(cmd.OutOrStdout()).Encode(done)
	}
	sayReloaded(terminal.NewScreen(os.Stdout), done, r.check)
	return done, nil
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
	return &usageError{errors.New(strings.Join(all, "\n")), ""}
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
