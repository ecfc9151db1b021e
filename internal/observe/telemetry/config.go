package telemetry

import (
	"net"
	"net/url"
	"strconv"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/text/invalid"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

// Config is the section telemetry of the configuration.
type Config struct {
	Endpoint string                 `yaml:"endpoint" doc:"Address of an OTLP collector that takes HTTP, such as http://localhost:4318: traces and metrics go there, below /v1. Default: what the OTEL_ variables say, else nowhere."`
	Headers  map[string]secret.Text `yaml:"headers" doc:"HTTP headers for the collector, such as a key."`
	Service  string                 `yaml:"service" doc:"service.name of all that is sent. Default: OTEL_SERVICE_NAME, else dragoman."`
	Traces   Traces                 `yaml:"traces" doc:"The traces of conversations and calls."`
	Metrics  Metrics                `yaml:"metrics" doc:"What is counted and measured."`
}

// Traces is the section traces of [Config].
type Traces struct {
	Off     bool `yaml:"off" doc:"Sends no traces, whatever the rest says."`
	Sample  int  `yaml:"sample" max:"100" doc:"How many of a hundred traces that begin here are sent. Those that a caller began go by what the caller says. Default: what OTEL_TRACES_SAMPLER says, else 100."`
	Content bool `yaml:"content" doc:"Adds the arguments and results of calls and the words of errors. They may hold what is nobody else's business."`
}

// Metrics is the section metrics of [Config].
type Metrics struct {
	Off      bool          `yaml:"off" doc:"Closes /metrics, measures nothing and sends nothing."`
	Listen   string        `yaml:"listen" doc:"Address and port for /metrics alone, where nobody is asked for a key, such as 127.0.0.1:9464. Default: /metrics stands beside the other routes, for those with the right ops:metrics."`
	Interval time.Duration `yaml:"interval" doc:"How often metrics are sent to the collector. Default: what OTEL_METRIC_EXPORT_INTERVAL says, else 1m."`
}

// defaultInterval is how often metrics are sent.
const defaultInterval = time.Minute

// Validate reports what cannot work.
func (c *Config) Validate() error {
	if c.Endpoint != "" {
		if err := checkAddress(c.Endpoint); err != "" {
			return invalid.Key("endpoint", err)
		}
	}
	if c.Traces.Sample < 0 {
		return invalid.Key("traces", "sample is a number from 0 to 100")
	}
	if c.Metrics.Interval < 0 {
		return invalid.Key("metrics", "interval is a time above zero")
	}
	if c.Metrics.Listen != "" {
		_, port, err := net.SplitHostPort(c.Metrics.Listen)
		if n, portErr := strconv.ParseUint(port, 10, 16); err != nil || portErr != nil || n > 65535 {
			return invalid.Key("metrics", "listen is a host and a port, such as 127.0.0.1:9464")
		}
	}
	return nil
}

// checkAddress says what is wrong with the address of a collector; empty for nothing.
func checkAddress(address string) string {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return "not a valid URL" // the error repeats it, and it may hold a secret
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return "the address of a collector begins with http:// or https://"
	case u.User != nil:
		return "a user name or password in the address is not sent; use headers"
	}
	return ""
}
