// Command dragoman makes any OpenAI-compatible model use any MCP server: as a
// gateway for programs and by hand for people. "dragoman help" tells more.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/door/terminal"
)

func main() {
	os.Exit(run(os.Args[1:]))
}

// Exit codes.
const (
	exitFailed = 1 // the tool or the check failed
	exitUsage  = 2 // wrong usage or configuration
	// Of what compares a file with a running gateway.
	exitDiffers = 3 // a reload puts all that differs into effect
	exitRestart = 4 // some of it needs a restart
	// Of what looks for something.
	exitCut = 3 // it was interrupted before its end
)

// An exitCode ends a command that has said all.
type exitCode int

func (c exitCode) Error() string { return "exit code " + strconv.Itoa(int(c)) }

// errFailed ends a command that has already said what failed.
var errFailed = errors.New("failed")

// A usageError is a command line that makes no sense, or a configuration that
// cannot be used.
type usageError struct {
	err  error
	hint string
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// A failure is something that does not work although the command line makes
// sense.
type failure struct {
	err  error
	hint string
}

func (e *failure) Error() string { return e.err.Error() }
func (e *failure) Unwrap() error { return e.err }

func run(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends us at once
	entered := false
	root := command()
	noteEntry(root, &entered)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		err = terminal.Lost()
	}
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errFailed), errors.Is(err, terminal.ErrAnswer):
		return exitFailed
	}
	if said, ok := errors.AsType[exitCode](err); ok {
		return int(said)
	}
	stderr := terminal.NewScreen(os.Stderr)
	if usage, ok := errors.AsType[*usageError](err); ok {
		stderr.Error(usage.err, usage.hint)
		return exitUsage
	}
	hint := ""
	if failed, ok := errors.AsType[*failure](err); ok {
		hint = failed.hint
	}
	_, wrong := errors.AsType[*config.Error](err)
	if !wrong && !entered && terminal.Lost() == nil { // of the library's, about arguments
		wrong, hint = true, cmp.Or(hint, "see: "+cmd.CommandPath()+" --help")
	}
	stderr.Error(err, hint)
	if wrong {
		return exitUsage
	}
	return exitFailed
}

// noteEntry notes when a command begins its work: an error before that is about
// the command line.
func noteEntry(cmd *cobra.Command, entered *bool) {
	if work := cmd.RunE; work != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			*entered = true
			return work(cmd, args)
		}
	}
	for _, sub := range cmd.Commands() {
		noteEntry(sub, entered)
	}
}

func command() *cobra.Command {
	root := &cobra.Command{
		Use:   "dragoman",
		Short: "Let any OpenAI-compatible model use any MCP server",
		Long: `Dragoman stands between OpenAI-compatible models and MCP servers.

Without any configuration it talks to a built-in stand-in model and a built-in
demo server, so that everything can be tried:

  dragoman chat "What is the weather in Beijing?"

With OPENAI_BASE_URL and OPENAI_API_KEY set it talks to that model, and with a
command after "--" to that server:

  dragoman chat "What is in this folder?" -- npx -y @modelcontextprotocol/server-filesystem .

For programs, start the gateway and point any OpenAI client's base_url to it:

  dragoman serve`,
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetVersionTemplate(versionLine())
	root.SetFlagErrorFunc(flagError)
	root.SetOut(terminal.NewScreen(os.Stdout)) // notes what does not get there
	root.AddCommand(
		chatCommand(), serveCommand(), consoleCommand(), reloadCommand(), toolsCommand(), callCommand(),
		convertCommand(), argumentsCommand(), lintCommand(), proveCommand(),
		checkCommand(), configCommand(), approveCommand(), denyCommand(), auditCommand(), usageCommand(), runsCommand(), pinsCommand(), storeCommand(), keysCommand(), loginCommand(), claudeCommand(), codexCommand(), demoServerCommand(), versionCommand(),
	)
	root.InitDefaultHelpCmd()
	if help, _, err := root.Find([]string{"help"}); err == nil {
		help.Args = helpTopic
	}
	root.InitDefaultCompletionCmd()
	if shells, _, err := root.Find([]string{"completion"}); err == nil {
		shells.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() } // for no shell; one that it does not know is an error
	}
	return root
}

// helpTopic refuses to help with a command that there is not, for which the library shows
// how it is all used, as if that had been asked for.
func helpTopic(cmd *cobra.Command, args []string) error {
	topic, rest, err := cmd.Root().Find(args)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("unknown command %q for %q", rest[0], topic.CommandPath())
	}
	if err != nil {
		return &usageError{err, "see: " + topic.CommandPath() + " --help"}
	}
	return nil
}
