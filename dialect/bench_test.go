package dialect

import (
	"crypto/sha256"
	"slices"
	"testing"
	"time"

	dragoman "github.com/dragoman-mcp/dragoman"
)

var benchTool = dragoman.Tool{
	Name: "search", Description: "Search the catalogue.", Pin: sha256.Sum256([]byte("search")),
	InputSchema: []byte(`{"type":"object","properties":{
		"query":{"type":"string","description":"Words to look for","minLength":1},
		"limit":{"type":"integer","minimum":1,"maximum":100,"default":10},
		"kind":{"type":"string","enum":["book","film","song"]},
		"filter":{"type":"object","properties":{"year":{"type":["integer","null"]},"tags":{"type":"array","items":{"type":"string"}}},"required":["tags"]}},
		"required":["query"]}`),
}

func BenchmarkPlanCached(b *testing.B) {
	d, err := For("openai-strict")
	if err != nil {
		b.Fatal(err)
	}
	d.Plan(benchTool)
	b.ReportAllocs()
	for b.Loop() {
		if p, _ := d.Plan(benchTool); p == nil {
			b.Fatal("no plan")
		}
	}
}

func BenchmarkPlan(b *testing.B) {
	for _, name := range []string{"openai", "openai-strict", "gemini", "conservative"} {
		b.Run(name, func(b *testing.B) {
			d, err := For(name)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if p, _ := d.convert(benchTool); p == nil {
					b.Fatal("no plan")
				}
			}
		})
	}
}

// BenchmarkCorpusPlan converts the tools of real servers and reports the
// median, and the slowest, beside the mean.
func BenchmarkCorpusPlan(b *testing.B) {
	tools := corpus(b)
	for _, name := range Names() {
		b.Run(name, func(b *testing.B) {
			d, err := For(name)
			if err != nil {
				b.Fatal(err)
			}
			var times []time.Duration
			for b.Loop() {
				times = times[:0]
				for _, tool := range tools {
					start := time.Now()
					d.convert(tool)
					times = append(times, time.Since(start))
				}
			}
			slices.Sort(times)
			b.ReportMetric(float64(times[len(times)/2].Microseconds()), "µs/median")
			b.ReportMetric(float64(times[len(times)-1].Microseconds()), "µs/slowest")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	for _, bc := range []struct{ name, dialect, raw string }{
		{"as it should be", "openai", `{"query":"cats","limit":5,"filter":{"tags":["a","b"],"year":1999}}`},
		{"strict", "openai-strict", `{"query":"cats","limit":null,"kind":null,"filter":null}`},
		{"repaired", "openai", `{'query': 'cats', 'limit': "5", "filter": "{\"tags\":\"a\"}",}`},
	} {
		b.Run(bc.name, func(b *testing.B) {
			d, err := For(bc.dialect)
			if err != nil {
				b.Fatal(err)
			}
			plan, problem := d.Plan(benchTool)
			if problem != nil {
				b.Fatal(problem)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, _, problem := plan.Decode(bc.raw, "tool_calls"); problem != nil {
					b.Fatal(problem)
				}
			}
		})
	}
}
