package telemetry

import (
	"context"
	"encoding/binary"
	"log/slog"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/dragoman-mcp/dragoman/internal/observe"
)

// measures are all metrics.
type measures struct {
	version     string
	began       time.Time
	instruments []*instrument     // histograms and counters
	views       map[string]*view  // of each of them, by its name
	ends        [len(kinds)]*view // of each kind, for what is measured when one ends

	mu      sync.Mutex
	sources []func(report func(name string, value int64, attributes ...observe.Attribute))
}

// kept are the counters that somebody else keeps.
var kept = []string{observe.GoMemoryAllocated}

func newMeasures(version string) *measures {
	m := &measures{version: version, began: time.Now(), views: map[string]*view{}}
	for i := range observe.Metrics {
		each := &observe.Metrics[i]
		if each.Shape == observe.Gauge || slices.Contains(kept, each.Name) {
			continue // it is asked for
		}
		of := &instrument{about: each, by: map[attribute.Distinct]*series{}}
		m.instruments = append(m.instruments, of)
		m.views[each.Name] = newView(part{of: of})
	}
	for kind, about := range kinds {
		var parts []part
		for _, each := range about.metrics {
			var more []observe.Attribute
			if each.tokens != "" {
				more = append(more, observe.Text(observe.TokenType, each.tokens))
			}
			parts = append(parts, part{m.views[each.name].parts[0].of, more})
		}
		m.ends[kind] = newView(parts...)
	}
	m.sources = append(m.sources, runtimeReadings)
	return m
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

// Produce implements [go.opentelemetry.io/otel/sdk/metric.Producer].
func (m *measures) Produce(context.Context) ([]metricdata.ScopeMetrics, error) {
	now := time.Now()
	all := metricdata.ScopeMetrics{Scope: instrumentation.Scope{Name: scope, Version: m.version}}
	for _, i := range m.instruments {
		if read, ok := i.read(m.began, now); ok {
			all.Metrics = append(all.Metrics, read)
		}
	}
	all.Metrics = append(all.Metrics, m.readings(now)...)
	return []metricdata.ScopeMetrics{all}, nil
}

// readings asks all sources for what there is now.
func (m *measures) readings(now time.Time) []metricdata.Metrics {
	m.mu.Lock()
	sources := slices.Clone(m.sources)
	m.mu.Unlock()
	points := map[string][]metricdata.DataPoint[int64]{}
	type place struct {
		name string
		of   attribute.Distinct
	}
	places := map[place]int{}
	for _, source := range sources {
		source(func(name string, value int64, attributes ...observe.Attribute) {
			p := metricdata.DataPoint[int64]{Attributes: set(attributes), StartTime: m.began, Time: now, Value: value}
			at := place{name, p.Attributes.Equivalent()}
			if i, ok := places[at]; ok { // what was said last is so
				points[name][i] = p
			} else if len(points[name]) < maxSets {
				places[at] = len(points[name])
				points[name] = append(points[name], p)
			}
		})
	}
	var all []metricdata.Metrics
	for i := range observe.Metrics {
		about := &observe.Metrics[i]
		if m.views[about.Name] != nil || points[about.Name] == nil {
			continue
		}
		read := described(about)
		if about.Shape == observe.Gauge {
			read.Data = metricdata.Gauge[int64]{DataPoints: points[about.Name]}
		} else {
			read.Data = metricdata.Sum[int64]{DataPoints: points[about.Name], Temporality: metricdata.CumulativeTemporality, IsMonotonic: true}
		}
		all = append(all, read)
	}
	return all
}

// A view finds the series of several instruments by what is said once.
type view struct {
	keys  []string // of all attributes that one of them has
	parts []part

	mu    sync.RWMutex
	known map[string][]*series // of each part, by what labels says
}

// A part of a view is an instrument, with attributes that are not said.
type part struct {
	of   *instrument
	more []observe.Attribute
}

func newView(parts ...part) *view {
	v := &view{parts: parts, known: map[string][]*series{}}
	for _, p := range parts {
		for _, key := range p.of.about.Attributes {
			if !slices.Contains(v.keys, key) {
				v.keys = append(v.keys, key)
			}
		}
	}
	return v
}

// maxKnown bounds what a view remembers. There are that few labels, since those that a
// metric has are of the configuration, the catalogue and protocols.
const maxKnown = maxSets

// at returns the series of each part under those of the attributes that it has, with models
// called as the configuration calls them.
func (t *Telemetry) at(v *view, said []observe.Attribute) []*series {
	var room [12]observe.Attribute
	few := room[:0]
	for _, a := range said {
		if !slices.Contains(v.keys, a.Key) {
			continue
		}
		if a.Key == observe.RequestModel {
			a = observe.Text(a.Key, t.model(a.Text()))
		}
		few = append(few, a)
	}
	var space [256]byte
	key := labels(space[:0], few)
	v.mu.RLock()
	all, ok := v.known[string(key)]
	v.mu.RUnlock()
	if ok {
		return all
	}
	for _, p := range v.parts {
		its := slices.Clone(p.more)
		for _, a := range few {
			if slices.Contains(p.of.about.Attributes, a.Key) {
				its = append(its, a)
			}
		}
		all = append(all, p.of.at(set(its)))
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.known) >= maxKnown {
		clear(v.known)
	}
	v.known[string(key)] = all
	return all
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
func (t *Telemetry) Count(_ context.Context, name string, n int64, said []observe.Attribute) {
	if t.measure != nil {
		t.at(t.measure.views[name], said)[0].add(n)
	}
}

// Prepare implements [observe.Preparer].
func (t *Telemetry) Prepare(name string, said []observe.Attribute) func(value float64) {
	if t == nil || t.measure == nil {
		return func(float64) {}
	}
	return t.at(t.measure.views[name], said)[0].record
}

// Length implements [observe.Observer].
func (t *Telemetry) Length(_ context.Context, name string, value float64, said []observe.Attribute) {
	if t.measure != nil {
		t.at(t.measure.views[name], said)[0].record(value)
	}
}
