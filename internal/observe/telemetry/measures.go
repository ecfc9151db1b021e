package telemetry

import (
	"context"
	"slices"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/dragoman-mcp/dragoman/internal/observe"
)

// measures are the instruments of all metrics.
type measures struct {
	meter      metric.Meter
	histograms map[string]metric.Float64Histogram
	counters   map[string]metric.Int64Counter
	observed   map[string]metric.Int64Observable

	mu      sync.Mutex
	sources []func(report func(name string, value int64, attributes ...observe.Attribute))
}

// kept are the counters that somebody else keeps.
var kept = []string{observe.GoMemoryAllocated}

func newMeasures(meter metric.Meter) (*measures, error) {
	m := &measures{
		meter: meter, histograms: map[string]metric.Float64Histogram{}, counters: map[string]metric.Int64Counter{},
		observed: map[string]metric.Int64Observable{},
	}
	var all []metric.Observable
	for _, each := range observe.Metrics {
		about := metric.WithDescription(each.Doc)
		unit := metric.WithUnit(each.Unit)
		var err error
		switch {
		case each.Shape == observe.Histogram:
			m.histograms[each.Name], err = meter.Float64Histogram(each.Name, about, unit, metric.WithExplicitBucketBoundaries(each.Buckets...))
		case each.Shape == observe.Counter && slices.Contains(kept, each.Name):
			m.observed[each.Name], err = meter.Int64ObservableCounter(each.Name, about, unit)
		case each.Shape == observe.Counter:
			m.counters[each.Name], err = meter.Int64Counter(each.Name, about, unit)
		default:
			m.observed[each.Name], err = meter.Int64ObservableGauge(each.Name, about, unit)
		}
		if err != nil {
			return nil, err
		}
		if o := m.observed[each.Name]; o != nil {
			all = append(all, o)
		}
	}
	m.sources = append(m.sources, runtimeReadings)
	_, err := meter.RegisterCallback(m.read, all...)
	return m, err
}

// read asks all sources for what there is now.
func (m *measures) read(_ context.Context, to metric.Observer) error {
	m.mu.Lock()
	sources := slices.Clone(m.sources)
	m.mu.Unlock()
	for _, source := range sources {
		source(func(name string, value int64, attributes ...observe.Attribute) {
			if instrument := m.observed[name]; instrument != nil {
				to.ObserveInt64(instrument, value, metric.WithAttributeSet(set(attributes)))
			}
		})
	}
	return nil
}

// Read has a source asked for the values of gauges whenever somebody wants to know.
func (t *Telemetry) Read(source func(report func(name string, value int64, attributes ...observe.Attribute))) {
	if !t.Measuring() {
		return
	}
	t.measure.mu.Lock()
	defer t.measure.mu.Unlock()
	t.measure.sources = append(t.measure.sources, source)
}

// bounded returns those of the attributes that a metric has, with models called as the
// configuration calls them.
func (t *Telemetry) bounded(name string, said []observe.Attribute) attribute.Set {
	m := observe.Named(name)
	few := make([]observe.Attribute, 0, len(m.Attributes))
	for _, a := range said {
		if !slices.Contains(m.Attributes, a.Key) {
			continue
		}
		if a.Key == observe.RequestModel {
			text, _ := a.Value.(string)
			a.Value = t.model(text)
		}
		few = append(few, a)
	}
	return set(few)
}

func (t *Telemetry) model(name string) string {
	if t.o.Model == nil {
		return observe.Other
	}
	return t.o.Model(name)
}

func set(said []observe.Attribute) attribute.Set { return attribute.NewSet(pairs(said)...) }

func pairs(said []observe.Attribute) []attribute.KeyValue {
	all := make([]attribute.KeyValue, 0, len(said))
	for _, a := range said {
		all = append(all, pair(a))
	}
	return all
}

func pair(a observe.Attribute) attribute.KeyValue {
	switch v := a.Value.(type) {
	case string:
		return attribute.String(a.Key, v)
	case int64:
		return attribute.Int64(a.Key, v)
	case float64:
		return attribute.Float64(a.Key, v)
	case bool:
		return attribute.Bool(a.Key, v)
	case []string:
		return attribute.StringSlice(a.Key, v)
	}
	return attribute.String(a.Key, "")
}

// Count implements [observe.Observer].
func (t *Telemetry) Count(ctx context.Context, name string, n int64, said []observe.Attribute) {
	if t.measure != nil {
		t.measure.counters[name].Add(ctx, n, metric.WithAttributeSet(t.bounded(name, said)))
	}
}

// Length implements [observe.Observer].
func (t *Telemetry) Length(ctx context.Context, name string, value float64, said []observe.Attribute) {
	if t.measure != nil {
		t.measure.histograms[name].Record(ctx, value, metric.WithAttributeSet(t.bounded(name, said)))
	}
}
