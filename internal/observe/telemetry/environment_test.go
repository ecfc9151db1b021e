package telemetry

import (
	"strings"
	"testing"
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
	} {
		variables := map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", name: value}
		var c Config
		c.SetDefaults()
		made, err := New(c, Options{Lookup: func(name string) (string, bool) {
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
		config.SetDefaults()
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
