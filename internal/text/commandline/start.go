// Package commandline reads the command lines of local servers as the programs in them
// do: what is started in the end ([Read]), and whether code stands in the arguments
// ([Code]). It has one table of the programs that start others, fetch packages or run
// scripts, and of how each reads its arguments; what is not in the table is taken for
// the server itself.
package commandline

import (
	"path/filepath"
	"slices"
	"strings"
)

// A Kind says what a command line starts in the end.
type Kind int

// The kinds.
const (
	Itself Kind = iota // the program itself, or what we cannot read
	NPM                // a package of npm, by its specification: name@version
	PyPI               // a package of PyPI: name==version, name[extra]@version
	Go                 // a package of Go: path@version
	Image              // an image of containers: name:tag@digest
	File               // a file, a module or a name that the program looks up

	nested // another command line
	own    // another command line if its program is known, else a File
)

// A Start is what a command line starts in the end.
type Start struct {
	// Program starts it, by its plain name: npx, python, docker. For a program that is
	// not known it is the last part of its path, without the ending.
	Program string
	// Through are the programs in front of it, from the outside: sudo, env.
	Through []string
	// Kind says what What is; empty for Itself, and where nothing is named.
	Kind Kind
	What string
	// Packages are those that options name, to be fetched; What is a command of theirs.
	Packages []string
	// Fetches says that it may be downloaded first.
	Fetches bool
	// Shell says that a shell is given a line that may be more than one command.
	Shell bool
}

// maxThrough is how many programs in front of others are looked through.
const maxThrough = 16

// Read reads a command line. Options of programs in the table that are not in it are
// taken to have no value, but for those of docker and its like, most of which have one.
func Read(command string, args []string) (s Start) {
	for range maxThrough {
		name := programName(command)
		p, known := programs[name]
		if !known {
			name = base(command)
			name = strings.TrimSuffix(name, filepath.Ext(name))
		}
		s.Program = name
		var inner []string
		switch name {
		case "cmd":
			at := -1
			at, inner = cmdLine(args)
			s.Shell = s.Shell || at >= 0 && inner == nil
		case "powershell", "pwsh":
			s.Shell = s.Shell || powershellCode(args, name == "powershell") >= 0
		default:
			inner = s.read(&p, args)
		}
		if len(inner) == 0 {
			break
		}
		s.Through = append(s.Through, name)
		command, args = inner[0], inner[1:]
	}
	return s
}

// read reads the arguments of a program, and returns the command line in them; none
// where s says what is started.
func (s *Start) read(p *program, args []string) []string {
	is, said, plain := p.first, "", false
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case plain:
		case arg == "--":
			plain = true
			continue
		case isOption(arg):
			o := p.option(args, i)
			switch {
			case o.code:
				s.Fetches, s.Shell = s.Fetches || is.fetches, s.Shell || p.line
				return p.plainLine(args, i, o)
			case o.end || slices.Contains(p.runs, o.name):
				s.Kind, s.What = File, o.value
				return nil
			case slices.Contains(p.packs, o.name):
				s.Packages = append(s.Packages, o.value)
			}
			if o.takes || o.doubt && p.greedy {
				i++
			}
			continue
		default:
			next := strings.TrimSpace(said + " " + arg)
			if v, ok := p.verbs[next]; ok {
				is, said = v, next
				continue
			}
			if p.leads(next) {
				said = next
				continue
			}
		}
		if p.sets && strings.Contains(arg, "=") {
			continue
		}
		if is.skip > 0 {
			is.skip--
			continue
		}
		_, known := programs[programName(arg)]
		if s.Fetches = s.Fetches || is.fetches; is.is == nested || is.is == own && known {
			return args[i:]
		}
		if s.Kind = is.is; s.Kind == own {
			s.Kind = File
		}
		if s.Kind != Itself {
			s.What = arg
		}
		return nil
	}
	s.Fetches = s.Fetches || is.fetches
	return nil
}

// leads reports whether words are the beginning of a verb of several.
func (p *program) leads(words string) bool {
	for v := range p.verbs {
		if strings.HasPrefix(v, words+" ") {
			return true
		}
	}
	return false
}

// plainLine returns the words of the line that the option at i gives a shell, where that
// is a plain command; none otherwise.
func (p *program) plainLine(args []string, i int, o option) []string {
	line := o.value
	if !strings.HasPrefix(args[i], "--") { // more letters may follow
		line = strings.Join(args[min(i+1, len(args)):min(i+2, len(args))], "")
	}
	if !p.line || strings.ContainsAny(line, "&|;<>$`\\\"'(){}*?[]#~!=\r\n") {
		return nil
	}
	return strings.Fields(line)
}

// Name says what is started, whatever its version and its options: two command lines
// with one name start the same, as far as can be seen.
func (s Start) Name() string {
	return strings.Join(append([]string{s.Program}, s.Names()...), " ")
}

// Names returns the packages that options name and then What, without their versions.
func (s Start) Names() (names []string) {
	kind := s.Kind
	for _, spec := range s.Packages {
		names = append(names, withoutVersion(kind, spec))
	}
	if s.What != "" {
		names = append(names, withoutVersion(kind, s.What))
	}
	return names
}

// withoutVersion takes the version off a specification.
func withoutVersion(kind Kind, spec string) string {
	if kind == File && !strings.HasPrefix(spec, "npm:") && !strings.HasPrefix(spec, "jsr:") {
		return spec
	}
	if i := strings.IndexByte(spec, '#'); i > 0 { // of a repository
		spec = spec[:i]
	}
	// A scope, as in @scope/name, and a user, as in git@host, are no versions.
	if i := strings.LastIndexByte(spec, '@'); i > 0 && i > strings.LastIndexByte(spec, '/') && spec[i-1] != ':' {
		spec = spec[:i]
	}
	switch {
	case kind == Image:
		if i := strings.LastIndexByte(spec, ':'); i > strings.LastIndexByte(spec, '/') {
			spec = spec[:i]
		}
	case kind == PyPI && !strings.Contains(spec, "://"):
		if i := strings.IndexAny(spec, "=<>[~!; "); i > 0 {
			spec = spec[:i]
		}
	}
	return spec
}
