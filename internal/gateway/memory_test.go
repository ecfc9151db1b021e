package gateway

import (
	"io"
	"math"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman"
)

// What is shed depends on how full the memory is; health and approvals never are.
func TestShed(t *testing.T) {
	g := build(t, nil)
	if err := g.Wait(within(t)); err != nil {
		t.Fatal(err)
	}
	url := web(t, g.Handler())
	for _, tc := range []struct {
		full     float64
		path     string
		refused  bool
		contains string
	}{
		{0.5, "/v1/models", false, ""},
		{0.84, "/readyz", false, "ready"},
		{0.86, "/v1/models", true, `"code":"overloaded"`},
		{0.86, "/readyz", true, "overloaded"},
		{0.86, "/healthz", false, "ok"},
		{0.86, "/mcp", false, ""},
		{0.96, "/mcp", true, `"code":"overloaded"`},
		{0.96, "/approvals", false, ""},
		{0.96, "/healthz", false, "ok"},
	} {
		g.memory.mu.Lock()
		g.memory.full, g.memory.until = tc.full, time.Now().Add(time.Hour)
		g.memory.mu.Unlock()
		resp, err := http.Get(url + tc.path)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if refused := resp.StatusCode == http.StatusServiceUnavailable; refused != tc.refused || !strings.Contains(string(body), tc.contains) {
			t.Errorf("%s at %.2f: %s %s", tc.path, tc.full, resp.Status, body)
		}
		if tc.refused && tc.path != "/readyz" && resp.Header.Get("Retry-After") != "2" {
			t.Errorf("%s at %.2f: Retry-After %q", tc.path, tc.full, resp.Header.Get("Retry-After"))
		}
	}
}

// Where the memory is full, what can be made again goes, before work is refused for good: it
// may be all that fills it.
func TestMemoryIsFreed(t *testing.T) {
	before := debug.SetMemoryLimit(math.MaxInt64)
	defer debug.SetMemoryLimit(before)
	runtime.GC()
	limit := 4 * int64(inUse())
	held, forgotten := make([]byte, limit), make(chan struct{})
	runtime.GC()
	debug.SetMemoryLimit(limit)
	gauge := &memoryGauge{forget: func() { held = nil; close(forgotten) }}
	if full := gauge.Full(); full < shedNew {
		t.Fatalf("%.2f full", full)
	}
	<-forgotten
	runtime.GC()
	if full := (&memoryGauge{}).Full(); full > 0.5 {
		t.Errorf("%.2f full after what can be made again is gone", full)
	}
	runtime.KeepAlive(held)

	debug.SetMemoryLimit(before)
	g := build(t, nil)
	d, err := g.now.Load().dialects.For("openai")
	if err != nil {
		t.Fatal(err)
	}
	tool := dragoman.Tool{Name: "a", InputSchema: []byte(`{"type":"object"}`)}
	first, _ := d.Plan(tool)
	g.memory.forget()
	if again, _ := d.Plan(tool); again == first {
		t.Error("the gateway keeps its plans")
	}
}

// The gauge counts what is alive, not what is garbage.
func TestMemoryGauge(t *testing.T) {
	before := debug.SetMemoryLimit(math.MaxInt64)
	defer debug.SetMemoryLimit(before)
	if full := new(memoryGauge).Full(); full != 0 {
		t.Errorf("%.2f full without a limit", full)
	}
	runtime.GC()
	limit := 4 * int64(inUse())
	debug.SetMemoryLimit(limit)
	empty := new(memoryGauge).Full()
	held := make([]byte, limit*3/5) // whatever else goes meanwhile
	runtime.GC()
	full := new(memoryGauge).Full()
	runtime.KeepAlive(held)
	runtime.GC()
	if again := new(memoryGauge).Full(); empty > 0.5 || full < 0.6 || again > 0.5 {
		t.Errorf("%.2f, then %.2f, then %.2f", empty, full, again)
	}
}
