package telemetry

import (
	"strings"
	"testing"
	"time"
)

// TestOddVariables: a variable that cannot be read is an error with its name, and neither
// passed over nor left to the SDK, which writes to standard error what it thinks of it.
func TestOddVariables(t *testing.T) {
	for name, value := range map[string]string{
		"OTEL_EXPORTER_OTLP_PROTOCOL":    "grpc",
		"OTEL_EXPORTER_OTLP_COMPRESSION": "br",
		"OTEL_EXPORTER_OTLP_TIMEOUT":     "10s",
		"OTEL_EXPORTER_OTLP_HEADERS":     "name",
		"OTEL_METRIC_EXPORT_INTERVAL":    "1m",
		"OTEL_METRICS_EXPORTER":          "console",
		"OTEL_TRACES_EXPORTER":           "console",
		"OTEL_TRACES_SAMPLER":            "often",
		"OTEL_BSP_SCHEDULE_DELAY":        "5s",
		"OTEL_BSP_MAX_QUEUE_SIZE":        "many",

		"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL":     "grpc",
		"OTEL_EXPORTER_OTLP_METRICS_COMPRESSION": "br",
		"OTEL_EXPORTER_OTLP_TRACES_TIMEOUT":      "10s",
		"OTEL_EXPORTER_OTLP_METRICS_HEADERS":     "name",
		"OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE":  "nowhere.pem",
	} {
		variables := map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", name: value}
		made, err := New(Config{}, Options{Lookup: func(name string) (string, bool) {
			value, ok := variables[name]
			return value, ok
		}})
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s=%s: %v", name, value, err)
		}
		_ = made.Close(t.Context())
	}
}

// TestSampleOfTheConfiguration: what the configuration says of the sample wins over the
// environment, all of a hundred too.
func TestSampleOfTheConfiguration(t *testing.T) {
	for _, c := range []struct {
		sample int
		env    string
		want   string
	}{
		{0, "", "ParentBased{root:TraceIDRatioBased{1}"}, {0, "always_off", "AlwaysOffSampler"},
		{100, "always_off", "ParentBased{root:TraceIDRatioBased{1}"}, {10, "always_off", "ParentBased{root:TraceIDRatioBased{0.1}"},
	} {
		var config Config
		if c.sample != 0 {
			config.Traces.Sample = c.sample
		}
		variables := map[string]string{"OTEL_TRACES_SAMPLER": c.env}
		sampler, err := lookup(func(name string) (string, bool) {
			value, ok := variables[name]
			return value, ok
		}).sampler(&config)
		if err != nil || !strings.HasPrefix(sampler.Description(), c.want) {
			t.Errorf("sample %d, OTEL_TRACES_SAMPLER=%s: %v %v", c.sample, c.env, sampler, err)
		}
	}
}

// TestIntervalOfTheConfiguration: so does what it says of how often metrics are sent, be it
// what goes without saying.
func TestIntervalOfTheConfiguration(t *testing.T) {
	for _, c := range []struct {
		config time.Duration
		env    string
		want   time.Duration
	}{
		{0, "", time.Minute}, {0, "5000", 5 * time.Second}, {time.Minute, "5000", time.Minute}, {time.Second, "", time.Second},
	} {
		config := Config{Metrics: Metrics{Interval: c.config}}
		got, err := lookup(func(string) (string, bool) { return c.env, c.env != "" }).interval(&config)
		if err != nil || got != c.want {
			t.Errorf("interval %s, OTEL_METRIC_EXPORT_INTERVAL=%s: %s %v", c.config, c.env, got, err)
		}
	}
}
