package commandline

import (
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

// The first words that are quoted in braces are where the code is said to begin; a
// command line without them has none. Among them is what got past lists of allowed
// commands elsewhere (CVE-2026-30625, GHSA-c9gw-hvqq-f33r).
func TestCode(t *testing.T) {
	for _, line := range []string{
		"sh {-c} x", "/bin/bash {-c} x", "bash {-lc} x", "bash -l {-c} x", "bash -o pipefail {-c} x", "bash -eo pipefail {-c} x",
		"bash --norc {-c} x", "bash --rcfile f {-c} x", "bash +x {-c} x", "SH.EXE {-c} x", `C:\Git\bin\bash.exe {-c} x`, "fish {--command=x}", "fish {-C} x", "zsh -f {-c} x", "nu {--commands} x",
		"python {-c} x", "python3.12 {-c} x", "python3 -u {-c} x", "python3 {-uc} x", "python3 -W ignore {-c} x", "python3 -X utf8 {-c} x", "py -3 {-c} x", "pypy3 -I {-c} x",
		"node {-e} x", "node {--eval} x", "node {--eval=x}", "node {-p} x", "node {-pe} x", "node {--print} x", "node --require a {-e} x", "node -r a {-e} x", "node --new-flag a {-e} x", "node --no-warnings {-e} x",
		"node {--import} data:text/javascript,x", "node {--import=data:text/javascript,x} a.js", "node {-r} data:x a.js", "node20 {-e} x", "nodejs {-e} x", "tsx {-e} x",
		"bun {-e} x", "bun {--print} x", "bun {exec} x", "bun x node {-e} x", "bun run {-e} x", "deno {eval} x", "deno --quiet {eval} x", "deno run {--eval} x", "perl {-e} x", "perl -w {-e} x", "perl {-lane} x", "perl {-Mx} a.pl", "ruby {-e} x", "ruby -I lib {-ne} x",
		"php {-r} x", "php -d a=b {-r} x", "php {--run} x", "lua {-e} x", "lua -l m {-e} x", "Rscript {-e} x", "R --slave {-e} x", "julia {-E} x", "osascript {-e} x", "erl -noshell {-eval} x", "elixir {--eval} x",
		"awk {BEGIN{}}", "awk -F , {BEGIN{}}", "sed {s/a/b/e}", "find . -name x {-exec} rm", "vim {-c} x", "vim f {-c} x", "git {-c} core.sshCommand=x clone a", "git clone {--upload-pack=x} a", "git clone {--upload-pa} x a", "git clone {-u} x a",
		"ssh {-oProxyCommand=x} h", "tar {--to-command=x} -xf a", "tar -xf a {--checkpoint-action=exec=x}", "psql db {-c} x", "make {--eval=x}", "su root {-c} x", "su root -- {-c} x", "runuser -u a -- sh {-c} x", "flock f sh {-c} x", "script f {-c} x",

		"npx {-c} x", "npx {--call} x", "npx {--call=x}", "npx {--cal=x}", "npx -y {-c} x", "npx {-yc} x", "npx --yes {--call} x", "npx --yes --package=a {-c} x", "npx -p a {-c} x", "npx --package a {--call=x}", "npx.cmd -y {-c} x", "npx {--node-options=--import=data:x} a",
		"npx -y node {-e} x", "npx node@20 {-e} x", "npx -y -p a sh {-c} x", "npx --new flag {-c} x", "bunx node {-e} x", "npm exec {-c} x", "npm exec --yes {--call=x}", "npm x -- node {-e} x", "pnpm dlx {-c} x", "pnpm dlx node {-e} x", "yarn dlx node {-e} x",
		"uvx --from a sh {-c} x", "uvx python {-c} x", "uvx python@3.12 {-c} x", "uv run python {-c} x", "uv tool run --from a bash {-c} x", "pipx run --spec a python {-c} x", "poetry run python {-c} x",

		"env sh {-c} x", "env A=b sh {-c} x", "env -u A sh {-c} x", "env {-S} x", "env {-iS} x", "env {--split-string=x}", "/usr/bin/env -i PATH=/bin bash {-c} x", "env -- sh {-c} x",
		"nohup sh {-c} x", "nice -n 5 sh {-c} x", "timeout -k 5 10 sh {-c} x", "stdbuf -o L sh {-c} x", "sudo -u root sh {-c} x", "sudo {-s} x", "doas sh {-c} x", "setsid -w sh {-c} x", "xargs sh {-c} x", "busybox sh {-c} x", "busybox ash {-c} x",
		"env nohup env timeout 5 sh {-c} x", "docker run -i --rm alpine sh {-c} x", "docker exec -i a python {-c} x", "watch {x}", "watch -n 5 {x}",

		"cmd {/c} a&b", "cmd {/C} npx -y a & b", "cmd /d {/c} a|b", "cmd {/s/c} a>b", "cmd.exe {/k} a%b%", "cmd {/c} sh -c x", "cmd {/c} node -e x", "cmd {/csh} -c x", "cmd {/c} cmd /c node -e x", "cmd {/c} powershell x", "cmd {/c} cmd /c a&b",
		"powershell {-Command} x", "powershell {-c} x", "powershell {-com} x", "powershell {x}", "powershell -NoProfile {x}", "powershell -ExecutionPolicy Bypass {-Command} x", "powershell -ex Bypass {-EncodedCommand} x", "powershell {-enc} x", "powershell {-e} x", "powershell {/c} x", "pwsh {-c} x", "pwsh -nop {-ec} x", "pwsh {-cwa} x",

		"sh", "sh a.sh", "sh a.sh -c x", "bash -l a.sh -c x", "bash -- a.sh -c x", "python server.py -c conf", "python -u server.py -c conf", "python -m server -c conf", "python3 -m server --command x", "python -Wignore server.py -c conf", "python -um server -c x",
		"node server.js -e production", "node --import ./a.mjs server.js -e production", "node -r dotenv/config server.js -p 80", "node --enable-source-maps server.js -e x", "node --no-warnings server.js -e x", "node --max-old-space-size=99 server.js --print", "bun run server.ts", "deno run -A server.ts", "perl server.pl -e x", "ruby server.rb -e x", "php server.php -r x", "php -f server.php -r x",
		"npx", "npx -y a", "npx -y a -c conf", "npx --yes a --call x", "npx -y -p a b -c conf", "npx --package=a b -c conf", "npx -y @scope/a@1.2.3 -e x", "npx -y -- a -c conf", "bunx a -c conf", "npm start", "npm run server", "npm run server -- -c x", "npm --prefix /srv start",
		"uvx a -c conf", "uvx --from git+https://a b -c conf", "uv run server.py -c conf", "uv --directory /srv run server -c conf", "docker run -i --rm -e KEY a/b", "docker run -i --rm -c 5 a/b", "env A=b server -c conf", "timeout 5 server -c x", "sudo server -c x",
		"cmd", "cmd /cdir", "cmd /c/", "cmd /c npx -y a", "cmd /d /s /c npx -y @scope/a -c conf", "pwsh server.ps1 -c x", "pwsh -File server.ps1 -c x", "powershell -ExecutionPolicy Bypass -File server.ps1 -Command x", "git -C /srv mcp", "find . -name -x -o -name y", "awk -f a.awk -e x", "sed -f a.sed x",
		"server -c conf", "/opt/server --eval x", "mcp-server-sh -c x", "", "-c x",
	} {
		words := strings.Split(line, " ")
		want := slices.IndexFunc(words, func(w string) bool { return strings.HasPrefix(w, "{") && strings.HasSuffix(w, "}") })
		if want >= 0 {
			words[want] = words[want][1 : len(words[want])-1]
			want--
		}
		if got := Code(words[0], words[1:]); got != want {
			t.Errorf("%s: argument %d, want %d", line, got, want)
		}
	}
}

// A long line is no way to keep us busy.
func TestCodeIsCheap(t *testing.T) {
	for _, word := range []string{"env", "cmd", "/c", "git", "powershell", "-x"} {
		for _, command := range []string{"env", "cmd"} {
			if at := Code(command, append(slices.Repeat([]string{word}, 2000), "sh", "-c")); at < -1 {
				t.Error(at)
			}
		}
	}
}

// Whatever the arguments are, an answer is one of them, and comes soon; and putting a
// program that starts others in front hides nothing.
func FuzzCode(f *testing.F) {
	f.Add("npx\x00-y\x00-c\x00x")
	f.Add("cmd\x00/s/c\x00cmd\x00/c\x00a&b")
	f.Add("env\x00-S\x00env\x00env\x00sh\x00-c")
	f.Add("powershell\x00-ex\x00-c")
	f.Fuzz(func(t *testing.T, text string) {
		words := strings.Split(text, "\x00")
		at := Code(words[0], words[1:])
		if at < -1 || at >= len(words)-1 {
			t.Fatalf("%q: argument %d", words, at)
		}
		if at >= 0 && Code("env", words) < 0 {
			t.Fatalf("%q has code, and not behind env", words)
		}
	})
}

func TestCodeVariable(t *testing.T) {
	for _, tt := range []struct {
		name, value string
		code        bool
	}{
		{"NODE_OPTIONS", "--max-old-space-size=4096 --require ./a.js", false},
		{"NODE_OPTIONS", "--no-warnings --import=data:text/javascript,x", true},
		{"NODE_OPTIONS", `--import "data:text/javascript,x"`, true},
		{"BASH_ENV", "/etc/profile", false},
		{"BASH_ENV", "$(x)", true},
		{"ENV", "`x`", true},
		{"ENV", "production", false},
		{"PERL5OPT", "-Mlib=/a", false},
		{"PERL5OPT", "-Mbase;x", true},
		{"npm_config_call", "x", true},
		{"npm_config_registry", "https://registry.example", false},
		{"BASH_FUNC_node%%", "() { x; }", true},
		{"TOKEN", "$(x)", false},
	} {
		env := secret.Map(map[string]string{"A": "b", tt.name: tt.value})
		if got := CodeVariable(env); (got == tt.name) != tt.code || got != "" && !tt.code {
			t.Errorf("%s=%s: %q", tt.name, tt.value, got)
		}
	}
}
