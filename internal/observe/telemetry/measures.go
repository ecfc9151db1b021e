package telemetry

import (
	"context"
	"encoding/binary"
	"log/slog"
	"slices"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/dragoman-mcp/dragoman/internal/observe"
)

// measures are the instruments of all metrics.
type measures struct {
	meter       metric.Meter
	instruments map[string]*instrument // histograms and counters
	observed    map[string]metric.Int64Observable

	mu       sync.RWMutex
	labelled map[string]labelled // by what their labels say
	sources  []func(report func(name string, value int64, attributes ...observe.Attribute))
}

// An instrument is a metric that is told what there was of something.
type instrument struct {
	about     *observe.Metric
	histogram metric.Float64Histogram
	counter   metric.Int64Counter
}

// kept are the counters that somebody else keeps.
var kept = []string{observe.GoMemoryAllocated}

func newMeasures(meter metric.Meter) (*measures, error) {
	m := &measures{
		meter: meter, instruments: map[string]*instrument{},
		observed: map[string]metric.Int64Observable{}, labelled: map[string]labelled{},
	}
	var all []metric.Observable
	for i := range observe.Metrics {
		each := &observe.Metrics[i]
		about := metric.WithDescription(each.Doc)
		unit := metric.WithUnit(each.Unit)
		var err error
		switch {
		case each.Shape == observe.Histogram:
			of := &instrument{about: each}
			m.instruments[each.Name] = of
			of.histogram, err = meter.Float64Histogram(each.Name, about, unit, metric.WithExplicitBucketBoundaries(each.Buckets...))
		case each.Shape == observe.Counter && slices.Contains(kept, each.Name):
			m.observed[each.Name], err = meter.Int64ObservableCounter(each.Name, about, unit)
		case each.Shape == observe.Counter:
			of := &instrument{about: each}
			m.instruments[each.Name] = of
			of.counter, err = meter.Int64Counter(each.Name, about, unit)
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

// A labelled measurement is ready for what OpenTelemetry's API takes: making it costs more
// than counting.
type labelled struct {
	add    []metric.AddOption
	record []metric.RecordOption
}

// maxLabelled bounds how many are kept. There are that few labels, since those that a
// metric has are of the configuration, the catalogue and protocols.
const maxLabelled = 4096

// bounded returns those of the attributes that a metric has, with models called as the
// configuration calls them.
func (t *Telemetry) bounded(of *instrument, said []observe.Attribute, more ...observe.Attribute) labelled {
	var room [12]observe.Attribute
	few := room[:0]
	for _, all := range [2][]observe.Attribute{said, more} {
		for _, a := range all {
			if !slices.Contains(of.about.Attributes, a.Key) {
				continue
			}
			if a.Key == observe.RequestModel {
				a = observe.Text(a.Key, t.model(a.Text()))
			}
			few = append(few, a)
		}
	}
	var space [256]byte
	key := labels(space[:0], few)
	t.measure.mu.RLock()
	l, ok := t.measure.labelled[string(key)]
	t.measure.mu.RUnlock()
	if ok {
		return l
	}
	t.measure.mu.Lock()
	defer t.measure.mu.Unlock()
	if len(t.measure.labelled) >= maxLabelled {
		clear(t.measure.labelled)
	}
	option := metric.WithAttributeSet(set(slices.Clone(few)))
	l = labelled{[]metric.AddOption{option}, []metric.RecordOption{option}}
	t.measure.labelled[string(key)] = l
	return l
}

// labels appends the attributes so that no two sets have the same text.
func labels(to []byte, of []observe.Attribute) []byte {
	for _, a := range of {
		to = binary.AppendUvarint(to, uint64(len(a.Key)))
		to = append(to, a.Key...)
		to = append(to, byte(a.Value.Kind()))
		switch a.Value.Kind() {
		case slog.KindString:
			to = binary.AppendUvarint(to, uint64(len(a.Value.String())))
			to = append(to, a.Value.String()...)
		case slog.KindInt64:
			to = binary.AppendVarint(to, a.Value.Int64())
		default:
			text := a.Value.String()
			to = binary.AppendUvarint(to, uint64(len(text)))
			to = append(to, text...)
		}
	}
	return to
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
	switch a.Value.Kind() {
	case slog.KindString:
		return attribute.String(a.Key, a.Value.String())
	case slog.KindInt64:
		return attribute.Int64(a.Key, a.Value.Int64())
	case slog.KindFloat64:
		return attribute.Float64(a.Key, a.Value.Float64())
	case slog.KindBool:
		return attribute.Bool(a.Key, a.Value.Bool())
	}
	texts, _ := a.Value.Any().([]string)
	return attribute.StringSlice(a.Key, texts)
}

// Count implements [observe.Observer].
func (t *Telemetry) Count(ctx context.Context, name string, n int64, said []observe.Attribute) {
	if t.measure != nil {
		of := t.measure.instruments[name]
		of.counter.Add(ctx, n, t.bounded(of, said).add...)
	}
}

// Prepare implements [observe.Preparer].
func (t *Telemetry) Prepare(name string, said []observe.Attribute) func(context.Context, float64) {
	if t == nil || t.measure == nil {
		return func(context.Context, float64) {}
	}
	of := t.measure.instruments[name]
	labelled := t.bounded(of, said)
	return func(ctx context.Context, value float64) { of.histogram.Record(ctx, value, labelled.record...) }
}

// Length implements [observe.Observer].
func (t *Telemetry) Length(ctx context.Context, name string, value float64, said []observe.Attribute) {
	if t.measure != nil {
		t.length(ctx, name, value, said)
	}
}

// length is told more attributes than were said of the whole.
func (t *Telemetry) length(ctx context.Context, name string, value float64, said []observe.Attribute, more ...observe.Attribute) {
	of := t.measure.instruments[name]
	of.histogram.Record(ctx, value, t.bounded(of, said, more...).record...)
}
