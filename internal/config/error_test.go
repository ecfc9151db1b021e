package config_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-mcp/dragoman/internal/config"
)

func TestErrors(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"unknown key", "listen: 127.0.0.1:1\nlog:\n  levle: info\n", `
test.yaml:3:3: unknown key "levle" in log
  3 |   levle: info
    |   ^
  Did you mean level?`},
		{"unknown key in another spelling", "models:\n  - {match: a, baseUrl: x}\n", `
test.yaml:2:16: unknown key "baseUrl" in models[0]
  2 |   - {match: a, baseUrl: x}
    |                ^
  Did you mean base_url?`},
		{"unknown key like no other", "names: {fruit: apple}\n", `
test.yaml:1:9: unknown key "fruit" in names
  1 | names: {fruit: apple}
    |         ^
  The keys here are strategy.`},
		{"unknown key in a server", "mcpServers:\n  a:\n    comand: x\n", `
test.yaml:3:5: unknown key "comand" in mcpServers.a
  3 |     comand: x
    |     ^
  Did you mean command?`},
		{"unknown key in a dialect", "dialects:\n  - {name: a}\n  - name: b\n    spec: {wire: {max_tool: 40}}\n", `
test.yaml:4:11: dialects[1].spec: unknown field "max_tool"
  4 |     spec: {wire: {max_tool: 40}}
    |           ^`},
		{"wrong values in dialects", "dialects:\n  - {name: a, spec: {wire: {max_tools: many}}}\n  - {name: b, spec: {wire: {max_tools: 4.5}}}\n  - {name: c, spec: [title]}\n", `
test.yaml:2:21: dialects[0].spec: wire.max_tools must be a whole number, not text
  2 |   - {name: a, spec: {wire: {max_tools: many}}}
    |                     ^
test.yaml:3:21: dialects[1].spec: wire.max_tools must be a whole number, not 4.5
  3 |   - {name: b, spec: {wire: {max_tools: 4.5}}}
    |                     ^
test.yaml:4:21: dialects[2].spec: it must be a mapping, not a list
  4 |   - {name: c, spec: [title]}
    |                     ^`},
		{"several", "log: {level: warning}\nloop:\n  timeout: 30\n  rounds: many\n  calls: 0\n  parallel: 2.5\n", `
test.yaml:1:14: log.level must be one of debug, info, warn, error, not "warning"
  1 | log: {level: warning}
    |              ^
test.yaml:3:12: loop.timeout must be a time such as 30s or 5m, not 30
  3 |   timeout: 30
    |            ^
  Write 30s if you mean seconds.
test.yaml:4:11: loop.rounds must be a whole number, not "many"
  4 |   rounds: many
    |           ^
test.yaml:5:10: loop.calls must be at least 1
  5 |   calls: 0
    |          ^
  Leave the key out for its default.
test.yaml:6:13: loop.parallel must be a whole number, not 2.5
  6 |   parallel: 2.5
    |             ^`},
		{"size", "loop: {bytes: 5 apples}\nresults: {limit: 999}\nhttp: {max_body: 99999999999GiB}\n", `
test.yaml:1:15: loop.bytes must be a size such as 65536, 64KiB or 16MiB, not "5 apples"
  1 | loop: {bytes: 5 apples}
    |               ^
test.yaml:2:18: results.limit must be at least 1000
  2 | results: {limit: 999}
    |                  ^
  Leave the key out for its default.
test.yaml:3:18: http.max_body must be a size such as 65536, 64KiB or 16MiB, not "99999999999GiB"
  3 | http: {max_body: 99999999999GiB}
    |                  ^`},
		{"too much", "loop: {parallel: 1001}\n", `
test.yaml:1:18: loop.parallel must be at most 1000
  1 | loop: {parallel: 1001}
    |                  ^`},
		{"negative time", "http: {drain_timeout: -1s}\n", `
test.yaml:1:23: http.drain_timeout must be more than 0
  1 | http: {drain_timeout: -1s}
    |                       ^
  Leave the key out for its default.`},
		{"less than nothing", "usage: {retention: -1s}\nstore: {quota: {owner: -1}}\n", `
test.yaml:1:20: usage.retention must be at least 0s
  1 | usage: {retention: -1s}
    |                    ^
  Leave the key out for its default.
test.yaml:2:24: store.quota.owner must be at least 0
  2 | store: {quota: {owner: -1}}
    |                        ^
  Leave the key out for its default.`},
		{"not a boolean", "mcpServers: {a: {command: x, disabled: yes}}\n", `
test.yaml:1:40: mcpServers.a.disabled must be true or false, not "yes"
  1 | mcpServers: {a: {command: x, disabled: yes}}
    |                                        ^
  Write true.`},
		{"not a list", "models: {match: a}\nallowed_hosts: a\n", `
test.yaml:1:9: models must be a list, not a mapping
  1 | models: {match: a}
    |         ^
test.yaml:2:16: allowed_hosts must be a list, not text
  2 | allowed_hosts: a
    |                ^
  Write it as a list: [a, b].`},
		{"not a mapping", "mcpServers: [a]\nloop: 7\n", `
test.yaml:1:13: mcpServers must be a mapping, not a list
  1 | mcpServers: [a]
    |             ^
test.yaml:2:7: loop must be a mapping, not a number
  2 | loop: 7
    |       ^`},
		{"not text", "listen: 8787\n", `
test.yaml:1:9: listen must be text, not a number
  1 | listen: 8787
    |         ^`},
		{"no value", "log:\n  level:\n", `
test.yaml:2:8: log.level must be text, not nothing
  2 |   level:
    |        ^
  Leave the key out for its default.`},
		{"duplicate label", "mcpServers:\n  files: {command: a}\n  web: {command: b}\n  files: {command: c}\n", `
test.yaml:4:3: "files" stands twice in mcpServers: here and in line 2
  4 |   files: {command: c}
    |   ^`},
		{"duplicate key in JSON", "{\"log\": {},\n \"log\": {}}\n", `
test.yaml:2:2: "log" stands twice in the file: here and in line 1
  2 |  "log": {}}
    |  ^`},
		{"another word for a key", "mcpServers: {a: {cmd: x}, b: {uri: http://b.test}}\n", `
test.yaml:1:18: unknown key "cmd" in mcpServers.a
  1 | mcpServers: {a: {cmd: x}, b: {uri: http://b.test}}
    |                  ^
  Did you mean command?
test.yaml:1:31: unknown key "uri" in mcpServers.b
  1 | mcpServers: {a: {cmd: x}, b: {uri: http://b.test}}
    |                               ^
  Did you mean url?`},
		{"servers under two names", "mcpServers: {a: {command: x}}\nservers: {b: {command: x}}\n", `
test.yaml:2:1: servers is another name of mcpServers, which stands in line 1
  2 | servers: {b: {command: x}}
    | ^
  Put all servers into one of them.`},
		{"command and url", "mcpServers:\n  a:\n    command: x\n    url: http://x\n  b: {timeout: 3s}\n", `
test.yaml:4:10: mcpServers.a.url: a server has a command or a url, not both
  4 |     url: http://x
    |          ^
test.yaml:5:6: mcpServers.b: a server needs a command or a url
  5 |   b: {timeout: 3s}
    |      ^`},
		{"a search by no tool", "mcpServers: {a: {command: x}}\nhosted: {web_search: {tool: search}}\n", `
test.yaml:2:29: hosted.web_search.tool: "search" is not a tool; one is label__name, such as search__web
  2 | hosted: {web_search: {tool: search}}
    |                             ^`},
		{"a search at no place", "hosted: {web_search: {tool: a__b, results: hits}}\n", `
test.yaml:1:44: hosted.web_search.results: "hits" is not a JSON pointer; one begins with /, or is empty for the whole
  1 | hosted: {web_search: {tool: a__b, results: hits}}
    |                                            ^`},
		{"a search without a tool", "hosted: {web_search: {query: q}}\n", `
test.yaml:1:22: hosted.web_search.tool: say which tool searches, as label__name
  1 | hosted: {web_search: {query: q}}
    |                      ^`},
		{"a search by a server that is not there", "mcpServers: {a: {command: x}}\nhosted: {web_search: {tool: b__c}}\n", `
test.yaml:2:9: hosted: web_search: there is no server "b" in mcpServers
  2 | hosted: {web_search: {tool: b__c}}
    |         ^`},
		{"model without address", "models:\n  - match: a\n", `
test.yaml:2:5: models[0].base_url: a model needs a base_url, such as https://api.openai.com/v1
  2 |   - match: a
    |     ^`},
		{"a star", "policy:\n  - allow: [*]\n", `
test.yaml:2:13: a * without quotes stands for an anchor, and there is none
  2 |   - allow: [*]
    |             ^
  Text that begins with * needs quotes.`},
		{"a pattern that begins with a star", "policy:\n  - deny: [*__delete_*]\n", `
test.yaml:2:12: there is no anchor of this name before this alias
  2 |   - deny: [*__delete_*]
    |            ^
  Text that begins with * needs quotes.`},
		{"a column too far", "policy:\n  - allow: [a__*]\n   deny: [b__*]\n", `
test.yaml:3:4: value is not allowed in this context
  3 |    deny: [b__*]
    |    ^
  The lines of one mapping begin in the same column.`},
		{"unset variable", "models:\n  - base_url: http://a\n    api_key: \"${OPENAI_API_KEY}\"\n", `
test.yaml:3:14: models[0].api_key: the environment variable OPENAI_API_KEY is not set
  3 |     api_key: "${OPENAI_API_KEY}"
    |              ^
  Set it, or give a default: ${OPENAI_API_KEY:-default}.`},
		{"unset variable in a list", "mcpServers:\n  a: {command: x, args: [a, 'b${env:NOPE}']}\n", `
test.yaml:2:29: mcpServers.a.args[1]: the environment variable NOPE is not set
  2 |   a: {command: x, args: [a, 'b${env:NOPE}']}
    |                             ^
  Set it, or give a default: ${NOPE:-default}.`},
		{"references that are none", "mcpServers: {a: {command: '${A'}, b: {command: '${a b}'}}\n", `
test.yaml:1:27: mcpServers.a.command: a ${ without its }
  1 | mcpServers: {a: {command: '${A'}, b: {command: '${a b}'}}
    |                           ^
  Write $$ for a plain $.
test.yaml:1:48: mcpServers.b.command: ${a b} is not a reference to a variable
  1 | mcpServers: {a: {command: '${A'}, b: {command: '${a b}'}}
    |                                                ^
  Write $$ for a plain $.`},
		{"a variable that does not fit", "loop: {rounds: \"${SECRET}\", timeout: \"${SECRET}\"}\nlog: {level: \"${SECRET}\"}\nresults: {max_message: \"${SECRET}\"}\n", `
test.yaml:1:16: loop.rounds must be a whole number, not "${SECRET}"
  1 | loop: {rounds: "${SECRET}", timeout: "${SECRET}"}
    |                ^
test.yaml:1:38: loop.timeout must be a time such as 30s or 5m, not "${SECRET}"
  1 | loop: {rounds: "${SECRET}", timeout: "${SECRET}"}
    |                                      ^
test.yaml:2:14: log.level must be one of debug, info, warn, error, not "${SECRET}"
  2 | log: {level: "${SECRET}"}
    |              ^
test.yaml:3:24: results.max_message must be a size such as 65536, 64KiB or 16MiB, not "${SECRET}"
  3 | results: {max_message: "${SECRET}"}
    |                        ^`},
		{"listen", "listen: localhost\n", `
test.yaml:1:9: listen: an address here is a host and a port, such as 127.0.0.1:8787
  1 | listen: localhost
    |         ^`},
		{"origin", "allowed_origins: [example.com]\n", `
test.yaml:1:18: allowed_origins: "example.com" is not an origin; one is a scheme, a host and maybe a port, such as https://example.com
  1 | allowed_origins: [example.com]
    |                  ^`},
		{"host", "allowed_hosts: [\"http://example.com\"]\n", `
test.yaml:1:16: allowed_hosts: "http://example.com" is not a host name; write it without http:// and path
  1 | allowed_hosts: ["http://example.com"]
    |                ^`},
		{"weak key", "auth: {api_keys: [hunter2]}\n", `
test.yaml:1:18: auth.api_keys: a key with fewer than 16 characters can be guessed
  1 | auth: {api_keys: ***
    |                  ^`},
		{"empty key", "auth: {api_keys: [\"${EMPTY}\"]}\n", `
test.yaml:1:18: auth.api_keys: an empty key would let everybody in
  1 | auth: {api_keys: ***
    |                  ^`},
		{"two documents", "listen: 127.0.0.1:1\n---\nlisten: 127.0.0.1:2\n", `
test.yaml:3:1: a second YAML document begins here; a configuration is one document
  3 | listen: 127.0.0.1:2
    | ^`},
		{"colon in text", "listen: a: b\n", `
test.yaml:1:9: mapping value is not allowed in this context
  1 | listen: a: b
    |         ^
  Text with a colon and a space in it needs quotes; and the lines of one mapping begin in the same column.`},
		{"variable in a flow mapping", "models:\n  - {base_url: ${BASE}, match: \"*\"}\n", `
test.yaml:2:17: ',' or '}' must be specified
  2 |   - {base_url: ${BASE}, match: "*"}
    |                 ^
  Between { } and [ ] a variable needs quotes: "${NAME}".`},
		{"variable in a flow list", "allowed_hosts: [a.test, x${B}]\n", `
test.yaml:1:27: ',' or ']' must be specified
  1 | allowed_hosts: [a.test, x${B}]
    |                           ^
  Between { } and [ ] a variable needs quotes: "${NAME}".`},
		{"variable in a list of lines", "allowed_hosts: [\n  a.test, ${B},\n  c]\n", `
test.yaml:2:12: ',' or ']' must be specified
  2 |   a.test, ${B},
    |            ^
  Between { } and [ ] a variable needs quotes: "${NAME}".`},
		{"variable that is quoted", "allowed_hosts: [\"${B}\" c]\n", `
test.yaml:1:24: ',' or ']' must be specified
  1 | allowed_hosts: ["${B}" c]
    |                        ^`},
		{"tab", "log:\n\tlevel: info\n", `
test.yaml:2:1: a tab stands where YAML needs spaces
  2 | 	level: info
    | ^
  Indent with spaces.`},
		{"open quote", "listen: 'x\n", `
test.yaml:1:9: could not find end character of single-quoted text
  1 | listen: 'x
    |         ^`},
		{"unknown alias", "listen: *x\n", `
test.yaml:1:9: there is no anchor of this name before this alias
  1 | listen: *x
    |         ^
  Text that begins with * needs quotes.`},
		{"alias to itself", "x-a: &a [*a]\n", `
test.yaml:1:10: there is no anchor of this name before this alias
  1 | x-a: &a [*a]
    |          ^
  Text that begins with * needs quotes.`},
		{"unknown tag", "listen: !env PORT\n", `
test.yaml:1:9: this tag is not used in a configuration
  1 | listen: !env PORT
    |         ^
  Text that begins with ! needs quotes.`},
		{"odd key", "? a\n: b\n", `
test.yaml:1:1: a key here is plain text
  1 | ? a
    | ^`},
		{"merge of text", "log:\n  <<: x\n", `
test.yaml:2:7: << merges mappings, and this is text
  2 |   <<: x
    |       ^`},
		{"not a configuration", "just text\n", `
test.yaml:1:1: the file must be a mapping, not text
  1 | just text
    | ^`},
		{"not UTF-8", "listen: 127.0.0.1:1\nlog: {level: \xff}\n", `
test.yaml:2:1: this line is not UTF-8 text`},
		{"wide characters", "names: {strategy: label, 名: 语}\n", `
test.yaml:1:26: unknown key "名" in names
  1 | names: {strategy: label, 名: 语}
    |                          ^
  The keys here are strategy.`},
		{"after wide characters", "x-名名: 语\n语: 1\nlog: {x-语: 1}\n", `
test.yaml:2:1: unknown key "语" in the file
  2 | 语: 1
    | ^
  The keys here are listen, tls, watch, allowed_hosts, allowed_origins, auth, models, dialects, mcpServers, inputs, names, tools, sampling, hosted, connections, wait_for_servers, mcp, console, sets, policy, policy_file, limits, budgets, loop, results, memory, cache, idempotency, store, replicas, audit, approvals, pins, capture, usage, telemetry, http, log.
test.yaml:3:7: unknown key "x-语" in log
  3 | log: {x-语: 1}
    |       ^
  The keys here are level, format, levels.`},
		{"tricks on the terminal", "log: {level: \"\u202ex\"}\n", `
test.yaml:1:14: log.level must be one of debug, info, warn, error, not "\u202ex"
  1 | log: {level: "` + "\ufffd" + `x"}
    |              ^`},
		{"a file of variables", "mcpServers: {a: {command: x, envFile: .env}}\n", `
test.yaml:1:39: mcpServers.a.envFile: the file of variables cannot be read: no such file or directory
  1 | mcpServers: {a: {command: x, envFile: .env}}
    |                                       ^`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := config.Parse("test.yaml", []byte(tt.text), env("SECRET", "canary", "EMPTY", ""))
			if err == nil {
				t.Fatal("no error")
			}
			if diff := cmp.Diff(strings.TrimPrefix(tt.want, "\n"), err.Error()); diff != "" {
				t.Errorf("(-want +got):\n%s\n%s", diff, err)
			}
			if e, ok := errors.AsType[*config.Error](err); !ok || e.File != "test.yaml" || e.Line == 0 {
				t.Errorf("not an *Error with a place: %#v", err)
			}
		})
	}
}

// A path of Windows between double quotes is told as what it is: nothing of it is read as
// an escape that it is not.
func TestEscapesInPaths(t *testing.T) {
	const hint = `Between double quotes \ begins an escape; write it twice: "C:\\folder".`
	for _, tt := range []struct{ file, text, want string }{
		{"test.yaml", `log: {level: "C:\Users\me\x.exe"}`, `\U is not followed by the number of a character`},
		{"test.yaml", `log: {level: "C:\Users"}`, `\U is not followed by the number of a character`},
		{"test.yaml", "log:\n  level: \"C:\\Users\"\n", `\U is not followed by the number of a character`},
		{"test.yaml", "allowed_hosts: [\"a\", \"C:\\Users\", b]\nlisten: \"x\"\n", `\U is not followed by the number of a character`},
		{"test.yaml", "log:\n  level: \"C:\\x\"\n", `\x is not followed by the number of a character`},
		{"test.yaml", `log: {level: "C:\users"}`, `\u is not followed by the number of a character`},
		{"test.yaml", `log: {level: "C:\\a\xampp"}`, `\x is not followed by the number of a character`},
		{"test.yaml", `"\xampp": 1`, `\x is not followed by the number of a character`},
		{"test.yaml", "log:\n  level: \"a \\\n    C:\\Users\\\\me\"", `\U is not followed by the number of a character`},
		{"test.yaml", `log: {level: "C:\dev"}`, `found unknown escape character 'd'`},
		{"test.json", `{"log": {"level": "C:\Users"}}`, `this is not valid JSON`},
		{"test.json", `{"log": {"level": "C:\\users\dev"}}`, `this is not valid JSON`},
	} {
		_, err := config.Parse(tt.file, []byte(tt.text), env())
		failed, ok := errors.AsType[*config.Error](err)
		if !ok || failed.Message != tt.want || failed.Hint != hint {
			t.Errorf("%s: %v", tt.text, err)
		}
	}
	for file, text := range map[string]string{
		"test.yaml": `telemetry: {service: "C:\\Users\x41\u00e9\U0001F600\\xampp\""}`,
		"test.json": `{"telemetry": {"service": "C:\\Users\u0041\u00e9\ud83d\ude00\\xampp\""}}`,
	} {
		f, err := config.Parse(file, []byte(text), env())
		if err != nil || f.Telemetry.Service != `C:\UsersAé😀\xampp"` {
			t.Errorf("%s: %v, %v", text, f, err)
		}
	}
	f, err := config.Parse("test.yaml", []byte("telemetry: {service: \"\\\\xampp\r\n    a\\\\xampp#\"} # \\Users\r\n"), env())
	if err != nil || f.Telemetry.Service != `\xampp a\xampp#` {
		t.Errorf("lines that end with a carriage return: %v, %v", f, err)
	}
	if _, err := config.Parse("test.json", []byte("{\"log\": \"a\\\\b\n\"}"), env()); strings.Contains(err.Error(), hint) {
		t.Errorf("escapes that are right: %v", err)
	}
}

func TestJSONErrors(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"cut off", `{"log": {`, "test.json:1:10: the JSON document is cut off"},
		{"bad literal", "{\"log\":\n  nul}", "test.json:2:3: this is not valid JSON"},
		{"more after it", `{} {}`, "test.json:1:4: there is more text after the end of the JSON document"},
		{"nested", `{"x-a":` + strings.Repeat("[", 5000), "test.json:1:72: the document is nested more than 64 levels deep"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := config.Parse("test.json", []byte(tt.text), env())
			if err == nil {
				t.Fatal("no error")
			}
			if got, _, _ := strings.Cut(err.Error(), "\n"); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// An error shows a line of the file, but never a secret that stands in it.
func TestErrorsShowNoSecret(t *testing.T) {
	for name, text := range map[string]string{
		"same flow mapping":       `models: [{api_key: canary, x: 1}]`,
		"quoted":                  `models: [{"api_key": "canary, and more", x: 1}]`,
		"wrong kind":              "models:\n  - api_key: [canary]\n",
		"in env":                  "mcpServers:\n  a:\n    env:\n      HARMLESS: {canary: 1}\n",
		"in a list of keys":       "auth:\n  api_keys:\n    - {a: canary}\n",
		"in flow env":             `mcpServers: {a: {env: {HARMLESS: canary, B: [1]}}}`,
		"in headers":              "mcpServers:\n  a:\n    headers:\n      X-Anything: [canary]\n",
		"syntax error":            "mcpServers:\n  a:\n    env:\n      HARMLESS: canary: x\n",
		"syntax error in a quote": "mcpServers:\n  a:\n    env:\n      HARMLESS: \"canary\n",
		"argument":                `mcpServers: {a: {command: x, args: [--token, canary], y: 1}}`,
		"argument with =":         `mcpServers: {a: {command: x, args: ["--api-key=canary"], y: 1}}`,
		"bearer":                  `mcpServers: {a: {command: x, args: ["--header", "X-Y: Bearer canary"], y: 1}}`,
		"URL with a password":     `mcpServers: {a: {url: "ftp://me:canary@a.test"}}`,
		"URL with a query":        `mcpServers: {a: {url: "ftp://a.test/?x=canary"}}`,
		"URL with a key in it":    `mcpServers: {a: {url: "https://a.test/s/canary0123456789abcd/mcp", y: 1}}`,
		"key behind a reference":  `mcpServers: {a: {url: "https://${A}/s/canary0123456789abcd/mcp", y: 1}}`,
		"key behind a comma":      `mcpServers: {a: {url: "https://a.test/x,y/canary0123456789abcd/mcp", y: 1}}`,
		"minified JSON":           `{"mcpServers":{"a":{"command":"x","env":{"A":"canary"},"y":1}}}`,
		"JSON over lines":         "{\"mcpServers\": {\"a\": {\n  \"env\": {\n    \"A\": [\"canary\"]\n}}}}",
		"known key format":        `mcpServers: {a: {command: sk-canary, y: 1}}`,
		"default in a reference":  `models: [{api_key: "${A:-canary}", x: 1}]`,
		"misspelt key":            "models:\n  - api_kye: canary\n",
		"misspelt env":            `mcpServers: {a: {command: x, envv: {A: canary}}}`,
		"misspelt headers":        `{"mcpServers": {"a": {"url": "https://a.test", "heders": {"X-Y": "canary"}}}}`,
		"text like an alias":      "models:\n  - api_key: *canary\n",
		"text like a tag":         "models:\n  - api_key: !canary\n",
		"key of a wrong length":   `auth: {api_keys: [canary]}`,
		"key as a mapping":        `models: [{api_key: {canary: 1}}]`,
		"bad URL":                 `models: [{base_url: "http://a b/canary"}]`,
		"filled in, bad URL":      `mcpServers: {a: {url: "${CANARY}"}}`,
		"filled in, no number":    `loop: {rounds: "${CANARY}"}`,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := config.Parse("test.yaml", []byte(text), env("CANARY", "canary"))
			if err == nil {
				t.Fatal("no error")
			}
			for _, e := range err.(config.Errors) {
				// A key that is in the wrong place is named all the same.
				if strings.Contains(e.Error(), "canary") && !strings.Contains(name, "bad URL") {
					t.Errorf("the error shows the secret:\n%v", e)
				}
			}
		})
	}
}

func TestHostileDocumentsAreCheap(t *testing.T) {
	bomb := "x-a: &a [" + strings.Repeat("x,", 50) + "]\n"
	for c := 'b'; c < 'k'; c++ {
		bomb += "x-" + string(c) + ": &" + string(c) + " [" + strings.Repeat("*"+string(c-1)+",", 50) + "]\n"
	}
	text := "x-t: &t " + strings.Repeat("x", 100_000) + "\nmcpServers: {a: {command: x, args: [" + strings.Repeat("*t,", 10_000) + "]}}\n"
	for name, tt := range map[string]struct{ text, want string }{
		"aliases of aliases": {bomb + "allowed_hosts: *j\n", "allowed_hosts[0] must be text, not a list"},
		"aliases used":       {bomb + "mcpServers: {a: {command: x, args: *j}}\n", "must be text, not a list"},
		"aliases of text":    {text, "the document is too large once its aliases and variables are filled in"},
		"flow nesting":       {"x-a: " + strings.Repeat("[", 100_000), "the document is nested more than 64 levels deep"},
		"map nesting":        {"x-a: " + strings.Repeat("{a: ", 50_000), "the document is nested more than 64 levels deep"},
		"list nesting":       {strings.Repeat("- ", 100_000), "the document is nested more than 64 levels deep"},
		"closed nesting":     {"x-a: " + strings.Repeat("[", 500) + strings.Repeat("]", 500), "the document is nested more than 64 levels deep"},
		"references":         {"listen: " + strings.Repeat("${A:-", 1000) + strings.Repeat("}", 1000), "defaults are nested too deep"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := config.Parse("test.yaml", []byte(tt.text), env())
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %.500v", err)
			}
			if errs, ok := err.(config.Errors); ok && len(errs) > 20 {
				t.Errorf("%d errors", len(errs))
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"listen: 127.0.0.1:1\nmcpServers:\n  a: {command: x, args: [a, 1], env: {A: '${B:-c}'}}\n",
		"x-a: &a {timeout: 1s}\nmcpServers: {b: {<<: *a, url: 'http://x', tools: [a], disabledTools: [b], enabled: false}}",
		"models: [{match: '*', base_url: http://a, api_key: !!str 5}]\n--- \n",
		`{"inputs": [{"id": "a", "default": "x"}], "servers": {"a b": {"type": "stdio", "command": "${input:a}", "icon": 1}}}`,
		`{"loop": {"bytes": "5MiB", "rounds": 3}, "log": {"level": "debug"}} // x`,
		"policy: [{allow: ['a__*'], deny: [tool:b__c]}]\nlimits: [{of: [a__b], rate: 1/s}]\ncache: {tools: [a__*]}\nresults: {tools: [{match: a__b}]}\nmcpServers: {b: {url: http://x}}",
		"? a\n: |\n  b\n- c", "%YAML 1.2\n---\na: >-\n  b\n...\n", "a: \"\\ud800\"",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 10_000 {
			t.Skip()
		}
		for _, name := range []string{"test.yaml", "test.json"} {
			file, err := config.Parse(name, data, env("B", "b"))
			if err != nil {
				if err.Error() == "" {
					t.Error("an error without text")
				}
				continue
			}
			again, err := config.Parse(name+".yaml", config.Effective(file), env("B", "b"))
			if err != nil && len(file.Auth.APIKeys) == 0 {
				t.Fatalf("the effective file cannot be read: %v\n%s", err, config.Effective(file))
			}
			if err == nil {
				if diff := cmp.Diff(string(config.Effective(file)), string(config.Effective(again))); diff != "" {
					t.Errorf("the effective file means something else:\n%s", diff)
				}
			}
		}
	})
}

// Rules that can never hold are shown where they stand.
func TestRuleErrors(t *testing.T) {
	_, err := config.Parse("test.yaml", []byte(`policy:
  - allow: ["model:*"]
  - deny: [github]
  - allow: ["*"]
    when: {hints: [destructive]}
  - {name: a, allow: ["*"], deny: ["x__*"]}
`), nil)
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		`test.yaml:3:11: policy[1].deny: "github" matches nothing`,
		`test.yaml:5:11: policy[2].when: hints: what a server says of itself cannot allow anything`,
		`test.yaml:6:5: policy[3]: a rule says one of allow, ask and deny`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in\n%v", want, err)
		}
	}
	if _, err := config.Parse("test.yaml", []byte("policy: [{name: a, allow: ['*']}, {name: a, deny: ['*']}]"), nil); err == nil || !strings.Contains(err.Error(), `two rules are called "a"`) {
		t.Errorf("%v", err)
	}
}

// A condition whose items are all commented out does not make its rule one for everybody.
func TestConditionsWithoutItems(t *testing.T) {
	for _, condition := range []string{"caller", "issuer", "scope", "server", "effect", "arguments"} {
		text := "policy:\n  - allow: [\"*\"]\n    when:\n      " + condition + ":\n      #  - x\n"
		_, err := config.Parse("test.yaml", []byte(text), nil)
		if want := "policy[0].when: " + condition + ": an empty list"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", condition, err, want)
		}
	}
}

// A tool that stays listed, of a server that is not there, is a slip of the pen.
func TestAlwaysOfNobody(t *testing.T) {
	file, err := config.Parse("test.yaml", []byte("tools: {always: ['files__*', 'fils__read_*', '*__get']}\nmcpServers: {files: {url: http://x}}"), nil)
	if err != nil || len(file.Warnings) != 1 || !strings.Contains(file.Warnings.Error(), `tools.always[1]: "fils__read_*" matches nothing: no server is called fils`) {
		t.Errorf("%v, warnings %v", err, file.Warnings)
	}
}
