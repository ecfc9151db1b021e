package main

import (
	"os"
	"os/signal"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/terminal"
)

// attended reports whether a person is there to answer questions.
func attended() bool {
	return term.IsTerminal(int(os.Stdin.Fd())) && term.IsTerminal(int(os.Stderr.Fd()))
}

// canAsk is what can be asked here.
func canAsk() dragoman.Kind {
	if attended() {
		return terminal.CanAsk
	}
	return 0
}

func chatCommand() *cobra.Command {
	var s selection
	var model string
	cmd := &cobra.Command{
		Use:   "chat [MESSAGE] [-- SERVER-COMMAND …]",
		Short: "Talk to a model that uses the servers' tools",
		Long: `Sends a message and prints the answer; without a message it is a conversation.

The model is the first of the configuration, or that of OPENAI_BASE_URL and
OPENAI_MODEL, or the built-in stand-in. The answer goes to standard output. What
happens on the way goes to standard error: the model decides which tools to call,
they are executed, and the model summarises.` + serverHelp,
		RunE: func(cmd *cobra.Command, args []string) error {
			args, err := s.args(cmd, args)
			if err != nil {
				return err
			}
			g, _, err := s.open(cmd.Context())
			if err != nil {
				return err
			}
			defer g.Close()
			if model == "" {
				model = g.Upstreams().DefaultModel()
			}
			if model == "" {
				return &usageError{errNoModel, "name one with --model"}
			}
			chat := &terminal.Chat{
				Model: model, Answer: g.Chat, Quiet: s.quiet,
				In: terminal.NewLines(os.Stdin), Attended: attended(), Out: terminal.NewScreen(os.Stdout), Trace: terminal.NewScreen(os.Stderr),
			}
			if len(args) == 0 {
				return chat.Interactive(cmd.Context())
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt)
			defer stop()
			return chat.Once(ctx, strings.Join(args, " "))
		},
	}
	s.flags(cmd)
	cmd.Flags().StringVarP(&model, "model", "m", "", "`NAME` of the model")
	register(cmd, "model", s.models)
	return cmd
}
