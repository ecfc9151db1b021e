package gate

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/judge/ledger"
	"github.com/dragoman-mcp/dragoman/internal/judge/limit"
	"github.com/dragoman-mcp/dragoman/internal/judge/policy"
	"github.com/dragoman-mcp/dragoman/toolsettest"
)

// everything is a gate with a hundred rules, three limits and a log on disk.
func everything(b *testing.B) *Gate {
	b.Helper()
	all := []policy.Rule{{Allow: []string{"*"}}}
	for i := range 99 {
		all = append(all, policy.Rule{Deny: []string{fmt.Sprintf("server%d__delete_*", i)}, When: policy.When{Caller: []string{fmt.Sprintf("team-%d-*", i)}}})
	}
	rules, err := policy.New(policy.Config{Rules: all})
	if err != nil {
		b.Fatal(err)
	}
	var config ledger.Config
	config.Store.SetDefaults()
	config.Store.Path = filepath.Join(b.TempDir(), "bench.db")
	config.Audit.SetDefaults()
	config.Approvals.SetDefaults()
	l, err := ledger.Open(b.Context(), config, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = l.Close() })
	limits, err := limit.New(b.Context(), limit.Options{Limits: []limit.Limit{
		{Name: "rate", Rate: "1000000/s"}, {Name: "at a time", Concurrent: 1000}, {Name: "a day", Calls: 1 << 40},
	}, Store: l.DB})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = limits.Close(b.Context()) })
	return New(Options{Policy: rules, Limit: limits, Inbox: l.Inbox, Audit: l.Audit})
}

func measured(b *testing.B, g *Gate, declared dragoman.Effect) (tools dragoman.Toolset, call dragoman.Call) {
	b.Helper()
	inner := toolsettest.NewInner()
	list, _ := inner.List(b.Context())
	tool := *list.Tools.Exact("write")
	tool.Declared = declared
	return g.Around(Client{Caller: ann}, inner), dragoman.Call{ID: "call", Tool: &tool, Arguments: json.RawMessage(`{"path":"/a/b","content":"some text","n":[1,2,3]}`)}
}

// BenchmarkReading is what judging adds to a call that only reads: everything
// against nothing.
func BenchmarkReading(b *testing.B) {
	for name, g := range map[string]*Gate{"nothing": New(Options{}), "everything": everything(b)} {
		b.Run(name, func(b *testing.B) {
			tools, call := measured(b, g, dragoman.ReadOnly)
			for b.Loop() {
				if res, err := tools.Call(b.Context(), call); err != nil || res.Problem != nil {
					b.Fatal(res.Problem, err)
				}
			}
		})
	}
}

// BenchmarkChanging is a call that may change something, at 16 clients: its intent
// is on disk before it runs.
func BenchmarkChanging(b *testing.B) {
	tools, call := measured(b, everything(b), dragoman.MayChange)
	b.SetParallelism(8) // times the two processors of the reference machine
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if res, err := tools.Call(b.Context(), call); err != nil || res.Problem != nil {
				b.Error(res.Problem, err)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}
