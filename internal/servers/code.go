package servers

import (
	"maps"
	"slices"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/secret"
)

// CodeArgument returns the index of the first argument that makes a command run code
// which stands in its arguments, such as the -c of a shell; -1 where there is none.
// It knows shells and other interpreters, programs that start another one, and
// downloaders. What it does not know it lets pass: it keeps a harmless-looking command
// from being more than it looks like, and no program from doing harm. Where an option
// may or may not take the next argument, both are considered, and code wins.
func CodeArgument(command string, args []string) int {
	at := takesCode(command, args)
	if programs[programName(command)].starts {
		for i, arg := range args {
			if at >= 0 && i >= at {
				break
			}
			if below := takesCode(arg, args[i+1:]); below >= 0 {
				return i + 1 + below
			}
		}
	}
	return at
}

// CodeVariable returns the name of a variable by which some program that a server may
// be, or start, runs code that stands in its value; empty for none. As [CodeArgument] it
// knows some of them, and programs that lie somewhere are no such code.
func CodeVariable(env map[string]secret.Text) string {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		value, code := env[name].Reveal(), false
		switch upper := strings.ToUpper(name); upper {
		case "BASH_ENV", "ENV", "PS4": // shells expand them
			code = strings.Contains(value, "$(") || strings.Contains(value, "`")
		case "NODE_OPTIONS":
			code = nodejs.own(strings.Fields(strings.ReplaceAll(value, `"`, ""))) >= 0
		case "PERL5OPT":
			code = strings.Contains(value, ";")
		case "PROMPT_COMMAND", "NPM_CONFIG_CALL", "NPM_CONFIG_NODE_OPTIONS":
			code = value != ""
		default:
			code = strings.HasPrefix(upper, "BASH_FUNC_")
		}
		if code {
			return name
		}
	}
	return ""
}

// takesCode is CodeArgument for the program itself, without what it may start.
func takesCode(command string, args []string) int {
	switch name := programName(command); name {
	case "cmd":
		return cmdCode(args)
	case "powershell", "pwsh":
		return powershellCode(args, name == "powershell")
	default:
		p := programs[name]
		return p.own(args)
	}
}

// A program is how one takes code in its arguments.
type program struct {
	code   string   // letters of options, as in -c, that say so
	long   []string // names of options, as in --eval, that say so
	words  []string // operands that say so, such as eval
	verbs  []string // operands that options may follow, such as run
	values string   // letters of options that take a value
	named  []string // names of options that take a value
	flags  []string // names of options that take none; those that begin with no- are known
	ends   string   // letters of options behind which all belongs to something else
	single bool     // names have one dash
	mixed  bool     // options are looked for behind operands, too
	text   bool     // the first operand is code
	starts bool     // any operand may be a program, and what follows its arguments
}

var (
	shell  = program{code: "c", long: []string{"command", "commands", "init-command", "execute"}, values: "oO", named: []string{"rcfile", "init-file"}}
	python = program{code: "c", values: "WXQ", ends: "m", named: []string{"check-hash-based-pycs"}}
	nodejs = program{code: "ep", long: []string{"eval", "print"}, values: "rC", named: []string{"require", "import", "loader", "experimental-loader", "conditions", "env-file", "env-file-if-exists", "input-type", "title", "watch-path", "max-old-space-size"}, flags: []string{"enable-source-maps", "experimental-strip-types", "trace-warnings", "watch", "inspect", "use-system-ca"}}
	npx    = program{code: "c", long: []string{"call", "node-options", "script-shell"}, values: "pw", named: []string{"package", "workspace", "prefix", "registry", "cache", "userconfig", "loglevel"}, flags: []string{"yes", "quiet", "offline", "prefer-offline", "prefer-online", "ignore-scripts", "silent", "bun"}, starts: true}
	perl   = program{code: "eEMm", values: "I"}
	awk    = program{code: "e", long: []string{"source"}, values: "Fv", ends: "fE", named: []string{"field-separator", "assign"}, text: true}
	vim    = program{code: "cS", long: []string{"cmd"}, mixed: true}
	su     = program{code: "c", long: []string{"command", "session-command"}, mixed: true}
	other  = program{starts: true} // starts what its arguments say
)

// programs are the programs that are known, without versions and endings.
var programs = map[string]program{
	"sh": shell, "bash": shell, "dash": shell, "ash": shell, "rbash": shell, "zsh": shell, "ksh": shell, "mksh": shell, "yash": shell,
	"csh": shell, "tcsh": shell, "elvish": shell, "xonsh": shell,
	"fish": {code: "cC", long: shell.long},
	"nu":   {code: "ce", long: shell.long, named: []string{"config", "env-config"}},

	"python": python, "pythonw": python, "py": python, "pypy": python, "ipython": python, "jython": python, "micropython": python,
	"node": nodejs, "nodejs": nodejs, "tsx": nodejs, "ts-node": nodejs, "electron": nodejs,
	"bun":  {code: "ep", long: nodejs.long, values: "rc", words: []string{"exec"}, verbs: []string{"run", "x"}, starts: true},
	"deno": {words: []string{"eval", "repl"}, long: nodejs.long, verbs: []string{"run"}},
	"perl": perl, "ruby": {code: "e", values: "IrCE"}, "jruby": {code: "e", values: "IrCE"},
	"php": {code: "rBRE", long: []string{"run", "process-begin", "process-code", "process-end"}, values: "cdSt", ends: "f"},
	"lua": {code: "e", values: "l"}, "luajit": {code: "e", values: "lj"},
	"r": {code: "e", mixed: true}, "rscript": {code: "e"}, "julia": {code: "eE", long: nodejs.long, values: "LJCpt"},
	"osascript": {code: "e", values: "ls"}, "groovy": {code: "e"}, "scala": {code: "e", long: nodejs.long}, "ghc": {code: "e"},
	"racket": {code: "e", long: nodejs.long}, "guile": {code: "c"}, "elixir": {code: "e", long: []string{"eval", "rpc-eval"}},
	"erl":  {single: true, long: []string{"eval", "run", "s"}, mixed: true},
	"sbcl": {long: nodejs.long, mixed: true}, "emacs": {long: []string{"eval", "execute", "funcall"}, code: "f", mixed: true},
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
	"ssh":    {code: "oF", mixed: true, starts: true},
	"rsync":  {code: "e", long: []string{"rsh", "rsync-path"}, mixed: true},
	"tar":    {code: "I", long: []string{"to-command", "checkpoint-action", "use-compress-program", "info-script", "rsh-command"}, mixed: true},

	"env":  {code: "S", long: []string{"split-string"}, values: "uCa", starts: true},
	"sudo": {code: "si", long: []string{"shell", "login"}, values: "ughpCrtTUDR", starts: true}, "doas": {code: "s", values: "uC", starts: true},
	"su": su, "runuser": su, "script": su, "flock": su,
	"watch": {text: true, values: "n", flags: []string{"exec"}, starts: true}, "parallel": {text: true, starts: true},
	"busybox": other, "toybox": other, "nohup": other, "nice": other, "ionice": other, "chrt": other, "taskset": other, "timeout": other, "stdbuf": other,
	"setsid": other, "setpriv": other, "time": other, "xargs": other, "chroot": other, "unshare": other, "nsenter": other, "systemd-run": other,
	"strace": other, "ltrace": other, "firejail": other, "bwrap": other, "xvfb-run": other, "dbus-run-session": other, "start-stop-daemon": other,
	"docker": other, "podman": other, "nerdctl": other, "mise": other, "direnv": other, "conda": other, "mamba": other, "nix": other,
	"uv": other, "uvx": other, "pipx": other, "poetry": other, "pdm": other, "hatch": other, "rye": other, "pipenv": other,

	"npx": npx, "bunx": npx, "pnpx": npx,
	"npm":  {code: "c", long: npx.long, values: npx.values, named: npx.named, flags: npx.flags, mixed: true, starts: true},
	"pnpm": {code: "c", long: []string{"shell-mode", "node-options", "script-shell"}, values: "C", named: []string{"package", "filter", "dir"}, flags: npx.flags, verbs: []string{"dlx", "exec"}, starts: true},
	"yarn": other,
}

// own returns the index of the argument by which the program itself takes code.
func (p *program) own(args []string) int {
	for i, doubt := 0, false; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "--" && (p.starts || !p.mixed):
			return p.operand(args, i+1)
		case len(arg) < 2 || arg[0] != '-' && arg[0] != '+':
			if slices.Contains(p.words, arg) {
				return i
			}
			// A verb, the value of an option, or the first operand.
			if !slices.Contains(p.verbs, arg) && !doubt && !p.mixed {
				return p.operand(args, i)
			}
			doubt = false
		case arg[0] == '-' && (arg[1] == '-' || p.single):
			name, value, joined := strings.Cut(strings.TrimLeft(arg, "-"), "=")
			name = strings.ToLower(strings.ReplaceAll(name, "_", "-"))
			if p.says(name) || joined && inlineModule(value) || !joined && i+1 < len(args) && inlineModule(args[i+1]) {
				return i
			}
			doubt = false
			switch {
			case joined || strings.HasPrefix(name, "no-") || slices.Contains(p.flags, name):
			case slices.Contains(p.named, name):
				i++
			default:
				doubt = true
			}
		default:
			takes, code, end := p.letters(arg[1:])
			if code || takes && i+1 < len(args) && inlineModule(args[i+1]) {
				return i
			}
			if end {
				return -1
			}
			if doubt = false; takes {
				i++
			}
		}
	}
	return -1
}

// operand returns the index of the first operand where that is code.
func (p *program) operand(args []string, i int) int {
	if p.text && i < len(args) {
		return i
	}
	return -1
}

// says reports whether an option of this name says that code follows. Many programs
// take a beginning of the name for it.
func (p *program) says(name string) bool {
	return slices.ContainsFunc(p.long, func(long string) bool {
		return long == name || !p.single && name != "" && strings.HasPrefix(long, name)
	})
}

// letters takes options of one letter apart: whether one of them says that code
// follows, whether the last takes the next argument, and whether the program's own
// options end here.
func (p *program) letters(letters string) (takes, code, end bool) {
	for i := range len(letters) {
		letter := letters[i : i+1]
		switch {
		case strings.Contains(p.code, letter):
			return false, true, false
		case strings.Contains(p.ends, letter):
			return false, false, true
		case strings.Contains(p.values, letter):
			return i == len(letters)-1, false, false
		}
	}
	return false, false, false
}

// inlineModule reports whether a module that is to be loaded is its own text.
func inlineModule(value string) bool {
	return strings.HasPrefix(strings.ToLower(value), "data:")
}

// cmdCode finds code for the command interpreter of Windows. A plain command behind
// its /c, which is how programs such as npx are started there, is none.
func cmdCode(args []string) int {
	for i, arg := range args {
		if !strings.HasPrefix(arg, "/") {
			return -1
		}
		switches := strings.Split(arg[1:], "/")
		at := slices.IndexFunc(switches, func(s string) bool { return s != "" && strings.Contains("ckrCKR", s[:1]) })
		if at < 0 {
			continue
		}
		// What follows the letter in the same argument is part of the line.
		line := strings.Join(switches[at:], "/")[1:] + " " + strings.Join(args[i+1:], " ")
		if strings.ContainsAny(line, "&|<>^%!()\"\r\n") {
			return i
		}
		words := strings.Fields(line)
		for j, word := range words {
			if programName(word) != "cmd" && takesCode(word, words[j+1:]) >= 0 {
				return i
			}
		}
		return -1
	}
	return -1
}

// powershellCode finds code for PowerShell. text says that what is no option is some,
// as Windows PowerShell has it; later versions take it for a file.
func powershellCode(args []string, text bool) int {
	begins := func(name string, all ...string) bool {
		return name != "" && slices.ContainsFunc(all, func(full string) bool { return strings.HasPrefix(full, name) })
	}
	for i := 0; i < len(args); i++ {
		option := args[i]
		if len(option) < 2 || option[0] != '-' && option[0] != '/' {
			if text {
				return i
			}
			return -1
		}
		switch name := strings.ToLower(strings.TrimLeft(option, "-/")); {
		case begins(name, "command", "commandwithargs", "encodedcommand", "ec", "cwa"):
			return i
		case begins(name, "file"):
			return -1
		case begins(name, "executionpolicy", "ep", "configurationname", "configurationfile", "custompipename", "encodedarguments", "inputformat", "outputformat", "psconsolefile", "settingsfile", "version", "windowstyle", "workingdirectory", "wd"):
			i++
		}
	}
	return -1
}

// programName returns what a program is called, whatever its folder, its version and
// its ending: python for /usr/bin/python3.12 and for python.exe.
func programName(command string) string {
	name := strings.ToLower(command[strings.LastIndexAny(command, `/\`)+1:])
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
