package main

import (
	"context"
	"log/slog"
	"maps"
	"net"
	"os"
	"slices"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/door/console"
	"github.com/dragoman-mcp/dragoman/internal/door/terminal"
	"github.com/dragoman-mcp/dragoman/internal/gateway"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/session"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// announce logs what the gateway is when it begins: its configuration, which models
// go where, its address. The servers say themselves when they are there; then the
// tools are counted against what each model's API takes.
func announce(log *slog.Logger, file *config.File, g *gateway.Gateway, at net.Addr) {
	path := file.Path
	if path == "" {
		path = "none, so the defaults"
	}
	log.Info("configuration", "file", path, "servers", len(g.Servers()))
	for match, up := range g.Upstreams().Routes() {
		if up.Rehearsal {
			log.Info("model", "match", match, "upstream", "the built-in stand-in model: set OPENAI_BASE_URL, or models in the configuration, for a real one")
			continue
		}
		log.Info("model", "match", match, "upstream", up.String(), "from", up.From)
	}
	attrs := addresses(file, at, g.Console(at), terminal.NewScreen(os.Stderr).Live)
	log.Info("serving", append(attrs, "version", version())...)
	go countTools(log, g, file)
}

// addresses are where clients and people find the gateway: signIn is that of the console,
// with the secret, and empty where there is no console.
func addresses(file *config.File, at net.Addr, signIn string, live bool) []any {
	base := scheme(file) + at.String()
	attrs := []any{"base_url", base + "/v1"}
	if !file.MCP.Off {
		attrs = append(attrs, "mcp", base+"/mcp")
	}
	switch {
	case signIn == "":
	case live:
		attrs = append(attrs, "console", signIn)
	default:
		// What a log keeps others may read, so it has no secret.
		attrs = append(attrs, "console", base+console.Root)
	}
	return attrs
}

// scheme is how the addresses of the gateway begin.
func scheme(file *config.File) string {
	if file.TLS != (config.TLS{}) {
		return "https://"
	}
	return "http://"
}

// countTools warns of tools that wait for an approval, and of those that do not fit
// into a request, for each model API, when the servers have been given their time.
func countTools(log *slog.Logger, g *gateway.Gateway, file *config.File) {
	ctx, cancel := context.WithTimeout(context.Background(), maxStart(file))
	defer cancel()
	_ = g.Wait(ctx)
	open, err := g.Open(context.Background(), caller.Local, session.Want{NoTools: true})
	if err != nil {
		return
	}
	tools, err := open.Tools.List(context.Background())
	if err != nil {
		return
	}
	// Said last: whoever waits for it finds the rest before it.
	usable := 0
	for _, t := range tools.Tools.All() {
		if t.Quarantined == nil {
			usable++
		}
	}
	defer log.Info("servers have been given their time", "tools", usable)
	held := g.Held()
	for _, label := range slices.Sorted(maps.Keys(held)) {
		log.Warn("tools, or texts, are held until somebody approves them: dragoman pins", "server", label, "tools", held[label].Tools, "texts", held[label].Texts)
	}
	for match, up := range g.Upstreams().Routes() {
		if up.Rehearsal {
			continue
		}
		d := g.Dialect(up)
		left, searched := model.LeftOut(tools.Tools, d, open.Search)
		if searched {
			log.Info("models search for tools in place of being offered all", "match", match, "tools", tools.Tools.Len())
		}
		if most := d.Wire().MaxTools; most > 0 && tools.Tools.Len() > most && len(left) > 0 {
			log.Warn("more tools than the model's API takes: the rest is left out, evenly among the servers; choose with tools.include of the servers, let models search (tools.search), or set models[].dialect",
				"match", match, "dialect", d.Name(), "tools", tools.Tools.Len(), "most", most, "left_out", someOf(left, 8))
		}
	}
}
