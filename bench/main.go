// Command bench measures what the gateway costs and prints one table, all of it
// measured in one run on one machine. Each figure is the median of several
// rounds, in which the gateway and what it is compared with take turns, so that a
// noisy neighbour meets both.
//
// The gateway is the real binary with its default configuration. It is compared
// with a bare httputil.ReverseProxy in front of the same upstream. The upstream
// answers at once with bytes made before, and the MCP servers are those of
// package fakemcp. All are processes of their own; load comes from this one.
// bench/README.md says what each row means.
//
//	go run ./bench                 # or: make bench
//	go run ./bench -only a,d       # some rows
//	go run ./bench -rounds 3 -time 500ms
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/fakemcp"
)

func main() {
	if fakemcp.IsChild() {
		fakemcp.Main()
	}
	if role := os.Getenv(envRole); role != "" {
		serveRole(role)
		return
	}
	b := &bench{}
	flag.IntVar(&b.rounds, "rounds", 5, "rounds of each measurement")
	flag.DurationVar(&b.window, "time", time.Second, "length of one throughput measurement")
	flag.StringVar(&b.binary, "binary", "", "`path` of the dragoman to measure; built from this source when empty")
	only := flag.String("only", "", "comma-separated `letters` of the items to measure; all when empty")
	markdown := flag.Bool("markdown", false, "print the table as Markdown")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := b.run(ctx, *only); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	if *markdown {
		b.markdown(os.Stdout)
	} else {
		b.print(os.Stdout)
	}
}

// bench is one run.
type bench struct {
	rounds int
	window time.Duration
	binary string
	dir    string // for configurations and the binary
	rows   []row

	dialect string // of the upstream; empty: recognised

	upstream string // base URLs without path
	proxy    string
	mcp      string
	procs    map[string]*process
}

// items are what is measured, by letter.
var items = []struct {
	letter, title string
	measure       func(*bench, context.Context) error
}{
	{"a", "plain chat", (*bench).plain},
	{"b", "300 tools", (*bench).manyTools},
	{"c", "streaming", (*bench).streaming},
	{"d", "one tool call", (*bench).toolCall},
	{"e", "memory", (*bench).memory},
	{"f", "start", (*bench).startup},
}

func (b *bench) run(ctx context.Context, only string) error {
	dir, err := os.MkdirTemp("", "dragoman-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b.dir = dir
	b.procs = make(map[string]*process)
	defer b.stopAll()
	if b.binary == "" {
		b.binary = filepath.Join(dir, "dragoman")
		build := exec.CommandContext(ctx, "go", "build", "-o", b.binary, "github.com/dragoman-mcp/dragoman/cmd/dragoman")
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("build dragoman: %w\n%s", err, out)
		}
	}
	for role, address := range map[string]*string{"upstream": &b.upstream, "mcp": &b.mcp} {
		if *address, err = b.role(ctx, role, role); err != nil {
			return err
		}
	}
	if b.proxy, err = b.role(ctx, "proxy", "proxy", "BENCH_TARGET="+b.upstream); err != nil {
		return err
	}
	for _, item := range items {
		if only != "" && !strings.Contains(","+only+",", ","+item.letter+",") {
			continue
		}
		fmt.Fprintf(os.Stderr, "measuring (%s) %s …\n", item.letter, item.title)
		if err := item.measure(b, ctx); err != nil {
			return fmt.Errorf("measure (%s) %s: %w", item.letter, item.title, err)
		}
	}
	return ctx.Err()
}
