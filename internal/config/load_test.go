package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/door/mcpserve"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/judge/approval"
	"github.com/dragoman-mcp/dragoman/internal/judge/audit"
	"github.com/dragoman-mcp/dragoman/internal/judge/pin"
	"github.com/dragoman-mcp/dragoman/internal/judge/pinning"
	"github.com/dragoman-mcp/dragoman/internal/judge/usage"
	"github.com/dragoman-mcp/dragoman/internal/observe/telemetry"
	"github.com/dragoman-mcp/dragoman/internal/reach/servers"
	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
	"github.com/dragoman-mcp/dragoman/internal/session"
	"github.com/dragoman-mcp/dragoman/internal/state/cache"
	"github.com/dragoman-mcp/dragoman/internal/state/captured"
	"github.com/dragoman-mcp/dragoman/internal/state/idempotency"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
	"github.com/dragoman-mcp/dragoman/result"
)

func env(pairs ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1], true
			}
		}
		return "", false
	}
}

// ignoreRead leaves out of comparisons what is about the file and not in it.
var ignoreRead = cmp.Options{
	cmpopts.IgnoreUnexported(config.File{}),
	cmpopts.IgnoreFields(config.File{}, "Path", "Warnings"),
}

func parse(t *testing.T, text string, pairs ...string) *config.File {
	t.Helper()
	f, err := config.Parse("test.yaml", []byte(text), env(pairs...))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestParseEverything(t *testing.T) {
	const text = `
listen: 0.0.0.0:${PORT:-9000}
allowed_hosts: [gateway.example.com]
allowed_origins: ["https://app.example.com", http://localhost:3000]
auth:
  api_keys: ["${KEY}"]
x-common: &common
  timeout: 90s
  headers: {X-Team: "7", Authorization: "Bearer ${env:TOKEN}"}
models:
  - match: "gpt-*"
    base_url: https://session.example.com/v1
    api_key: ${KEY}
    dialect: openai
    timeout: 5m
    idle_timeout: 90s
  - base_url: "http://localhost:11434/v1"
    name: qwen3
    headers: {X-Number: 7}
mcpServers:
  files:
    command: npx
    args: [-y, files-server, --port, 3000, --verbose, true, "a$$b", $c, '${NOPE:-${KEY}}']
    env: {DEBUG: 1, EMPTY: ""}
    cwd: /srv
    max_in_flight: ${N}
    startup_timeout: 1m30s
    tools: {include: ["read_*"], exclude: ["*_all"]}
    effects: {read_only: ["read_*"], idempotent: [write_file]}
  web:
    <<: *common
    url: https://example.com/mcp
    transport: sse
  off: {command: "${UNSET}", args: ["${UNSET}"], max_in_flight: "${UNSET}", timeout: "${UNSET}", disabled: true}
names: {strategy: host}
tools: {search: never, tokens: 900, always: ["files__read_*"]}
sampling: {answer: true, tokens: 700, questions: 3}
hosted: {web_search: {tool: web__find, query: q, results: "", url: link, title: name, text: abstract}}
connections: {max: 9, idle: 1m}
wait_for_servers: 8s
mcp: {raw: true, search: auto, page: 1MiB}
console: off
sets: {some: {servers: [web, files], tools: ["web__*", "!files__write_*"]}}
loop: {rounds: 3, calls: 4, parallel: 5, bytes: 1.txt, timeout: 6s, call_timeout: 7s}
results: {limit: 1000, max_message: 1MiB}
memory: {restore: false, bytes: 2MiB, ttl: 3m}
cache: {tools: ["files__read_*"], ttl: 30s, bytes: 1MiB}
idempotency: {bytes: 4MiB, ttl: 12h}
store: {path: /srv/dragoman.db, max_bytes: 2MiB, retention: 48h, quota: {owner: 1MiB, total: 3MiB}}
replicas: {affinity: true, notice: 3s}
audit: {arguments: full, retention: 24h, off: true}
approvals: {expires: 5m, keep: 1h, pending: 6, elicit: true}
pins: {mode: explicit, lock: /srv/dragoman.lock}
http:
  max_body: 65536
  header_timeout: 1s
  body_timeout: 3s
  answer_timeout: 4s
  max_connections: 500
  drain_timeout: 2m
capture: {keep: "on", callers: ["team-*"], retention: 24h, bytes: 1MiB}
usage: {off: true, retention: 720h}
telemetry:
  endpoint: http://localhost:4318
  headers: {X-Key: "${TOKEN}"}
  service: gate
  traces: {sample: 5, content: true}
  metrics: {listen: "127.0.0.1:9464", interval: 10s}
log: {level: debug, format: json, levels: {mcp: warn}}
`
	f := parse(t, strings.Replace(text, "1.txt", "8 KiB", 1), "KEY", "fedcba9876543210: {x}", "TOKEN", "t", "N", "8")
	want := &config.File{
		Listen:         "0.0.0.0:9000",
		AllowedHosts:   []string{"gateway.example.com"},
		AllowedOrigins: []string{"https://app.example.com", "http://localhost:3000"},
		Auth:           caller.Config{APIKeys: []secret.Text{secret.New("fedcba9876543210: {x}")}},
		Models: []upstream.Model{
			{Match: "gpt-*", BaseURL: "https://session.example.com/v1", APIKey: secret.New("fedcba9876543210: {x}"), Dialect: "openai", Offer: "always", Timeout: 5 * time.Minute, Idle: 90 * time.Second},
			{Match: "*", BaseURL: "http://localhost:11434/v1", Name: "qwen3", Offer: "always", Headers: secret.Map(map[string]string{"X-Number": "7"}), Timeout: 10 * time.Minute, Idle: 5 * time.Minute},
		},
		MCPServers: map[string]servers.Config{
			"files": {
				Command: "npx", Args: []string{"-y", "files-server", "--port", "3000", "--verbose", "true", "a$b", "$c", "fedcba9876543210: {x}"},
				Env: secret.Map(map[string]string{"DEBUG": "1", "EMPTY": ""}), Dir: "/srv", Transport: servers.Auto, Era: servers.AutoEra,
				Timeout: 2 * time.Minute, StartupTimeout: 90 * time.Second, MaxInFlight: 8, Share: "all",
				Tools:   servers.Filter{Include: []string{"read_*"}, Exclude: []string{"*_all"}},
				Effects: servers.Effects{ReadOnly: []string{"read_*"}, Idempotent: []string{"write_file"}},
			},
			"web": {
				URL: "https://example.com/mcp", Transport: servers.SSE, Era: servers.AutoEra, Headers: secret.Map(map[string]string{"X-Team": "7", "Authorization": "Bearer t"}),
				Timeout: 90 * time.Second, StartupTimeout: 30 * time.Second, MaxInFlight: 16, Share: "all",
			},
			"off": {
				Command: "${UNSET}", Args: []string{"${UNSET}"}, Disabled: true, Transport: servers.Auto, Era: servers.AutoEra,
				Timeout: 2 * time.Minute, StartupTimeout: 30 * time.Second, MaxInFlight: 16, Share: "all",
			},
		},
		Names:          config.Names{Strategy: "host"},
		Tools:          config.Tools{Search: "never", Tokens: 900, Always: []string{"files__read_*"}},
		Sampling:       session.Sampling{Answer: true, Tokens: 700, Questions: 3},
		Hosted:         session.Hosted{WebSearch: session.WebSearch{Tool: "web__find", Query: "q", URL: "link", Title: "name", Text: "abstract"}},
		Connections:    servers.OwnConfig{Max: 9, Idle: time.Minute},
		WaitForServers: 8 * time.Second,
		MCP:            mcpserve.Config{Search: "auto", Page: 1 << 20, Raw: true},
		Console:        config.ConsoleOff,
		Sets:           map[string]config.Set{"some": {Servers: []string{"web", "files"}, Tools: []string{"web__*", "!files__write_*"}}},
		Loop:           config.Loop{Rounds: 3, Calls: 4, Parallel: 5, Bytes: 8192, Timeout: 6 * time.Second, CallTimeout: 7 * time.Second},
		Results:        session.Results{Form: result.Form{Limit: 1000}, MaxMessage: 1 << 20},
		Memory:         config.Memory{Bytes: 2 << 20, TTL: 3 * time.Minute},
		Cache:          cache.Config{Tools: []string{"files__read_*"}, TTL: 30 * time.Second, Bytes: 1 << 20},
		Idempotency:    idempotency.Config{Bytes: 4 << 20, TTL: 12 * time.Hour},
		Store:          store.Config{Path: "/srv/dragoman.db", MaxBytes: 2 << 20, Pooler: "none", Retention: 48 * time.Hour, Quota: store.Quota{Owner: 1 << 20, Total: 3 << 20}},
		Replicas:       config.Replicas{Affinity: true, Notice: 3 * time.Second},
		Audit:          audit.Config{Arguments: audit.Full, Retention: 24 * time.Hour, Off: true},
		Approvals:      approval.Config{Expires: 5 * time.Minute, Keep: time.Hour, Pending: 6, Elicit: true},
		Pins:           pinning.Config{Mode: pin.Explicit, Lock: "/srv/dragoman.lock"},
		Capture:        captured.Config{Keep: captured.On, Callers: []string{"team-*"}, Retention: 24 * time.Hour, Bytes: 1 << 20},
		Usage:          usage.Config{Off: true, Retention: 720 * time.Hour},
		Telemetry: telemetry.Config{
			Endpoint: "http://localhost:4318", Headers: secret.Map(map[string]string{"X-Key": "t"}), Service: "gate",
			Traces: telemetry.Traces{Sample: 5, Content: true}, Metrics: telemetry.Metrics{Listen: "127.0.0.1:9464", Interval: 10 * time.Second},
		},
		HTTP: config.HTTP{MaxBody: 65536, HeaderTimeout: time.Second, BodyTimeout: 3 * time.Second, AnswerTimeout: 4 * time.Second, DrainTimeout: 2 * time.Minute, MaxConnections: 500},
		Log:  config.Log{Level: "debug", Format: "json", Levels: map[string]string{"mcp": "warn"}},
	}
	if diff := cmp.Diff(want, f, ignoreRead); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(f.Warnings) > 0 {
		t.Errorf("warnings: %v", f.Warnings)
	}
}

// Where a key says what 0 is, 0 is read, also by an editor.
func TestZeroWhereItHasAMeaning(t *testing.T) {
	const text = "store: {quota: {owner: 0, total: 0}}\nusage: {retention: 0s}\nbudgets: [{tokens: 1}]\n"
	got, err := config.Parse("test.yaml", []byte(text), env())
	if err != nil {
		t.Fatal(err)
	}
	if got.Store.Quota != (store.Quota{}) || got.Usage.Retention != 0 {
		t.Errorf("quota %v, usage for %v", got.Store.Quota, got.Usage.Retention)
	}
	if err := compileSchema(t).Validate(asJSON(t, text)); err != nil {
		t.Errorf("the schema: %v", err)
	}
}

func TestEmptyFilesAreTheDefault(t *testing.T) {
	for _, text := range []string{"", "\n", "# nothing\n", "---\n", "{}", "mcpServers:\nmodels:\nloop:\n", "\ufefflisten: 127.0.0.1:8787\r\n", `{"mcpServers": {}, "models": []}`} {
		f := parse(t, text)
		if diff := cmp.Diff(config.Default(), f, ignoreRead, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%q (-default +got):\n%s", text, diff)
		}
	}
}

func TestJSONIsRead(t *testing.T) {
	const text = "{\n\t// a comment\n\t\"listen\": \"127.0.0.1:1\", /* another, */\n\t\"mcpServers\": {\"a\": {\"command\": \"\\ud83d\\ude00\\/x\", \"args\": [\"//\", \"/*,]\", ],},},\n}\n"
	f := parse(t, text)
	if got := f.MCPServers["a"]; got.Command != "😀/x" || len(got.Args) != 2 || got.Args[1] != "/*,]" || f.Listen != "127.0.0.1:1" {
		t.Errorf("got %s %q, listening on %s", got.Command, got.Args, f.Listen)
	}
}

func TestFind(t *testing.T) {
	home := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", home)
	t.Setenv("HOME", home)
	t.Setenv("AppData", home)
	dir, err := os.UserConfigDir()
	if err != nil {
		t.Fatal(err)
	}
	find := func(flag string, pairs ...string) string {
		t.Helper()
		path, err := config.Find(flag, env(pairs...))
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	t.Chdir(t.TempDir())
	for _, trap := range []string{"config.yaml", "dragoman.yaml", ".dragoman.yaml", "dragoman/config.yaml"} {
		os.MkdirAll(filepath.Dir(trap), 0o755)
		if err := os.WriteFile(trap, []byte("listen: 127.0.0.1:1"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := find(""); got != "" {
		t.Errorf("with no file: %q", got)
	}
	path := filepath.Join(dir, "dragoman", "config.yaml")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := find(""); got != path {
		t.Errorf("in the user's directory: %q, want %q", got, path)
	}
	if got := find("", "DRAGOMAN_CONFIG", "b"); got != "b" {
		t.Errorf("by environment: %q", got)
	}
	if got := find("a", "DRAGOMAN_CONFIG", "b"); got != "a" {
		t.Errorf("by flag: %q", got)
	}
}

func write(t *testing.T, name, text string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil { // past the umask
		t.Fatal(err)
	}
	return path
}

func TestLoadResolvesDirectories(t *testing.T) {
	t.Setenv("HOME", "/home/me")
	path := write(t, "config.yaml", "mcpServers:\n  a: {command: x, cwd: work, sandbox: {read: [in, ~/in, /in], write: [out]}}\n  b: {command: x, cwd: ~/work}\n  c: {command: x}\n  d: {command: x, cwd: /work}\n", 0o600)
	f, err := config.Load(path, env())
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"a": filepath.Join(filepath.Dir(path), "work"), "b": "/home/me/work", "c": "", "d": "/work"}
	if runtime.GOOS == "windows" {
		t.Skip("the paths above are Unix paths")
	}
	for label, dir := range want {
		if got := f.MCPServers[label].Dir; got != dir {
			t.Errorf("%s: %q, want %q", label, got, dir)
		}
	}
	here, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	box := servers.Sandbox{Read: []string{here + "/in", "/home/me/in", "/in"}, Write: []string{here + "/out"}, Enforce: servers.Strict}
	if diff := cmp.Diff(box, f.MCPServers["a"].Sandbox); diff != "" {
		t.Errorf("sandbox (-want +got):\n%s", diff)
	}
}

// What is ours is out of reach of every sandbox, by whatever path.
func TestCheckSandboxes(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the paths below are Unix paths")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", dir)
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("XDG_STATE_HOME", "")
	for _, name := range []string{"work/data", "work/variables", "elsewhere", ".local/state/dragoman", ".config"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "work/variables/b.env"), []byte("A=b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, ".local"), filepath.Join(dir, "elsewhere", "link")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ sandbox, want string }{
		{"{read: [data, /usr], write: [data, ~/elsewhere]}", ""},
		{"{read: [c.yaml]}", ""}, // whose author knows what is in it
		{"{read: [~/]}", "sandbox.read: with DIR a server would reach DIR/.local/state/dragoman, which"},
		{"{read: [/]}", "sandbox.read: with / a server would reach DIR/.local/state/dragoman"},
		{"{read: [~/elsewhere/link/state/dragoman/x]}", "sandbox.read: with DIR/.local/state/dragoman/x"},
		{"{read: [ledger.db]}", "would reach DIR/work/ledger.db"},
		{"{read: [data/../keys.jsonl]}", "would reach DIR/work/keys.jsonl"},
		{"{write: [.]}", "sandbox.write: with DIR/work a server would reach DIR/work"},
		{"{write: [c.yaml]}", "would reach DIR/work/c.yaml"},
		{"{write: [rules.cedar]}", "would reach DIR/work/rules.cedar"},
		{"{write: [locks/]}", "would reach DIR/work/locks/dragoman.lock"},
		{"{read: [tls/ca.crt, tls/gateway.crt]}", ""},
		{"{write: [tls/ca.crt]}", "would reach DIR/work/tls/ca.crt"},
		{"{write: [tls/gateway.crt]}", "would reach DIR/work/tls/gateway.crt"},
		{"{read: [tls/gateway.key]}", "would reach DIR/work/tls/gateway.key"},
		{"{read: [tls/c.crt]}", ""},
		{"{write: [tls/c.crt]}", "would reach DIR/work/tls/c.crt"},
		{"{read: [tls/c.key]}", "would reach DIR/work/tls/c.key"},
		{"{write: [tls/own.crt]}", "would reach DIR/work/tls/own.crt"},
		{"{read: [tls/m.key]}", "would reach DIR/work/tls/m.key"},
		{"{write: [variables]}", "would reach DIR/work/variables/b.env"},
		{"{read: [variables]}", ""},
		{"{write: [~/.config]}", "would reach DIR/.config/dragoman"},
		{"{write: [~/.config/dragoman/new]}", "would reach DIR/.config/dragoman"},
		{"{write: [/]}", "sandbox.write: with / "},
	} {
		path := filepath.Join(dir, "work", "c.yaml")
		text := "tls: {cert: tls/gateway.crt, key: tls/gateway.key, client_ca: tls/ca.crt}\nstore: {path: ledger.db}\npins: {lock: locks/dragoman.lock}\npolicy_file: rules.cedar\nmcpServers: {a: {command: x, sandbox: " + tt.sandbox + "}, b: {command: x, envFile: variables/b.env}, c: {url: 'https://c.example/mcp', tls: {cert: tls/c.crt, key: tls/c.key}}}\nmodels: [{base_url: 'https://m.example/v1', tls: {ca: tls/own.crt, cert: tls/m.crt, key: tls/m.key}}]\n"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := config.Load(path, env())
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := f.CheckSandboxes(); err != nil {
			got = err.Error()
		}
		if want := strings.ReplaceAll(tt.want, "DIR", dir); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", tt.sandbox, got, want)
		}
	}

	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	variables := write(t, "a.env", "A=b\n", 0o600)
	other, err := config.ReadMCP(write(t, "mcp.json", `{"mcpServers": {"a": {"command": "x", "envFile": "`+variables+`", "sandbox": {"write": ["mcp.json", "`+program+`", "`+variables+`"]}}}}`, 0o600), env())
	if err != nil {
		t.Fatal(err)
	}
	f := config.Default()
	f.UseServers(other)
	if errs, ok := f.CheckSandboxes().(config.Errors); !ok || len(errs) != 3 {
		t.Errorf("a file of servers, one of variables and our program: %v", errs)
	}
}

func TestLoadRefusesFiles(t *testing.T) {
	unix := runtime.GOOS != "windows"
	tests := []struct {
		name, path, want string
	}{
		{"missing", filepath.Join(t.TempDir(), "none.yaml"), "PATH: the file cannot be read: no such file or directory"},
		{"directory", t.TempDir(), "PATH: this is a directory, not a configuration file"},
		{"too large", write(t, "a.yaml", strings.Repeat("# comment\n", 200_000), 0o600), "PATH: the file is larger than 1MiB"},
	}
	if unix {
		tests = append(tests, struct{ name, path, want string }{"everybody may write", write(t, "it's.yaml", "", 0o602),
			"PATH: everybody on this machine may write this file, and it can start programs\n  Run: chmod o-w '" + `QUOTED`})
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := config.Load(tt.path, env())
			want := strings.ReplaceAll(tt.want, "PATH", tt.path)
			want = strings.ReplaceAll(want, "QUOTED", strings.ReplaceAll(tt.path, "'", `'\''`)+"'")
			if err == nil || (unix && err.Error() != want) {
				t.Errorf("got  %v\nwant %s", err, want)
			}
			if _, ok := errors.AsType[*config.Error](err); !ok {
				t.Errorf("got a %T", err)
			}
		})
	}
	if unix {
		f, err := config.Load(write(t, "a.yaml", "", 0o620), env())
		if err != nil || len(f.Warnings) != 1 || f.Warnings[0].Message != "a group may write this file, and it can start programs" {
			t.Errorf("group writable: %v, %v", f, err)
		}
		variables := write(t, "open.env", "A=1\n", 0o602)
		_, err = config.Load(write(t, "a.yaml", "mcpServers: {a: {command: x, envFile: "+variables+"}}", 0o600), env())
		if err == nil || !strings.Contains(err.Error(), "mcpServers.a.envFile: the file of variables cannot be read: everybody on this machine may write it") {
			t.Errorf("variables that everybody may write: %v", err)
		}
	}
}

// Keys that nobody needs may refer to variables that are not set; they are still
// checked where they refer to none.
func TestNeeds(t *testing.T) {
	text := "store: {path: /x/y.db}\nmodels: [{base_url: \"${NONE}\", timeout: \"${NONE}\"}]\nmcpServers: {a: {url: \"${NONE}\", share: \"${NONE}\"}}\nlog: {level: \"${NONE}\"}\n"
	f, err := (config.Reader{Needs: []string{"store.*"}}).Parse("test.yaml", []byte(text))
	if err != nil || f.Store.Path != "/x/y.db" {
		t.Errorf("%v, %+v", err, f)
	}
	for _, needs := range [][]string{nil, {"log.*"}, {"models*"}} {
		if _, err := (config.Reader{Needs: needs}).Parse("test.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), "NONE is not set") {
			t.Errorf("needs %q: %v", needs, err)
		}
	}
	for _, wrong := range []string{"store: {path: \"${NONE}\"}\n", "modells: []\n", "log: {level: loud}\n", "mcpServers: {a: {}}\n", "mcpServers: {a: {url: \"${NONE}\", timeout: soon}}\n"} {
		if _, err := (config.Reader{Needs: []string{"store.*"}}).Parse("test.yaml", []byte(wrong)); err == nil {
			t.Errorf("%s: no error", wrong)
		}
	}
}
