package main

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/door/terminal"
	"github.com/dragoman-mcp/dragoman/internal/gateway"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/judge/approval"
	"github.com/dragoman-mcp/dragoman/internal/session"
)

// attended reports whether a person is there to answer questions.
func attended() bool {
	return term.IsTerminal(int(os.Stdin.Fd())) && term.IsTerminal(int(os.Stderr.Fd()))
}

// atHand is who can approve calls here and now: nobody where nobody is at the
// terminal.
func atHand() approval.Person {
	if !attended() {
		return approval.Person{}
	}
	return operator()
}

// canAsk is what can be asked here.
func canAsk() dragoman.Kind {
	if attended() {
		return terminal.CanAsk
	}
	return 0
}

// answers is where a person answers questions.
func answers() terminal.Input {
	if terminal.CanEdit(os.Stdin, os.Stderr) {
		return &terminal.Editor{In: os.Stdin, Out: os.Stderr}
	}
	return terminal.NewLines(os.Stdin, terminal.NewScreen(os.Stderr))
}

func chatCommand() *cobra.Command {
	var s selection
	var model string
	var yes, ask bool
	cmd := &cobra.Command{
		Use:   "chat [MESSAGE | -] [-- SERVER-COMMAND …]",
		Short: "Talk to a model that uses the servers' tools",
		Long: `Sends a message and prints the answer; without a message it is a conversation, in
which /help tells more. A "-" in the message stands for standard input:

  git diff | dragoman chat "Review this:" -

The model is the first of the configuration, or that of OPENAI_BASE_URL and
OPENAI_MODEL, or the built-in stand-in. The answer goes to standard output. What
happens on the way goes to standard error: the model decides which tools to call,
they are executed, and the model summarises.

At a terminal you are asked before a tool runs that says it is destructive; with
--ask before each that may change something, with --yes before none.` + serverHelp,
		RunE: func(cmd *cobra.Command, args []string) error {
			args, err := s.args(cmd, args)
			if err != nil {
				return err
			}
			if err := checkMessage(args, yes); err != nil {
				return err
			}
			message, err := readMessage(args, os.Stdin)
			if err != nil {
				return err
			}
			g, name, err := s.openChat(cmd.Context(), model)
			if err != nil {
				return err
			}
			defer g.Close()
			chat := s.newChat(g, name)
			switch {
			case yes || !chat.Attended && !ask:
				chat.Approve = terminal.ApproveNothing
			case ask:
				chat.Approve = terminal.ApproveWrites
			}
			if len(args) == 0 {
				return chat.Interactive(watched(cmd.Context(), g))
			}
			return chat.Once(watched(cmd.Context(), g), message)
		},
	}
	s.flags(cmd)
	cmd.Flags().StringVarP(&model, "model", "m", "", "`NAME` of the model")
	// It has no short form: -y is what npx takes, and who forgets "--" would disarm us.
	cmd.Flags().BoolVar(&yes, "yes", false, "ask before no call")
	cmd.Flags().BoolVar(&ask, "ask", false, "ask before each call of a tool that may change something")
	cmd.MarkFlagsMutuallyExclusive("yes", "ask")
	register(cmd, "model", s.models)
	return cmd
}

// readMessage puts a message together. A "-" stands for all of standard input.
func readMessage(args []string, stdin io.Reader) (string, error) {
	at := slices.Index(args, "-")
	if at < 0 {
		return strings.Join(args, " "), nil
	}
	text, err := io.ReadAll(stdin)
	if err != nil {
		return "", &failure{err, ""}
	}
	if slices.Contains(args[at+1:], "-") {
		return "", &usageError{errors.New("\"-\" stands twice in the message: standard input can be read once"), ""}
	}
	before, after := strings.Join(args[:at], " "), strings.Join(args[at+1:], " ")
	parts := slices.DeleteFunc([]string{before, string(text), after}, func(p string) bool { return strings.TrimSpace(p) == "" })
	if len(parts) == 0 {
		return "", &usageError{errors.New("the message is empty"), ""}
	}
	return strings.Join(parts, "\n\n"), nil
}

// newChat returns a chat with a model at this terminal.
func (s *selection) newChat(g *gateway.Gateway, model string) *terminal.Chat {
	chat := &terminal.Chat{
		Model: model, Quiet: s.quiet, Attended: attended(),
		Out: terminal.NewScreen(os.Stdout), Trace: terminal.NewScreen(os.Stderr),
		Open: func(ctx context.Context, want session.Want) (*session.Session, error) {
			want.Door, want.Operator = "terminal", atHand()
			return g.Open(ctx, caller.Local, want)
		},
		Models: func(ctx context.Context) []string {
			document, _ := g.Upstreams().Models(ctx, nil, false)
			return modelNames(document)
		},
	}
	if !terminal.CanEdit(os.Stdin, os.Stderr) {
		lines := terminal.NewLines(os.Stdin, chat.Trace)
		chat.In, chat.Questions = lines, lines
		return chat
	}
	editor := &terminal.Editor{In: os.Stdin, Out: os.Stderr, Complete: chat.Complete, Twice: true, History: &terminal.History{}}
	if path, err := terminal.StateFile("history"); err == nil {
		editor.History = terminal.OpenHistory(path)
	}
	chat.In, chat.Questions = editor, editor.Question()
	return chat
}
