package prometheus

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/dragoman-mcp/dragoman/internal/observe"
)

func TestText(t *testing.T) {
	at := time.Unix(1, 0)
	odd := attribute.NewSet(attribute.String("a.b", "quote \" slash \\ line\nend \xff"))
	data := &metricdata.ResourceMetrics{ScopeMetrics: []metricdata.ScopeMetrics{{Metrics: []metricdata.Metrics{
		{Name: "z.up", Data: metricdata.Gauge[int64]{DataPoints: []metricdata.DataPoint[int64]{{Attributes: odd, Time: at, Value: -1}}}},
		{Name: "a.time", Unit: "s", Description: "two\nlines", Data: metricdata.Histogram[float64]{DataPoints: []metricdata.HistogramDataPoint[float64]{{
			Count: 6, Sum: 2.5, Bounds: []float64{0.5, 1}, BucketCounts: []uint64{1, 2, 3},
		}}}},
		{Name: "m.bytes", Unit: "By", Data: metricdata.Sum[int64]{IsMonotonic: true, DataPoints: []metricdata.DataPoint[int64]{{Value: math.MaxInt64}}}},
	}}}}
	var got strings.Builder
	if err := Write(&got, data); err != nil {
		t.Fatal(err)
	}
	want := `# HELP a_time_seconds two\nlines
# TYPE a_time_seconds histogram
a_time_seconds_bucket{le="0.5"} 1
a_time_seconds_bucket{le="1"} 3
a_time_seconds_bucket{le="+Inf"} 6
a_time_seconds_sum 2.5
a_time_seconds_count 6
# HELP m_bytes_total 
# TYPE m_bytes_total counter
m_bytes_total 9.223372036854776e+18
# HELP z_up 
# TYPE z_up gauge
z_up{a_b="quote \" slash \\ line\nend ` + "\uFFFD" + `"} -1
`
	want = strings.Replace(want, `quote " slash \ line`, `quote \" slash \\ line`, 1)
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Error(diff)
	}
}

func TestName(t *testing.T) {
	for _, test := range []struct {
		name  string
		shape observe.Shape
		unit  string
		want  string
	}{
		{"gen_ai.client.operation.duration", observe.Histogram, "s", "gen_ai_client_operation_duration_seconds"},
		{"gen_ai.client.token.usage", observe.Histogram, "{token}", "gen_ai_client_token_usage"},
		{"dragoman.approvals", observe.Counter, "{approval}", "dragoman_approvals_total"},
		{"go.memory.used", observe.Gauge, "By", "go_memory_used_bytes"},
		{"share", observe.Gauge, "1", "share_ratio"},
	} {
		if got := Name(test.name, test.shape, test.unit); got != test.want {
			t.Errorf("%s is %s, want %s", test.name, got, test.want)
		}
	}
}
