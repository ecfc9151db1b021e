//go:build unix

package replicas

import (
	"bufio"
	"context"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/gateway"
	"github.com/dragoman-mcp/dragoman/internal/stage/pgtest"
)

// envChild has the path of the configuration of a process that is to be a replica.
const envChild = "DRAGOMAN_STAGE_REPLICA"

// envLease has the lease of runs of such a process.
const envLease = "DRAGOMAN_STAGE_LEASE"

// IsChild reports whether this process was started by [Start] and is to be a replica.
func IsChild() bool { return os.Getenv(envChild) != "" }

// Main is the main function of a replica. It never returns.
func Main() {
	if err := serve(os.Getenv(envChild)); err != nil {
		fmt.Fprintln(os.Stderr, "replica:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func serve(path string) error {
	read := func() (*config.File, error) { return config.Load(path, os.LookupEnv) }
	file, err := read()
	if err != nil {
		return err
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(file.Log.Level)); err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	can := dragoman.AskForm | dragoman.AskURL | dragoman.AskSampling | dragoman.AskTools | dragoman.AskRoots
	lease, _ := time.ParseDuration(os.Getenv(envLease)) // zero: as usual
	g, err := gateway.New(file, gateway.Options{Read: read, Log: log, Version: "staged", Replica: true, Can: can, RunLease: lease})
	if err != nil {
		return err
	}
	defer g.Close()
	if err := g.Wait(context.Background()); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	// Whoever started us and is gone wants nothing any more.
	go func() { _, _ = bufio.NewReader(os.Stdin).ReadByte(); os.Exit(1) }()
	return g.Serve(ctx, func(at net.Addr) { fmt.Printf("http://%s\n", at) })
}

// Options are what a [Fleet] is made of.
type Options struct {
	// Count is how many replicas there are; zero means three.
	Count int
	// Config is what their configuration says beside listen, store, replicas and log.
	Config string
	// Store is the address of the database; empty means a new one.
	Store string
	// Notice is how long one that is to stop says so; zero means 100 ms.
	Notice time.Duration
	// Lease is how long after its last sign of life a replica that makes a response in the
	// background is taken to be alive; zero is as usual.
	Lease time.Duration
	// Polling forbids the replicas to LISTEN, as a pooler does.
	Polling bool
}

// A Fleet is several replicas behind a load balancer, until the test ends.
type Fleet struct {
	// URL is the balancer's, and Store the address of the database.
	URL, Store string
	// Balancer stands before the replicas.
	Balancer *Balancer

	t     testing.TB
	path  string
	lease time.Duration
	all   []*Replica
}

// A Replica is one process.
type Replica struct {
	URL string

	command *exec.Cmd
	hold    func() // lets it end with us
	out     chan struct{}
	mu      sync.Mutex
	log     strings.Builder
}

// Key is the master key of a staged store.
var Key = base64.StdEncoding.EncodeToString(make([]byte, 32))

// Start starts replicas. Where PostgreSQL is missing, the test skips, or fails in CI.
func Start(t testing.TB, o Options) *Fleet {
	t.Helper()
	if o.Store == "" {
		o.Store = pgtest.URL(t)
	}
	if o.Count == 0 {
		o.Count = 3
	}
	if o.Notice == 0 {
		o.Notice = 100 * time.Millisecond
	}
	pooler := "none"
	if o.Polling {
		pooler = "transaction"
	}
	f := &Fleet{t: t, lease: o.Lease, Store: o.Store, path: filepath.Join(t.TempDir(), "dragoman.yaml"), Balancer: NewBalancer()}
	text := fmt.Sprintf("listen: 127.0.0.1:0\nstore: {url: %q, key: %q, pooler: %s}\nreplicas: {notice: %s}\n%s\n", o.Store, Key, pooler, o.Notice, o.Config)
	if err := os.WriteFile(f.path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var starting sync.WaitGroup
	f.all = make([]*Replica, o.Count)
	problems := make([]error, o.Count)
	for i := range f.all {
		starting.Go(func() { f.all[i], problems[i] = f.start() })
	}
	starting.Wait()
	t.Cleanup(f.end)
	for _, err := range problems {
		if err != nil {
			t.Fatal(err)
		}
	}
	f.balance()
	server := httptest.NewServer(f.Balancer)
	t.Cleanup(server.Close)
	f.URL = server.URL
	return f
}

// start starts one replica and waits until it listens.
func (f *Fleet) start() (*Replica, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	r := &Replica{command: exec.Command(path), out: make(chan struct{})}
	r.command.Env = append(os.Environ(), envChild+"="+f.path, envLease+"="+f.lease.String())
	stdin, err := r.command.StdinPipe()
	if err != nil {
		return nil, err
	}
	r.hold = func() { stdin.Close() }
	stdout, err := r.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	stderr, err := r.command.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := r.command.Start(); err != nil {
		return nil, err
	}
	var reading sync.WaitGroup
	reading.Go(func() {
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			r.mu.Lock()
			r.log.WriteString(lines.Text() + "\n")
			r.mu.Unlock()
		}
	})
	at := make(chan string, 1)
	reading.Go(func() {
		defer close(at)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			if strings.HasPrefix(lines.Text(), "http://") {
				at <- lines.Text()
			}
		}
	})
	go func() { reading.Wait(); _ = r.command.Wait(); close(r.out) }()
	if r.URL = <-at; r.URL == "" {
		<-r.out
		return nil, fmt.Errorf("a replica does not start:\n%s", r.Log())
	}
	return r, nil
}

// Replica returns a replica by its place.
func (f *Fleet) Replica(i int) *Replica { return f.all[i] }

// Count is how many replicas there are.
func (f *Fleet) Count() int { return len(f.all) }

// balance tells the balancer where the replicas are.
func (f *Fleet) balance() {
	urls := make([]string, len(f.all))
	for i, r := range f.all {
		urls[i] = r.URL
	}
	f.Balancer.Use(urls)
}

// Kill ends a replica as a crash does.
func (f *Fleet) Kill(i int) {
	f.t.Helper()
	_ = f.all[i].command.Process.Kill()
	<-f.all[i].out
}

// Again starts another replica in the place of one that has ended.
func (f *Fleet) Again(i int) {
	f.t.Helper()
	r, err := f.start()
	if err != nil {
		f.t.Fatal(err)
	}
	f.all[i] = r
	f.balance()
}

// Signal sends a replica a signal.
func (f *Fleet) Signal(i int, s syscall.Signal) {
	f.t.Helper()
	if err := f.all[i].command.Process.Signal(s); err != nil {
		f.t.Error(err)
	}
}

// PID is the process's.
func (r *Replica) PID() int { return r.command.Process.Pid }

// Ended is closed when the process has ended.
func (r *Replica) Ended() <-chan struct{} { return r.out }

// Clean reports whether a process that has ended did so without an error.
func (r *Replica) Clean() bool { return r.command.ProcessState.Success() }

// Log is what it has written.
func (r *Replica) Log() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log.String()
}

// end stops all that still run.
func (f *Fleet) end() {
	for _, r := range f.all {
		if r != nil {
			_ = r.command.Process.Signal(syscall.SIGCONT)
			_ = r.command.Process.Signal(syscall.SIGTERM)
		}
	}
	for i, r := range f.all {
		if r == nil {
			continue
		}
		select {
		case <-r.out:
		case <-time.After(time.Minute):
			f.t.Errorf("replica %d does not end", i)
			_ = r.command.Process.Kill()
			<-r.out
		}
		if log := r.Log(); strings.Contains(log, "panic:") || strings.Contains(log, "DATA RACE") {
			f.t.Errorf("replica %d is broken:\n%s", i, log)
		} else if f.t.Failed() {
			f.t.Logf("replica %d:\n%s", i, log[max(0, len(log)-4000):])
		}
		r.hold()
	}
}
