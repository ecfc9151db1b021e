package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/door/terminal"
	"github.com/dragoman-mcp/dragoman/internal/judge/pin"
	"github.com/dragoman-mcp/dragoman/internal/judge/pinning"
	"github.com/dragoman-mcp/dragoman/internal/show"
	"github.com/dragoman-mcp/dragoman/internal/state/atomicfile"
)

func pinsCommand() *cobra.Command {
	var at string
	var all, asJSON bool
	cmd := &cobra.Command{
		Use:   "pins",
		Short: "Show which tools and texts of servers are trusted, and which wait because they changed",
		Long: `Shows the tools that wait for somebody's approval, why they wait, and all that is
different from what was approved before. Models do not see them, and nobody can call
them. The same holds for other things that models read of a server: prompts (such as
files/prompt:review), skills (files/skill:URI) and its instructions
(files/instructions). What is in order is counted; --all lists it.

  dragoman pins
  dragoman pins approve files/write_file

When something is trusted, pins.mode in the configuration says. The gateway learns of
what is approved within two seconds: both use the file that store.path names.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := openLedger(cmd.Context(), at)
			if err != nil {
				return err
			}
			defer l.Close()
			pins, err := l.Book.List(cmd.Context(), "")
			if err != nil {
				return err
			}
			if asJSON {
				return printPins(pins)
			}
			out := terminal.NewScreen(os.Stdout)
			for _, server := range show.Pins(pins) {
				out.Printf("%s", out.Fold(server.Text(out, all)))
			}
			stderr := terminal.NewScreen(os.Stderr)
			switch {
			case len(pins) == 0:
				stderr.Printf("nothing is pinned yet in %s\n", l.DB.String())
			case slices.ContainsFunc(pins, func(p pinning.Pin) bool { return p.State == pinning.Waiting }):
				stderr.Printf("what waits is trusted with: dragoman pins approve SERVER[/NAME]\n")
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "list what is approved, and what was held before, too")
	cmd.Flags().BoolVar(&asJSON, "json", false, "list everything as JSON, one definition on a line")
	configFlag(cmd, &at)
	cmd.AddCommand(approvePinsCommand(), forgetPinsCommand(), lockPinsCommand())
	return cmd
}

func approvePinsCommand() *cobra.Command {
	var at, digest string
	var yes bool
	cmd := &cobra.Command{
		Use:   "approve SERVER[/NAME] …",
		Short: "Trust tools, prompts, skills and instructions as they are now",
		Long: `Shows each tool and text of the servers that waits, with all that is different from
what was approved before, and asks whether it is to be trusted. --yes asks nobody. --pin
names the one definition of one name that is meant, by the beginning of its pin, and
asks nobody either: one that has changed again since it was looked at is refused. NAME
is that of a tool, prompt:NAME, skill:URI or instructions, as dragoman pins shows it.

  dragoman pins approve files
  dragoman pins approve files/instructions
  dragoman pins approve files/write_file --pin 9f86d081884c`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, targets []string) error {
			if digest != "" && (len(targets) != 1 || !strings.Contains(targets[0], "/") || len(digest) < minPin) {
				return &usageError{fmt.Errorf("--pin is at least %d digits of the pin of one definition, SERVER/NAME", minPin), ""}
			}
			p := questioner()
			if p == nil && !yes && digest == "" {
				return &usageError{errors.New("there is nobody at a terminal to ask"), "look at what dragoman pins shows, then name the pin with --pin, or use --yes"}
			}
			l, err := openLedger(cmd.Context(), at)
			if err != nil {
				return err
			}
			defer l.Close()
			return approvePins(cmd.Context(), l.Book, targets, digest, yes || digest != "", p)
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "approve without asking")
	cmd.Flags().StringVar(&digest, "pin", "", "the beginning of the `PIN` of the definition that is meant")
	configFlag(cmd, &at)
	return cmd
}

// minPin is how many digits of a pin may stand for it.
const minPin = 8

// targeted reads SERVER, or SERVER/NAME. Of a server alone the key is zero.
func targeted(target string) (server string, key pin.Key) {
	server, name, _ := strings.Cut(target, "/")
	if name != "" {
		key = pin.ParseKey(name)
	}
	return server, key
}

// approvePins approves what waits of the targets. Each definition is approved as it was
// shown, and no other. One that cannot be approved keeps nobody from the others.
func approvePins(ctx context.Context, book *pinning.Book, targets []string, digest string, yes bool, p *prompter) error {
	out := terminal.NewScreen(os.Stdout)
	if p != nil {
		out = p.out
	}
	var failed error
	for _, target := range targets {
		server, key := targeted(target)
		if server == "" {
			return &usageError{fmt.Errorf("%q names no server", target), ""}
		}
		pins, err := book.List(ctx, server)
		if err != nil {
			return err
		}
		waiting := slices.DeleteFunc(slices.Clone(pins), func(p pinning.Pin) bool {
			return p.State != pinning.Waiting || key != pin.Key{} && p.Key != key
		})
		if len(waiting) == 0 {
			terminal.NewScreen(os.Stderr).Error(fmt.Errorf("nothing of %s waits for approval", terminal.OneLine(target, 200)), "dragoman pins --all shows what there is")
			failed = errFailed
		}
		for i := range waiting {
			w := &waiting[i]
			shown := show.DefinitionOf(w, pinning.StandingFor(pins, w))
			out.Printf("%s", out.Fold(shown.Text(out)))
			err := pinning.ErrChanged
			if strings.HasPrefix(w.Pin.String(), strings.ToLower(digest)) {
				err = approvePin(ctx, book, w, yes, p)
			}
			switch {
			case errors.Is(err, errSkip):
			case errors.Is(err, errQuit):
				return failed
			case err != nil:
				out.Printf("%s\n\n", out.Warn(terminal.OneLine(err.Error(), 400)))
				failed = errFailed
			default:
				out.Printf("%s\n\n", out.Good("approved"))
			}
		}
	}
	return failed
}

var errSkip = errors.New("the person does not want to say")

// approvePin approves a definition that was shown, once somebody has said so. Only a
// plain yes is one.
func approvePin(ctx context.Context, book *pinning.Book, w *pinning.Pin, yes bool, p *prompter) error {
	for !yes {
		p.out.Printf("%s ", p.out.Bold("Is it to be trusted? [y]es, [s]kip, [q]uit:"))
		text, err := p.line(false)
		if err != nil {
			return err
		}
		switch strings.ToLower(strings.TrimSpace(text)) {
		case "y", "yes":
			yes = true
		case "n", "no", "s", "skip":
			return errSkip
		case "q", "quit":
			return errQuit
		}
	}
	return book.Approve(ctx, w.Server, w.Key, w.Pin, operator().ID)
}

func forgetPinsCommand() *cobra.Command {
	var at string
	cmd := &cobra.Command{
		Use:   "forget SERVER[/NAME] …",
		Short: "Drop what is known of servers or their tools, as if they had never been seen",
		Long: `Drops what was approved and what waits. Where servers are trusted on first use, one
that is forgotten is trusted anew as it lists its tools next, which a running gateway
notices at once. A single tool that is forgotten counts as one that joined its server.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, targets []string) error {
			l, err := openLedger(cmd.Context(), at)
			if err != nil {
				return err
			}
			defer l.Close()
			var failed error
			for _, target := range targets {
				server, key := targeted(target)
				n, err := l.Book.Forget(cmd.Context(), server, key, operator().ID)
				if err != nil {
					terminal.NewScreen(os.Stderr).Error(fmt.Errorf("%s: %w", target, err), "")
					failed = errFailed
					continue
				}
				terminal.NewScreen(os.Stdout).Printf("forgot %s: %s\n", terminal.OneLine(target, 200), terminal.Many(n, "approval"))
			}
			return failed
		},
	}
	configFlag(cmd, &at)
	return cmd
}

func lockPinsCommand() *cobra.Command {
	var at string
	cmd := &cobra.Command{
		Use:   "lock [FILE]",
		Short: "Write what is approved to a lock file, for review and for other machines",
		Long: `Writes the pins of all that is approved in place of what the file has: pins.lock of the
configuration, or ` + pin.LockName + ` here. dragoman lint compares with such a file, and a
gateway whose pins.lock names it trusts what it has.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s := selection{config: at}
			file, err := s.load(only(append(ledgerKeys, "mcpServers.*.pins")...))
			if err != nil {
				return err
			}
			l, err := openLedger(cmd.Context(), at)
			if err != nil {
				return err
			}
			defer l.Close()
			pins, err := l.Book.List(cmd.Context(), "")
			if err != nil {
				return err
			}
			path := pin.LockName
			if file.Pins.Lock != "" {
				path = file.Pins.Lock
			}
			if len(args) == 1 {
				path = args[0]
			}
			lock, tools := lockOf(file, pins)
			if tools == 0 {
				return &failure{errors.New("no tool is approved, so nothing was written"), "a gateway that keeps pins has to see the servers first, or use dragoman lint --write-lock"}
			}
			if err := atomicfile.Share(path, lock.Bytes()); err != nil {
				return fmt.Errorf("writing the lock: %w", err)
			}
			terminal.NewScreen(os.Stderr).Printf("%s of %s pinned in %s\n", terminal.Many(tools, "tool"), terminal.Many(len(lock.Servers), "server"), path)
			return nil
		},
	}
	configFlag(cmd, &at)
	return cmd
}

// lockOf returns the lock of what is approved, and how many tools are. Where a server
// has to be approved by somebody, what was trusted on first use before is not. Of
// prompts and skills it says something where there are some, approved or held; of
// instructions always: where none are approved, that none are.
func lockOf(file *config.File, pins []pinning.Pin) (lock pin.Lock, tools int) {
	kinds, seen := map[string][]pin.Kind{}, map[string][]pin.Seen{}
	for _, p := range pins {
		if kinds[p.Server] == nil {
			kinds[p.Server] = []pin.Kind{pin.Instructions}
		}
		if !slices.Contains(kinds[p.Server], p.Kind) {
			kinds[p.Server] = append(kinds[p.Server], p.Kind)
		}
		explicit := file.MCPServers[p.Server].Pins.Or(file.Pins.Mode) == pin.Explicit
		if p.State != pinning.Standing || explicit && p.Reason == pinning.ByFirst {
			continue
		}
		seen[p.Server] = append(seen[p.Server], pin.Seen{Key: p.Key, Definition: p.Definition})
		if p.Kind == pin.Tool {
			tools++
		}
	}
	for server, seen := range seen {
		lock.Set(server, seen, kinds[server]...)
	}
	return lock, tools
}
