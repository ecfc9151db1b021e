package otlp

import (
	"math"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// cumulative is the temporality of all that is sent: sums since the start.
const cumulative = 2

// Metrics returns what was measured as an ExportMetricsServiceRequest, which has the form
// of MetricsData (opentelemetry/proto/metrics/v1/metrics.proto).
func Metrics(data *metricdata.ResourceMetrics) []byte {
	var request message
	request.in(1, func(m *message) {
		m.resource(data.Resource)
		for _, scope := range data.ScopeMetrics {
			m.in(2, func(m *message) {
				m.scope(scope.Scope)
				for _, each := range scope.Metrics {
					m.in(2, func(m *message) { m.metric(each) })
				}
			})
		}
	})
	return request
}

func (m *message) metric(each metricdata.Metrics) {
	m.text(1, each.Name)
	m.text(2, each.Description)
	m.text(3, each.Unit)
	switch data := each.Data.(type) {
	case metricdata.Gauge[int64]:
		m.in(5, func(m *message) { points(m, data.DataPoints, whole) })
	case metricdata.Gauge[float64]:
		m.in(5, func(m *message) { points(m, data.DataPoints, real) })
	case metricdata.Sum[int64]:
		m.in(7, func(m *message) { points(m, data.DataPoints, whole); m.sum(data.IsMonotonic) })
	case metricdata.Sum[float64]:
		m.in(7, func(m *message) { points(m, data.DataPoints, real); m.sum(data.IsMonotonic) })
	case metricdata.Histogram[float64]:
		m.in(9, func(m *message) {
			for _, p := range data.DataPoints {
				m.in(1, func(m *message) { m.histogram(p) })
			}
			m.number(2, cumulative)
		})
	}
}

func (m *message) sum(monotonic bool) {
	m.number(2, cumulative)
	m.flag(3, monotonic)
}

func whole(m *message, n int64) { m.fixed(6, uint64(n)) }

func real(m *message, f float64) { m.double(4, f) }

func points[N int64 | float64](m *message, all []metricdata.DataPoint[N], value func(*message, N)) {
	for _, p := range all {
		m.in(1, func(m *message) {
			m.times(p.StartTime, p.Time)
			value(m, p.Value)
			m.attributes(7, pairs(p.Attributes))
		})
	}
}

func (m *message) times(start, at time.Time) {
	if !start.IsZero() {
		m.fixed(2, uint64(start.UnixNano()))
	}
	m.fixed(3, uint64(at.UnixNano()))
}

func (m *message) histogram(p metricdata.HistogramDataPoint[float64]) {
	m.times(p.StartTime, p.Time)
	m.fixed(4, p.Count)
	m.double(5, p.Sum)
	m.packed(6, len(p.BucketCounts), func(i int) uint64 { return p.BucketCounts[i] })
	m.packed(7, len(p.Bounds), func(i int) uint64 { return math.Float64bits(p.Bounds[i]) })
	m.attributes(9, pairs(p.Attributes))
	if least, ok := p.Min.Value(); ok {
		m.double(11, least)
	}
	if most, ok := p.Max.Value(); ok {
		m.double(12, most)
	}
}

func pairs(set attribute.Set) []attribute.KeyValue { return set.ToSlice() }
