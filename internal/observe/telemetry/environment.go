package telemetry

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/observe/otlp"
)

// A lookup finds variables of the environment, as [os.LookupEnv] does.
type lookup func(string) (string, bool)

func (l lookup) get(name string) string {
	if l == nil {
		return ""
	}
	value, _ := l(name)
	return strings.TrimSpace(value)
}

// of returns the variable of one signal, else that of all, with its name.
func (l lookup) of(signal, rest string) (name, value string) {
	name = "OTEL_EXPORTER_OTLP_" + signal + "_" + rest
	if value = l.get(name); value != "" {
		return name, value
	}
	name = "OTEL_EXPORTER_OTLP_" + rest
	return name, l.get(name)
}

// off reports whether the environment turns everything off.
func (l lookup) off() bool { return strings.EqualFold(l.get("OTEL_SDK_DISABLED"), "true") }

// exporter returns the client of a signal, TRACES or METRICS, and nil where neither the
// configuration nor the environment says where it goes (OpenTelemetry, "OTLP Exporter
// Configuration").
func (l lookup) exporter(c *Config, signal string) (*otlp.Client, error) {
	address, err := l.address(c, signal)
	if address == "" || err != nil {
		return nil, err
	}
	if wrong := checkAddress(address); wrong != "" {
		return nil, fmt.Errorf("the endpoint for %s: %s", strings.ToLower(signal), wrong)
	}
	if name, protocol := l.of(signal, "PROTOCOL"); protocol != "" && protocol != "http/protobuf" {
		return nil, fmt.Errorf("%s is %q, and OTLP is sent as http/protobuf alone", name, protocol)
	}
	name, packed := l.of(signal, "COMPRESSION")
	if packed != "" && packed != "gzip" && packed != "none" {
		return nil, fmt.Errorf("%s is %q, and there is gzip and none", name, packed)
	}
	client := &otlp.Client{URL: address, Header: http.Header{}, Gzip: packed == "gzip"}
	name, list := l.of(signal, "HEADERS")
	if err := addHeaders(client.Header, name, list); err != nil {
		return nil, err
	}
	for name, value := range c.Headers {
		client.Header.Set(name, value.Reveal())
	}
	if client.Timeout, err = milliseconds(l.of(signal, "TIMEOUT")); err != nil {
		return nil, err
	}
	if client.TLS, err = l.tls(signal); err != nil {
		return nil, err
	}
	return client.Open(), nil
}

// milliseconds reads the value of a variable; without one it is 0.
func milliseconds(name, value string) (time.Duration, error) {
	if value == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%s is a number of milliseconds", name)
	}
	return time.Duration(n) * time.Millisecond, nil
}

// checkBatches reports a variable of how spans are batched that is no number: those the SDK
// reads itself, and logs in its own form what it cannot read.
func (l lookup) checkBatches() error {
	for _, rest := range []string{"SCHEDULE_DELAY", "EXPORT_TIMEOUT", "MAX_QUEUE_SIZE", "MAX_EXPORT_BATCH_SIZE"} {
		name := "OTEL_BSP_" + rest
		if value := l.get(name); value != "" {
			if n, err := strconv.Atoi(value); err != nil || n < 0 {
				return fmt.Errorf("%s is a number", name)
			}
		}
	}
	return nil
}

// address is where a signal goes; empty for nowhere.
func (l lookup) address(c *Config, signal string) (string, error) {
	path := "/v1/" + strings.ToLower(signal)
	chosen := l.get("OTEL_" + signal + "_EXPORTER")
	switch {
	case c.Endpoint != "":
		return strings.TrimRight(c.Endpoint, "/") + path, nil
	case chosen == "none":
		return "", nil
	case chosen != "" && chosen != "otlp":
		return "", fmt.Errorf("OTEL_%s_EXPORTER is %q, and there is otlp and none", signal, chosen)
	}
	if own := l.get("OTEL_EXPORTER_OTLP_" + signal + "_ENDPOINT"); own != "" {
		return own, nil // as it is
	}
	base := l.get("OTEL_EXPORTER_OTLP_ENDPOINT")
	if base == "" && chosen == "otlp" {
		base = "http://localhost:4318"
	}
	if base == "" {
		return "", nil
	}
	return strings.TrimRight(base, "/") + path, nil
}

// addHeaders adds headers that a variable lists as pairs, as baggage is.
func addHeaders(header http.Header, variable, list string) error {
	for pair := range strings.SplitSeq(list, ",") {
		name, value, ok := strings.Cut(pair, "=")
		if strings.TrimSpace(pair) == "" {
			continue
		}
		plain, err := url.PathUnescape(strings.TrimSpace(value))
		if !ok || err != nil {
			return fmt.Errorf("%s is a list such as name=value,name=value", variable)
		}
		header.Set(strings.TrimSpace(name), plain)
	}
	return nil
}

// tls is how the collector is known, and we to it.
func (l lookup) tls(signal string) (*tls.Config, error) {
	authoritiesName, authorities := l.of(signal, "CERTIFICATE")
	ownName, own := l.of(signal, "CLIENT_CERTIFICATE")
	_, key := l.of(signal, "CLIENT_KEY")
	if authorities == "" && own == "" {
		return nil, nil
	}
	config := &tls.Config{}
	if authorities != "" {
		text, err := os.ReadFile(authorities)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", authoritiesName, err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s: there is no certificate in %s", authoritiesName, authorities)
		}
	}
	if own != "" {
		pair, err := tls.LoadX509KeyPair(own, key)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", ownName, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// pairs are those of OTEL_RESOURCE_ATTRIBUTES.
func (l lookup) pairs() map[string]string {
	all := map[string]string{}
	for pair := range strings.SplitSeq(l.get("OTEL_RESOURCE_ATTRIBUTES"), ",") {
		name, value, ok := strings.Cut(pair, "=")
		plain, err := url.PathUnescape(strings.TrimSpace(value))
		if ok && err == nil {
			all[strings.TrimSpace(name)] = plain
		}
	}
	return all
}
