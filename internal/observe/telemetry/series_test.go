package telemetry

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.opentelemetry.io/otel/attribute"
	api "go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/dragoman-mcp/dragoman/internal/observe"
)

// What is measured is what OpenTelemetry's own SDK measures: the same values in the same
// buckets, bounds included, under the same sets of attributes, and in the same series of
// overflow where there are too many.
func TestSeriesAreThoseOfTheSDK(t *testing.T) {
	reader := metric.NewManualReader()
	meter := metric.NewMeterProvider(metric.WithReader(reader), metric.WithCardinalityLimit(maxSets)).Meter(scope)
	theirs := map[string]api.Float64Histogram{}
	for _, name := range []string{observe.ToolDuration, observe.AgentChats} {
		i := instrumentOf(t, newMeasures(""), name)
		h, err := meter.Float64Histogram(name, api.WithUnit(i.about.Unit), api.WithDescription(i.about.Doc), api.WithExplicitBucketBoundaries(i.about.Buckets...))
		if err != nil {
			t.Fatal(err)
		}
		theirs[name] = h
	}
	count, err := meter.Int64Counter(observe.Truncated, api.WithUnit("{result}"), api.WithDescription(instrumentOf(t, newMeasures(""), observe.Truncated).about.Doc))
	if err != nil {
		t.Fatal(err)
	}

	ours, err := New(Config{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	seed := rand.New(rand.NewPCG(1, 2))
	tell := func(name string, value float64, said ...observe.Attribute) {
		ours.Length(t.Context(), name, value, said)
		theirs[name].Record(t.Context(), value, api.WithAttributes(pairs(said)...))
	}
	for _, value := range []float64{0, 0.01, 0.010000001, 300, 301, 1e9, 1, 2, 64, 65} {
		tell(observe.ToolDuration, value, observe.Text(observe.ToolName, "a"))
		tell(observe.AgentChats, value)
	}
	for range 2 * maxSets {
		name := observe.Text(observe.ToolName, strings.Repeat("x", 1+seed.IntN(40))+string(rune('a'+seed.IntN(26)))+string(rune('a'+seed.IntN(26))))
		server := observe.Text(observe.Server, string(rune('a'+seed.IntN(26))))
		tell(observe.ToolDuration, seed.Float64()*400, name, server)
		tell(observe.ToolDuration, seed.Float64()*400, server, name) // the same set
		ours.Count(t.Context(), observe.Truncated, 3, []observe.Attribute{name, server})
		count.Add(t.Context(), 3, api.WithAttributes(pairs([]observe.Attribute{name, server})...))
	}

	var want metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &want); err != nil {
		t.Fatal(err)
	}
	got, err := ours.measure.Produce(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wanted, measured := points(want.ScopeMetrics[0].Metrics), points(got[0].Metrics)
	if len(wanted) != 2*maxSets+1 {
		t.Errorf("%d series of the SDK, want as many as there may be", len(wanted))
	}
	for of, want := range wanted {
		if diff := cmp.Diff(want, measured[of], cmpopts.IgnoreTypes(time.Time{}, attribute.Set{}), cmpopts.EquateApprox(1e-9, 0), cmpopts.EquateEmpty(), cmp.AllowUnexported(metricdata.Extrema[float64]{})); diff != "" {
			t.Fatalf("%s: %s", of, diff)
		}
	}
	if len(measured) != len(wanted)+6 { // what Go's runtime says of itself
		t.Errorf("%d series, want %d", len(measured), len(wanted)+6)
	}
}

// points are all points of metrics, by all that tells them apart.
func points(of []metricdata.Metrics) map[string]any {
	all := map[string]any{}
	for _, m := range of {
		name := func(set attribute.Set) string {
			return m.Name + " " + m.Unit + " " + m.Description + " " + set.Encoded(attribute.DefaultEncoder())
		}
		switch data := m.Data.(type) {
		case metricdata.Histogram[float64]:
			for _, p := range data.DataPoints {
				all[name(p.Attributes)+data.Temporality.String()] = p
			}
		case metricdata.Sum[int64]:
			for _, p := range data.DataPoints {
				all[name(p.Attributes)+data.Temporality.String()] = p
			}
		case metricdata.Gauge[int64]:
			for _, p := range data.DataPoints {
				all[name(p.Attributes)] = p
			}
		}
	}
	return all
}

func instrumentOf(t *testing.T, m *measures, name string) *instrument {
	t.Helper()
	v := m.views[name]
	if v == nil {
		t.Fatalf("no metric is called %s", name)
	}
	return v.parts[0].of
}

// What several measure at once is all there, and what is read meanwhile is whole: as many
// values as its buckets have.
func TestSeriesAtOnce(t *testing.T) {
	const tellers, each = 8, 2000
	ours, err := New(Config{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	read := func() (n uint64) {
		all, _ := ours.measure.Produce(context.Background())
		for _, m := range all[0].Metrics {
			h, ok := m.Data.(metricdata.Histogram[float64])
			if !ok {
				continue
			}
			for _, p := range h.DataPoints {
				n += p.Count
				sum := uint64(0)
				for _, b := range p.BucketCounts {
					sum += b
				}
				if sum != p.Count || p.Sum != float64(p.Count) {
					t.Errorf("%d values, %d in buckets, which sum up to %v", p.Count, sum, p.Sum)
				}
			}
		}
		return n
	}
	var all sync.WaitGroup
	for i := range tellers {
		all.Go(func() {
			tool := observe.Text(observe.ToolName, string(rune('a'+i%2)))
			for range each {
				ours.Length(t.Context(), observe.ToolDuration, 1, []observe.Attribute{tool})
			}
		})
	}
	for range 50 {
		read()
	}
	all.Wait()
	if n := read(); n != tellers*each {
		t.Errorf("%d values, want %d", n, tellers*each)
	}
}
