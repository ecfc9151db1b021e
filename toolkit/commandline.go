package toolkit

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/dragoman-mcp/dragoman/internal/identity/apikey"
)

// A CommandLine is how a server is to be served. [Flags] makes one.
type CommandLine struct {
	http, audit, keys string
	cert, certKey     string
	hosts, origins    words
	version, check    bool
	newKey, rights    string
	days              int
	env               func(string) string // nil: os.Getenv
}

// words is a flag that may be repeated.
type words []string

func (w *words) String() string { return strings.Join(*w, ",") }

// Set adds a value.
func (w *words) Set(value string) error {
	*w = append(*w, value)
	return nil
}

// Flags adds the toolkit's flags to those of a program, and returns what they
// will say once they are parsed:
//
//	func main() {
//		file := flag.String("db", "tickets.db", "`file` of the tracker")
//		line := toolkit.Flags(flag.CommandLine)
//		flag.Parse()
//		db := open(*file)
//		defer db.Close()
//		line.Main(server(db))
//	}
func Flags(flags *flag.FlagSet) *CommandLine {
	c := &CommandLine{}
	flags.StringVar(&c.http, "http", "", "serve over HTTP at this `address`, such as 127.0.0.1:8080 or :8080 for loopback; without it, on standard input and output")
	flags.Var(&c.hosts, "host", "a host `name` under which the server may be reached, besides loopback (may be repeated)")
	flags.Var(&c.origins, "origin", "the `origin` of a web page that may use the server, such as https://inspector.example (may be repeated)")
	flags.StringVar(&c.audit, "audit", "-", "`file` that gets a line for each call; - is standard error, off is none")
	flags.StringVar(&c.keys, "keys", "", "`file` of API keys that may use the server over HTTP, each for its user")
	flags.StringVar(&c.cert, "tls-cert", "", "`file` of a certificate, to serve https; read again when it changes")
	flags.StringVar(&c.certKey, "tls-key", "", "`file` of the certificate's key")
	flags.StringVar(&c.newKey, "new-key", "", "make an API key for this `user`, add it to the file of --keys, print it, and end")
	flags.StringVar(&c.rights, "rights", "", "what the new key may do: `rights` such as tickets:read,tickets:write, or * for everything; nothing that needs a right without it")
	flags.IntVar(&c.days, "days", 0, "the new key expires after so many `days`; 0 is never")
	flags.BoolVar(&c.check, "check", false, "check that everything is in place, and end")
	flags.BoolVar(&c.version, "version", false, "print the version, and end")
	return c
}

// Main serves as the command line says, as [Main] does.
func (c *CommandLine) Main(s *Server) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := c.Run(ctx, s, os.Stdin, os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(Status(err))
	}
}

// Status is the exit status for an error of [CommandLine.Run]: 0 for none, 2 for
// wrong usage and a server that cannot start, 1 for everything else.
func Status(err error) int {
	_, problems := errors.AsType[*Problems](err)
	_, wrong := errors.AsType[*usageError](err)
	switch {
	case err == nil:
		return 0
	case problems || wrong:
		return 2
	}
	return 1
}

// A usageError is the fault of who typed the command line.
type usageError struct{ err error }

func (u *usageError) Error() string { return u.err.Error() }
func (u *usageError) Unwrap() error { return u.err }

// Run is [CommandLine.Main] for programs that handle signals and errors
// themselves: it serves until ctx ends or in does, closes the server, runs the
// hooks of [Server.OnStop], and returns what went wrong.
func (c *CommandLine) Run(ctx context.Context, s *Server, in io.Reader, out, errs io.Writer) (err error) {
	switch {
	case c.version:
		fmt.Fprintln(out, s.name, s.version())
		return nil
	case c.newKey != "":
		return c.makeKey(s, out, errs)
	}
	defer func() { err = errors.Join(err, s.finish(ctx)) }()
	closeAudit, err := c.apply(s, errs)
	if err != nil {
		return err
	}
	defer closeAudit()
	if err := s.prepare(ctx); err != nil {
		return err
	}
	if c.check {
		fmt.Fprintf(out, "%s is ready to serve.\n", s.name)
		return nil
	}
	if c.http != "" {
		err = s.listen(ctx, c, errs)
	} else {
		err = s.serveUntil(context.WithoutCancel(ctx), ctx, stopTime, in, out)
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	return nil
}

// apply puts into the options what the command line adds to them.
func (c *CommandLine) apply(s *Server, errs io.Writer) (closeAudit func(), err error) {
	if s.opts.Logger == nil {
		s.opts.Logger = slog.New(slog.NewTextHandler(errs, &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	h := &s.opts.HTTP
	h.Hosts, h.Origins = append(h.Hosts, c.hosts...), append(h.Origins, c.origins...)
	env := c.env
	if env == nil {
		env = os.Getenv
	}
	if c.keys != "" {
		if h.APIKeys, err = OpenKeys(c.keys); err != nil {
			return nil, &usageError{fmt.Errorf("%s: %w (make the first key with --new-key)", s.name, err)}
		}
	}
	if c.http != "" && !h.guarded() {
		h.Token = env("MCP_TOKEN")
	}
	closeAudit, err = s.openAudit(c.audit, errs)
	if err != nil {
		return nil, &usageError{fmt.Errorf("%s: %w", s.name, err)}
	}
	return closeAudit, nil
}

// makeKey answers --new-key.
func (c *CommandLine) makeKey(s *Server, out, errs io.Writer) error {
	if c.keys == "" {
		return &usageError{errors.New("--new-key needs --keys, the file that the key is added to")}
	}
	rights := strings.FieldsFunc(c.rights, func(r rune) bool { return r == ',' || r == ' ' })
	text, k, err := NewAPIKey(c.newKey, rights...)
	if err == nil && c.days > 0 {
		k.Expires = k.Created.AddDate(0, 0, c.days)
	}
	if err == nil && c.days < 0 {
		err = errors.New("--days is negative")
	}
	if err != nil {
		return &usageError{err}
	}
	if err := apikey.Add(c.keys, apikey.Record(k)); err != nil {
		return err
	}
	fmt.Fprintf(errs, "%s: the key is shown this once; %s has its hash. Delete that line to revoke it.\n", s.name, c.keys)
	fmt.Fprintln(out, text)
	return nil
}

// openAudit opens the trail where the options name none.
func (s *Server) openAudit(file string, errs io.Writer) (func(), error) {
	switch {
	case file == "off":
		s.trail.out = nil
	case file == "-":
		if s.trail.out == nil {
			s.trail.out = errs
		}
	default:
		f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			return nil, fmt.Errorf("audit: %w", err)
		}
		s.trail.out = f
		return func() { f.Close() }, nil
	}
	return func() {}, nil
}

// prepare checks what can be checked before anybody connects.
func (s *Server) prepare(ctx context.Context) error {
	if _, err := s.SDK(); err != nil {
		return err
	}
	var problems []error
	for _, k := range s.keys() {
		if err := k.try(ctx); err != nil {
			problems = append(problems, err)
		}
	}
	if len(problems) > 0 {
		return &Problems{s.name, problems}
	}
	return nil
}
