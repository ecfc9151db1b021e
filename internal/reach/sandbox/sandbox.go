package sandbox

import "errors"

// A Sandbox is what a server may use beside the programs and libraries of the system;
// the rest is denied to it and to all that it starts, for good. What that comes to
// depends on the kernel, see [Landlock] and [Seccomp].
type Sandbox struct {
	Read    []string // absolute paths, without links, of files and folders to read, and to run programs from
	Write   []string // of those to change, too
	Network bool     // to make sockets, of whatever kind
	Temp    bool     // a new folder as TMPDIR, to change, which is removed in the end

	tempDir string // that folder
}

// The words by which a guard is told of a sandbox; the command follows theEnd.
const (
	sandboxed = "sandboxed"
	network   = "network"
	temp      = "temp"
	read      = "read:"
	write     = "write:"
	theEnd    = "--"
)

// words returns what a guard is told of a sandbox; nil is none.
func (s *Sandbox) words() []string {
	if s == nil {
		return nil
	}
	words := []string{sandboxed}
	if s.Network {
		words = append(words, network)
	}
	if s.Temp {
		words = append(words, temp)
	}
	for _, path := range s.Read {
		words = append(words, read+path)
	}
	for _, path := range s.Write {
		words = append(words, write+path)
	}
	return words
}

// parse returns the sandbox and the command that a guard is told.
func parse(args []string) (*Sandbox, []string, error) {
	var s *Sandbox
	for i, word := range args {
		switch {
		case word == theEnd && i+1 < len(args):
			return s, args[i+1:], nil
		case word == sandboxed:
			s = &Sandbox{}
		case s == nil:
			return nil, nil, errors.New("what to start is not said")
		case word == network:
			s.Network = true
		case word == temp:
			s.Temp = true
		case begins(word, read):
			s.Read = append(s.Read, word[len(read):])
		case begins(word, write):
			s.Write = append(s.Write, word[len(write):])
		default:
			return nil, nil, errors.New("unknown word " + word)
		}
	}
	return nil, nil, errors.New("what to start is not said")
}

// begins is strings.HasPrefix without strings, which is initialised late.
func begins(word, prefix string) bool {
	return len(word) >= len(prefix) && word[:len(prefix)] == prefix
}
