package gateway

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/reach/servers"
	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// Fault 14: a client goes while its call runs. The server is told in the way of
// its era, whatever era the client is of.
func TestFaultClientGoes(t *testing.T) {
	rounds := often(10, 200)
	for _, era := range []mcp.Era{mcp.Legacy, mcp.Modern} {
		for behind, how := range map[fakemcp.Era]string{fakemcp.LegacyOnly: "notifications/cancelled", fakemcp.ModernOnly: fakemcp.Disconnected} {
			t.Run(fmt.Sprintf("%s client, %s server", era, behind), func(t *testing.T) {
				t.Parallel()
				entry, s := fakes(t, fakemcp.Config{Era: behind, Tools: []fakemcp.Tool{{Name: "slow", Delay: time.Hour}, {Name: "echo"}}})
				c := dial(t, endpoint(t, map[string]servers.Config{"web": entry}, nil), era)
				slow, echo := tool(t, c, "slow"), tool(t, c, "echo")
				var knew times
				for n := range rounds {
					ctx, cancel := context.WithCancel(t.Context())
					ended := make(chan error, 1)
					go func() {
						_, err := call(ctx, c, slow, n)
						ended <- err
					}()
					if err := s.Wait(within(t), fakemcp.Ran, n+1); err != nil {
						t.Fatal(err)
					}
					began := time.Now()
					cancel()
					if err := <-ended; err == nil {
						t.Error("a call that was cancelled was answered")
					}
					if err := s.Wait(within(t), how, n+1); err != nil {
						t.Fatalf("round %d: the server was not told: %v", n, err)
					}
					knew.add(time.Since(began))
				}
				if res, err := call(within(t), c, echo, 1); fine(res, err, 1) != nil {
					t.Error(fine(res, err, 1))
				}
				t.Logf("%d calls given up: the server knew after %s", rounds, &knew)
			})
		}
	}
}

// A stranger is a client that we did not write: raw requests with ids of its own
// choosing.
type stranger struct {
	url, session string // no session in the modern era
	http         *http.Client
}

func newStranger(ctx context.Context, url string, era mcp.Era, client *http.Client) (*stranger, error) {
	s := &stranger{url: url, http: client}
	if era == mcp.Modern {
		return s, nil
	}
	resp, err := s.post(ctx, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`, "initialize", "")
	if err != nil {
		return nil, err
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	if s.session = resp.Header.Get("Mcp-Session-Id"); s.session == "" {
		return nil, fmt.Errorf("initialize: %s", resp.Status)
	}
	return s, nil
}

func (s *stranger) post(ctx context.Context, body, method, name string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	switch {
	case s.session != "":
		req.Header.Set("Mcp-Session-Id", s.session)
	case method != "initialize":
		req.Header.Set("Mcp-Protocol-Version", "2026-07-28")
		req.Header.Set("Mcp-Method", method)
		if name != "" {
			req.Header.Set("Mcp-Name", name)
		}
	}
	return s.http.Do(req)
}

// call calls a tool under an id, and returns the text of the answer and its id.
func (s *stranger) call(ctx context.Context, id int, tool, arguments string) (text, answered string, err error) {
	meta := ""
	if s.session == "" {
		meta = `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	}
	resp, err := s.post(ctx, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s%s}}`, id, tool, arguments, meta), "tools/call", tool)
	if err != nil {
		return "", "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", "", err
	}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		body = lastEvent(body)
	}
	var m struct {
		ID     json.RawMessage
		Result struct{ Content []struct{ Text string } }
		Error  json.RawMessage
	}
	if err := json.Unmarshal(body, &m); err != nil || m.Error != nil || len(m.Result.Content) == 0 {
		return "", "", fmt.Errorf("%s: %.300s", resp.Status, body)
	}
	return m.Result.Content[0].Text, string(m.ID), nil
}

// lastEvent returns the data of the last event of a stream.
func lastEvent(stream []byte) (data []byte) {
	for lines := bufio.NewScanner(bytes.NewReader(stream)); lines.Scan(); {
		if d, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: ")); ok && len(d) > 0 {
			data = bytes.Clone(d)
		}
	}
	return data
}

// Fault 37: many clients that use the same ids at the same time, in both eras,
// over servers of both eras, on HTTP and over lines. Everybody gets his own
// answer.
func TestFaultEqualIDs(t *testing.T) {
	clients, calls := 200, often(3, 5000)
	all := map[string]servers.Config{}
	all["legacy"], _ = fakes(t, fakemcp.Config{Era: fakemcp.LegacyOnly, Keep: -1, Tools: []fakemcp.Tool{{Name: "echo"}}})
	all["modern"], _ = fakes(t, fakemcp.Config{Era: fakemcp.ModernOnly, Keep: -1, Tools: []fakemcp.Tool{{Name: "echo"}}})
	path, args, env := fakemcp.Command(fakemcp.Config{Keep: -1, Tools: []fakemcp.Tool{{Name: "echo"}}})
	lines := servers.Config{Command: path, Args: args, Env: map[string]secret.Text{}}
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		lines.Env[name] = secret.New(value)
	}
	all["lines"] = lines
	g := build(t, func(f *config.File) { f.MCPServers = all })
	if err := g.Wait(within(t)); err != nil {
		t.Fatal(err)
	}
	url := web(t, g.Handler()) + "/mcp"
	transport := &http.Transport{MaxIdleConnsPerHost: clients}
	t.Cleanup(transport.CloseIdleConnections)
	var mixed, failed atomic.Int64
	var took times
	var wg sync.WaitGroup
	began := time.Now()
	for n := range clients {
		wg.Go(func() {
			era := []mcp.Era{mcp.Legacy, mcp.Modern}[n%2]
			s, err := newStranger(t.Context(), url, era, &http.Client{Transport: transport})
			if err != nil {
				t.Error(err)
				return
			}
			for i := range calls {
				want := fmt.Sprintf(`{"nonce":"%d of %d"}`, i, n)
				name := []string{"legacy__echo", "modern__echo", "lines__echo"}[(n+i)%3]
				start := time.Now()
				text, id, err := s.call(t.Context(), i, name, want)
				if i%10 == 0 {
					took.add(time.Since(start))
				}
				switch {
				case err != nil:
					failed.Add(1)
					t.Error(err)
					return
				case text != want || id != fmt.Sprint(i):
					mixed.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if mixed.Load() > 0 {
		t.Errorf("%d answers went to another client or call", mixed.Load())
	}
	t.Logf("%d clients with equal ids, %d calls in %s: %d mixed, %d failed; a call took %s", clients, clients*calls, time.Since(began).Round(time.Millisecond), mixed.Load(), failed.Load(), &took)
}

// Fault 39: fifty servers of which ten never say a word. The gateway is ready, the
// others are listed and answer, and nobody waits for the ten more than once.
func TestFaultFiftyServersTenHang(t *testing.T) {
	all := map[string]servers.Config{}
	for i := range 50 {
		cfg := fakemcp.Config{Tools: []fakemcp.Tool{{Name: "echo"}}}
		if i%5 == 0 {
			cfg.Faults = []fakemcp.Fault{{Kind: fakemcp.Hang}}
		}
		all[fmt.Sprintf("s%02d", i)], _ = fakes(t, cfg)
	}
	began := time.Now()
	g := build(t, func(f *config.File) { f.MCPServers, f.WaitForServers = all, 2*time.Second })
	eventually(t, "readiness", g.servers.Ready)
	ready := time.Since(began)
	eventually(t, "the others are there", func() bool { // a slow machine may need longer than anybody waits
		n := 0
		for _, s := range g.Servers() {
			if s.State == dragoman.Connected {
				n++
			}
		}
		return n == 40
	})
	url := web(t, g.Handler()) + "/mcp"
	for _, era := range []mcp.Era{mcp.Legacy, mcp.Modern} {
		c := dial(t, url, era)
		list, err := c.List(within(t))
		if err != nil || list.Tools.Len() != 41 { // read_more too
			t.Fatalf("%d tools, %v", list.Tools.Len(), err)
		}
		listed := time.Since(began)
		var took times
		for i := range 50 {
			if i%5 != 0 {
				start := time.Now()
				res, err := call(within(t), c, list.Tools.Exact(fmt.Sprintf("s%02d__echo", i)), i)
				took.add(time.Since(start))
				if err := fine(res, err, i); err != nil {
					t.Errorf("s%02d: %v", i, err)
				}
			}
		}
		t.Logf("%s client: ready after %s, 40 servers listed %s after the start; calls %s", era, ready.Round(time.Millisecond), listed.Round(time.Millisecond), &took)
	}
	for _, s := range g.Servers() {
		var n int
		_, _ = fmt.Sscanf(s.Label, "s%d", &n)
		if hangs := n%5 == 0; hangs != (s.State == dragoman.Starting) {
			t.Errorf("%s is %s", s.Label, s.State)
		}
	}
}

// Fault 16, the part that there is: lists that change again and again while
// clients call and list. No request fails, and listeners hear of it. (There is
// nothing yet that reads a changed configuration; a SIGHUP ends nothing, as e2e's
// TestFaultHangups shows.)
func TestFaultListsChangeUnderLoad(t *testing.T) {
	changes := often(2, 100) // a second each: that often are lists asked for again at most
	entry, s := fakes(t, fakemcp.Config{Keep: -1, Tools: []fakemcp.Tool{{Name: "echo"}}})
	g := build(t, func(f *config.File) { f.MCPServers = map[string]servers.Config{"web": entry} })
	if err := g.Wait(within(t)); err != nil {
		t.Fatal(err)
	}
	url := web(t, g.Handler()) + "/mcp"
	var told, calls atomic.Int64
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for n := range 6 {
		c := dial(t, url, []mcp.Era{mcp.Legacy, mcp.Modern}[n%2])
		echo := tool(t, c, "echo")
		list, _ := c.List(t.Context())
		wg.Go(func() {
			for {
				select {
				case <-list.Changed:
					told.Add(1)
					list, _ = c.List(t.Context())
				case <-stop:
					return
				}
			}
		})
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				if res, err := call(t.Context(), c, echo, i); fine(res, err, i) != nil {
					t.Errorf("call %d: %v", i, fine(res, err, i))
					return
				}
				calls.Add(1)
				if i%20 == 0 {
					if err := c.Refresh(t.Context()); err != nil {
						t.Errorf("list: %v", err)
						return
					}
				}
			}
		})
	}
	for i := range changes {
		s.SetTools([]fakemcp.Tool{{Name: "echo"}, {Name: fmt.Sprintf("new%d", i)}})
		eventually(t, "the new list", func() bool {
			list, err := g.now.Load().names.List(t.Context())
			return err == nil && list.Tools.Exact(fmt.Sprintf("new%d", i)) != nil
		})
	}
	eventually(t, "everybody to be told", func() bool { return told.Load() >= 6 })
	close(stop)
	wg.Wait()
	t.Logf("%d changes under %d calls of 6 clients: none failed, %d times a client was told", changes, calls.Load(), told.Load())
}
