package lint

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/text/commandline"
	"github.com/dragoman-mcp/dragoman/internal/text/pattern"
)

// secretRules look for secrets and for flows of data that nobody wants.
var secretRules = []Rule{
	{
		ID: "X006", Severity: Error, Title: "secret in what a server says of itself",
		Why:    "Definitions and instructions go to every client and every model provider.",
		Advice: "Revoke the secret and take it out.",
		Source: "CWE-312; credential rules of several scanners",
		Server: func(s *Server, say Say) {
			for _, t := range s.Tools {
				for _, p := range t.passages() {
					if kind := secretIn(p.text); kind != "" {
						say(At{Tool: t.Name, Pointer: p.pointer}, "the text holds what looks like %s", kind)
					}
				}
			}
			if kind := secretIn(s.Instructions); kind != "" {
				say(here, "the server's instructions hold what looks like %s", kind)
			}
			for _, raw := range slices.Concat(s.Prompts, s.Resources, s.Templates) {
				if kind := secretIn(string(raw)); kind != "" {
					say(here, "the entry %s holds what looks like %s", quote(entryName(raw)), kind)
				}
			}
		},
	},
	{
		ID: "X007", Severity: Warning, Title: "a way from private data to the outside",
		Why:     "One tool reads what strangers wrote, one reads private data, one sends: an instruction in the first makes the model carry the second to the third.",
		Advice:  "Do not offer the three together, or have the sending tool ask each time.",
		Source:  "agent-scan W015-W020 (toxic flows); \"the lethal trifecta\"",
		Gateway: "Offer a request fewer tools: allowed_tools, tools.exclude.",
		Set:     checkFlow,
	},
}

var secretPatterns = []struct {
	kind    string
	pattern *pattern.Pattern
}{
	{"a private key", pattern.Of(`-----BEGIN [A-Z ]*PRIVATE KEY-----`)},
	{"a GitHub token", pattern.Of(`\b(ghp|gho|ghu|ghs|ghr)_[A-Za-z0-9]{36}\b|\bgithub_pat_[A-Za-z0-9_]{60,}\b`)},
	{"an OpenAI key", pattern.Of(`\bsk-(proj-|svcacct-)?[A-Za-z0-9_-]{32,}\b`)},
	{"an Anthropic key", pattern.Of(`\bsk-ant-[A-Za-z0-9_-]{24,}\b`)},
	{"an AWS access key", pattern.Of(`\b(AKIA|ASIA)[A-Z0-9]{16}\b`)},
	{"a Google API key", pattern.Of(`\bAIza[A-Za-z0-9_-]{35}\b`)},
	{"a Slack token", pattern.Of(`\bxox[abprs]-[A-Za-z0-9-]{20,}\b`)},
	{"a Stripe key", pattern.Of(`\b[rs]k_live_[A-Za-z0-9]{20,}\b`)},
	{"a JSON Web Token", pattern.Of(`\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{20,}\b`)},
	{"an npm token", pattern.Of(`\bnpm_[A-Za-z0-9]{36}\b`)},
	{"an address with a password", pattern.Of(`\b(postgres(ql)?|mysql|mongodb(\+srv)?|rediss?|amqps?)://[A-Za-z0-9_.-]+:[^\s:@/]*[0-9][^\s:@/]*@[A-Za-z0-9.-]+`)},
}

// secretStarts are how all of them begin.
var secretStarts = []string{"-----BEGIN", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "sk-", "AKIA", "ASIA", "AIza", "xox", "k_live_", "eyJ", "npm_", "://"}

// placeholder are texts that have the form of a secret and are none.
var placeholder = pattern.Of(`(?i)x{6,}|example|placeholder|your[-_]|0{8,}|1234567|\.\.\.|<[^>]+>`)

// madeUp are passwords that stand in examples of addresses.
var madeUp = pattern.Of(`(?i)^(my|your|the|some|db|user|postgres|mysql|root|admin|guest)?[-_]?(pass(word|wd|phrase)?|pwd?|pw|secret|p[4a@]ss?w[0o]rd|change[-_]?me|example|token|test|demo|abc|xyz|foo|bar|root|admin|user|guest)?[-_]?[0-9]{0,4}!?$`)

// secretIn says what kind of secret a text holds; empty for none.
func secretIn(text string) string {
	if len(text) < 16 || !slices.ContainsFunc(secretStarts, func(s string) bool { return strings.Contains(text, s) }) {
		return ""
	}
	for _, s := range secretPatterns {
		m := s.pattern.FindString(text)
		if m == "" {
			continue
		}
		if _, rest, ok := strings.Cut(m, "://"); ok { // the host says nothing
			user, _, _ := strings.Cut(rest, "@")
			if _, password, _ := strings.Cut(user, ":"); madeUp.MatchString(password) || placeholder.MatchString(user) {
				continue
			}
			return s.kind
		}
		if !placeholder.MatchString(m) {
			return s.kind
		}
	}
	return ""
}

// checkFlow looks for the three kinds of tools that are dangerous together.
func checkFlow(servers []*Server, say Say) {
	var untrusted, private, out []string
	for _, s := range servers {
		for _, t := range s.Tools {
			name := s.Label + "/" + t.Name
			switch verb, _ := t.mutates(); {
			case verb != "" && slices.ContainsFunc(t.words, func(w string) bool { return outWords[w] }):
				out = append(out, name)
			case verb == "" && (worldly(t) || slices.ContainsFunc(t.words, func(w string) bool { return strangers[w] })):
				untrusted = append(untrusted, name)
			case verb == "" && slices.ContainsFunc(t.words, func(w string) bool { return privateWords[w] }):
				private = append(private, name)
			}
		}
	}
	if len(servers) > 1 && untrusted != nil && private != nil && out != nil {
		say(here, "%s read what strangers wrote, %s read private data, and %s send to the outside", quoteList(untrusted), quoteList(private), quoteList(out))
	}
}

var (
	outWords     = words("send post publish email mail message upload tweet comment reply webhook share push")
	strangers    = words("web website url page issue issues comment comments email emails mail inbox rss feed tweet tweets review reviews forum")
	privateWords = words("file files document documents record records database sql customer customers contact contacts secret secrets calendar note notes password passwords env account accounts")
)

var configRules = []Rule{
	{
		ID: "K001", Severity: Error, Title: "server whose code can change overnight",
		Why:    "Without an exact version the newest package is fetched and run at each start; one stolen publisher account is enough (postmark-mcp 1.0.16).",
		Advice: "Name an exact version: npx -y package@1.2.3, uvx package==1.2.3, image@sha256:….",
		Source: "MCP security best practices (local servers); OWASP MCP04",
		Server: configured(func(c *Config, say Say) {
			if reason := unpinned(c); reason != "" {
				say(here, "%s", reason)
			}
		}),
	},
	{
		ID: "K002", Severity: Error, Title: "secret written into the configuration",
		Why:    "Configurations are copied, committed and pasted into issues.",
		Advice: "Write ${NAME} and set NAME in the environment.",
		Source: "OWASP MCP01",
		Server: configured(func(c *Config, say Say) {
			for _, part := range []struct {
				what   string
				values map[string]string
			}{{"environment variable", c.Env}, {"header", c.Headers}} {
				for _, name := range slices.Sorted(maps.Keys(part.values)) {
					if literalSecret(name, part.values[name]) {
						say(here, "the %s %s holds a secret as it is", part.what, quote(name))
					}
				}
			}
			for _, arg := range c.Args {
				if secretIn(arg) != "" {
					say(here, "an argument holds what looks like %s", secretIn(arg))
				}
			}
		}),
	},
	{
		ID: "K003", Severity: Warning, Title: "the whole disk or home is given away",
		Why:    "A server that may read ~ reads keys, mails and browser profiles, and a model can be talked into asking for them.",
		Advice: "Name the folders that are needed.",
		Source: "MCP security best practices (least privilege)",
		Server: configured(func(c *Config, say Say) {
			for _, arg := range c.Args {
				if wide(arg) || wide(mounted(arg)) {
					say(here, "the argument %s gives the server everything below it", quote(arg))
				}
			}
		}),
	},
	{
		ID: "K005", Severity: Error, Title: "version that is known to be dangerous",
		Why:    "The hole is public, and so is how to use it.",
		Advice: "Use a newer version, and ask a scanner for packages (npm audit, pip-audit) about all that this short list does not name.",
		Source: "National Vulnerability Database, as of 2026-11",
		Server: configured(func(c *Config, say Say) {
			if what := knownBad(c); what != "" {
				say(here, "%s", what)
			}
		}),
	},
	{
		ID: "K006", Severity: Error, Title: "package that is known to be malicious",
		Why:    "It was made to do harm; to start it once, if only to look at its tools, is once too often. It was not started.",
		Advice: "Take it out of the configuration, and change what it was given: keys, tokens, passwords.",
		Source: "Reports of the registries, as of 2026-11; OWASP MCP04",
		Server: func(s *Server, say Say) {
			for _, c := range []*Config{s.Config, s.starts} {
				if c == nil {
					continue
				}
				if what := knownMalicious(c); what != "" {
					say(here, "%s", what)
					return
				}
			}
		},
	},
}

var (
	npmVersion  = pattern.Of(`^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`)
	goVersion   = pattern.Of(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+incompatible)?$`)
	pipVersion  = pattern.Of(`==\d[\w.]*|@\d+(\.\d+)+`)
	filledIn    = pattern.Of(`\$\{[^}]+\}|^\$\w+$`)
	secretValue = pattern.Of(`^(Bearer |Basic |token )?[A-Za-z0-9_\-+/=.:]{12,}$`)
	secretKey   = pattern.Of(`(?i)(token|secret|passw|api_?-?key|authorization|credential|private_?key|access_?key)`)
)

// unpinned says why a command may run other code tomorrow than today; empty if
// it does not, or if we do not know the command.
func unpinned(c *Config) string {
	s := commandline.Read(c.Command, c.Args)
	for _, program := range append(s.Through, s.Program) {
		if program == "sudo" || program == "doas" {
			return "the server is started with " + program
		}
	}
	if s.Shell {
		if pipeToShell.MatchString(strings.Join(c.Args, " ")) {
			return "the command fetches a script and runs it"
		}
		return "the server is started through a shell, which runs whatever the line holds"
	}
	specs := s.Packages
	if specs == nil {
		specs = []string{s.What}
	}
	for _, spec := range specs {
		if spec == "" || strings.HasPrefix(spec, ".") || strings.HasPrefix(spec, "/") {
			continue
		}
		at := strings.LastIndexByte(spec, '@')
		pinned := true
		switch s.Kind {
		case commandline.NPM:
			pinned = at > 0 && npmVersion.MatchString(spec[at+1:])
		case commandline.Go:
			pinned = at > 0 && goVersion.MatchString(spec[at+1:])
		case commandline.PyPI:
			pinned = pipVersion.MatchString(spec)
		case commandline.Image:
			if tag := spec[strings.LastIndexByte(spec, '/')+1:]; at < 0 && !strings.ContainsAny(tag, ":$") || strings.HasSuffix(tag, ":latest") {
				return fmt.Sprintf("the image %s is a tag that moves", quote(spec))
			}
		}
		if !pinned {
			return fmt.Sprintf("the package %s has no exact version", quote(spec))
		}
	}
	return ""
}

var pipeToShell = pattern.Of(`(curl|wget)\b[^|]*\|\s*(sudo\s+)?(ba|z)?sh`)

func literalSecret(name, value string) bool {
	if value == "" || filledIn.MatchString(value) || placeholder.MatchString(value) {
		return false
	}
	if _, err := url.ParseRequestURI(value); err == nil && strings.Contains(value, "://") {
		u, _ := url.Parse(value)
		_, has := u.User.Password()
		return has
	}
	return secretIn(value) != "" || secretKey.MatchString(name) && secretValue.MatchString(value)
}

// mounted returns the folder of this machine that an argument gives to a container; empty
// where it gives none.
func mounted(arg string) string {
	for _, flag := range []string{"--volume=", "-v="} {
		arg = strings.TrimPrefix(arg, flag)
	}
	if host, inside, ok := strings.Cut(arg, ":"); ok && strings.HasPrefix(inside, "/") && !strings.HasPrefix(inside, "//") {
		return host
	}
	if rest, ok := strings.CutPrefix(strings.TrimPrefix(arg, "--mount="), "type=bind,"); ok {
		for part := range strings.SplitSeq(rest, ",") {
			if name, host, _ := strings.Cut(part, "="); name == "source" || name == "src" {
				return host
			}
		}
	}
	return ""
}

func wide(arg string) bool {
	switch strings.TrimRight(arg, "/\\") {
	case "", "~", "$HOME", "${HOME}", "C:", "/home", "/Users", "/root", "%USERPROFILE%":
		return arg != ""
	}
	return homeFolder.MatchString(arg)
}

var homeFolder = pattern.Of(`^(/home|/Users)/[^/]+/?$`)
