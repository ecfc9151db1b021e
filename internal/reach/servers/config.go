package servers

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/judge/pin"
	"github.com/dragoman-mcp/dragoman/internal/reach/credential"
	"github.com/dragoman-mcp/dragoman/internal/reach/tlsfiles"
	"github.com/dragoman-mcp/dragoman/internal/text/commandline"
	"github.com/dragoman-mcp/dragoman/internal/text/glob"
	"github.com/dragoman-mcp/dragoman/internal/text/invalid"
	"github.com/dragoman-mcp/dragoman/internal/text/qualified"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
	"github.com/dragoman-mcp/dragoman/internal/wire/safehttp"
)

// Config is one MCP server: an entry of mcpServers in the configuration. Either
// Command or URL is set. Other fields may be zero, which stands for the default
// that [Config.SetDefaults] and [Config.Complete] give them.
type Config struct {
	Command string                 `yaml:"command" secret:"filled" doc:"Program to run as a server over stdio. Exactly one of command and url is needed."`
	Args    []string               `yaml:"args" secret:"filled" doc:"Arguments of the program, passed as they are; there is no shell."`
	Env     map[string]secret.Text `yaml:"env" doc:"Environment of the program. It inherits nothing but a short list such as PATH and HOME."`
	Dir     string                 `yaml:"cwd" secret:"filled" doc:"Working directory of the program; a relative one starts at the folder of the configuration file. Default: where dragoman was started."`
	Sandbox Sandbox                `yaml:"sandbox" doc:"Confines the program, and all that it starts, to what is named here (Linux). Without this key it may do what the user may."`

	URL       string                 `yaml:"url" secret:"filled" doc:"Address of a server over HTTP. Exactly one of command and url is needed."`
	Headers   map[string]secret.Text `yaml:"headers" doc:"HTTP headers sent with each request to the server."`
	TLS       tlsfiles.Files         `yaml:"tls" doc:"Whom the gateway believes at url and at oauth.issuer, and what it shows there, for a server inside a company. The files are read again when they change."`
	OAuth     credential.Config      `yaml:"oauth" doc:"How the gateway gets access tokens for the server. Without this key those of dragoman login are used, if somebody logged in. A server with an Authorization among its headers gets that and nothing else."`
	Transport Transport              `yaml:"transport" enum:"auto,stdio,streamable-http,sse" doc:"How to talk to the server. auto: stdio for a command; for a url streamable-http, then sse if the server does not know it."`

	Era Era `yaml:"era" enum:"auto,legacy" doc:"Which era of the protocol to speak with a server of both. auto: the modern one. legacy: as clients until 2025-11-25 do, for a server whose tools ask forms, samples or roots, or run as tasks, for such clients alone; one that is modern alone is spoken to as with auto."`

	Disabled       bool          `yaml:"disabled" doc:"Keeps the entry but does not start the server."`
	Timeout        time.Duration `yaml:"timeout" doc:"Longest time of one call."`
	StartupTimeout time.Duration `yaml:"startup_timeout" doc:"Longest time from starting the program, or connecting, to the list of tools. Default: 30s, and 2m where the program is one that downloads servers, such as npx or uvx."`
	MaxInFlight    int           `yaml:"max_in_flight" max:"10000" doc:"Number of calls that the server gets at a time; further calls wait."`

	Share Share `yaml:"share" enum:"all,caller,session" doc:"Who shares a session with the server, and so what it remembers between calls. all: all callers of the gateway. caller: each caller has its own, and with a command its own process. session: each session of a caller; that is an MCP session of the legacy era, or the conversation that a chat request names; requests that name none share the caller's."`

	Pins    pin.Mode `yaml:"pins" enum:"off,first,explicit" doc:"When a tool, or a text, of the server is trusted, in place of pins.mode: off for one whose descriptions change by nature."`
	Tools   Filter   `yaml:"tools" doc:"Which tools of the server exist for models."`
	Prices  Prices   `yaml:"prices" doc:"What a call of a tool costs, such as 0.002, by patterns (* and ?) for original tool names; of several that match the longest counts. A server may say itself what a call cost: io.github.dragoman-mcp/cost in _meta of its result, which counts instead."`
	Effects Effects  `yaml:"effects" doc:"What calls can do to the world, in your word. Tools not named here may change something."`
}

// Share says who shares a session with a server.
type Share string

// The ways of sharing. The empty Share means ShareAll.
const (
	// ShareAll: one session for everybody.
	ShareAll Share = "all"
	// ShareCaller: a session for each caller.
	ShareCaller Share = "caller"
	// ShareSession: a session for each session of a caller.
	ShareSession Share = "session"
)

// Era says which era of the protocol is spoken with a server that speaks both.
type Era string

// The eras. The empty Era means AutoEra.
const (
	// AutoEra: the modern one.
	AutoEra Era = "auto"
	// LegacyEra: the legacy one, in which alone servers can send requests of their own.
	LegacyEra Era = "legacy"
)

// Transport names a way to talk to a server.
type Transport string

// The transports. Auto, which the empty Transport means too, is stdio for a
// command; for a URL it is streamable HTTP, and HTTP+SSE where a server does
// not know that.
const (
	Auto           Transport = "auto"
	Stdio          Transport = "stdio"
	StreamableHTTP Transport = "streamable-http"
	SSE            Transport = "sse"
)

// Filter chooses tools by patterns (* and ?) for their original names.
type Filter struct {
	Include []string `yaml:"include" doc:"Patterns (* and ?) for original tool names. Without any, all tools are included."`
	Exclude []string `yaml:"exclude" doc:"Patterns for tools to leave out. They win over include."`
}

// Allows reports whether the tool that the server calls name passes f.
func (f Filter) Allows(name string) bool {
	return (len(f.Include) == 0 || glob.MatchAny(f.Include, name)) && !glob.MatchAny(f.Exclude, name)
}

// Effects is the operator's word on tools, by patterns (* and ?) for their
// original names.
type Effects struct {
	ReadOnly    []string `yaml:"read_only" doc:"Patterns for tools that change nothing. Their calls may be repeated and run side by side."`
	ClosedWorld []string `yaml:"closed_world" doc:"Patterns for tools whose results hold nothing that strangers may have written, such as a calculator's. Results of all others count as read from the open world, for rules about conversations that have."`
	Idempotent  []string `yaml:"idempotent" doc:"Patterns for tools that change nothing more when called again with the same arguments. They win over read_only."`
}

// Closed reports whether results of the tool that the server calls name hold
// nothing that strangers may have written.
func (e Effects) Closed(name string) bool { return glob.MatchAny(e.ClosedWorld, name) }

// Of returns the effect of the tool that the server calls name. Where both
// lists match, the more careful word holds.
func (e Effects) Of(name string) dragoman.Effect {
	switch {
	case glob.MatchAny(e.Idempotent, name):
		return dragoman.Idempotent
	case glob.MatchAny(e.ReadOnly, name):
		return dragoman.ReadOnly
	}
	return dragoman.MayChange
}

// The defaults of the limits in [Config].
const (
	DefaultTimeout        = 2 * time.Minute
	DefaultStartupTimeout = 30 * time.Second
	// DownloadTimeout is the default of StartupTimeout where the command may have to
	// download the server first: seven of them at once, on a small machine, took
	// npx more than a minute.
	DownloadTimeout    = 2 * time.Minute
	DefaultMaxInFlight = 16
)

// SetDefaults gives every field that is zero its default, if that depends on nothing
// else.
func (c *Config) SetDefaults() {
	if c.Transport == "" {
		c.Transport = Auto
	}
	if c.Share == "" {
		c.Share = ShareAll
	}
	if c.Era == "" {
		c.Era = AutoEra
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.MaxInFlight == 0 {
		c.MaxInFlight = DefaultMaxInFlight
	}
}

// Complete gives the fields whose defaults depend on others theirs. It comes after
// everything that was set.
func (c *Config) Complete() {
	switch {
	case c.StartupTimeout != 0:
	case c.Downloads():
		c.StartupTimeout = DownloadTimeout
	default:
		c.StartupTimeout = DefaultStartupTimeout
	}
}

// Downloads reports whether the command may download what it then starts.
func (c *Config) Downloads() bool { return commandline.Read(c.Command, c.Args).Fetches }

// filled returns c with its defaults.
func (c Config) filled() Config {
	c.SetDefaults()
	c.Complete()
	return c
}

// Validate reports the first thing in c that cannot work, as a [*invalid.Error].
// It looks at c alone: whether the command exists, or anybody answers at the
// URL, shows when the server starts.
func (c *Config) Validate() error {
	if err := c.Prices.Validate(); err != nil {
		return invalid.Key("prices", err.Error())
	}
	switch {
	case c.Command == "" && c.URL == "":
		return invalid.Key("", "a server needs a command or a url")
	case c.Command != "" && c.URL != "":
		return invalid.Key("url", "a server has a command or a url, not both")
	case c.Command != "":
		return c.validateCommand()
	}
	return c.validateURL()
}

func (c *Config) validateCommand() error {
	if c.Transport != "" && c.Transport != Auto && c.Transport != Stdio {
		return invalid.Key("transport", fmt.Sprintf("a command speaks stdio, not %s", c.Transport))
	}
	if len(c.Headers) > 0 {
		return invalid.Key("headers", "headers are for servers with a url")
	}
	if !c.TLS.IsZero() {
		return invalid.Key("tls", "certificates are for servers with a url")
	}
	if !c.OAuth.IsZero() {
		return invalid.Key("oauth", "logins are for servers with a url")
	}
	if strings.ContainsRune(c.Command, 0) || strings.ContainsRune(c.Dir, 0) {
		return invalid.Key("command", "a NUL character cannot be passed to a program")
	}
	for _, arg := range c.Args {
		if strings.ContainsRune(arg, 0) {
			return invalid.Key("args", "a NUL character cannot be passed to a program")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(c.Env[name].Reveal(), 0) {
			return invalid.Key("env", fmt.Sprintf("%q cannot be an environment variable", name))
		}
	}
	return nil
}

func (c *Config) validateURL() error {
	if c.Transport == Stdio {
		return invalid.Key("transport", "a url speaks streamable-http or sse, not stdio")
	}
	const onlyCommand = "this is for servers with a command"
	switch {
	case len(c.Args) > 0:
		return invalid.Key("args", onlyCommand)
	case len(c.Env) > 0:
		return invalid.Key("env", onlyCommand)
	case c.Dir != "":
		return invalid.Key("cwd", onlyCommand)
	case c.Sandbox.On():
		return invalid.Key("sandbox", onlyCommand)
	}
	u, err := url.Parse(c.URL)
	switch {
	case err != nil && strings.Contains(c.URL, "://"):
		// The parse error repeats the URL, which may hold a secret.
		return invalid.Key("url", "not a valid URL")
	case err != nil, u.Scheme != "http" && u.Scheme != "https":
		return invalid.Key("url", "a URL here begins with http:// or https://")
	case u.Hostname() == "":
		return invalid.Key("url", "the URL has no host")
	}
	if err := c.TLS.Validate(u.Scheme); err != nil {
		return err
	}
	if err := c.validateOAuth(); err != nil {
		return err
	}
	return safehttp.CheckHeaders(c.Headers)
}

// validateOAuth reports what in the rest of c does not go with oauth.
func (c *Config) validateOAuth() error {
	switch {
	case !c.OAuth.PerCaller():
		return nil
	case c.Share != ShareCaller && c.Share != ShareSession:
		return invalid.Key("share", "with tokens of each caller's own (oauth) each has a connection of its own: write share: caller, or session")
	case c.authorized():
		return invalid.Key("headers", "with an Authorization here all callers would be one: take it out, or oauth")
	}
	return nil
}

// authorized reports whether the configuration says what the server is shown.
func (c *Config) authorized() bool {
	for name := range c.Headers {
		if http.CanonicalHeaderKey(name) == "Authorization" {
			return true
		}
	}
	return false
}

// String names the server by its command or host, without anything that may be
// a secret, so that a Config can be logged.
func (c Config) String() string {
	if c.Command != "" {
		return c.Command
	}
	if u, err := url.Parse(c.URL); err == nil && u.Host != "" {
		return u.Scheme + "://" + u.Host
	}
	return "server"
}

// GoString is String, so that %#v does not show secrets either.
func (c Config) GoString() string { return "servers.Config(" + c.String() + ")" }

// MaxLabel is the longest label, in characters.
const MaxLabel = 32

// CheckLabel reports why label cannot be the label of a server; nil when it
// can. Labels stand in front of tool names, joined by two underscores, so they
// are short, plain, and have no two underscores themselves, nor one at the end.
func CheckLabel(label string) error {
	switch {
	case label == "":
		return invalid.Key("", "a server label cannot be empty")
	case len(label) > MaxLabel:
		return invalid.Key("", fmt.Sprintf("the server label %q has %d characters; %d are allowed", label, len(label), MaxLabel))
	case strings.HasSuffix(label, "_"):
		return invalid.Key("", fmt.Sprintf("the server label %q ends with an underscore: with the two that follow it, nobody could tell it from a shorter label", label))
	case strings.Contains(label, qualified.Separator):
		return invalid.Key("", fmt.Sprintf("the server label %q has two underscores in a row, which separate a label from a tool name", label))
	}
	for i := range len(label) {
		c := label[i]
		letter := c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c != '_' && c != '.' && c != '-') {
			return invalid.Key("", fmt.Sprintf("the server label %q is not allowed: a label has the letters a-z and A-Z, digits, and after the first character also _ . -", label))
		}
	}
	return nil
}
