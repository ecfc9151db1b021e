package toolkit

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
)

// Main is all that a server's main function needs:
//
//	func main() { toolkit.Main(server()) }
//
// It reads the command line (--help lists it), reports everything that is wrong
// with the server at once, tries the keys, and serves: on standard input and
// output, or over HTTP with --http. Errors and the audit trail go to standard
// error. An interrupt or SIGTERM lets calls under way end, for at most ten
// seconds; then the hooks of [Server.OnStop] run.
//
// Main returns when all went well, so what main has deferred runs. Otherwise it
// ends the program with exit status 1 if something failed, or 2 for wrong usage
// or a server that cannot start. A main function with flags of its own uses
// [Flags].
func Main(s *Server) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := s.run(ctx, os.Args, os.Getenv, os.Stdin, os.Stdout, os.Stderr)
	stop()
	if status != 0 {
		os.Exit(status)
	}
}

// run is Main without the process around it.
func (s *Server) run(ctx context.Context, args []string, env func(string) string, in io.Reader, out, errs io.Writer) int {
	flags := flag.NewFlagSet(s.name, flag.ContinueOnError)
	line := Flags(flags)
	line.env = env
	flags.SetOutput(errs)
	flags.Usage = func() {}
	switch err := flags.Parse(args[1:]); {
	case errors.Is(err, flag.ErrHelp): // asked for, so it belongs on standard output
		s.usage(flags, out, args[0])
		return 0
	case err != nil:
		fmt.Fprintln(errs, "--help shows what is possible")
		return 2
	case flags.NArg() > 0:
		fmt.Fprintf(errs, "unexpected argument %q; --help shows what is possible\n", flags.Arg(0))
		return 2
	}
	err := line.Run(ctx, s, in, out, errs)
	if err != nil {
		fmt.Fprintln(errs, err)
	}
	return Status(err)
}

func (s *Server) usage(flags *flag.FlagSet, to io.Writer, program string) {
	fmt.Fprintf(to, "%s is an MCP server", s.name)
	if s.opts.Title != "" {
		fmt.Fprintf(to, " (%s)", s.opts.Title)
	}
	fmt.Fprintf(to, ".\n\nusage: %s [flags]\n\n", program)
	flags.SetOutput(to)
	flags.PrintDefaults()
	fmt.Fprintf(to, "\nenvironment:\n  MCP_TOKEN\n    \tbearer token that HTTP requests must carry; that, or --keys, is needed beyond loopback\n")
	for _, k := range s.keys() {
		if k == nil {
			continue // Validate says so
		}
		fmt.Fprintf(to, "  %s\n    \t%s\n", k.Env, cmp.Or(k.Hint, "needed"))
	}
}

// version is that of the options, else that of the build.
func (s *Server) version() string {
	if info, ok := debug.ReadBuildInfo(); ok && s.opts.Version == "dev" && info.Main.Version != "" {
		return info.Main.Version
	}
	return s.opts.Version
}
