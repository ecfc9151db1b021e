package fakemcp

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// The environment variables that make a program a fake server.
const (
	envConfig     = "DRAGOMAN_FAKEMCP"
	envGrandchild = "DRAGOMAN_FAKEMCP_GRANDCHILD"
)

// IsChild reports whether this process was started by [Command] and is to be a
// fake server.
func IsChild() bool { return os.Getenv(envConfig) != "" }

// Command returns how to start this very program as a fake server that speaks
// over its stdin and stdout. The environment is what must be added to the
// child's. The program must call [Main] when [IsChild] says so, before it does
// anything else.
func Command(cfg Config) (path string, args, env []string) {
	path, err := os.Executable()
	if err != nil {
		panic(fmt.Sprintf("find this program to start it as a fake server: %v", err))
	}
	data, err := json.Marshal(cfg)
	if err != nil {
		panic(fmt.Sprintf("pass a fake server its configuration: %v", err))
	}
	return path, nil, []string{envConfig + "=" + string(data)}
}

// Main is the main function of a child process. It never returns.
func Main() {
	var cfg Config
	if err := json.Unmarshal([]byte(os.Getenv(envConfig)), &cfg); err != nil {
		fmt.Fprintln(os.Stderr, "fakemcp:", err)
		os.Exit(2)
	}
	if cfg.Lifetime == 0 {
		cfg.Lifetime = 5 * time.Minute
	}
	time.AfterFunc(cfg.Lifetime, func() { os.Exit(3) })

	s := New(cfg)
	stubborn := slices.ContainsFunc(cfg.Faults, func(f Fault) bool { return f.Kind == Stubborn })
	if stubborn {
		signals := make(chan os.Signal, 8)
		signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
		go func() {
			for range signals {
				s.add(Entry{Method: Signalled}, nil)
			}
		}()
	}
	if os.Getenv(envGrandchild) != "" {
		s.add(Entry{Method: GrandchildStarted, PID: os.Getpid()}, nil)
		select {}
	}
	s.add(Entry{Method: Started, PID: os.Getpid()}, nil)
	fmt.Fprint(os.Stderr, cfg.Stderr)
	if cfg.Stderr != "" && !strings.HasSuffix(cfg.Stderr, "\n") {
		fmt.Fprintln(os.Stderr)
	}
	s.exit = os.Exit
	for _, f := range cfg.Faults {
		switch f.Kind {
		case DieAtStart:
			os.Exit(f.Code)
		case Grandchild:
			s.fork()
		}
	}
	if err := s.Serve(context.Background(), os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "fakemcp:", err)
		os.Exit(1)
	}
	if stubborn {
		select {}
	}
	os.Exit(0)
}

// fork starts the grandchild, which says in the log when it is there.
func (s *Server) fork() {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	cmd := exec.Command(path)
	cmd.Env = append(os.Environ(), envGrandchild+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		panic(err)
	}
}
