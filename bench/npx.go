package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// seven are servers as people have them, at versions that stay.
var seven = map[string]string{
	"everything": "@modelcontextprotocol/server-everything@2026.8.31",
	"files":      "@modelcontextprotocol/server-filesystem@2026.8.31",
	"memory":     "@modelcontextprotocol/server-memory@2026.8.31",
	"thinking":   "@modelcontextprotocol/server-sequential-thinking@2026.8.31",
	"context7":   "@upstash/context7-mcp@4.1.1",
	"browser":    "@playwright/mcp@latest",
	"devtools":   "chrome-devtools-mcp@latest",
}

// coldStart is (p): from the start of the process until a request is answered with
// tools, of one server and of all seven, that npx starts side by side: first with an
// empty npm cache, and then with the one that this filled. It needs a network.
func (b *bench) coldStart(ctx context.Context) error {
	cache := filepath.Join(b.dir, "npm")
	for _, state := range []string{"empty", "filled"} {
		servers := map[string]any{}
		for label, pack := range seven {
			args := []string{"-y", pack}
			if label == "files" {
				args = append(args, b.dir)
			}
			env := map[string]string{"npm_config_cache": cache, "npm_config_update_notifier": "false"}
			for _, name := range []string{"NODE_EXTRA_CA_CERTS", "HTTPS_PROXY", "https_proxy"} {
				if value, ok := os.LookupEnv(name); ok {
					env[name] = value
				}
			}
			servers[label] = map[string]any{"command": "npx", "args": args, "startup_timeout": "10m", "env": env}
		}
		began := time.Now()
		p, err := b.gateway(ctx, "npx", b.binary, setting{servers: servers})
		if err != nil {
			return err
		}
		var first, all time.Duration
		for all == 0 {
			labels, err := p.offering(ctx)
			if err != nil {
				return err
			}
			if first == 0 && labels > 0 {
				first = time.Since(began)
			}
			if labels == len(seven) {
				all = time.Since(began)
			}
			if time.Since(began) > 15*time.Minute {
				return fmt.Errorf("%d of %d servers after %s", labels, len(seven), time.Since(began).Round(time.Second))
			}
		}
		b.stop("npx")
		what := "seven npx servers, npm cache " + state + ": start to an answer with tools of "
		b.add(row{item: network, what: what + "one", figures: figures{ours: {first.Seconds()}}, show: duration})
		b.add(row{item: network, what: what + "all", figures: figures{ours: {all.Seconds()}}, show: duration})
	}
	return nil
}

// offering asks once for the tools, as a request does, and returns how many servers
// have some.
func (p *process) offering(ctx context.Context) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.base+"/v1/tools?dialect=openai", nil)
	if err != nil {
		return 0, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err
	}
	var doc struct {
		Tools []struct{ Function struct{ Name string } }
		Left  []struct{ Tool string } `json:"left_out"`
	}
	if err := json.Unmarshal(body, &doc); err != nil {
		return 0, fmt.Errorf("%s: %.200s", err, body)
	}
	labels := map[string]bool{}
	for _, t := range doc.Tools {
		label, _, _ := strings.Cut(t.Function.Name, "__")
		labels[label] = true
	}
	for _, t := range doc.Left {
		label, _, _ := strings.Cut(t.Tool, "__")
		labels[label] = true
	}
	return len(labels), nil
}
