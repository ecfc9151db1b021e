package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/reach/find"
	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// envCorpus names a folder of tools/list answers, which real servers gave.
const envCorpus = "DRAGOMAN_CORPUS"

// modernRequest is a request of the modern era, as bytes made before.
type modernRequest struct{ method, name, body string }

// modernMeta says that a request is of the modern era.
const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

var (
	callLookup = modernRequest{"tools/call", benchTool.Name, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + benchTool.Name + `","arguments":{"message":"what is it?"},` + modernMeta + `}}`}
	listTools  = modernRequest{"tools/list", "", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + modernMeta + `}}`}
)

// post makes the request at an MCP endpoint and reads the answer to its end.
func (r modernRequest) post(ctx context.Context, base string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/mcp", bytes.NewReader([]byte(r.body)))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Mcp-Protocol-Version", "2026-07-28")
	req.Header.Set("Mcp-Method", r.method)
	if r.name != "" {
		req.Header.Set("Mcp-Name", r.name)
	}
	return send(req)
}

// mcpContest is a contest at the MCP endpoint: a gateway with one server, the
// server itself, and for a server over HTTP the proxy in front of it.
func (b *bench) mcpContest(ctx context.Context, server map[string]any, r modernRequest) (c *contest, stop func(), err error) {
	c = &contest{bench: b, setting: setting{servers: map[string]any{"bench": server}}}
	stop = func() {
		for who := range contenders {
			if contender(who) != direct {
				b.stop(contenderNames[who])
			}
		}
	}
	defer func() {
		if err != nil {
			stop()
		}
	}()
	for who, binary := range map[contender]string{ours: b.binary, before: b.older} {
		if binary == "" {
			continue
		}
		if c.sides[who], err = b.gateway(ctx, contenderNames[who], binary, c.setting); err != nil {
			return nil, stop, err
		}
		p := c.sides[who]
		c.do[who] = func(ctx context.Context) error { return r.post(ctx, p.base) }
		if err := b.answers(ctx, c.do[who]); err != nil {
			return nil, stop, err
		}
	}
	return c, stop, nil
}

// answers returns when a request is answered, or patience is over.
func (b *bench) answers(ctx context.Context, do request) error {
	deadline := time.Now().Add(patience)
	for {
		err := do(ctx)
		if err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

// relayed is (m): tools/call at the MCP endpoint, with servers over HTTP and over
// stdio behind, against the servers themselves.
func (b *bench) relayed(ctx context.Context) error {
	c, stop, err := b.mcpContest(ctx, map[string]any{"url": b.mcp + "/mcp", "max_in_flight": 64}, callLookup)
	if err != nil {
		return err
	}
	c.sides[direct] = b.procs["mcp"]
	c.do[direct] = func(ctx context.Context) error { return callLookup.post(ctx, b.mcp) }
	if c.sides[proxy], err = b.role(ctx, contenderNames[proxy], "proxy", envTarget+"="+b.mcp); err == nil {
		c.do[proxy] = func(ctx context.Context) error { return callLookup.post(ctx, c.sides[proxy].base) }
		err = c.calls(ctx, "tools/call, HTTP → HTTP", 0.35)
	}
	stop()
	if err != nil {
		return err
	}
	path, args, env := fakemcp.Command(fakemcp.Config{Keep: -1, Tools: []fakemcp.Tool{benchTool}})
	start := func() *exec.Cmd {
		cmd := exec.Command(path, args...)
		cmd.Env = append(os.Environ(), env...)
		return cmd
	}
	one, err := mcp.Connect(ctx, mcp.Command{New: start}, nil)
	if err != nil {
		return err
	}
	defer one.Close()
	list, err := one.List(ctx)
	if err != nil {
		return err
	}
	tool := list.Tools.Find(benchTool.Name)
	server := stdioServers(map[string]fakemcp.Config{"bench": {Keep: -1, Tools: []fakemcp.Tool{benchTool}}})["bench"].(map[string]any)
	server["max_in_flight"] = 64
	c, stop, err = b.mcpContest(ctx, server, callLookup)
	if err != nil {
		return err
	}
	defer stop()
	c.sides[direct] = b.procs["mcp"] // any: its time is not told
	c.do[direct] = func(ctx context.Context) error {
		res, err := one.Call(ctx, dragoman.Call{Tool: tool, Arguments: []byte(`{"message":"what is it?"}`)})
		if err == nil && res.Problem != nil {
			err = res.Problem
		}
		return err
	}
	return c.calls(ctx, "tools/call, HTTP → stdio", 0.5)
}

// calls measures throughput and CPU time of 16 clients, and what is added to the
// latency of one.
func (c *contest) calls(ctx context.Context, what string, least float64) error {
	rate, cost, err := c.rates(ctx, clients)
	if err != nil {
		return err
	}
	cost[direct] = nil // of the server
	c.add(row{item: "m", what: what + ", 16 clients", figures: rate, show: perSecond, target: atLeast(least, direct)})
	c.add(row{item: "m", what: "CPU time of a call", figures: cost, show: duration})
	p50, p99, err := c.latency(ctx, 500)
	if err != nil {
		return err
	}
	c.add(row{item: "m", what: "p50, 1 client", figures: p50, show: duration})
	c.add(row{item: "m", what: "p99, 1 client", figures: p99, show: duration})
	var added figures
	for who := range added {
		for i, v := range p50[who] {
			if contender(who) != direct && i < len(p50[direct]) {
				added[who] = append(added[who], v-p50[direct][i])
			}
		}
	}
	c.add(row{item: "m", what: "p50 that is added to the server's own", figures: added, show: duration, target: limit(150e-6, duration)})
	return nil
}

// listed is (n): tools/list of all tools of the corpus, against the server itself.
func (b *bench) listed(ctx context.Context) error {
	if os.Getenv(envCorpus) == "" {
		fmt.Fprintf(os.Stderr, "NOT MEASURED: %s names no folder of tools/list answers\n", envCorpus)
		return nil
	}
	server, err := b.role(ctx, "mcpcorpus", "mcpcorpus")
	if err != nil {
		return err
	}
	defer b.stop("mcpcorpus")
	c, stop, err := b.mcpContest(ctx, map[string]any{"url": server.base + "/mcp"}, listTools)
	if err != nil {
		return err
	}
	defer stop()
	c.sides[direct] = server
	c.do[direct] = func(ctx context.Context) error { return listTools.post(ctx, server.base) }
	rate, cost, err := c.rates(ctx, 1)
	if err != nil {
		return err
	}
	p50, p99, err := c.latency(ctx, 100)
	if err != nil {
		return err
	}
	tools, _ := corpusTools(os.Getenv(envCorpus))
	b.add(row{item: "n", what: fmt.Sprintf("tools/list of %d tools: p50", len(tools)), figures: p50, show: duration, target: atMost(1.1, direct)})
	b.add(row{item: "n", what: "p99", figures: p99, show: duration})
	b.add(row{item: "n", what: "CPU time of a list", figures: cost, show: duration})
	b.add(row{item: "n", what: "lists in a second, 1 client", figures: rate, show: perSecond})
	return nil
}

// searched is (o): a search over 10,000 tools, in this process.
func (b *bench) searched(ctx context.Context) error {
	tools := make([]dragoman.Tool, 0, 10_000)
	for i, t := range manyTools(10_000) {
		tools = append(tools, dragoman.ReadTool(fmt.Sprintf("server%d", i%40), fmt.Appendf(nil, `{"name":%q,"description":%q,"inputSchema":%s}`, t.Name, t.Description, t.InputSchema)))
	}
	index := find.NewIndex(dragoman.NewTools(tools), nil)
	var took figures
	for range b.rounds {
		sorted, err := latencies(ctx, 200, func(context.Context) error {
			if len(index.Search("number 4711 of the things that field names", 20, nil)) == 0 {
				return errors.New("nothing was found")
			}
			return nil
		})
		if err != nil {
			return err
		}
		took[ours] = append(took[ours], quantile(sorted, 0.5))
	}
	b.add(row{item: "o", what: "search over 10,000 tools, p50", figures: took, show: duration, target: limit(2e-3, duration)})
	return nil
}

// corpusTools are the tools of all servers of a corpus, under names of their own.
func corpusTools(dir string) ([]fakemcp.Tool, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no tools/list answers in %s: %w", dir, err)
	}
	var all []fakemcp.Tool
	for n, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		answer, err := rawjson.ParseObject(data)
		if err != nil {
			continue // the manifest
		}
		definitions, err := rawjson.Elements(answer.Get("tools"))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		for _, d := range definitions {
			definition, err := rawjson.ParseObject(d)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			name, _ := rawjson.String(definition.Get("name"))
			name = fmt.Sprintf("s%d_%s", n, name) // some have the same
			definition = definition.Clone()
			definition.Set("name", rawjson.Quote(name))
			all = append(all, fakemcp.Tool{Name: name, Definition: definition.Bytes()})
		}
	}
	return all, nil
}
