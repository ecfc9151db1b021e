package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"os/exec"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// The faults of too much: of connections, of files, of memory. They are those of a
// process, so the gateway is one. docs/faults.md has the table.

// address is where the gateway listens.
func (g *gateway) address() string { return strings.TrimPrefix(g.Root, "http://") }

// paces makes n calls, one after the other, and returns how long each took.
func paces(t *testing.T, n int, c *mcp.Client, tool *dragoman.Tool) (took []time.Duration) {
	t.Helper()
	for i := range n {
		began := time.Now()
		if err := echoes(soon(t), c, tool, i); err != nil {
			t.Error(err)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	return took
}

// A loris is a client that is as slow as it can be.
type loris func(conn net.Conn) error

// drip sends a head, and then a piece of what follows now and then.
func drip(head, piece string) loris {
	return func(conn net.Conn) error {
		_, err := io.WriteString(conn, head)
		for err == nil {
			time.Sleep(200 * time.Millisecond)
			_, err = io.WriteString(conn, piece)
		}
		return err
	}
}

// Fault 12: many clients that send their headers or their bodies a byte at a time, or
// do not read their answers. Others do not notice, and all of them are cut.
func TestFaultSlowClients(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED, NOT TESTED: files and memory are read from /proc")
	}
	count, calls := often(300, 5000), often(300, 2000)
	large := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for part := make([]byte, 32<<10); r.Context().Err() == nil; time.Sleep(10 * time.Millisecond) {
			if _, err := w.Write(part); err != nil {
				return
			}
		}
	}))
	defer large.Close()
	limits := map[string]any{"header_timeout": "3s", "body_timeout": "3s", "answer_timeout": "3s"}
	if count > 1000 {
		limits = map[string]any{} // as they are
	}
	g := start(t, nil, servers{"other": idle(t)}, with("http", limits),
		with("models", []any{map[string]any{"match": "*", "base_url": large.URL + "/v1"}}), with("log", map[string]any{"format": "json", "level": "info"}))
	c := g.dial(mcp.Modern)
	noop := g.lists(c, "noop").Exact("noop")
	before := paces(t, calls, c, noop)
	pid := g.cmd.Process.Pid
	memory, files := resident(pid), openFiles(pid)
	began := time.Now()
	post := "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
	kinds := []loris{
		drip(post, "X-A: b\r\n"),
		drip(post+"Content-Type: application/json\r\nContent-Length: 1000000\r\n\r\n{", " "),
		func(conn net.Conn) error {
			_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
			_, err := io.WriteString(conn, "GET /v1/files/large HTTP/1.1\r\nHost: localhost\r\n\r\n")
			return err
		},
	}
	var all sync.WaitGroup
	conns := make([]net.Conn, count)
	for i := range conns {
		conn, err := net.Dial("tcp", g.address())
		if err != nil {
			t.Fatal(err)
		}
		conns[i] = conn
		defer conn.Close()
		all.Go(func() { _ = kinds[i%len(kinds)](conn) })
	}
	opened := time.Since(began)
	most, held := int64(0), 0
	all.Go(func() {
		for time.Since(began) < opened+2*time.Second {
			most, held = max(most, resident(pid)), max(held, openFiles(pid))
			time.Sleep(20 * time.Millisecond)
		}
	})
	during := paces(t, calls, c, noop)
	g.until("cutting all of them", func() bool { return openFiles(pid) <= files+5 })
	cut := time.Since(began)
	for _, conn := range conns {
		_ = conn.Close()
	}
	all.Wait()
	t.Logf("%d slow clients came in %s: %d files open, %d KiB more for each client; all were cut after %s; calls beside them: p50 %s and p99 %s before, %s and %s meanwhile",
		count, opened.Round(time.Millisecond), held, (most-memory)>>10/int64(count), cut.Round(100*time.Millisecond),
		before[calls/2].Round(10*time.Microsecond), before[calls*99/100].Round(10*time.Microsecond), during[calls/2].Round(10*time.Microsecond), during[calls*99/100].Round(10*time.Microsecond))
	if limit := int64(120 << 10); !raceEnabled && (most-memory)/int64(count) > limit {
		t.Errorf("%d KiB for each client", (most-memory)>>10/int64(count))
	}
}

// processorTime is how much a process has used of the processors.
func processorTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), ") ")
	fields := strings.Fields(rest)
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

// Fault 20: more clients come than the process may open files. It neither ends nor
// spins, what runs goes on, servers are reached, and all is well again when they go.
func TestFaultFilesExhausted(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED, NOT TESTED: files are counted in /proc")
	}
	for name, limits := range map[string]map[string]any{
		"connections are limited": {},
		"and where they are not":  {"max_connections": 100000},
	} {
		t.Run(name, func(t *testing.T) {
			entry, _ := remote(t, fakemcp.Config{Keep: -1, Tools: []fakemcp.Tool{{Name: "echo"}}})
			g := start(t, nil, servers{"web": entry, "other": idle(t)}, with("http", limits), func(_ map[string]any, cmd *exec.Cmd) {
				cmd.Args = append([]string{"sh", "-c", `ulimit -n 256; exec "$0" "$@"`, cmd.Path}, cmd.Args[1:]...)
				cmd.Path = "/bin/sh"
			})
			c := g.dial(mcp.Modern)
			tools := g.lists(c, "web__echo", "other__noop")
			pid := g.cmd.Process.Pid
			conns := make([]net.Conn, 400)
			for i := range conns {
				conn, err := net.Dial("tcp", g.address())
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				conns[i] = conn
			}
			g.until("taking what it can", func() bool { return openFiles(pid) > 180 })
			used, began := processorTime(t, pid), time.Now()
			time.Sleep(2 * time.Second)
			load := float64(processorTime(t, pid)-used) / float64(time.Since(began))
			held, failed := openFiles(pid), 0
			for _, name := range []string{"web__echo", "other__noop"} {
				if echoes(soon(t), c, tools.Exact(name), 1) != nil {
					failed++
				}
			}
			for _, conn := range conns {
				_ = conn.Close()
			}
			gone := time.Now()
			g.until("answering new clients", func() bool {
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				req, _ := http.NewRequestWithContext(ctx, http.MethodGet, g.Root+"/healthz", nil)
				resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
				if err != nil {
					return false
				}
				return resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
			})
			t.Logf("%d clients and 256 files: %d open, %.1f %% of a processor; %d of 2 calls failed; new clients answered %s after they went",
				len(conns), held, 100*load, failed, time.Since(gone).Round(time.Millisecond))
			if load > 0.5 || len(limits) == 0 && failed > 0 {
				t.Errorf("%.1f %% of a processor, %d calls failed", 100*load, failed)
			}
		})
	}
}

// Fault 19: conversations hold ever more memory. New ones are refused before there is
// none left, those that run end well, and then all is as it was.
func TestFaultMemoryFull(t *testing.T) {
	if runtime.GOOS != "linux" || raceEnabled {
		t.Skip("SKIPPED, NOT TESTED: memory is read from /proc, and means nothing with the race detector")
	}
	const limit = 96 << 20
	answer := make(chan struct{})
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-answer
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"id":"x","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"Hi."},"finish_reason":"stop"}]}`)
	}))
	defer model.Close()
	release := sync.OnceFunc(func() { close(answer) })
	defer release()
	g := start(t, nil, servers{"other": idle(t)}, environment(fmt.Sprintf("GOMEMLIMIT=%d", limit)),
		with("models", []any{map[string]any{"match": "*", "base_url": model.URL + "/v1"}}))
	g.ready()
	status := func(path string) (int, string) {
		resp, err := http.Get(g.Root + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, _ := bufio.NewReader(resp.Body).ReadString('\n')
		return resp.StatusCode, strings.TrimSpace(body)
	}
	body := `{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat("word ", 400<<10) + `"}]}` // 2 MiB
	var answered, refused atomic.Int64
	asked := int64(0)
	var all sync.WaitGroup
	deadline := time.Now().Add(time.Minute)
	for refused.Load() < 20 && time.Now().Before(deadline) {
		asked++
		all.Go(func() {
			resp, err := http.Post(g.Base+"/chat/completions", "application/json", strings.NewReader(body))
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			_, _ = io.Copy(io.Discard, resp.Body)
			switch {
			case resp.StatusCode == http.StatusOK:
				answered.Add(1)
			case resp.StatusCode == http.StatusServiceUnavailable && resp.Header.Get("Retry-After") != "":
				refused.Add(1)
			default:
				t.Errorf("a client was told %s", resp.Status)
			}
		})
		time.Sleep(20 * time.Millisecond)
	}
	healthy, _ := status("/healthz")
	ready, why := status("/readyz")
	release()
	all.Wait()
	accepted := asked - refused.Load()
	eased := time.Now()
	g.until("ready again", func() bool { code, _ := status("/readyz"); return code == http.StatusOK })
	t.Logf("a limit of %d MiB and conversations of 2 MiB: %d were taken, of which %d were answered, and %d refused; at most %d MiB; ready again after %s",
		limit>>20, accepted, answered.Load(), refused.Load(), peakMemory(t, g.cmd.Process.Pid)>>20, time.Since(eased).Round(time.Millisecond))
	if healthy != http.StatusOK || ready != http.StatusServiceUnavailable || why != "overloaded" || answered.Load() != accepted || refused.Load() == 0 {
		t.Errorf("/healthz %d, /readyz %d %s", healthy, ready, why)
	}
}

// Faults 12 and 19: many clients announce large bodies and send next to nothing of
// them. What is only announced fills no memory, so nobody is refused for it.
func TestFaultAnnouncedBodies(t *testing.T) {
	if runtime.GOOS != "linux" || raceEnabled {
		t.Skip("SKIPPED, NOT TESTED: files are counted in /proc, and memory means nothing with the race detector")
	}
	g := start(t, nil, servers{"other": idle(t)}, environment(fmt.Sprintf("GOMEMLIMIT=%d", 96<<20)),
		with("http", map[string]any{"body_timeout": "2m"}))
	g.ready()
	pid, count := g.cmd.Process.Pid, 300
	before := peakMemory(t, pid)
	for range count {
		conn, err := net.Dial("tcp", g.address())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n{"); err != nil {
			t.Fatal(err)
		}
	}
	g.until("taking all of them", func() bool { return openFiles(pid) >= count })
	refused := 0
	for range 200 {
		resp, err := http.Post(g.Base+"/chat/completions", "application/json", strings.NewReader(`{"model":"m","messages":[{"role":"user","content":"Hi"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			refused++
		}
	}
	t.Logf("a limit of 96 MiB, %d bodies of 1 MB announced: %d of 200 others refused, %d KiB more for each", count, refused, (peakMemory(t, pid)-before)>>10/int64(count))
	if refused > 0 {
		t.Errorf("%d of 200 were refused", refused)
	}
}
