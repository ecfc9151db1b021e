package commandline

import "strings"

// A program is how one reads its arguments: which of them are code, which options take
// a value, and what the first operand is.
type program struct {
	code   string   // letters of options, as in -c, that say that code follows
	long   []string // names of options, as in --eval, that say so
	words  []string // operands that say so, such as eval
	text   bool     // the first operand is code
	values string   // letters of options that take a value
	named  []string // names of options that take a value
	flags  []string // names of options that take none; those that begin with no- are known
	greedy bool     // options that are not known take a value, when it is said what is started
	ends   string   // letters of options whose value is what is started, and which come last
	runs   []string // names of such options
	packs  []string // letters and names of options whose value is a package that is fetched
	single bool     // names have one dash
	mixed  bool     // options are looked for behind operands, too
	starts bool     // any operand may be a program, and what follows its arguments

	first verb            // what the first operand is, where it is no verb
	verbs map[string]verb // operands, or several of them, that say what the next one is
	sets  bool            // operands such as NAME=value may stand in front
	line  bool            // code is a line, as of a shell
}

// A verb says what the operand behind it is.
type verb struct {
	is      Kind
	fetches bool // what is not there is downloaded, whatever the operand is
	skip    int  // operands that stand in between
}

var (
	another = verb{is: nested}
	project = verb{is: own}
	file    = verb{is: File}
	npm     = verb{is: NPM, fetches: true}
	pypi    = verb{is: PyPI, fetches: true}
	image   = verb{is: Image, fetches: true}
)

var (
	shell  = program{code: "c", long: []string{"command", "commands", "init-command", "execute"}, values: "oO", named: []string{"rcfile", "init-file"}, first: file, line: true}
	python = program{code: "c", values: "WXQ", ends: "m", named: []string{"check-hash-based-pycs"}, first: file}
	nodejs = program{code: "ep", long: []string{"eval", "print"}, values: "rC", named: []string{"require", "import", "loader", "experimental-loader", "conditions", "env-file", "env-file-if-exists", "input-type", "title", "watch-path", "max-old-space-size"}, flags: []string{"enable-source-maps", "experimental-strip-types", "trace-warnings", "watch", "inspect", "use-system-ca"}, first: file}
	npx    = program{code: "c", long: []string{"call", "node-options", "script-shell"}, values: "pw", named: []string{"package", "workspace", "prefix", "registry", "cache", "userconfig", "loglevel"}, flags: []string{"yes", "quiet", "offline", "prefer-offline", "prefer-online", "ignore-scripts", "silent", "bun"}, packs: []string{"p", "package"}, starts: true, first: npm}
	perl   = program{code: "eEMm", values: "I", first: file}
	ruby   = program{code: "e", values: "IrCE", first: file}
	awk    = program{code: "e", long: []string{"source"}, values: "Fv", ends: "fE", named: []string{"field-separator", "assign"}, text: true}
	vim    = program{code: "cS", long: []string{"cmd"}, mixed: true}
	su     = program{code: "c", long: []string{"command", "session-command"}, mixed: true}
	other  = program{starts: true} // starts what its arguments say
	front  = program{starts: true, first: another}
	docker = program{
		starts: true, greedy: true, values: "aceHhlmpuvw",
		flags: []string{"debug", "detach", "disable-content-trust", "env-host", "help", "http-proxy", "init", "interactive", "oom-kill-disable", "passwd", "privileged", "publish-all", "quiet", "read-only", "read-only-tmpfs", "replace", "rm", "rmi", "rootfs", "sig-proxy", "tls", "tls-verify", "tlsverify", "tty", "unsetenv-all", "use-api-socket"},
		first: verb{fetches: true},
		verbs: map[string]verb{"run": image, "container run": image, "create": image, "exec": file, "container exec": file, "start": file, "container start": file},
	}
	uv = program{
		starts: true, values: "pifcbPCw", packs: []string{"from"},
		named: []string{"from", "with", "with-editable", "with-requirements", "python", "index", "index-url", "default-index", "extra-index-url", "find-links", "directory", "project", "package", "extra", "group", "only-group", "env-file", "cache-dir", "config-file", "constraints", "overrides", "build-constraints", "color", "refresh-package", "upgrade-package", "reinstall-package", "resolution", "prerelease", "keyring-provider", "index-strategy", "link-mode", "exclude-newer", "python-platform", "allow-insecure-host", "config-setting"},
		verbs: map[string]verb{"run": {is: own, fetches: true}, "tool run": pypi, "x": pypi},
	}
	yarn = program{starts: true, first: file, named: []string{"cwd", "package"}, packs: []string{"p", "package"}, values: "p", verbs: map[string]verb{"dlx": npm, "run": file, "exec": project, "node": file}}
)

// programs are the programs that are known, without versions and endings.
var programs = map[string]program{
	"sh": shell, "bash": shell, "dash": shell, "ash": shell, "rbash": shell, "zsh": shell, "ksh": shell, "mksh": shell, "yash": shell,
	"csh": shell, "tcsh": shell, "elvish": shell, "xonsh": shell,
	"fish": {code: "cC", long: shell.long, first: file, line: true},
	"nu":   {code: "ce", long: shell.long, named: []string{"config", "env-config"}, first: file},
	"cmd":  {}, "powershell": {}, "pwsh": {}, // see cmdCode and powershellCode

	"python": python, "pythonw": python, "py": python, "pypy": python, "ipython": python, "jython": python, "micropython": python,
	"node": nodejs, "nodejs": nodejs, "ts-node": nodejs, "electron": nodejs,
	"tsx":  {code: nodejs.code, long: nodejs.long, values: nodejs.values, named: nodejs.named, flags: nodejs.flags, first: file, verbs: map[string]verb{"watch": file}},
	"bun":  {code: "ep", long: nodejs.long, values: "rc", words: []string{"exec"}, packs: []string{"package"}, starts: true, first: file, verbs: map[string]verb{"run": file, "x": npm}},
	"deno": {words: []string{"eval", "repl"}, long: nodejs.long, values: "cL", named: []string{"config", "import-map", "lock", "env-file", "location", "seed", "cert"}, first: file, verbs: map[string]verb{"run": file, "serve": file, "task": file}},
	"perl": perl, "ruby": ruby, "jruby": ruby,
	"php": {code: "rBRE", long: []string{"run", "process-begin", "process-code", "process-end"}, values: "cdSt", ends: "f", first: file},
	"lua": {code: "e", values: "l", first: file}, "luajit": {code: "e", values: "lj", first: file},
	"r": {code: "e", mixed: true}, "rscript": {code: "e", first: file}, "julia": {code: "eE", long: nodejs.long, values: "LJCpt", first: file},
	"osascript": {code: "e", values: "ls", first: file}, "groovy": {code: "e", first: file}, "scala": {code: "e", long: nodejs.long, first: file}, "ghc": {code: "e"},
	"racket": {code: "e", long: nodejs.long, first: file}, "guile": {code: "c", first: file}, "elixir": {code: "e", long: []string{"eval", "rpc-eval"}, first: file},
	"java":   {single: true, named: []string{"cp", "classpath", "class-path", "p", "module-path", "add-modules", "add-opens", "add-exports", "jar"}, flags: []string{"server", "ea", "da", "enable-preview"}, runs: []string{"jar", "m", "module"}, first: file},
	"dotnet": {first: file, verbs: map[string]verb{"run": file, "exec": file, "tool run": file}},
	"go":     {first: file, values: "C", verbs: map[string]verb{"run": {is: Go, fetches: true}}},
	"erl":    {single: true, long: []string{"eval", "run", "s"}, mixed: true},
	"sbcl":   {long: nodejs.long, mixed: true}, "emacs": {long: []string{"eval", "execute", "funcall"}, code: "f", mixed: true},
	"vi": vim, "vim": vim, "nvim": vim, "ex": vim,
	"awk": awk, "gawk": awk, "mawk": awk, "nawk": awk,
	"sed":  {code: "e", long: []string{"expression"}, ends: "f", text: true},
	"find": {single: true, long: []string{"exec", "execdir", "ok", "okdir"}, mixed: true},
	"make": {long: []string{"eval"}, mixed: true}, "gmake": {long: []string{"eval"}, mixed: true},
	"gdb":    {single: true, long: []string{"ex", "eval-command", "iex", "init-eval-command"}, mixed: true},
	"psql":   {code: "c", long: []string{"command"}, mixed: true},
	"sqlite": {single: true, long: []string{"cmd"}, mixed: true},
	"mysql":  {code: "e", long: []string{"execute"}, mixed: true},
	"git":    {code: "cu", long: []string{"upload-pack", "receive-pack", "exec", "exec-path", "config-env", "extcmd"}, mixed: true},
	"ssh":    {code: "oF", values: "BbcDEeIiJLlmOpQRSWw", mixed: true, starts: true, first: file},
	"rsync":  {code: "e", long: []string{"rsh", "rsync-path"}, mixed: true},
	"tar":    {code: "I", long: []string{"to-command", "checkpoint-action", "use-compress-program", "info-script", "rsh-command"}, mixed: true},

	"env":  {code: "S", long: []string{"split-string"}, values: "uCa", named: []string{"unset", "chdir", "argv0"}, flags: []string{"ignore-environment"}, starts: true, first: another, sets: true},
	"sudo": {code: "si", long: []string{"shell", "login"}, values: "ughpCrtTUDR", named: []string{"user", "group", "host", "prompt", "chdir", "chroot", "role", "type"}, starts: true, first: another, sets: true},
	"doas": {code: "s", values: "uC", starts: true, first: another},
	"su":   su, "runuser": su, "script": su, "flock": su,
	"watch": {text: true, values: "n", flags: []string{"exec"}, starts: true}, "parallel": {text: true, starts: true},
	"busybox": front, "toybox": front, "exec": front, "nohup": front, "setsid": front, "time": front, "dbus-run-session": front, "setpriv": other, "xargs": other,
	"nice":    {starts: true, values: "n", named: []string{"adjustment"}, first: another},
	"ionice":  {starts: true, values: "cnpPu", named: []string{"class", "classdata"}, first: another},
	"chrt":    {starts: true, first: verb{is: nested, skip: 1}},
	"taskset": {starts: true, first: verb{is: nested, skip: 1}},
	"chroot":  {starts: true, named: []string{"userspec", "groups"}, first: verb{is: nested, skip: 1}},
	"timeout": {starts: true, values: "ks", named: []string{"kill-after", "signal"}, first: verb{is: nested, skip: 1}},
	"stdbuf":  {starts: true, values: "ioe", named: []string{"input", "output", "error"}, first: another},
	"unshare": other, "nsenter": other, "systemd-run": other, "strace": other, "ltrace": other, "firejail": other, "bwrap": other, "start-stop-daemon": other,
	"xvfb-run": {starts: true, values: "efnpsw", named: []string{"error-file", "auth-file", "server-num", "xauth-protocol", "server-args", "wait"}, first: another},
	"docker":   docker, "podman": docker, "nerdctl": docker,
	"mise": other, "direnv": {starts: true, verbs: map[string]verb{"exec": {is: nested, skip: 1}}},
	"conda": {starts: true, values: "np", named: []string{"name", "prefix", "cwd"}, verbs: map[string]verb{"run": another}}, "mamba": {starts: true, values: "np", named: []string{"name", "prefix", "cwd"}, verbs: map[string]verb{"run": another}},
	"nix": {starts: true, verbs: map[string]verb{"run": {is: File, fetches: true}}},

	"uv":     uv,
	"uvx":    {starts: true, values: uv.values, named: uv.named, packs: uv.packs, first: pypi},
	"pipx":   {starts: true, values: "i", named: []string{"spec", "index-url", "python", "pip-args", "suffix"}, packs: []string{"spec"}, first: verb{fetches: true}, verbs: map[string]verb{"run": pypi}},
	"poetry": {starts: true, values: "CP", named: []string{"directory", "project"}, verbs: map[string]verb{"run": project}}, "pdm": {starts: true, values: "p", named: []string{"project"}, verbs: map[string]verb{"run": project}},
	"hatch": {starts: true, values: "e", named: []string{"env"}, verbs: map[string]verb{"run": project}}, "rye": {starts: true, verbs: map[string]verb{"run": project}}, "pipenv": {starts: true, verbs: map[string]verb{"run": project}},

	"npx": npx, "bunx": npx, "pnpx": npx,
	"npm":  {code: "c", long: npx.long, values: npx.values, named: npx.named, flags: npx.flags, packs: npx.packs, mixed: true, starts: true, first: file, verbs: map[string]verb{"exec": npm, "x": npm, "run": file, "run-script": file}},
	"pnpm": {code: "c", long: []string{"shell-mode", "node-options", "script-shell"}, values: "C", named: []string{"package", "filter", "dir"}, flags: npx.flags, packs: []string{"package"}, starts: true, first: file, verbs: map[string]verb{"dlx": npm, "exec": project, "run": file}},
	"yarn": yarn,
}

// programName returns what a program is called, whatever its folder, its version and
// its ending: python for /usr/bin/python3.12 and for python.exe.
func programName(command string) string {
	name := strings.ToLower(base(command))
	for _, ending := range []string{".exe", ".cmd", ".bat", ".com", ".ps1"} {
		name = strings.TrimSuffix(name, ending)
	}
	if i := strings.IndexByte(name, '@'); i > 0 {
		name = name[:i]
	}
	if plain := strings.TrimRight(name, "0123456789.-"); plain != "" {
		name = plain
	}
	return name
}

// base is the last part of a path, of whatever system.
func base(path string) string { return path[strings.LastIndexAny(path, `/\`)+1:] }
