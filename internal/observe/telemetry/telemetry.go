// Package telemetry makes spans and metrics of what is observed, and sends them, or shows
// them, to those who look after the gateway.
//
// Traces are made where an address is known to which they go; metrics in any case, unless
// they are turned off: who may read /metrics finds them there. What is sent in vain is
// dropped: nobody waits for a collector.
package telemetry

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/dragoman-mcp/dragoman/internal/observe"
	"github.com/dragoman-mcp/dragoman/internal/observe/otlp"
	"github.com/dragoman-mcp/dragoman/internal/observe/prometheus"
)

// scope names us as the one who measures.
const scope = "github.com/dragoman-mcp/dragoman"

// maxSets is how many sets of attributes one metric may have; what comes then is counted
// together, under otel.metric.overflow.
const maxSets = 4000

// Options are what a [Telemetry] needs beside its configuration.
type Options struct {
	// Lookup finds variables of the environment; nil: there are none.
	Lookup func(string) (string, bool)
	// Version is our version.
	Version string
	// Model returns what a model is called in metrics: a name or a pattern of the
	// configuration, so that there are few; nil calls all models [observe.Other].
	Model func(name string) string
	// Hide hides secrets in what people and tools say; nil hides nothing.
	Hide func(text string) string
	// Log is told what could not be sent; nil discards it.
	Log *slog.Logger
}

// A Telemetry is an [observe.Observer]. Make it with [New] and end it with Close.
type Telemetry struct {
	o       Options
	content bool
	tracer  trace.Tracer // nil where nobody traces
	spans   *sdktrace.TracerProvider
	meters  *metric.MeterProvider // nil where no metrics are sent
	measure *measures             // nil where nothing is measured
	clients []*otlp.Client
	sending *sendingErrors
}

// New returns a Telemetry; nil where the configuration leaves nothing to do.
func New(c Config, o Options) (*Telemetry, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	env := lookup(o.Lookup)
	t := &Telemetry{o: o, content: c.Traces.Content, sending: &sendingErrors{log: o.Log}}
	about := t.resource(&c, env)
	if !c.Traces.Off && !(env.off() && c.Endpoint == "") {
		client, err := env.exporter(&c, "TRACES")
		if err != nil {
			return nil, err
		}
		if client != nil {
			sampler, err := env.sampler(&c)
			if err == nil {
				err = env.checkBatches()
			}
			if err != nil {
				return nil, err
			}
			t.clients = append(t.clients, client)
			t.spans = sdktrace.NewTracerProvider(sdktrace.WithResource(about), sdktrace.WithSampler(sampler), sdktrace.WithBatcher(&spanExporter{client, t.sending}))
			t.tracer = t.spans.Tracer(scope, trace.WithInstrumentationVersion(o.Version))
		}
	}
	if !c.Metrics.Off {
		if err := t.measures(&c, env, about); err != nil {
			return nil, errors.Join(err, t.Close(context.Background()))
		}
	}
	if t.tracer == nil && t.measure == nil {
		return nil, nil
	}
	return t, nil
}

// measures makes what measures, and sends it where somebody wants it.
func (t *Telemetry) measures(c *Config, env lookup, about *resource.Resource) error {
	t.measure = newMeasures(t.o.Version)
	if env.off() && c.Endpoint == "" {
		return nil
	}
	client, err := env.exporter(c, "METRICS")
	if err != nil || client == nil {
		return err
	}
	t.clients = append(t.clients, client)
	interval, err := env.interval(c)
	if err != nil {
		return err
	}
	exporter := &metricExporter{client: client, errors: t.sending}
	t.meters = metric.NewMeterProvider(metric.WithResource(about), metric.WithReader(metric.NewPeriodicReader(exporter, metric.WithInterval(interval), metric.WithProducer(t.measure))))
	return nil
}

// resource is what is said of us with all that is sent.
func (t *Telemetry) resource(c *Config, env lookup) *resource.Resource {
	said := map[string]string{observe.ServiceInstanceID: rand.Text(), observe.ServiceVersion: t.o.Version}
	maps.Copy(said, env.pairs())
	said[observe.ServiceName] = cmp.Or(c.Service, env.get("OTEL_SERVICE_NAME"), said[observe.ServiceName], "dragoman")
	var all []attribute.KeyValue
	for _, key := range slices.Sorted(maps.Keys(said)) {
		all = append(all, attribute.String(key, said[key]))
	}
	return resource.NewSchemaless(all...)
}

// Tracing reports whether spans are made.
func (t *Telemetry) Tracing() bool { return t != nil && t.tracer != nil }

// Measuring reports whether metrics are.
func (t *Telemetry) Measuring() bool { return t != nil && t.measure != nil }

// Write writes what was measured, as Prometheus reads it.
func (t *Telemetry) Write(ctx context.Context, w io.Writer) error {
	all, err := t.measure.Produce(ctx)
	if err != nil {
		return err
	}
	return prometheus.Write(w, &metricdata.ResourceMetrics{ScopeMetrics: all})
}

// ServeHTTP serves the metrics.
func (t *Telemetry) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", prometheus.ContentType)
	if err := t.Write(r.Context(), w); err != nil {
		t.o.Log.Debug("the metrics did not arrive", "error", err)
	}
}

// Listen serves the metrics, and nothing else, on an address of their own until ctx ends,
// behind guard.
func (t *Telemetry) Listen(ctx context.Context, address string, guard func(http.Handler) http.Handler) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", t)
	server := &http.Server{Handler: guard(mux), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: time.Minute, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	t.o.Log.Info("metrics", "address", "http://"+listener.Addr().String()+"/metrics")
	if err := server.Serve(listener); ctx.Err() == nil {
		return err
	}
	return nil
}

// Close sends what is left, as far as ctx allows.
func (t *Telemetry) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	var err error
	if t.spans != nil {
		err = t.spans.Shutdown(ctx)
	}
	if t.meters != nil {
		err = errors.Join(err, t.meters.Shutdown(ctx))
	}
	for _, c := range t.clients {
		c.Close()
	}
	return err
}
