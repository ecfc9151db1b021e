package config_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/reach/servers"
)

func TestEffectiveOfDefault(t *testing.T) {
	const want = `listen: 127.0.0.1:8787
tls:
  cert: ""
  key: ""
  client_ca: ""
watch: false
allowed_hosts: []
allowed_origins: []
auth:
  api_keys: []
  keys_file: ""
  public_url: ""
  oauth: []
models: []
dialects: []
inputs: []
names:
  strategy: label
tools:
  search: auto
  tokens: 20000
  always: []
  keep_response_format: false
sampling:
  answer: false
  tokens: 8192
  questions: 4
hosted:
  web_search:
    tool: ""
    query: query
    results: /results
    url: url
    title: title
    text: snippet
connections:
  max: 64
  idle: 15m
wait_for_servers: 15s
mcp:
  off: false
  search: never
  page: 512KiB
  raw: false
console: "on"
sets: {}
policy: []
policy_file: ""
limits: []
budgets: []
loop:
  rounds: 16
  calls: 64
  parallel: 8
  bytes: 64MiB
  timeout: 10m
  call_timeout: 2m
results:
  limit: 25000
  tools: []
  guide:
    off: false
    text: ""
  max_message: 16MiB
memory:
  restore: true
  bytes: 64MiB
  ttl: 1h
cache:
  tools: []
  ttl: 1m
  bytes: 64MiB
idempotency:
  bytes: 64MiB
  ttl: 24h
store:
  path: ""
  max_bytes: 16GiB
  url: ""
  listen_url: ""
  key_file: ""
  key: ""
  retention: 720h
  quota:
    owner: 1GiB
    total: 10GiB
  pooler: none
replicas:
  affinity: false
  notice: 5s
audit:
  arguments: digest
  retention: 2160h
  off: false
approvals:
  expires: 1h
  keep: 168h
  pending: 50
  elicit: false
pins:
  mode: auto
  lock: ""
capture:
  keep: auto
  callers: []
  retention: 168h
  bytes: 16MiB
usage:
  off: false
  retention: 2160h
telemetry:
  endpoint: ""
  headers: {}
  service: ""
  traces:
    off: false
    content: false
  metrics:
    off: false
    listen: ""
http:
  max_body: 32MiB
  header_timeout: 10s
  body_timeout: 10s
  answer_timeout: 30s
  drain_timeout: 30s
log:
  level: info
  format: text
  levels: {}
`
	if diff := cmp.Diff(want, string(config.Effective(config.Default()))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEffectiveHidesSecrets(t *testing.T) {
	f := parse(t, `
listen: 127.0.0.1:${PORT}
auth:
  api_keys: ["canary-canary-0123"]
  public_url: https://gateway.example
  oauth:
    - issuer: https://login.example
      introspection: {url: "https://login.example/introspect", client_id: dragoman, client_secret: canary}
      grants: ["tool:*"]
models:
  - base_url: ${CANARY_URL}
    api_key: canary
    headers: {X-Anything: canary, X-Filled: "${CANARY}"}
dialects: []
mcpServers:
  a:
    command: x
    args: [--token, canary, --port, 80, "--api-key=canary", "${CANARY}", "-H", "Authorization: Bearer canary", "https://u:canary@a.test/p?token=canary&v=1", "cost: $5", "$$$${HOME}"]
    env: {A: canary, B: "${CANARY}"}
  b:
    url: https://a.test/mcp?apiKey=canary&profile=me
    headers: {X-Y: "${CANARY}"}
    timeout: 1h
  c:
    url: https://a.test/s/c4n4ry0123456789abcd/mcp?v=2
`, "PORT", "1234", "CANARY", "canary", "CANARY_URL", "http://a.test/canary")
	got := string(config.Effective(f))
	if strings.Contains(got, "canary") || strings.Contains(got, "c4n4ry") {
		t.Errorf("a secret shows")
	}
	want := `listen: 127.0.0.1:1234
tls:
  cert: ""
  key: ""
  client_ca: ""
watch: false
allowed_hosts: []
allowed_origins: []
auth:
  api_keys:
    - "***"
  keys_file: ""
  public_url: https://gateway.example
  oauth:
    - issuer: https://login.example
      introspection:
        url: https://login.example/introspect
        client_id: dragoman
        client_secret: "***"
      grants:
        - "tool:*"
models:
  - match: "*"
    base_url: "${CANARY_URL}"
    api_key: "***"
    headers:
      X-Anything: "***"
      X-Filled: "***"
    offer: always
    timeout: 10m
    idle_timeout: 5m
dialects: []
mcpServers:
  a:
    command: x
    args:
      - "--token"
      - "***"
      - "--port"
      - "80"
      - "--api-key=***"
      - "${CANARY}"
      - "-H"
      - "Authorization: Bearer ***"
      - "https://***@a.test/p?token=***&v=1"
      - "cost: $5"
      - "$$$${HOME}"
    env:
      A: "***"
      B: "***"
    transport: auto
    era: auto
    timeout: 2m
    startup_timeout: 30s
    max_in_flight: 16
    share: all
  b:
    url: "https://a.test/mcp?apiKey=***&profile=me"
    headers:
      X-Y: "***"
    transport: auto
    era: auto
    timeout: 1h
    startup_timeout: 30s
    max_in_flight: 16
    share: all
  c:
    url: "https://a.test/s/***/mcp?v=2"
    transport: auto
    era: auto
    timeout: 2m
    startup_timeout: 30s
    max_in_flight: 16
    share: all
inputs: []
`
	if diff := cmp.Diff(want, got[:strings.Index(got, "names:")]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What is written out beside a reference is hidden as it is without one; references stay.
func TestEffectiveHidesBesideReferences(t *testing.T) {
	for written, want := range map[string]string{
		"https://${X}/s/c4n4ry0123456789abcd/mcp":                         "https://${X}/s/***/mcp",
		"https://a.test/${X}/x,y/c4n4ry0123456789abcd":                    "https://a.test/${X}/x,y/***",
		"https://me:c4n4ry@${X}:${X}/a?api_key=c4n4ry&b=${X}":             "https://***@${X}:${X}/a?api_key=***&b=${X}",
		"https://${X}:${X}@a.test/${KEY0123456789ABCDEF:-x}?api_key=${X}": "https://${X}:${X}@a.test/${KEY0123456789ABCDEF:-x}?api_key=${X}",
		"--url=https://${X}/s/c4n4ry0123456789abcd":                       "--url=https://${X}/s/***",
		"--url=https://a.test/s/c4n4ry0123456789abcd":                     "--url=https://a.test/s/***",
		"--token=${X}":               "--token=${X}",
		"--token=c4n4ry${X}":         "--token=***",
		"Authorization: Bearer ${X}": "Authorization: Bearer ${X}",
	} {
		got := string(config.Effective(parse(t, "mcpServers: {a: {command: x, args: ['"+written+"']}}", "X", "80")))
		if _, args, _ := strings.Cut(got, "args:\n"); !strings.HasPrefix(args, "      - \""+want+"\"\n") {
			t.Errorf("%s shows as %.100q", written, args)
		}
	}
}

func TestEffectiveReadsBack(t *testing.T) {
	odd := []string{
		"", " ", "true", "No", "null", "~", "1", "1.5", "0x1F", "1_000", ".inf", "2020-01-01", "a: b", "a #b", "#", "- x", "? x", "*a", "&a", "!a", "%a", "@a", "`a",
		"'", `"`, `\`, "\\n", "a\nb\n", "\t", "\r\n", "\x00", "\x1b[31m", "\u0085", "\u2028", "\u202e", "\ufeff", "\u200b", "\U000e0041", "日本 語", "😀", "{a}", "[a]", "a,b", "$", "$$", "${A}", "$${A}", "$$$", "a$b", "$(x)",
		"http://a.test/x", "C:\\x", "127.0.0.1:80", "<<", "=", "|", ">", "---", "...", "é", "a:b", "a:", ":a", "-", "--", "y",
	}
	f := config.Default()
	f.MCPServers = map[string]servers.Config{"a": {Command: "x", Args: odd, Tools: servers.Filter{Include: odd}, Effects: servers.Effects{ReadOnly: odd}}}
	for label, server := range f.MCPServers {
		server.SetDefaults()
		server.Complete()
		f.MCPServers[label] = server
	}
	// NUL cannot be passed to a program, so it is in patterns only.
	for i, arg := range odd {
		if arg == "\x00" {
			f.MCPServers["a"].Args[i] = "nul"
		}
	}
	text := config.Effective(f)
	again, err := config.Parse("again.yaml", text, env())
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if diff := cmp.Diff(f, again, ignoreRead, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-printed +read):\n%s", diff)
	}
}

func TestUseServers(t *testing.T) {
	f := parse(t, "log: {level: \"${L}\"}\nmcpServers: {a: {command: \"${C}\"}, b: {command: x, autoApprove: []}}", "L", "warn", "C", "own-command")
	path := write(t, "other.json", `{"mcpServers": {"a": {"command": "${C}", "icon": "i"}}}`, 0o600)
	other, err := config.ReadMCP(path, env("C", "canary"))
	if err != nil {
		t.Fatal(err)
	}
	f.UseServers(other)
	if len(f.MCPServers) != 1 || f.MCPServers["a"].Command != "canary" || f.Log.Level != "warn" {
		t.Errorf("got %v, level %s", f.MCPServers, f.Log.Level)
	}
	if len(f.Warnings) != 2 {
		t.Errorf("warnings: %v", f.Warnings)
	}
	if text := string(config.Effective(f)); strings.Contains(text, "canary") || !strings.Contains(text, `command: "${C}"`) {
		t.Errorf("what came from the environment shows:\n%s", text)
	}
	f.MCPServers["b"] = servers.Config{}
	if _, ok := other.MCPServers["b"]; ok {
		t.Error("the two files share their servers")
	}
}

func TestEffectiveShowsReferenceOfDirectory(t *testing.T) {
	path := write(t, "c.yaml", "mcpServers: {a: {command: x, cwd: \"${D}\", sandbox: {read: [\"${D}/in\"], write: [\"${D}/out\"]}}}", 0o600)
	f, err := config.Load(path, env("D", "work"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(config.Effective(f))
	for _, want := range []string{`cwd: "${D}"`, `- "${D}/in"`, `- "${D}/out"`, "enforce: strict"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in\n%s", want, text)
		}
	}
	if dir := f.MCPServers["a"].Dir; !strings.HasSuffix(dir, string(os.PathSeparator)+"work") {
		t.Errorf("directory %q", dir)
	}
}
