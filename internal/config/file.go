package config

import (
	"crypto/sha256"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/door/mcpserve"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/judge/approval"
	"github.com/dragoman-mcp/dragoman/internal/judge/audit"
	"github.com/dragoman-mcp/dragoman/internal/judge/budget"
	"github.com/dragoman-mcp/dragoman/internal/judge/limit"
	"github.com/dragoman-mcp/dragoman/internal/judge/pin"
	"github.com/dragoman-mcp/dragoman/internal/judge/pinning"
	"github.com/dragoman-mcp/dragoman/internal/judge/policy"
	"github.com/dragoman-mcp/dragoman/internal/judge/usage"
	"github.com/dragoman-mcp/dragoman/internal/observe/telemetry"
	"github.com/dragoman-mcp/dragoman/internal/reach/catalog"
	"github.com/dragoman-mcp/dragoman/internal/reach/servers"
	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
	"github.com/dragoman-mcp/dragoman/internal/session"
	"github.com/dragoman-mcp/dragoman/internal/state/cache"
	"github.com/dragoman-mcp/dragoman/internal/state/captured"
	"github.com/dragoman-mcp/dragoman/internal/state/idempotency"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
	"github.com/dragoman-mcp/dragoman/internal/text/glob"
	"github.com/dragoman-mcp/dragoman/internal/text/invalid"
	"github.com/dragoman-mcp/dragoman/internal/text/qualified"
	"github.com/dragoman-mcp/dragoman/openai/model"
	"github.com/dragoman-mcp/dragoman/result"
)

// File is a configuration file. Every key has a default; [Default] has them
// all. The struct tags are described at the decoder.
type File struct {
	Listen         string        `yaml:"listen" doc:"Address and port to listen on. Beyond loopback, callers have to be known by auth."`
	TLS            TLS           `yaml:"tls" doc:"Has the gateway speak HTTPS itself, HTTP/2 included. Without it, what stands before it does where that is wanted."`
	Watch          bool          `yaml:"watch" doc:"Whether this file, and those that it names, are read again when they change, as on SIGHUP. Certificates and the file of keys are in any case."`
	AllowedHosts   []string      `yaml:"allowed_hosts" doc:"Host names that clients may call the gateway by, beside those of loopback and the address in listen."`
	AllowedOrigins []string      `yaml:"allowed_origins" doc:"Origins of web pages, such as https://example.com, that may call the gateway, beside its own."`
	Auth           caller.Config `yaml:"auth" doc:"Who may call the gateway."`

	Models     []upstream.Model          `yaml:"models" doc:"Model APIs; the first entry that matches a model's name serves it. Without any, OPENAI_BASE_URL and OPENAI_API_KEY are used, else every name is served by the built-in rehearsal model."`
	Dialects   []Dialect                 `yaml:"dialects" doc:"Dialects beside, or in place of, those that are built in."`
	MCPServers map[string]servers.Config `yaml:"mcpServers" keys:"label" doc:"MCP servers by their labels, as other clients have them. A label that names of tools cannot carry is changed, with a warning. Without this key the built-in demo server runs; with it and no servers, none does."`
	Inputs     []Input                   `yaml:"inputs" doc:"Values that are in no file, as editors declare them beside their servers. A person at a terminal is asked for those that servers refer to; elsewhere the environment answers, DRAGOMAN_INPUT_API_KEY for the id api-key."`
	Names      Names                     `yaml:"names" doc:"What tools are called."`
	Tools      Tools                     `yaml:"tools" doc:"How tools are offered to models."`
	Sampling   session.Sampling          `yaml:"sampling" doc:"Whether models answer MCP servers that ask for one; by default they do not."`

	Hosted session.Hosted `yaml:"hosted" doc:"Which tools do what clients declare as the API's own, such as web_search."`

	Connections    servers.OwnConfig `yaml:"connections" doc:"Bounds of the connections to servers that callers have of their own; see share in mcpServers."`
	WaitForServers time.Duration     `yaml:"wait_for_servers" doc:"Longest time that a request waits for servers that are still starting. What is not there by then is left out and named; a server that the request names is an error."`

	MCP     mcpserve.Config `yaml:"mcp" doc:"The MCP endpoint at /mcp."`
	Console string          `yaml:"console" enum:"on,off" doc:"Whether there is a web console at /console/. On loopback without keys the address that serve prints, or dragoman console, signs in; else a key does."`
	Sets    map[string]Set  `yaml:"sets" doc:"Sets of servers and tools by name: at /mcp/set/NAME, and for chat requests as server_label set:NAME."`

	Policy     []policy.Rule `yaml:"policy" doc:"What callers may do. Without a rule, here or in policy_file, everything; with one, only what a rule allows. A rule that denies beats one that asks, and that beats one that allows."`
	PolicyFile string        `yaml:"policy_file" doc:"A file of Cedar policies beside those of policy; a relative path starts at the folder of the configuration file. All of them hold together."`
	Limits     []limit.Limit `yaml:"limits" doc:"How much callers may do: calls in a time, at a time and in a day, and tokens in a day. None by default."`

	Budgets []budget.Budget `yaml:"budgets" doc:"How many tokens and how much money callers may spend in a day or a month. None by default."`

	Loop    Loop            `yaml:"loop" doc:"Limits of one conversation."`
	Results session.Results `yaml:"results" doc:"How results of tools look to a model."`
	Memory  Memory          `yaml:"memory" doc:"What is remembered of conversations that clients do not see whole."`
	Cache   cache.Config    `yaml:"cache" doc:"Which results are remembered; none by default."`

	Idempotency idempotency.Config `yaml:"idempotency" doc:"Answers that are kept for requests that are sent again with the same Idempotency-Key."`

	Store     store.Config    `yaml:"store" doc:"The file that keeps what outlives the process: the audit log, approvals, pins, what clients have stored and more."`
	Replicas  Replicas        `yaml:"replicas" doc:"What several gateways on one PostgreSQL database have to know of what stands in front of them."`
	Audit     audit.Config    `yaml:"audit" doc:"The log of who did what."`
	Approvals approval.Config `yaml:"approvals" doc:"Questions to a person whether a call may run."`
	Pins      pinning.Config  `yaml:"pins" doc:"Which tools are trusted: those that are defined as somebody approved them."`

	Capture   captured.Config  `yaml:"capture" doc:"Conversations and calls that are kept for people to look at, under Live in the console, where there is a store."`
	Usage     usage.Config     `yaml:"usage" doc:"What callers used of models and tools, kept where there is a store."`
	Telemetry telemetry.Config `yaml:"telemetry" doc:"What is told of the gateway to those who look after it: metrics at /metrics, and traces and metrics for a collector."`

	HTTP HTTP `yaml:"http" doc:"Limits of the gateway's HTTP server."`
	Log  Log  `yaml:"log" doc:"What the gateway writes to standard error."`

	// Path is the file that this was read from; empty for none.
	Path string
	// Warnings are places that deserve a look but are no errors.
	Warnings Errors
	// LeftOut are the servers of another client's file that cannot be used, in its order.
	LeftOut []LeftOut

	refs        map[string]reference // values from the environment, by path
	read        map[string]Sum       // the files that it was read from, as they were
	serversFrom string               // the file that the servers are from, where that is another one
	variables   []string             // the files of variables that servers name
}

// ConsoleOff is the value of console that says that there is none.
const ConsoleOff = "off"

// Names says what tools are called.
type Names struct {
	Strategy string `yaml:"strategy" enum:"label,random,host,none" doc:"What stands in front of a tool's own name: the server's label, a prefix derived from the server's identity, the host of its address, or nothing."`
}

// Tools says how tools are offered to models; see model.Search.
type Tools struct {
	Search string   `yaml:"search" enum:"auto,always,never" doc:"Whether a model gets find_tools and call_tool in place of all tools: where those cost more than tokens or are more than its API takes, always, or never."`
	Tokens int      `yaml:"tokens" max:"10000000" doc:"What the definitions of the tools may cost each request, in tokens by a cautious estimate, before a model has to search."`
	Always []string `yaml:"always" doc:"Patterns (* and ?) for tools, as label__name, that stay offered, and listed to MCP clients, where others are searched for."`

	KeepFormatChoice bool `yaml:"keep_response_format" doc:"Offers a tool's own parameter response_format, the choice between JSON and Markdown, also where its result has structured content in any case."`
}

// Set is a set of servers and of their tools.
type Set struct {
	Servers []string `yaml:"servers" need:"true" doc:"Labels of the servers."`
	Tools   []string `yaml:"tools" doc:"Patterns (* and ?) for tools, as label__name. Where there are any for a server, one has to match; those that begin with ! must not."`
	Search  string   `yaml:"search" enum:"auto,always,never" doc:"As tools.search and mcp.search, for models and MCP clients that use this set alone; by default as those say."`
}

// Selection returns what the set chooses.
func (s Set) Selection() catalog.Selection {
	selection := make(catalog.Selection, 0, len(s.Servers))
	for _, label := range s.Servers {
		choice := catalog.Choice{Server: label}
		for _, pattern := range s.Tools {
			server, _, named := qualified.Split(strings.TrimPrefix(pattern, "!"))
			if !named || glob.Match(server, label) {
				choice.Match = append(choice.Match, pattern)
			}
		}
		selection = append(selection, choice)
	}
	return selection
}

// Loop limits one conversation; see the fields of the same names in
// dragoman.Loop.
type Loop struct {
	Rounds      int           `yaml:"rounds" max:"1000" doc:"Model messages that may call tools."`
	Calls       int           `yaml:"calls" max:"100000" doc:"Calls in one conversation."`
	Parallel    int           `yaml:"parallel" max:"1000" doc:"Calls of one round that run at a time."`
	Bytes       int64         `yaml:"bytes" unit:"bytes" doc:"Total size of all results of one conversation."`
	Timeout     time.Duration `yaml:"timeout" doc:"Time after which no further call starts."`
	CallTimeout time.Duration `yaml:"call_timeout" doc:"Time that one call may take; a server's own timeout may be shorter."`
}

// Memory says what is remembered of conversations; see package openai/memory.
type Memory struct {
	Restore bool          `yaml:"restore" doc:"Whether what tools said is put back into the history when a client returns. Without it, a message that calls tools of ours and of the client's cannot be continued."`
	Bytes   int64         `yaml:"bytes" unit:"bytes" doc:"Total size of what is remembered."`
	TTL     time.Duration `yaml:"ttl" doc:"Time after its last use that something is remembered."`
}

// Replicas says how several gateways share one store.
type Replicas struct {
	Affinity bool          `yaml:"affinity" doc:"Says that the load balancer sends all requests of one session to one replica, by the header Mcp-Session-Id or by a cookie. Needed for servers with share: session, whose connections are each in one process; nothing else needs it."`
	Notice   time.Duration `yaml:"notice" doc:"How long a replica that is to stop takes new requests yet while /readyz already says draining, so that the load balancer has seen it: a little more than the time between its checks. A gateway without store.url is alone, and stops at once."`
}

// TLS is what the gateway shows clients, and wants of them. The files are read again when
// they change; where they cannot be used then, those before them stay.
type TLS struct {
	Cert     string `yaml:"cert" doc:"File with the certificate and those between it and its authority, in PEM. A relative path starts at the folder of the configuration file, as those below do."`
	Key      string `yaml:"key" doc:"File with its private key, in PEM."`
	ClientCA string `yaml:"client_ca" doc:"File with the authorities, in PEM, one of which has to have signed the certificate of a client. Health checks need none. Who the caller is, their key or token says all the same."`
}

// Validate reports a certificate without key, or a key without certificate.
func (t *TLS) Validate() error {
	switch {
	case t.Cert == "" && *t != TLS{}:
		return invalid.Key("cert", "TLS takes a certificate and its key")
	case t.Cert != "" && t.Key == "":
		return invalid.Key("key", "a certificate takes its private key")
	}
	return nil
}

// HTTP limits the gateway's server.
type HTTP struct {
	MaxBody       int64         `yaml:"max_body" unit:"bytes" min:"1024" doc:"Largest request body."`
	HeaderTimeout time.Duration `yaml:"header_timeout" doc:"Time in which a client must have sent its request header."`
	BodyTimeout   time.Duration `yaml:"body_timeout" doc:"Time in which a client must send the next part of its request's body. Once it has waited that long in all, the body must come at a kilobyte a second at the least."`
	AnswerTimeout time.Duration `yaml:"answer_timeout" doc:"Time in which a client must take the next 64 KiB of an answer."`
	DrainTimeout  time.Duration `yaml:"drain_timeout" doc:"Time that running requests have to finish when the gateway stops."`
	// MaxConnections is counted over all addresses: before a proxy all have one.
	MaxConnections int `yaml:"max_connections" max:"1000000" doc:"Connections of clients at a time; further ones wait for their turn, and take the room of one that has had no request for two minutes. Default: three quarters of the files that the process may open, so that the rest is there for servers and models."`
}

// Log says what is written to standard error.
type Log struct {
	Level  string            `yaml:"level" enum:"debug,info,warn,error" doc:"Least level that is written."`
	Format string            `yaml:"format" enum:"text,json" doc:"text for people, json for programs."`
	Levels map[string]string `yaml:"levels" doc:"Least levels of single packages, such as {mcp: debug}: the last element of a package's path."`
}

// Default returns the configuration of an empty file.
func Default() *File {
	f := &File{}
	f.SetDefaults()
	return f
}

// SetDefaults gives every key its default.
func (f *File) SetDefaults() {
	f.Listen = "127.0.0.1:8787"
	f.Names.Strategy = "label"
	f.Tools = Tools{Search: string(model.Auto), Tokens: model.DefaultSearchTokens}
	f.Sampling, f.Hosted = session.DefaultSampling, session.DefaultHosted
	f.WaitForServers = session.DefaultWait
	f.Connections = servers.OwnConfig{Max: servers.DefaultOwnMax, Idle: servers.DefaultOwnIdle}
	f.Loop = Loop{Rounds: 16, Calls: 64, Parallel: 8, Bytes: 64 << 20, Timeout: 10 * time.Minute, CallTimeout: 2 * time.Minute}
	f.Results = session.Results{Form: result.Form{Limit: result.DefaultLimit}, MaxMessage: 16 << 20}
	f.Memory = Memory{Restore: true, Bytes: 64 << 20, TTL: time.Hour}
	f.Cache = cache.Config{TTL: time.Minute, Bytes: 64 << 20}
	f.Idempotency.SetDefaults()
	f.Store.SetDefaults()
	f.Replicas.Notice = 5 * time.Second
	f.Audit.SetDefaults()
	f.Approvals.SetDefaults()
	f.Pins.Mode = pin.Auto
	f.Console = "on"
	f.MCP = mcpserve.Config{Search: string(model.Never), Page: mcpserve.DefaultPage}
	f.HTTP = HTTP{MaxBody: 32 << 20, HeaderTimeout: 10 * time.Second, BodyTimeout: 10 * time.Second, AnswerTimeout: 30 * time.Second, DrainTimeout: 30 * time.Second}
	f.Log = Log{Level: "info", Format: "text"}
	f.Capture.SetDefaults()
	f.Usage.Retention = usage.DefaultRetention
}

// Validate reports the first top-level key that cannot work.
func (f *File) Validate() error {
	_, port, err := net.SplitHostPort(f.Listen)
	if n, portErr := strconv.ParseUint(port, 10, 16); err != nil || portErr != nil || n > 65535 {
		return invalid.Key("listen", "an address here is a host and a port, such as 127.0.0.1:8787")
	}
	for _, host := range f.AllowedHosts {
		if host == "" || strings.ContainsAny(host, "/ @?#*") {
			return invalid.Key("allowed_hosts", strconv.Quote(host)+" is not a host name; write it without http:// and path")
		}
	}
	for _, origin := range f.AllowedOrigins {
		if !isOrigin(origin) {
			return invalid.Key("allowed_origins", strconv.Quote(origin)+" is not an origin; one is a scheme, a host and maybe a port, such as https://example.com")
		}
	}
	if err := checkInputs(f.Inputs); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(f.Log.Levels)) {
		if new(slog.Level).UnmarshalText([]byte(f.Log.Levels[name])) != nil {
			return invalid.Key("log", fmt.Sprintf("levels: %q of %s is none of debug, info, warn and error", f.Log.Levels[name], name))
		}
	}
	if _, err := policy.New(policy.Config{Rules: f.Policy}); err != nil {
		return invalid.Key("policy", err.Error())
	}
	if err := limit.CheckNames(f.Limits); err != nil {
		return invalid.Key("limits", err.Error())
	}
	if err := budget.Check(f.Budgets, f.Usage); err != nil {
		return invalid.Key("budgets", err.Error())
	}
	for _, name := range slices.Sorted(maps.Keys(f.Sets)) {
		for _, label := range f.Sets[name].Servers {
			if _, ok := f.MCPServers[label]; !ok {
				return invalid.Key("sets", fmt.Sprintf("%s: there is no server %q in mcpServers", name, label))
			}
		}
	}
	if !f.Store.URL.IsZero() && !f.Replicas.Affinity {
		for _, label := range slices.Sorted(maps.Keys(f.MCPServers)) {
			if f.MCPServers[label].Share == servers.ShareSession {
				return invalid.Key("replicas", fmt.Sprintf("mcpServers.%s has share: session, whose connections are each in one replica, so with store.url the load balancer has to send a session's requests to one replica: say replicas.affinity: true once it does, or share: caller", label))
			}
		}
	}
	if label := f.Hosted.WebSearch.Server(); label != "" && f.NamesServers() {
		if _, ok := f.MCPServers[label]; !ok {
			return invalid.Key("hosted", fmt.Sprintf("web_search: there is no server %q in mcpServers", label))
		}
	}
	table, err := f.Table()
	if err != nil {
		return err
	}
	for i, m := range f.Models {
		if m.Dialect == "" {
			continue
		}
		if _, err := table.For(m.Dialect); err != nil {
			return invalid.Key("models", fmt.Sprintf("entry %d (%s): %v", i+1, m.Match, err))
		}
	}
	return nil
}

// isOrigin reports whether text is a serialized origin (RFC 6454, section 6.2).
func isOrigin(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && text == u.Scheme+"://"+u.Host
}

// A Sum is the SHA-256 of what stood in a file; the zero Sum is no file.
type Sum [sha256.Size]byte

// Read returns the files that the configuration was read from, by their paths, with what
// stood in them then.
func (f *File) Read() map[string]Sum {
	read := map[string]Sum{}
	maps.Copy(read, f.read)
	return read
}

// Files returns the paths of the files that make the configuration, sorted: those that it
// was read from, and the one with policies.
func (f *File) Files() []string {
	files := slices.Collect(maps.Keys(f.read))
	if f.PolicyFile != "" {
		files = append(files, f.PolicyFile)
	}
	return slices.Sorted(slices.Values(files))
}

// NamesServers reports whether the configuration says which MCP servers there
// are, be it none. Where nothing says so, the demo server runs.
func (f *File) NamesServers() bool { return f.MCPServers != nil }

// Serves reports whether the file names models or MCP servers: one that does not is the demo's.
func (f *File) Serves() bool { return f.NamesServers() || len(f.Models) > 0 }

// NamesPins reports whether the configuration asks for pins, of all servers or of one.
func (f *File) NamesPins() bool {
	for _, server := range f.MCPServers {
		if !server.Disabled && server.Pins.Named() {
			return true
		}
	}
	return f.Pins.Mode.Named() || f.Pins.Lock != ""
}

// UseServers replaces the MCP servers of f by those of other, such as one that
// [ReadMCP] returned, and takes over its inputs, warnings
// and what it left out.
func (f *File) UseServers(other *File) {
	f.MCPServers, f.Inputs, f.LeftOut, f.serversFrom, f.variables = maps.Clone(other.MCPServers), other.Inputs, other.LeftOut, other.Path, other.variables
	const section = serversKey + "."
	refs := make(map[string]reference)
	for path, ref := range f.refs {
		if !strings.HasPrefix(path, section) {
			refs[path] = ref
		}
	}
	for path, ref := range other.refs {
		if strings.HasPrefix(path, section) {
			refs[path] = ref
		}
	}
	f.refs = refs
	f.read = maps.Clone(f.read)
	if f.read == nil {
		f.read = map[string]Sum{}
	}
	maps.Copy(f.read, other.read)
	f.Warnings = append(f.Warnings[:len(f.Warnings):len(f.Warnings)], other.Warnings...)
}
