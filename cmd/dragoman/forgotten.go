package main

import (
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dragoman-mcp/dragoman/internal/text/commandline"
)

// starters are programs that start servers, and that people write behind a message
// without the "--" that has to stand in front of them.
var starters = []string{
	"npx", "pnpx", "bunx", "npm", "pnpm", "yarn", "node", "nodejs", "deno", "bun", "tsx", "ts-node",
	"uvx", "uv", "pipx", "python", "docker", "podman", "nerdctl", "dotnet", "java",
}

// starts reports whether a word is a program that starts servers, or the path of one.
func starts(word string) bool {
	if slices.Contains(starters, commandline.Read(word, nil).Program) {
		return true
	}
	_, err := exec.LookPath(word)
	return err == nil && strings.ContainsAny(word, `/\`)
}

// checkMessage refuses the words of a message that may be the command of a server. Flags
// behind it would be ours then, and the next word a part of what the model is told.
func checkMessage(words []string, yes bool) error {
	if len(words) < 2 { // which may say whatever it likes
		return nil
	}
	if i := slices.IndexFunc(words, starts); i >= 0 {
		return &usageError{
			fmt.Errorf("%q stands in the message, and is a program", words[i]),
			fmt.Sprintf("to start a server, put -- before its command: dragoman chat \"…\" -- %s …; a message with this word needs quotes around all of it", words[i]),
		}
	}
	if yes {
		return &usageError{
			errors.New("--yes lets tools run without asking, and what stands behind the first word may be a server's command"),
			`put the message into quotes; a server's command comes after "--"`,
		}
	}
	return nil
}

// flagError says what is wrong with a flag, and what was probably meant: the flag of a
// server's command, for which "--" was forgotten.
func flagError(cmd *cobra.Command, err error) error {
	hint := "see: " + cmd.CommandPath() + " --help"
	words := cmd.Flags().Args() // before the flag
	program := slices.IndexFunc(words, starts)
	unknown, _ := errors.AsType[*pflag.NotExistError](err)
	switch {
	case !strings.Contains(cmd.Use, "SERVER-COMMAND"):
	case program == 0:
		hint = fmt.Sprintf("to start a server, put -- before its command: %s -- %s …", cmd.CommandPath(), words[0])
	case program > 0:
		hint = fmt.Sprintf("to start a server, put -- before its command: %s … -- %s …", cmd.CommandPath(), words[program])
	case unknown != nil && unknown.GetSpecifiedName() == "y" && cmd.Flags().Lookup("yes") != nil:
		hint = "what lets tools run without asking is written out: --yes"
	case len(words) > 0:
		hint = `a server's command, with its flags, comes after "--"; ` + hint
	}
	return &usageError{err, hint}
}
