package e2e

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
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

	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
)

var (
	soakTime = flag.Duration("soak", 4*time.Second, "how long TestSoak makes trouble")
	soakSeed = flag.Uint64("soak.seed", 0, "seed of TestSoak's dice; 0 takes one from the clock")
)

// What the soak is made of.
const (
	soakThreads = 24
	soakKeys    = 4
	// soakMemory is the most resident memory in bytes. The gateway keeps at most
	// 64 MiB each of turns and of results that were cut, and the collector lets
	// the heap double.
	soakMemory = 512 << 20
	// soakPatience is the longest that any request may take, far above every
	// limit in the configuration.
	soakPatience = 90 * time.Second
)

// TestSoak lets 24 clients with four keys talk to the gateway while servers
// crash, lose sessions and lose answers that they worked for, models break off,
// and clients go away and come back with the same request. What servers were
// made to do is counted at the servers: no write happens twice, none that the
// model was told of is missing, and nothing of one conversation is ever seen in
// another. Memory and open files stay bounded.
//
//	make soak SOAK_TIME=1h
func TestSoak(t *testing.T) {
	seed := *soakSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("again with: go test ./e2e -run '^TestSoak$' -soak %v -soak.seed %d", *soakTime, seed)
	w := newSoak(t, seed)
	peak := w.watchMemory()
	before := openFiles(w.gateway.cmd.Process.Pid)

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var threads sync.WaitGroup
	threads.Go(func() { defer cancel(); w.watchClock() })
	for i := range soakThreads {
		threads.Go(func() {
			p := &person{soak: w, worker: i, key: w.keys[i%soakKeys], dice: rand.New(rand.NewPCG(seed, uint64(i)))}
			for ctx.Err() == nil {
				p.converse()
			}
		})
	}
	threads.Wait()

	w.judge()
	most := peak()
	limit := int64(soakMemory)
	if raceEnabled {
		limit *= 4 // the race detector keeps several bytes for each of the program's
	}
	if most > limit {
		t.Errorf("the gateway had %d MiB of resident memory, more than %d", most>>20, limit>>20)
	}
	t.Logf("%s; at most %d MiB of memory", w.tally.String(), most>>20)
	if before > 0 {
		// Idle connections stay for a while: to the model, and to three servers.
		soakClient.CloseIdleConnections()
		w.gateway.until("closing what was opened", func() bool {
			return openFiles(w.gateway.cmd.Process.Pid) <= before+4*soakThreads
		})
	}
	if got := w.gateway.chat("SAY still here"); got.Status != 401 {
		t.Errorf("a request without a key is answered %d", got.Status)
	}
}

// soak is one run: a gateway, what is around it, and what is known of it.
type soak struct {
	t       *testing.T
	gateway *gateway
	ledger  *ledger
	keys    []string
	stdio   map[string]string // logs of the servers that are processes, by label
	tally   tally
}

// soakServers are the labels of the servers with a tool that writes.
var soakServers = []string{"crashing", "garbling", "web", "sessions"}

func newSoak(t *testing.T, seed uint64) *soak {
	w := &soak{t: t, ledger: newLedger(), stdio: make(map[string]string)}
	tools := []fakemcp.Tool{
		{Name: "write", Delay: time.Millisecond, InputSchema: []byte(nonceSchema)},
		{Name: "read", Definition: []byte(`{"name":"read","inputSchema":` + nonceSchema + `,"annotations":{"readOnlyHint":true}}`)},
	}
	mcp := make(servers)
	child := func(label string, cfg fakemcp.Config) {
		cfg.Tools, cfg.Lifetime, cfg.Keep = tools, *soakTime+10*time.Minute, -1
		mcp[label], w.stdio[label] = fake(t, cfg)
	}
	child("crashing", fakemcp.Config{Faults: []fakemcp.Fault{{Kind: fakemcp.DieOnCall, After: 120, Code: 7}}})
	child("garbling", fakemcp.Config{Era: fakemcp.LegacyOnly, Faults: []fakemcp.Fault{
		{Kind: fakemcp.Garbage}, {Kind: fakemcp.Twice}, {Kind: fakemcp.DieOnCall, After: 600, Code: 8},
	}})
	mcp["web"] = w.remote(fakemcp.Config{Era: fakemcp.ModernOnly, Tools: tools}, seed+1)
	mcp["sessions"] = w.remote(fakemcp.Config{Era: fakemcp.LegacyOnly, SSE: true, Tools: tools}, seed+2)
	mcp["vault"], _ = remote(t, fakemcp.Config{Keep: -1, Tools: []fakemcp.Tool{{Name: "draw", Do: fakemcp.Counter}}})
	for _, entry := range mcp {
		entry["timeout"] = "2s"
	}
	for i := range soakKeys {
		w.keys = append(w.keys, fmt.Sprintf("soak-key-%d-%016x", i, seed+uint64(i)*0x9e3779b97f4a7c15))
	}
	w.gateway = start(t, w.upstream(), mcp,
		with("auth", map[string]any{"api_keys": w.keys}),
		with("log", map[string]any{"format": "json", "level": "info"}),
	).ready()
	w.gateway.until("offering the tools of all servers", func() bool {
		p := &person{soak: w, key: w.keys[0], dice: rand.New(rand.NewPCG(seed, 99))}
		p.begin("ready")
		p.ask(t.Context(), p.body("rehearsal", false, "SAY ready", nil), 0)
		return w.ledger.offered("vault__draw", "crashing__write", "garbling__write", "web__write", "sessions__write")
	})
	return w
}

const nonceSchema = `{"type":"object","properties":{"nonce":{"type":"string"}},"required":["nonce"]}`

// happenings are what has to happen at least once: a run without proves nothing.
var happenings = []string{"whole", "streamed", "left and came back", "twice at once", "mixed", "drew",
	"answers lost after the work", "writes that the model saw", "crashes of servers"}

// watchClock returns when the time is over; on a slow machine, when everything has
// happened once, or that takes too long.
func (w *soak) watchClock() {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); time.Since(began) < *soakTime+soakPatience; <-tick.C {
		if time.Since(began) < *soakTime {
			continue
		}
		crashes, _ := w.stdioServers()
		if crashes > 0 && !slices.ContainsFunc(happenings[:len(happenings)-1], func(what string) bool { return w.tally.get(what) == 0 }) {
			return
		}
	}
}

// stdioServers reads the logs of the servers that are processes: how often one
// ended and was started again, and the writes that each got. What a process got
// it may have done, though it died of it.
func (w *soak) stdioServers() (crashes int, writes map[string][]string) {
	writes = make(map[string][]string)
	for label, log := range w.stdio {
		entries, err := fakemcp.ReadLog(log)
		if err != nil {
			w.t.Error(err)
		}
		crashes--
		for _, e := range entries {
			switch e.Method {
			case "tools/call":
				writes[label] = append(writes[label], nonceOfWrite(e.Message))
			case fakemcp.Started:
				crashes++
			}
		}
	}
	return crashes, writes
}

// judge says what went wrong, from the counts at the servers.
func (w *soak) judge() {
	w.t.Helper()
	crashes, writes := w.stdioServers()
	w.tally.add("crashes of servers", crashes)
	for label, nonces := range writes {
		for _, nonce := range nonces {
			w.ledger.ran(label, nonce)
		}
	}
	for _, fault := range w.ledger.faults() {
		w.t.Error(fault)
	}
	for _, what := range happenings {
		if w.tally.get(what) == 0 {
			w.t.Errorf("%s: none, so nothing is known of it (%s)", what, &w.tally)
		}
	}
}

// tally counts what happened, by name.
type tally struct {
	mu     sync.Mutex
	counts map[string]int
	order  []string
}

func (c *tally) add(what string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts == nil {
		c.counts = make(map[string]int)
	}
	if _, known := c.counts[what]; !known {
		c.order = append(c.order, what)
	}
	c.counts[what] += n
}

func (c *tally) get(what string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counts[what]
}

func (c *tally) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var parts []string
	for _, what := range c.order {
		parts = append(parts, fmt.Sprintf("%s %d", what, c.counts[what]))
	}
	return strings.Join(parts, ", ")
}

// watchMemory looks at the gateway's resident memory until the function that it
// returns is called, which tells the most that was seen; zero where the system
// does not tell.
func (w *soak) watchMemory() func() int64 {
	var most atomic.Int64
	done := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			most.Store(max(most.Load(), resident(w.gateway.cmd.Process.Pid)))
			select {
			case <-tick.C:
			case <-done:
				return
			}
		}
	})
	return sync.OnceValue(func() int64 {
		close(done)
		watching.Wait()
		return most.Load()
	})
}

// resident is the resident memory of a process in bytes; zero where the system
// does not tell.
func resident(pid int) int64 {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "statm"))
	fields := strings.Fields(string(data))
	if err != nil || len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize())
}

// openFiles is how many files and sockets a process has open; zero where the
// system does not tell.
func openFiles(pid int) int {
	if runtime.GOOS != "linux" {
		return 0
	}
	entries, _ := os.ReadDir(filepath.Join("/proc", strconv.Itoa(pid), "fd"))
	return len(entries)
}
