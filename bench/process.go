package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/goccy/go-yaml"
)

// A process is one of the programs that are measured.
type process struct {
	cmd  *exec.Cmd
	base string
}

// role starts this program in another role, under a name.
func (b *bench) role(ctx context.Context, name, role string, env ...string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(append(os.Environ(), envRole+"="+role), env...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", role, err)
	}
	base, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", role, err)
	}
	b.procs[name] = &process{cmd: cmd, base: strings.TrimSpace(base)}
	return b.procs[name], nil
}

// gateway starts a dragoman with these servers in front of the upstream, and
// waits until it is ready.
func (b *bench) gateway(ctx context.Context, name, binary string, s setting) (*process, error) {
	model := map[string]any{"match": "*", "base_url": b.upstream + "/v1"}
	if s.dialect != "" {
		model["dialect"] = s.dialect
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := listener.Addr().String()
	listener.Close()
	config := map[string]any{
		"listen":     address,
		"models":     []any{model},
		"mcpServers": s.servers,
		// What is measured is tools that are offered, not how models search for them.
		"tools": map[string]any{"search": "never"},
	}
	maps.Copy(config, s.more)
	data, err := yaml.Marshal(config)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(b.dir, name+".yaml")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(b.dir, name+".log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.CommandContext(ctx, binary, "serve", "--config", path)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.dir}
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start dragoman: %w", err)
	}
	p := &process{cmd: cmd, base: "http://" + address}
	b.procs[name] = p
	if err := p.ready(ctx); err != nil {
		text, _ := os.ReadFile(log.Name())
		return nil, fmt.Errorf("start dragoman: %w\n%s", err, text)
	}
	return p, nil
}

// ready returns when /readyz says so.
func (p *process) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.base+"/readyz", nil)
		if err != nil {
			return err
		}
		if res, err := http.DefaultClient.Do(req); err == nil {
			io.Copy(io.Discard, res.Body)
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("not ready: %w", context.Cause(ctx))
		}
	}
}

// stop ends a process that was started under that name, as an operator would.
func (b *bench) stop(name string) {
	p := b.procs[name]
	if p == nil {
		return
	}
	delete(b.procs, name)
	p.cmd.Process.Signal(syscall.SIGTERM)
	timer := time.AfterFunc(patience, func() { p.cmd.Process.Kill() })
	defer timer.Stop()
	p.cmd.Wait()
}

func (b *bench) stopAll() {
	for name := range b.procs {
		b.stop(name)
	}
}

// errNoProc: the figures of a process come from /proc.
var errNoProc = errors.New("memory and CPU time are read from /proc, which is not there")

// memory is the resident memory of the process, in bytes.
func (p *process) memory() (float64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, errNoProc
	}
	for line := range strings.Lines(string(data)) {
		if text, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(text), "kB")), 64)
			return kib * 1024, err
		}
	}
	return 0, errNoProc
}

// spend is the CPU time that the process uses while do runs.
func (p *process) spend(do func() error) (time.Duration, error) {
	before, err := p.cpu()
	if err != nil {
		return 0, err
	}
	if err := do(); err != nil {
		return 0, err
	}
	after, err := p.cpu()
	return after - before, err
}

// cpu is the CPU time that the threads of the process have used so far. Go keeps
// its threads, so none is missed.
func (p *process) cpu() (time.Duration, error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", p.cmd.Process.Pid))
	if err != nil || len(files) == 0 {
		return 0, errNoProc
	}
	var total time.Duration
	for _, file := range files {
		data, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) {
			continue // the thread ended
		}
		ns, _, _ := strings.Cut(string(data), " ")
		n, convErr := strconv.ParseInt(ns, 10, 64)
		if err := errors.Join(err, convErr); err != nil {
			return 0, fmt.Errorf("CPU time of a thread: %w", err)
		}
		total += time.Duration(n)
	}
	return total, nil
}
