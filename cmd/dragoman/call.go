package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/door/terminal"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/session"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/result"
)

func callCommand() *cobra.Command {
	var s selection
	var raw bool
	cmd := &cobra.Command{
		Use:   "call TOOL [JSON | NAME=VALUE …] [-- SERVER-COMMAND …]",
		Short: "Call one tool and print the result as a model gets it",
		Long: `Calls a tool through the same stack as a model's call and prints the envelope.

Arguments are one JSON object, or one NAME=VALUE each: a string where the tool
takes one, otherwise JSON. NAME:=JSON is always JSON.

  dragoman call get_weather city=Beijing
  dragoman call calculate_sum '{"a": 1, "b": 2.5}'` + serverHelp,
		ValidArgsFunction: s.completeCall,
		RunE: func(cmd *cobra.Command, args []string) error {
			args, err := s.args(cmd, args)
			if err != nil {
				return err
			}
			if len(args) == 0 {
				return &usageError{errors.New("which tool?"), "dragoman tools lists them"}
			}
			arguments, err := parseArguments(args[1:])
			if err != nil {
				return &usageError{err, "arguments are one JSON object, or NAME=VALUE"}
			}
			g, _, err := s.open(cmd.Context())
			if err != nil {
				return err
			}
			defer g.Close()
			ctx, stop := signal.NotifyContext(watched(cmd.Context(), g), os.Interrupt)
			defer stop()
			want := session.Want{Door: "terminal", Operator: atHand()}
			if raw {
				want.Profile = result.Raw
			}
			open, err := g.Open(ctx, caller.Local, want)
			if err != nil {
				return err
			}
			call, err := makeCall(ctx, open, args[0], arguments)
			if err != nil {
				return err
			}
			return runCall(ctx, open, call, s.quiet)
		},
	}
	s.flags(cmd)
	cmd.Flags().BoolVar(&raw, "raw", false, "print the MCP result instead of the envelope")
	return cmd
}

// parseArguments makes one JSON object of the arguments on the command line.
func parseArguments(args []string) (string, error) {
	if len(args) == 0 {
		return "{}", nil
	}
	if len(args) == 1 && strings.HasPrefix(strings.TrimSpace(args[0]), "{") {
		if err := rawjson.Check([]byte(args[0])); err != nil {
			return "", fmt.Errorf("the arguments are not valid JSON: %w", err)
		}
		return args[0], nil
	}
	var o rawjson.Object
	for _, arg := range args {
		name, value, ok := strings.Cut(arg, "=")
		if !ok || name == "" {
			return "", fmt.Errorf("%q is neither a JSON object nor NAME=VALUE", arg)
		}
		if o.Get(strings.TrimSuffix(name, ":")) != nil {
			return "", fmt.Errorf("%q is given twice", strings.TrimSuffix(name, ":"))
		}
		if name, forced := strings.CutSuffix(name, ":"); forced {
			if err := rawjson.Check([]byte(value)); err != nil {
				return "", fmt.Errorf("the value of %q is not valid JSON: %w", name, err)
			}
			o.Set(name, json.RawMessage(value))
			continue
		}
		// A string that the schema does not admit is read as JSON when it is
		// decoded.
		o.Set(name, rawjson.Quote(value))
	}
	return string(o.Bytes()), nil
}

// makeCall resolves a tool and fits the arguments to it.
func makeCall(ctx context.Context, s *session.Session, name, arguments string) (dragoman.Call, error) {
	list, err := s.Tools.List(ctx)
	if err != nil {
		return dragoman.Call{}, err
	}
	call := dragoman.Call{ID: "call", Tool: list.Tools.Find(name)}
	if call.Tool == nil {
		return call, &usageError{fmt.Errorf("there is no tool %q", name), nearestTool(name, list.Tools.All())}
	}
	plan, problem := s.Dialect.Plan(*call.Tool)
	if problem != nil {
		call.Problem = problem
		return call, nil
	}
	call.Arguments, _, call.Problem = plan.DecodeAs(arguments, "", dialect.GradeOf(call.Tool))
	return call, nil
}

// nearestTool is a hint with the tool that was probably meant.
func nearestTool(name string, tools []dragoman.Tool) string {
	names := make([]string, len(tools))
	for i, t := range tools {
		names[i] = t.Name
	}
	if hint := config.Nearest(name, names); hint != "" {
		return hint
	}
	return "dragoman tools lists them"
}

// runCall runs the call, shows its progress, and prints what came of it.
func runCall(ctx context.Context, s *session.Session, call dragoman.Call, quiet bool) error {
	stderr := terminal.NewScreen(os.Stderr)
	stderr.Live = stderr.Live && !quiet // no progress
	bar := terminal.NewBar(stderr, call.Tool.Name)
	call.Progress = bar.Show
	started := time.Now()
	var ask func(context.Context, dragoman.Call, *dragoman.Asks) (*dragoman.Answers, error)
	if attended() {
		asker := &terminal.Asker{In: answers(), Screen: stderr, Before: bar.Clear}
		ask, call.Can = asker.Ask, terminal.CanAsk
	}
	res, err := s.Call(ctx, call, ask)
	bar.Clear()
	if ctx.Err() != nil {
		stderr.Printf("%s after %s\n", stderr.Warn("cancelled"), time.Since(started).Round(time.Millisecond))
		return errFailed
	}
	if err != nil {
		return err
	}
	message := s.Shape(call.Tool).Message(call, res)
	var pretty bytes.Buffer
	if json.Indent(&pretty, []byte(message.Text), "", "  ") == nil {
		message.Text = pretty.String()
	}
	if _, err := fmt.Fprintln(os.Stdout, message.Text); err != nil {
		return err
	}
	if res.Problem != nil || res.Failed {
		return errFailed
	}
	return nil
}
