package gateway

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/reach/servers"
	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
	"github.com/dragoman-mcp/dragoman/internal/stage/pgtest"
	"github.com/dragoman-mcp/dragoman/internal/state/captured"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// counted are gateways on one database that take turns, and the statements that they ran.
type counted struct {
	all  []*Gateway
	web  *httptest.Server
	idle float64 // statements a second of their own accord
}

func countedOf(t *testing.T, count int, server string) *counted {
	t.Helper()
	c, url := &counted{}, pgtest.URL(t)
	var handlers []http.Handler
	for range count {
		g := replica(t, url, func(f *config.File) {
			f.Capture.Keep = captured.Off // as where callers have keys
			f.MCPServers = map[string]servers.Config{"bench": {URL: server + "/mcp", Effects: servers.Effects{ReadOnly: []string{"read"}}}}
		})
		if err := g.Wait(within(t)); err != nil {
			t.Fatal(err)
		}
		c.all, handlers = append(c.all, g), append(handlers, g.Handler())
	}
	var turn atomic.Int64
	c.web = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handlers[int(turn.Add(1))%count].ServeHTTP(w, r)
	}))
	t.Cleanup(c.web.Close)
	return c
}

func (c *counted) statements() (n int64) {
	for _, g := range c.all {
		n += statements(g)
	}
	return n
}

// rest measures what they do of their own accord.
func (c *counted) rest() {
	const lasts = 6 * time.Second // what is written every five is in it
	before := c.statements()
	<-time.After(lasts)
	c.idle = float64(c.statements()-before) / lasts.Seconds()
}

// each returns how many statements one request costs, what nobody waits for among them,
// where nothing shares a transaction with what came before: each is written before the
// next is made. How much a busy gateway writes together is up to the machine.
func (c *counted) each(t *testing.T, request func() error) float64 {
	t.Helper()
	alone := func(times int) {
		for range times {
			if err := request(); err != nil {
				t.Fatal(err)
			}
			for _, g := range c.all {
				if err := g.ledger.DB.Write(t.Context(), func(*store.Tx) error { return nil }); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	const many = 60
	alone(2 * len(c.all)) // what is found out once
	began, before := time.Now(), c.statements()
	alone(many)
	return (float64(c.statements()-before) - c.idle*time.Since(began).Seconds()) / many
}

// TestStatements: what each kind of request costs in statements does not grow with the
// number of replicas, but for what each of the others looks up when it is told of a
// change. bench/STORE.md has the table.
func TestStatements(t *testing.T) {
	fake := httptest.NewServer(fakemcp.New(fakemcp.Config{Keep: -1, Tools: []fakemcp.Tool{{Name: "read"}, {Name: "write"}}}))
	t.Cleanup(fake.Close)
	type fleet struct {
		*counted
		legacy, modern *stranger
		n              int
	}
	var fleets []*fleet
	for _, count := range []int{1, 3} {
		f := &fleet{counted: countedOf(t, count, fake.URL)}
		for era, at := range map[mcp.Era]**stranger{mcp.Legacy: &f.legacy, mcp.Modern: &f.modern} {
			var err error
			if *at, err = newStranger(t.Context(), f.web.URL+"/mcp", era, http.DefaultClient); err != nil {
				t.Fatal(err)
			}
		}
		f.rest()
		fleets = append(fleets, f)
	}
	post := func(path, body string, headers ...string) func(*fleet) error {
		return func(f *fleet) error {
			f.n++
			body := strings.ReplaceAll(body, "NUMBER", fmt.Sprint(f.n))
			req, err := http.NewRequestWithContext(t.Context(), "POST", f.web.URL+path, strings.NewReader(body))
			if err != nil {
				return err
			}
			req.Header.Set("Content-Type", "application/json")
			for i := 0; i+1 < len(headers); i += 2 {
				req.Header.Set(headers[i], headers[i+1]+fmt.Sprint(f.n))
			}
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				return err
			}
			defer res.Body.Close()
			if res.StatusCode != http.StatusOK {
				return fmt.Errorf("%s: %s", path, res.Status)
			}
			return nil
		}
	}
	chat := func(said string) func(*fleet) error {
		return post("/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"`+said+`"}]}`)
	}
	calls := func(of func(*fleet) *stranger, tool string) func(*fleet) error {
		return func(f *fleet) error {
			f.n++
			_, _, err := of(f).call(t.Context(), f.n+1, tool, fmt.Sprintf(`{"n":%d}`, f.n))
			return err
		}
	}
	legacy, modern := func(f *fleet) *stranger { return f.legacy }, func(f *fleet) *stranger { return f.modern }
	table := "| request | one | three |\n|---|---|---|\n"
	for _, kind := range []struct {
		name    string
		most    float64 // however many replicas there are
		looks   float64 // of each replica where there are others
		request func(*fleet) error
	}{
		{"chat without tools", 0, 0, chat("SAY hello NUMBER")},
		{"chat with a call that reads", 3, 0, chat(`CALL read {\"n\":NUMBER}`)},
		{"chat with a call that writes", 12, 0, chat(`CALL write {\"n\":NUMBER}`)},
		{"call by an MCP client, legacy, that reads", 3, 0, calls(legacy, "read")},
		{"call by an MCP client, legacy, that writes", 6, 0, calls(legacy, "write")},
		{"call by an MCP client, modern, that reads", 3, 0, calls(modern, "read")},
		{"call by an MCP client, modern, that writes", 6, 0, calls(modern, "write")},
		{"call with an `Idempotency-Key` that writes", 12, 1, post("/v1/tools/call", `{"model":"m","name":"write","arguments":{"n":NUMBER},"tool_call_id":"c"}`, "Idempotency-Key", "k")},
		{"response, stored", 6, 0, post("/v1/responses", `{"model":"m","input":"SAY hello NUMBER"}`)},
		{"response, not stored", 2, 0, post("/v1/responses", `{"model":"m","store":false,"input":"SAY hello NUMBER"}`)},
	} {
		var cost [2]float64
		for i, f := range fleets {
			cost[i] = f.each(t, func() error { return kind.request(f) })
		}
		table += fmt.Sprintf("| %s | %.1f | %.1f |\n", kind.name, cost[0], cost[1])
		const spare = 0.5 // for what they do of their own accord, which is not the same every second
		if cost[0] > kind.most+spare || cost[1] > kind.most+3*kind.looks+spare {
			t.Errorf("%s: %.1f statements with one, %.1f with three, where %.0f were enough", kind.name, cost[0], cost[1], kind.most)
		}
	}
	t.Logf("statements for each request, by replicas:\n%s", table)
}
