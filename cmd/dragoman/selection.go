package main

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/judge/pin"
	"github.com/dragoman-mcp/dragoman/internal/reach/servers"
	"github.com/dragoman-mcp/dragoman/internal/text/invalid"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

// selection is how the servers of a command are named on its command line, and
// how much it says.
type selection struct {
	config    string
	mcpConfig string
	url       string
	headers   []string
	command   []string
	env       []string
	labels    []string
	verbose   bool
	quiet     bool
	texts     bool // prompts, skills and instructions are waited for, too

	toldStarting bool // that servers are waited for has been said
}

// flags adds the flags that choose servers to a command.
func (s *selection) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.config, "config", "", "configuration `FILE` (default $DRAGOMAN_CONFIG, then the user's configuration directory)")
	f.StringVar(&s.mcpConfig, "mcp-config", "", "take the servers from another client's mcpServers `FILE`")
	f.StringVar(&s.url, "url", "", "take the one server at this `URL`")
	f.StringArrayVar(&s.headers, "header", nil, "send this `\"NAME: VALUE\"` to the server at --url; may be repeated")
	f.StringArrayVar(&s.env, "env", nil, "give the command after \"--\" this variable: `NAME` with its value here, or NAME=VALUE; may be repeated")
	f.StringSliceVar(&s.labels, "server", nil, "of the servers, take only the one with this `LABEL`; may be repeated")
	mustSay(f, "mcp-config", "url", "server")
	f.BoolVarP(&s.verbose, "verbose", "v", false, "log what happens, and what servers write, to standard error")
	f.BoolVarP(&s.quiet, "quiet", "q", false, "write nothing but errors to standard error")
	cmd.MarkFlagsMutuallyExclusive("mcp-config", "url")
	cmd.MarkFlagsMutuallyExclusive("verbose", "quiet")
	s.complete(cmd)
}

// mustSay has flags that choose something refuse an empty value. It is a variable of a script
// that is not set, and would choose everything.
func mustSay(f *pflag.FlagSet, names ...string) {
	for _, name := range names {
		flag := f.Lookup(name)
		flag.Value, flag.DefValue = spoken{flag.Value}, "" // and help shows no default
	}
}

// spoken is the value of a flag that is not to be empty.
type spoken struct{ pflag.Value }

// Set implements the interface of flags.
func (s spoken) Set(value string) error {
	if value == "" {
		return errors.New("it is empty")
	}
	return s.Value.Set(value)
}

// serverHelp is what the help of commands with servers says about them.
const serverHelp = `

The servers are those of the configuration, or of --mcp-config, --url, or the
command after "--". Such a command inherits little of the environment; give it
more with --env NAME, or as shells do, with NAME=VALUE before the command:

  dragoman tools --env GITHUB_TOKEN -- npx -y @modelcontextprotocol/server-github
  dragoman tools -- LOG_LEVEL=debug npx -y @modelcontextprotocol/server-everything`

// args splits a command's arguments from the command of a server after "--".
func (s *selection) args(cmd *cobra.Command, args []string) ([]string, error) {
	if at := cmd.ArgsLenAtDash(); at >= 0 {
		s.command, args = args[at:], args[:at]
		for len(s.command) > 0 && isAssignment(s.command[0]) {
			s.env, s.command = append(s.env, s.command[0]), s.command[1:]
		}
		if len(s.command) == 0 {
			return nil, &usageError{errors.New("there is no command after \"--\""), ""}
		}
		if s.url != "" || s.mcpConfig != "" {
			return nil, &usageError{errors.New("a command after \"--\" and --url or --mcp-config exclude each other"), ""}
		}
	}
	switch {
	case len(s.env) > 0 && len(s.command) == 0:
		return nil, &usageError{errors.New("--env is for a server's command, and there is none after \"--\""), "in files, variables stand in env"}
	case len(s.headers) > 0 && s.url == "":
		return nil, &usageError{errors.New("--header is for a server at --url"), "in files, headers stand in headers"}
	}
	return args, nil
}

// isAssignment reports whether an argument sets a variable, NAME=VALUE, and is
// no program.
func isAssignment(arg string) bool {
	name, _, ok := strings.Cut(arg, "=")
	return ok && isVariable(name)
}

func isVariable(name string) bool {
	for i, r := range name {
		letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != ""
}

// load reads the configuration and puts the chosen servers in. reader says who
// answers what is not in the files.
func (s *selection) load(reader config.Reader) (*config.File, error) {
	path, err := config.Find(s.config, reader.Lookup)
	if err != nil {
		return nil, &usageError{err, ""}
	}
	file := config.Default()
	if path != "" {
		if file, err = s.configured(reader).Load(path); err != nil {
			return nil, &usageError{err, ""}
		}
	}
	switch {
	case s.mcpConfig != "":
		err = s.useFile(file, reader)
	case s.url != "":
		err = s.useURL(file)
	case len(s.command) > 0:
		err = s.useCommand(file, reader)
	}
	if err == nil {
		err = s.narrow(file)
	}
	if err != nil {
		return nil, err
	}
	file.UseKeys()
	if reader.Needs != nil {
		return file, nil // which starts nothing
	}
	if err := file.CheckSandboxes(); err != nil {
		return nil, &usageError{err, ""}
	}
	return file, nil
}

// configured returns the reader for the configuration: where other servers
// replace its own, nobody is asked on their behalf.
func (s *selection) configured(reader config.Reader) config.Reader {
	if s.mcpConfig != "" || s.url != "" || len(s.command) > 0 {
		reader.Ask = leaveInput
	}
	return reader
}

// useFile takes the servers of another client's file.
func (s *selection) useFile(file *config.File, reader config.Reader) error {
	other, err := reader.ReadMCP(s.mcpConfig)
	if err != nil {
		return &usageError{err, ""}
	}
	if len(other.MCPServers) == 0 && len(other.LeftOut) > 0 {
		lines := make([]string, len(other.LeftOut))
		for i, left := range other.LeftOut {
			lines[i] = "\n  " + left.Reason.Error()
		}
		return &usageError{fmt.Errorf("no server of %s can be used:%s", s.mcpConfig, strings.Join(lines, "")), ""}
	}
	if len(other.MCPServers) == 0 {
		return &usageError{fmt.Errorf("there are no MCP servers in %s", s.mcpConfig), ""}
	}
	file.UseServers(other)
	return nil
}

// useURL takes the server at --url.
func (s *selection) useURL(file *config.File) error {
	server := servers.Config{URL: s.url}
	for _, header := range s.headers {
		name, value, ok := strings.Cut(header, ":")
		if !ok {
			// The header is not repeated: it may be nothing but a token.
			return &usageError{errors.New("--header takes a name, a colon and a value"), `for example: --header "Authorization: Bearer $TOKEN"`}
		}
		if server.Headers == nil {
			server.Headers = map[string]secret.Text{}
		}
		server.Headers[strings.TrimSpace(name)] = secret.New(strings.TrimSpace(value))
	}
	if err := server.Validate(); err != nil {
		flag := "--url"
		if wrong, ok := errors.AsType[*invalid.Error](err); ok && wrong.Key == "headers" {
			flag = "--header"
		}
		return &usageError{fmt.Errorf("%s: %w", flag, err), ""}
	}
	s.use(file, "server", server, nil)
	return nil
}

// use takes a server that the command line names. Its label is one that we made up, and
// means another server the next time: its tools are pinned only where the configuration
// says so.
func (s *selection) use(file *config.File, label string, server servers.Config, warnings config.Errors) {
	if file.Pins.Mode == pin.Auto {
		server.Pins = pin.Off
	}
	file.UseServers(&config.File{MCPServers: map[string]servers.Config{label: server}, Warnings: warnings})
}

// useCommand takes the server that the command after "--" starts.
func (s *selection) useCommand(file *config.File, reader config.Reader) error {
	server := servers.Config{Command: s.command[0], Args: s.command[1:]}
	for _, variable := range s.env {
		name, value, given := strings.Cut(variable, "=")
		if !isVariable(name) {
			return &usageError{fmt.Errorf("--env: %q cannot be the name of a variable", name), ""}
		}
		if !given {
			if value, given = reader.Lookup(name); !given {
				return &usageError{fmt.Errorf("--env: the variable %s is not set here", name), fmt.Sprintf("set it, or write --env %s=VALUE", name)}
			}
		}
		if server.Env == nil {
			server.Env = map[string]secret.Text{}
		}
		server.Env[name] = secret.New(value)
	}
	if err := server.Validate(); err != nil {
		return &usageError{err, ""}
	}
	var warnings config.Errors
	for _, a := range config.Advise(server) {
		hint := a.Hint
		if a.Key == "command" {
			hint = "Write the command without quotes around all of it."
		}
		warnings = append(warnings, &config.Error{File: "the command after \"--\"", Message: a.Message, Hint: hint})
	}
	s.use(file, label(s.command), server, warnings)
	return nil
}

// narrow leaves the servers that --server names.
func (s *selection) narrow(file *config.File) error {
	if len(s.labels) == 0 {
		return nil
	}
	all := slices.Sorted(maps.Keys(file.MCPServers))
	chosen := map[string]servers.Config{}
	for _, name := range s.labels {
		server, ok := file.MCPServers[name]
		left := slices.IndexFunc(file.LeftOut, func(l config.LeftOut) bool { return l.Label == name })
		switch {
		case left >= 0:
			return &usageError{file.LeftOut[left].Reason, ""}
		case !ok && len(all) == 0:
			return &usageError{fmt.Errorf("there is no server %q: none is configured", name), ""}
		case !ok:
			hint := config.Nearest(name, all)
			if hint == "" {
				hint = "the servers are " + strings.Join(all, ", ")
			}
			return &usageError{fmt.Errorf("there is no server %q", name), hint}
		case server.Disabled:
			return &usageError{fmt.Errorf("the server %q is disabled in the configuration", name), ""}
		}
		chosen[name] = server
	}
	file.MCPServers, file.LeftOut = chosen, nil
	return nil
}

// environment reads variables alone: commands that start no server ask nobody.
func environment() config.Reader { return config.Reader{Lookup: os.LookupEnv, Ask: leaveInput} }

// only reads variables for the keys of those patterns: whoever answers a question at
// another terminal than the gateway's has not the secrets of servers there.
func only(keys ...string) config.Reader {
	reader := environment()
	reader.Needs = keys
	return reader
}

// leaveInput answers for nobody. What is shown of a configuration is the
// reference; "0" is text, a number, a host and a port, and so valid everywhere.
func leaveInput(in config.Input) (string, error) { return cmp.Or(in.Default, "0"), nil }

func (s *selection) logger() *slog.Logger {
	level := slog.LevelError
	switch {
	case s.verbose:
		level = slog.LevelDebug
	case s.quiet:
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
}
