package telemetry

import (
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/dragoman-mcp/dragoman/internal/observe"
)

// An instrument is a histogram or a counter, with all of its series. It is ours, and not the
// SDK's, because what is measured of one thing that ends is found at once, and because the
// SDK takes attributes anew with each measurement: that was the largest part of what metrics
// cost (docs/decisions/0413).
type instrument struct {
	about *observe.Metric

	mu     sync.Mutex
	series []*series // as they came
	by     map[attribute.Distinct]*series
}

// A series is what was measured under one set of attributes: of a counter its value, of a
// histogram how often, how much, and in which buckets.
type series struct {
	of     attribute.Set
	bounds []float64 // of buckets

	mu          sync.Mutex
	value       int64
	n           uint64 // of values, also those of a counter
	sum         float64
	least, most float64
	buckets     []uint64
}

// overflow has the measurements of all sets that a metric has no room for (OpenTelemetry,
// "Metrics SDK", "Overflow attribute").
var overflow = attribute.NewSet(attribute.Bool("otel.metric.overflow", true))

// at returns the series under a set of attributes.
func (i *instrument) at(set attribute.Set) *series {
	i.mu.Lock()
	defer i.mu.Unlock()
	if s := i.by[set.Equivalent()]; s != nil {
		return s
	}
	if len(i.series) >= maxSets-1 {
		if s := i.by[overflow.Equivalent()]; s != nil {
			return s
		}
		set = overflow
	}
	s := &series{of: set, bounds: i.about.Buckets}
	if i.about.Shape == observe.Histogram {
		s.buckets = make([]uint64, len(s.bounds)+1)
	}
	i.series = append(i.series, s)
	i.by[set.Equivalent()] = s
	return s
}

// record measures a value of a histogram.
func (s *series) record(value float64) {
	bucket := 0
	for bucket < len(s.bounds) && s.bounds[bucket] < value {
		bucket++
	}
	s.mu.Lock()
	if s.n == 0 {
		s.least, s.most = value, value
	}
	s.n++
	s.sum += value
	s.least, s.most = min(s.least, value), max(s.most, value)
	s.buckets[bucket]++
	s.mu.Unlock()
}

// add counts.
func (s *series) add(n int64) {
	s.mu.Lock()
	s.n++
	s.value += n
	s.mu.Unlock()
}

// read returns what was measured since a time; false where that is nothing.
func (i *instrument) read(began, now time.Time) (metricdata.Metrics, bool) {
	m := described(i.about)
	i.mu.Lock()
	all := i.series[:len(i.series):len(i.series)]
	i.mu.Unlock()
	if i.about.Shape == observe.Histogram {
		data := metricdata.Histogram[float64]{Temporality: metricdata.CumulativeTemporality}
		for _, s := range all {
			if p, ok := s.distribution(); ok {
				p.StartTime, p.Time = began, now
				data.DataPoints = append(data.DataPoints, p)
			}
		}
		m.Data = data
		return m, len(data.DataPoints) > 0
	}
	data := metricdata.Sum[int64]{Temporality: metricdata.CumulativeTemporality, IsMonotonic: true}
	for _, s := range all {
		if value, ok := s.total(); ok {
			data.DataPoints = append(data.DataPoints, metricdata.DataPoint[int64]{Attributes: s.of, StartTime: began, Time: now, Value: value})
		}
	}
	m.Data = data
	return m, len(data.DataPoints) > 0
}

func (s *series) distribution() (metricdata.HistogramDataPoint[float64], bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return metricdata.HistogramDataPoint[float64]{
		Attributes: s.of, Count: s.n, Bounds: s.bounds, BucketCounts: append([]uint64(nil), s.buckets...),
		Min: metricdata.NewExtrema(s.least), Max: metricdata.NewExtrema(s.most), Sum: s.sum,
	}, s.n > 0
}

func (s *series) total() (int64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.value, s.n > 0
}

func described(about *observe.Metric) metricdata.Metrics {
	return metricdata.Metrics{Name: about.Name, Description: about.Doc, Unit: about.Unit}
}
