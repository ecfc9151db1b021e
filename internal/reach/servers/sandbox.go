package servers

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/reach/sandbox"
	"github.com/dragoman-mcp/dragoman/internal/text/invalid"
)

// Sandbox is what the process of a server may use beside the system's programs and
// libraries; its paths have no links. There is a sandbox where Enforce is set, which
// SetDefaults does.
type Sandbox struct {
	Read    []string `yaml:"read" secret:"filled" doc:"Files and folders that the server may read, and run programs from. Relative paths start at the folder of the configuration file, ~/ at the user's home."`
	Write   []string `yaml:"write" secret:"filled" doc:"Files and folders that the server may read, run and change."`
	Network bool     `yaml:"network" doc:"Whether the server may make sockets: TCP, UDP and all others."`
	Enforce Enforce  `yaml:"enforce" enum:"strict,best-effort" doc:"What happens where the system cannot enforce all of it. strict, the default: the server does not start. best-effort: it starts with what the system has, be it nothing; its status says what."`
}

// Enforce says how much of a sandbox has to be enforced.
type Enforce string

// The ways to enforce a sandbox. The empty Enforce is that of no sandbox.
const (
	// Strict: all of it, or the server does not start.
	Strict Enforce = "strict"
	// BestEffort: what the system can.
	BestEffort Enforce = "best-effort"
)

// SetDefaults makes it a sandbox, and a strict one.
func (s *Sandbox) SetDefaults() {
	if s.Enforce == "" {
		s.Enforce = Strict
	}
}

// On reports whether there is a sandbox.
func (s *Sandbox) On() bool { return s.Enforce != "" }

// Validate reports a path that cannot be one, as a [*invalid.Error].
func (s *Sandbox) Validate() error {
	for _, list := range []struct {
		key   string
		paths []string
	}{{"read", s.Read}, {"write", s.Write}} {
		for _, path := range list.paths {
			if path == "" || strings.ContainsRune(path, 0) {
				return invalid.Key(list.key, fmt.Sprintf("%q cannot be a path", path))
			}
		}
	}
	return nil
}

// SandboxNone is the level of a local server without a sandbox.
const SandboxNone = "none"

// level returns how a local server is confined, as [dragoman.Server] says it.
func (c *Config) level() string {
	abi := sandbox.Landlock()
	switch {
	case !c.Sandbox.On() || abi == 0:
		return SandboxNone
	case !c.Sandbox.Network && sandbox.Seccomp():
		return fmt.Sprintf("landlock/%d seccomp", abi)
	}
	return fmt.Sprintf("landlock/%d", abi)
}

// strictLandlock is the version of Landlock (see [sandbox.Landlock]) that a strict
// sandbox needs: that of Linux 6.2.
const strictLandlock = 3

// box returns the sandbox for a program, by its absolute path; nil for none. An error
// says why the server cannot be confined as the configuration wants it.
func (c *Config) box(program string) (*sandbox.Sandbox, error) {
	s := &c.Sandbox
	if !s.On() {
		return nil, nil
	}
	abi := sandbox.Landlock()
	if err := s.enforceable(abi, sandbox.Seccomp()); err != nil {
		return nil, err
	}
	if abi == 0 {
		return nil, nil
	}
	readable, err := there("read", s.Read)
	if err != nil {
		return nil, err
	}
	writable, err := there("write", s.Write)
	if err != nil {
		return nil, err
	}
	if program, err = filepath.EvalSymlinks(program); err != nil {
		return nil, err
	}
	_, ownTemp := c.Env["TMPDIR"]
	return &sandbox.Sandbox{
		Read: append(readable, program), Write: writable,
		Network: s.Network, Temp: !ownTemp,
	}, nil
}

// there returns the paths under a key, absolute. One that does not exist is a mistake.
// One that has come to lead through a link since it was configured could be the work
// of a server that may write there.
func there(key string, paths []string) (found []string, err error) {
	for _, path := range paths {
		resolved := ""
		if path, err = filepath.Abs(path); err == nil {
			resolved, err = filepath.EvalSymlinks(path)
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("sandbox: %s: there is no %s; make it first, or take it out", key, path)
		case err != nil:
			return nil, fmt.Errorf("sandbox: %s: %s: %w", key, path, err)
		case resolved != path:
			return nil, fmt.Errorf("sandbox: %s: %s leads to %s now; if that is right, start dragoman again", key, path, resolved)
		}
		found = append(found, path)
	}
	return found, nil
}

// enforceable reports why a system with this version of Landlock, and with or without
// Seccomp, cannot enforce the sandbox as much as it has to be.
func (s *Sandbox) enforceable(abi int, seccomp bool) error {
	const otherwise = "; to start the server all the same, write enforce: best-effort"
	switch {
	case s.Enforce != Strict:
		return nil
	case abi == 0:
		return errors.New("sandbox: this system has no Landlock, which Linux has since 6.2 where it is not switched off" + otherwise)
	case abi < strictLandlock:
		return fmt.Errorf("sandbox: this kernel has version %d of Landlock, which does not keep files from being truncated; Linux 6.2 does%s", abi, otherwise)
	case !s.Network && !seccomp:
		return errors.New("sandbox: this system has no seccomp for us, which takes the network from a server, on amd64 and arm64; write network: true if it may have it" + otherwise)
	}
	return nil
}
