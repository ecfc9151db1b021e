// Command bench measures what the gateway costs and prints one table, all of it
// measured in one run on one machine. Each figure is the median of several
// rounds, in which the gateway and what it is compared with take turns, so that a
// noisy neighbour meets all of them; the worst round is told beside it.
//
// The gateway is the real binary with its default configuration. It is compared
// with a bare httputil.ReverseProxy in front of the same upstream, and with the
// null gateway: a program that makes the same round trips on net/http and looks
// at nothing. The upstream answers at once with bytes made before, and the MCP
// servers are those of package fakemcp. All are processes of their own; load
// comes from this one. bench/README.md says what each row means.
//
//	go run ./bench                  # or: make bench
//	go run ./bench -only a,d        # some rows
//	go run ./bench -before v0.1.0   # an older revision takes turns with this one
//	go run ./bench -rounds 3 -time 500ms
//	go run ./bench -only p          # servers that npx downloads; needs a network
//	go run ./bench -only s          # a first build, and the binary's size
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
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
	before := flag.String("before", "", "`path` of an older dragoman, or its revision in git, that takes turns with the other")
	only := flag.String("only", "", "comma-separated `letters` of the items to measure; all when empty")
	markdown := flag.Bool("markdown", false, "print the table as Markdown")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := b.run(ctx, *before, *only); err != nil {
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
	binary string // of the dragoman that is measured
	older  string // of the one before it; empty for none
	before string // what the one before is called
	dir    string // for configurations and binaries
	rows   []row

	upstream string // base URLs without path
	mcp      string
	procs    map[string]*process
}

// items are what is measured, by letter.
var items = []struct {
	letter, title string
	measure       func(*bench, context.Context) error
}{
	{"a", "plain chat", (*bench).plain},
	{"a2", "chat with a tool offered", (*bench).offered},
	{"b", "300 tools", (*bench).manyTools},
	{"c", "streaming", (*bench).streaming},
	{"d", "one tool call", (*bench).toolCall},
	{"e", "memory of streams, and at rest", (*bench).memory},
	{"e2", "memory of streams with a history", (*bench).memoryOfHistory},
	{"f", "start", (*bench).startup},
	{"g", "a long history", (*bench).history},
	{"m", "calls at the MCP endpoint", (*bench).relayed},
	{"n", "lists at the MCP endpoint", (*bench).listed},
	{"o", "search over 10,000 tools", (*bench).searched},
	{"q", "the other doors at which a model is asked", (*bench).doors},
	{"t", "keys, and a store", (*bench).kept},
	{network, "cold start of npx servers", (*bench).coldStart},
	{cold, "a first build", (*bench).built},
}

// Items that are measured only by their names: one needs a network, the other minutes of
// all processors.
const (
	network = "p"
	cold    = "s"
)

func (b *bench) run(ctx context.Context, before, only string) error {
	dir, err := os.MkdirTemp("", "dragoman-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b.dir = dir
	b.procs = make(map[string]*process)
	defer b.stopAll()
	if err := b.binaries(ctx, before); err != nil {
		return err
	}
	for role, address := range map[string]*string{"upstream": &b.upstream, "mcp": &b.mcp} {
		p, err := b.role(ctx, role, role)
		if err != nil {
			return err
		}
		*address = p.base
	}
	for _, item := range items {
		if only == "" && (item.letter == network || item.letter == cold) || only != "" && !strings.Contains(","+only+",", ","+item.letter+",") {
			continue
		}
		fmt.Fprintf(os.Stderr, "measuring (%s) %s …\n", item.letter, item.title)
		if err := item.measure(b, ctx); err != nil {
			return fmt.Errorf("measure (%s) %s: %w", item.letter, item.title, err)
		}
	}
	return ctx.Err()
}
