package telemetry

import (
	"log/slog"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/observe"
)

// No two sets of labels are counted as one.
func TestLabelsAreTold(t *testing.T) {
	flag := func(v bool) observe.Attribute { return observe.Attribute{Key: "a", Value: slog.BoolValue(v)} }
	seen := map[string]int{}
	for i, said := range [][]observe.Attribute{
		{},
		{observe.Text("a", "")},
		{observe.Text("a", "b")},
		{observe.Text("ab", "")},
		{observe.Text("a", "1")},
		{observe.Int("a", 1)},
		{observe.Int("a", 2)},
		{observe.Seconds("a", 1)},
		{observe.Seconds("a", 1.5)},
		{flag(true)},
		{flag(false)},
		{observe.Text("a", "b"), observe.Text("c", "d")},
		{observe.Text("a", "b\x01c\x04\x01d")},
		{observe.Text("c", "d"), observe.Text("a", "b")}, // the same set, twice in the table, is right too
	} {
		key := string(labels(nil, said))
		if before, ok := seen[key]; ok {
			t.Errorf("%v is taken for case %d", said, before)
		}
		seen[key] = i
	}
}

// What it costs to measure one piece of a stream.
func BenchmarkPiece(b *testing.B) {
	m, err := New(Config{}, Options{Model: func(name string) string { return name }})
	if err != nil {
		b.Fatal(err)
	}
	ctx := observe.With(b.Context(), m)
	said := []observe.Attribute{
		observe.Text(observe.OperationName, observe.OpChat), observe.Text(observe.RequestModel, "gpt"), {Key: observe.RequestStream, Value: slog.BoolValue(true)},
		observe.Text(observe.ProviderName, "openai"), observe.Text(observe.ServerAddress, "api.openai.com"),
	}
	b.ReportAllocs()
	took := observe.Lengths(ctx, observe.ChatNextChunk, said...)
	for b.Loop() {
		took(0.02)
	}
}
