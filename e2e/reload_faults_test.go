package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// The official clients of both APIs, openai-go and the Go SDK of MCP, see nothing of a
// configuration that changes under them all the time, and the process keeps nothing of it:
// no descriptor, and no more memory.
func TestFaultOfficialClientsUnderReloads(t *testing.T) {
	if testing.Short() {
		t.Skip("compiling openai-go takes more than a minute")
	}
	program := must(t, buildOpenAIGo)
	g, _, _ := toolsGateway(t)
	path := g.cmd.Args[len(g.cmd.Args)-1]
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	stop, answered := make(chan struct{}), [2]atomic.Int64{}
	var load sync.WaitGroup
	each := func(who int, ask func() error) {
		load.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := ask(); err != nil {
					t.Error(err)
					return
				}
				answered[who].Add(1)
			}
		})
	}
	each(0, func() error {
		var got struct{ Content, Finish string }
		out := output(t, []string{"DRAGOMAN_BASE_URL=" + g.Base}, program, "stream", hidden)
		if err := json.Unmarshal(out, &got); err != nil || got.Content != said || got.Finish != "stop" {
			return fmt.Errorf("openai-go: %s, %v", out, err)
		}
		return nil
	})
	client := sdk.NewClient(&sdk.Implementation{Name: "e2e", Version: "1"}, nil)
	s, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: g.Root + "/mcp"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	each(1, func() error {
		res, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "tools__echo", Arguments: map[string]any{"message": "hi"}})
		if err == nil && res.IsError {
			err = fmt.Errorf("%+v", res.Content)
		}
		if err != nil {
			return fmt.Errorf("the SDK of MCP: %w", err)
		}
		return nil
	})
	reload := func(n int) {
		// The one before may still be read: what takes its place is whole at once.
		writeFile(t, path+".new", string(file)+fmt.Sprintf("allowed_hosts: [host%d.example]\nloop: {rounds: %d}\n", n, 10+n%7))
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
		before := answered[1].Load()
		if err := g.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		g.until("calling on", func() bool { return answered[1].Load() > before+1 || t.Failed() })
	}
	for n := range 20 {
		reload(n)
	}
	g.until("an answer of both", func() bool { return answered[0].Load() > 0 || t.Failed() })
	files, memory := openFiles(g.cmd.Process.Pid), resident(g.cmd.Process.Pid)
	reloads := often(100, 1000)
	start := time.Now()
	for n := range reloads {
		reload(n)
	}
	took := time.Since(start)
	close(stop)
	load.Wait()
	after := resident(g.cmd.Process.Pid)
	t.Logf("%d reloads in %s under %d conversations and %d calls: none failed; %d and %d KiB resident", reloads, took, answered[0].Load(), answered[1].Load(), memory>>10, after>>10)
	if now := openFiles(g.cmd.Process.Pid); now > files+10 {
		t.Errorf("%d files are open, %d were", now, files)
	}
	if after > 2*memory+(32<<20) {
		t.Errorf("%d bytes are resident, %d were", after, memory)
	}
}
