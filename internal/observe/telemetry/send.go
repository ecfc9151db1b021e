package telemetry

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/dragoman-mcp/dragoman/internal/observe/otlp"
)

// sendingErrors says that a collector takes nothing, once in a while.
type sendingErrors struct {
	log  *slog.Logger
	mu   sync.Mutex
	said time.Time
}

// maxSaid is how often it is said.
const maxSaid = time.Minute

func (s *sendingErrors) say(what string, err error) {
	if err == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.said) < maxSaid {
		return
	}
	s.said = time.Now()
	s.log.Warn(what+" could not be sent to the collector, and are dropped", "error", err)
}

// A spanExporter sends spans. What it cannot send is dropped, and said here, so that the
// SDK has nothing to say of it.
type spanExporter struct {
	client *otlp.Client
	errors *sendingErrors
}

// ExportSpans implements [sdktrace.SpanExporter].
func (e *spanExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if len(spans) > 0 {
		e.errors.say("traces", e.client.Send(ctx, otlp.Traces(spans)))
	}
	return nil
}

// Shutdown implements [sdktrace.SpanExporter].
func (e *spanExporter) Shutdown(context.Context) error { return nil }

// A metricExporter sends metrics.
type metricExporter struct {
	client *otlp.Client
	errors *sendingErrors
}

// Temporality implements [metric.Exporter].
func (e *metricExporter) Temporality(kind metric.InstrumentKind) metricdata.Temporality {
	return metric.DefaultTemporalitySelector(kind)
}

// Aggregation implements [metric.Exporter].
func (e *metricExporter) Aggregation(kind metric.InstrumentKind) metric.Aggregation {
	return metric.DefaultAggregationSelector(kind)
}

// Export implements [metric.Exporter].
func (e *metricExporter) Export(ctx context.Context, data *metricdata.ResourceMetrics) error {
	e.errors.say("metrics", e.client.Send(ctx, otlp.Metrics(data)))
	return nil
}

// ForceFlush implements [metric.Exporter].
func (e *metricExporter) ForceFlush(context.Context) error { return nil }

// Shutdown implements [metric.Exporter].
func (e *metricExporter) Shutdown(context.Context) error { return nil }

// interval is how often metrics are sent: as the configuration says, else as the environment
// does. What cannot be read is said here: the SDK reads the variable, too, and logs that in a
// form of its own.
func (l lookup) interval(c *Config) (time.Duration, error) {
	const variable = "OTEL_METRIC_EXPORT_INTERVAL"
	said, err := milliseconds(variable, l.get(variable))
	return cmp.Or(c.Metrics.Interval, said, defaultInterval), err
}

// sampler decides which traces are sent: of those that begin here so many of a hundred,
// and of others what their callers say, unless the environment says otherwise and the
// configuration nothing.
func (l lookup) sampler(c *Config) (sdktrace.Sampler, error) {
	name := l.get("OTEL_TRACES_SAMPLER")
	if name == "" || c.Traces.Sample != 0 {
		share := float64(cmp.Or(c.Traces.Sample, 100)) / 100
		return sdktrace.ParentBased(sdktrace.TraceIDRatioBased(share)), nil
	}
	ratio := 1.0
	if text := l.get("OTEL_TRACES_SAMPLER_ARG"); text != "" {
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || !(n >= 0 && n <= 1) {
			return nil, fmt.Errorf("OTEL_TRACES_SAMPLER_ARG is %q, and a number from 0 to 1 is wanted", text)
		}
		ratio = n
	}
	plain, parent := strings.CutPrefix(name, "parentbased_")
	samplers := map[string]sdktrace.Sampler{"always_on": sdktrace.AlwaysSample(), "always_off": sdktrace.NeverSample(), "traceidratio": sdktrace.TraceIDRatioBased(ratio)}
	s, ok := samplers[plain]
	switch {
	case !ok:
		return nil, fmt.Errorf("OTEL_TRACES_SAMPLER is %q, and there is always_on, always_off, traceidratio, each also behind parentbased_", name)
	case parent:
		return sdktrace.ParentBased(s), nil
	}
	return s, nil
}
