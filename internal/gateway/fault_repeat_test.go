package gateway

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/reach/servers"
	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
)

// Fault 23: a client sends a request again and again, at the same time and later.
// What it does is done once, and each gets the same answer.
func TestFaultSameKey(t *testing.T) {
	entry, s := fakes(t, fakemcp.Config{Tools: []fakemcp.Tool{{Name: "pay", Delay: 50 * time.Millisecond}}})
	g := build(t, func(f *config.File) { f.MCPServers = map[string]servers.Config{"bank": entry} })
	if err := g.Wait(within(t)); err != nil {
		t.Fatal(err)
	}
	url := web(t, g.Handler()) + "/v1/chat/completions"
	requests, keys := 100, often(3, 50)
	transport := &http.Transport{MaxIdleConnsPerHost: requests}
	t.Cleanup(transport.CloseIdleConnections)
	send := func(body, key string) (string, error) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
		if err != nil {
			return "", err
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Idempotency-Key", key)
		resp, err := (&http.Client{Transport: transport}).Do(req)
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		return resp.Status + "\n" + string(answer), err
	}
	began := time.Now()
	for n := range keys {
		key := fmt.Sprintf("payment-%d", n)
		body := `{"model":"m","stream":` + []string{"true", "false"}[n%2] + `,"messages":[{"role":"user","content":"CALL pay {}\nTHEN\nSAY Paid."}]}`
		answers := make([]string, requests)
		var all sync.WaitGroup
		for i := range answers {
			all.Go(func() {
				var err error
				if answers[i], err = send(body, key); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		later, err := send(body, key)
		if err != nil {
			t.Error(err)
		}
		for _, a := range append(answers, later) {
			if a != answers[0] || !strings.HasPrefix(a, "200 OK\n") || !strings.Contains(a, "Paid.") {
				t.Fatalf("got %s\nand %s", answers[0], a)
			}
		}
		if got := s.Executions("pay"); got != n+1 {
			t.Fatalf("ran %d times for %d keys", got, n+1)
		}
	}
	t.Logf("%d requests with each of %d keys: each ran once, and all answers were equal, after %s", requests+1, keys, time.Since(began).Round(time.Millisecond))
}
