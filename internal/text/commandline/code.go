package commandline

import (
	"maps"
	"slices"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

// Code returns the index of the first argument that makes a command run code
// which stands in its arguments, such as the -c of a shell; -1 where there is none.
// It knows shells and other interpreters, programs that start another one, and
// downloaders. What it does not know it lets pass: it keeps a harmless-looking command
// from being more than it looks like, and no program from doing harm. Where an option
// may or may not take the next argument, both are considered, and code wins.
func Code(command string, args []string) int {
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
// be, or start, runs code that stands in its value; empty for none. As [Code] it
// knows some of them, and programs that lie somewhere are no such code.
func CodeVariable(env map[string]secret.Text) string {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		value, code := env[name].Reveal(), false
		switch upper := strings.ToUpper(name); upper {
		case "BASH_ENV", "ENV", "PS4": // shells expand them
			code = strings.Contains(value, "$(") || strings.Contains(value, "`")
		case "NODE_OPTIONS":
			code = nodejs.takes(strings.Fields(strings.ReplaceAll(value, `"`, ""))) >= 0
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

// takesCode is Code for the program itself, without what it may start.
func takesCode(command string, args []string) int {
	switch name := programName(command); name {
	case "cmd":
		return cmdCode(args)
	case "powershell", "pwsh":
		return powershellCode(args, name == "powershell")
	default:
		p := programs[name]
		return p.takes(args)
	}
}

// takes returns the index of the argument by which the program itself takes code.
func (p *program) takes(args []string) int {
	for i, doubt := 0, false; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "--" && (p.starts || !p.mixed):
			return p.operand(args, i+1)
		case !isOption(arg):
			if slices.Contains(p.words, arg) {
				return i
			}
			// A verb, the value of an option, or the first operand.
			if !p.isVerb(arg) && !doubt && !p.mixed {
				return p.operand(args, i)
			}
			doubt = false
		default:
			o := p.option(args, i)
			if o.code || inlineModule(o.value) && (p.code != "" || p.long != nil) {
				return i
			}
			if o.end {
				return -1
			}
			if doubt = o.doubt; o.takes {
				i++
			}
		}
	}
	return -1
}

func isOption(arg string) bool { return len(arg) > 1 && (arg[0] == '-' || arg[0] == '+') }

// isVerb reports whether options of the program may follow an operand.
func (p *program) isVerb(arg string) bool {
	_, verb := p.verbs[arg]
	return verb || p.leads(arg)
}

// An option is one argument that is one, or several letters.
type option struct {
	name  string // or the letter that decides
	value string // that it has, or would have if it took the next argument
	takes bool   // it takes the next argument
	doubt bool   // it may
	code  bool   // code follows
	end   bool   // what is started follows, and nothing that is the program's own
}

// option reads the option at i.
func (p *program) option(args []string, i int) (o option) {
	arg, next := args[i], ""
	if i+1 < len(args) {
		next = args[i+1]
	}
	if arg[0] == '-' && (arg[1] == '-' || p.single) {
		name, value, joined := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		name = strings.ToLower(strings.ReplaceAll(name, "_", "-"))
		o = option{name: name, value: value, code: p.says(name)}
		if joined {
			return o
		}
		o.value = next
		switch {
		case slices.Contains(p.named, name):
			o.takes = true
		case strings.HasPrefix(name, "no-"), slices.Contains(p.flags, name):
		default:
			o.doubt = true
		}
		return o
	}
	for j := 1; j < len(arg); j++ {
		letter := arg[j : j+1]
		o = option{name: letter, value: arg[j+1:], code: strings.Contains(p.code, letter), end: strings.Contains(p.ends, letter)}
		if takes := strings.Contains(p.values, letter); takes || o.code || o.end {
			if o.takes = j == len(arg)-1 && takes; o.value == "" {
				o.value = next
			}
			return o
		}
	}
	return option{}
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

// inlineModule reports whether a module that is to be loaded is its own text.
func inlineModule(value string) bool {
	return strings.HasPrefix(strings.ToLower(value), "data:")
}

// cmdCode finds code for the command interpreter of Windows. A plain command behind
// its /c, which is how programs such as npx are started there, is none.
func cmdCode(args []string) int {
	at, words := cmdLine(args)
	if at < 0 {
		return -1
	}
	if words == nil {
		return at
	}
	for j, word := range words {
		if programName(word) != "cmd" && takesCode(word, words[j+1:]) >= 0 {
			return at
		}
	}
	return -1
}

// cmdLine returns the index of the /c of a command interpreter, or of one of its kind,
// and the words of the line behind it; none where that is more than a plain command. The
// index is -1 where it has no line.
func cmdLine(args []string) (at int, words []string) {
	for i, arg := range args {
		if !strings.HasPrefix(arg, "/") {
			return -1, nil
		}
		switches := strings.Split(arg[1:], "/")
		at := slices.IndexFunc(switches, func(s string) bool { return s != "" && strings.Contains("ckrCKR", s[:1]) })
		if at < 0 {
			continue
		}
		// What follows the letter in the same argument is part of the line.
		line := strings.Join(switches[at:], "/")[1:] + " " + strings.Join(args[i+1:], " ")
		if strings.ContainsAny(line, "&|<>^%!()\"\r\n") {
			return i, nil
		}
		return i, append([]string{}, strings.Fields(line)...)
	}
	return -1, nil
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
