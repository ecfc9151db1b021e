package conformance

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/gateway"
	"github.com/dragoman-mcp/dragoman/internal/reach/servers"
	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp/jobs"
	"github.com/dragoman-mcp/dragoman/internal/stage/patience"
)

// taskScenarios are those of the tasks extension. The suite runs and does not score
// them.
var taskScenarios = []string{
	"tasks-lifecycle", "tasks-capability-negotiation", "tasks-wire-fields", "tasks-request-state-removal", "tasks-mrtr-input",
	"tasks-request-headers", "tasks-dispatch-and-envelope", "tasks-status-notifications", "tasks-required-task-error", "tasks-mrtr-composition",
}

// serviced are the scenarios that a gateway does otherwise than the server behind
// it, with the reason.
var serviced = map[string]string{
	"tasks-required-task-error": "a client without the extension is not refused: the gateway runs the task for it",
}

// TestTasks runs the scenarios of the tasks extension through the gateway, with a
// server behind it that passes all of them by itself.
func TestTasks(t *testing.T) {
	node, suite := programs(t)
	server := &jobs.Server{}
	handler, closeAll := server.Handler()
	behind := httptest.NewServer(handler)
	t.Cleanup(func() { behind.Close(); closeAll() })

	file := config.Default()
	file.MCPServers = map[string]servers.Config{"only": {URL: behind.URL}}
	g, err := gateway.New(file, gateway.Options{Can: dragoman.AskForm | dragoman.AskSampling})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	if err := g.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(g.Handler())
	t.Cleanup(front.Close)

	var mu sync.Mutex
	passed := 0
	var wg sync.WaitGroup
	slots := make(chan struct{}, 5) // they mostly wait
	for _, scenario := range taskScenarios {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			good, bad, err := runScenario(t, node, suite, front.URL+"/mcp/only", "2026-07-28", scenario)
			mu.Lock()
			defer mu.Unlock()
			passed += good
			switch why := serviced[scenario]; {
			case err != nil:
				t.Errorf("%s: %v", scenario, err)
			case len(bad) > 0 && why != "":
				t.Logf("%s: %s", scenario, why)
			case len(bad) > 0:
				t.Errorf("%s: %d passed, these failed:\n%s", scenario, good, strings.Join(bad, "\n"))
			}
		})
	}
	wg.Wait()
	t.Logf("tasks through the gateway: %d checks of %d scenarios pass", passed, len(taskScenarios))
}

// runScenario runs one scenario of a version, and returns how many of its
// checks passed, and which failed.
func runScenario(t *testing.T, node, suite, url, version, name string) (good int, bad []string, err error) {
	results := t.TempDir()
	cmd := exec.CommandContext(patience.Context(t), node, suite, "server", "--url", url, "--scenario", name, "--spec-version", version, "--force", "--timeout", suiteTimeout, "-o", results)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	out, runErr := cmd.CombinedOutput()
	files, _ := filepath.Glob(filepath.Join(results, "*", "checks.json"))
	if len(files) != 1 {
		return 0, nil, fmt.Errorf("%v, %d files of results\n%s", runErr, len(files), out)
	}
	b, err := os.ReadFile(files[0])
	var checks []struct{ ID, Status, ErrorMessage string }
	if err == nil {
		err = json.Unmarshal(b, &checks)
	}
	if err != nil {
		return 0, nil, err
	}
	for _, c := range checks {
		switch c.Status {
		case "SUCCESS":
			good++
		case "FAILURE":
			bad = append(bad, c.ID+": "+c.ErrorMessage)
		}
	}
	return good, bad, nil
}
