// Package prometheus writes what was measured in the text format that Prometheus reads
// (prometheus.io, "Exposition formats", version 0.0.4).
package prometheus

import (
	"bufio"
	"cmp"
	"io"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/dragoman-mcp/dragoman/internal/observe"
)

// ContentType is that of what [Write] writes.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// Name returns what Prometheus calls a metric: with underscores, and its unit and, for a
// counter, _total behind it (OpenTelemetry, "Prometheus and OpenMetrics Compatibility").
func Name(name string, shape observe.Shape, unit string) string {
	name = Label(name)
	suffix := map[string]string{"s": "_seconds", "By": "_bytes"}[unit]
	if shape == observe.Gauge && unit == "1" {
		suffix = "_ratio"
	}
	if !strings.HasSuffix(name, suffix) {
		name += suffix
	}
	if shape == observe.Counter {
		name += "_total"
	}
	return name
}

// Label returns what Prometheus calls an attribute.
func Label(key string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_':
			return r
		}
		return '_'
	}, key)
}

// Write writes what was measured, sorted by name.
func Write(w io.Writer, data *metricdata.ResourceMetrics) error {
	t := &text{bufio.NewWriter(w)}
	var all []metricdata.Metrics
	for _, scope := range data.ScopeMetrics {
		all = append(all, scope.Metrics...)
	}
	slices.SortFunc(all, func(a, b metricdata.Metrics) int { return cmp.Compare(a.Name, b.Name) })
	for _, m := range all {
		t.metric(m)
	}
	return t.Flush()
}

type text struct{ *bufio.Writer }

func (t *text) metric(m metricdata.Metrics) {
	switch data := m.Data.(type) {
	case metricdata.Gauge[int64]:
		numbers(t, t.head(m, observe.Gauge), data.DataPoints)
	case metricdata.Gauge[float64]:
		numbers(t, t.head(m, observe.Gauge), data.DataPoints)
	case metricdata.Sum[int64]:
		numbers(t, t.head(m, sum(data.IsMonotonic)), data.DataPoints)
	case metricdata.Sum[float64]:
		numbers(t, t.head(m, sum(data.IsMonotonic)), data.DataPoints)
	case metricdata.Histogram[float64]:
		name := t.head(m, observe.Histogram)
		for _, p := range data.DataPoints {
			t.histogram(name, p)
		}
	}
}

func sum(monotonic bool) observe.Shape {
	if monotonic {
		return observe.Counter
	}
	return observe.Gauge
}

// head writes what stands before the samples of a metric, and returns its name.
func (t *text) head(m metricdata.Metrics, shape observe.Shape) string {
	name := Name(m.Name, shape, m.Unit)
	t.line("# HELP ", name, " ", helpEscape.Replace(m.Description))
	t.line("# TYPE ", name, " ", string(shape))
	return name
}

func numbers[N int64 | float64](t *text, name string, points []metricdata.DataPoint[N]) {
	for _, p := range points {
		t.line(name, labels(p.Attributes, ""), " ", number(float64(p.Value)))
	}
}

func (t *text) histogram(name string, p metricdata.HistogramDataPoint[float64]) {
	total := uint64(0)
	for i, n := range p.BucketCounts {
		bound := "+Inf"
		if i < len(p.Bounds) {
			bound = number(p.Bounds[i])
		}
		total += n
		t.line(name, "_bucket", labels(p.Attributes, bound), " ", strconv.FormatUint(total, 10))
	}
	t.line(name, "_sum", labels(p.Attributes, ""), " ", number(p.Sum))
	t.line(name, "_count", labels(p.Attributes, ""), " ", strconv.FormatUint(p.Count, 10))
}

func (t *text) line(parts ...string) {
	for _, part := range parts {
		_, _ = t.WriteString(part) // Flush has the error
	}
	_ = t.WriteByte('\n')
}

func number(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

// labels are the attributes in braces, with the bound of a bucket where there is one.
func labels(set attribute.Set, bound string) string {
	var all []string
	for _, kv := range set.ToSlice() {
		all = append(all, Label(string(kv.Key))+`="`+labelEscape.Replace(strings.ToValidUTF8(kv.Value.Emit(), "\uFFFD"))+`"`)
	}
	if bound != "" {
		all = append(all, `le="`+bound+`"`)
	}
	if len(all) == 0 {
		return ""
	}
	return "{" + strings.Join(all, ",") + "}"
}

var (
	labelEscape = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
	helpEscape  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
)
