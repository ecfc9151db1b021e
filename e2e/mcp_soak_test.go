package e2e

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// Fault 17: MCP clients of both eras that come, call, give up and go, for as long
// as -soak says, while servers crash and lose sessions. Nobody gets another's
// answer, and memory and open files do not grow with time.
//
//	make soak SOAK_TIME=1h
func TestFaultSoak(t *testing.T) {
	tools := []fakemcp.Tool{{Name: "echo"}, {Name: "slow", Delay: time.Hour}}
	lifetime := *soakTime + 10*time.Minute
	all := servers{}
	all["lines"], _ = fake(t, fakemcp.Config{Tools: tools, Keep: -1, Lifetime: lifetime})
	crashing, _ := fake(t, fakemcp.Config{Tools: tools, Keep: -1, Lifetime: lifetime, Faults: []fakemcp.Fault{{Kind: fakemcp.DieOnCall, After: 30, Tool: "echo", Code: 7}}})
	all["crashing"] = crashing
	all["web"], _ = remote(t, fakemcp.Config{Tools: tools, Keep: -1})
	var drops []fakemcp.Fault // of the session, now and then
	for i := range 200 {
		drops = append(drops, fakemcp.Fault{Kind: fakemcp.DropSession, Method: "tools/call", After: 97 << min(i, 8) * (i + 1), Times: 1})
	}
	all["sessions"], _ = remote(t, fakemcp.Config{Era: fakemcp.LegacyOnly, Tools: tools, Keep: -1, Faults: drops})
	g := start(t, nil, all, with("log", map[string]any{"format": "json", "level": "info"}))
	first := g.dial(mcp.Modern)
	names := []string{"lines__echo", "web__echo", "sessions__echo", "crashing__echo"}
	listed := g.lists(first, append(names, "web__slow")...)
	pid := g.cmd.Process.Pid
	transport := &http.Transport{MaxIdleConnsPerHost: 64}

	ctx, cancel := context.WithTimeout(t.Context(), *soakTime)
	defer cancel()
	var clients, calls, lost, given atomic.Int64
	work := func(dice *rand.Rand) {
		c, err := mcp.Connect(ctx, mcp.HTTP{URL: g.Root + "/mcp", Client: &http.Client{Transport: transport}}, &mcp.ClientOptions{Era: []mcp.Era{mcp.Legacy, mcp.Modern}[dice.IntN(2)]})
		if err != nil {
			if ctx.Err() == nil {
				t.Error(err)
			}
			return
		}
		defer c.Close()
		clients.Add(1)
		for range 1 + dice.IntN(30) {
			n, patience := dice.IntN(3), time.Minute
			if dice.IntN(50) == 0 {
				n, patience = 3, time.Second
			}
			if dice.IntN(20) == 0 {
				short, end := context.WithTimeout(ctx, time.Duration(dice.IntN(20))*time.Millisecond)
				_, _ = c.Call(short, dragoman.Call{Tool: listed.Exact("web__slow"), Arguments: []byte(`{}`)})
				end()
				given.Add(1)
				continue
			}
			limited, end := context.WithTimeout(ctx, patience)
			err := echoes(limited, c, listed.Exact(names[n]), int(calls.Add(1)))
			end()
			switch {
			case ctx.Err() != nil:
				return
			case err != nil && names[n] == "crashing__echo":
				lost.Add(1)
			case err != nil:
				t.Errorf("%s: %v", names[n], err)
			}
		}
	}
	var workers sync.WaitGroup
	began := time.Now()
	for i := range 8 {
		dice := rand.New(rand.NewPCG(17, uint64(i)))
		workers.Go(func() {
			for ctx.Err() == nil {
				work(dice)
			}
		})
	}
	// Memory and open files, at the quarters of the time.
	var memory [5]int64
	var files [5]int
	for quarter := range memory {
		timer := time.NewTimer(time.Until(began.Add(*soakTime * time.Duration(quarter) / 4)))
		<-timer.C
		memory[quarter], files[quarter] = resident(pid)>>20, openFiles(pid)
	}
	workers.Wait()
	transport.CloseIdleConnections()
	t.Logf("%s: %d clients, %d calls, %d given up, %d lost with a server; MiB of memory %v and open files %v at the quarters",
		*soakTime, clients.Load(), calls.Load(), given.Load(), lost.Load(), memory, files)
	if files[0] > 0 {
		g.until("closing what was opened", func() bool { return openFiles(pid) <= files[0]+64 })
	}
	// The first quarter fills what is kept; after it nothing may grow by half.
	if limit := memory[2]*3/2 + 32; memory[4] > limit && !raceEnabled {
		t.Errorf("memory grows: %v MiB", memory)
	}
	if err := echoes(soon(t), first, listed.Exact("lines__echo"), 1); err != nil {
		t.Error(err)
	}
}
