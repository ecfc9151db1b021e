package otlp

import (
	stdbytes "bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// A Client sends messages to one address of a collector.
type Client struct {
	// URL is where the messages go, with the path of the signal, such as /v1/traces.
	URL string
	// Header goes with each message; nil for nothing.
	Header http.Header
	// Gzip compresses messages.
	Gzip bool
	// Timeout bounds one message with all its tries; 10 seconds if zero.
	Timeout time.Duration
	// TLS is how the collector is known, and we to it; nil is as everywhere.
	TLS *tls.Config

	http *http.Client
}

// DefaultTimeout is the Timeout of a [Client] that has none.
const DefaultTimeout = 10 * time.Second

// maxTries is how often one message is sent at most. What is measured is of use for a
// while only: what a collector does not take by then is dropped.
const maxTries = 5

// Open makes the client ready.
func (c *Client) Open() *Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost, transport.TLSClientConfig = 2, c.TLS
	c.http = &http.Client{
		Transport: transport,
		// The header may have a key, which is for this address.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c
}

// Close closes connections that are not in use.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// A StatusError is an answer of a collector that did not take a message.
type StatusError struct{ Status int }

// Error names the status.
func (e *StatusError) Error() string {
	return fmt.Sprintf("the collector answered with HTTP status %d", e.Status)
}

// Send sends a message, and again where the collector is busy or away, with growing
// pauses, or the one that it asks for (OTLP, "OTLP/HTTP Response").
func (c *Client) Send(ctx context.Context, body []byte) error {
	timeout := c.Timeout
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if c.Gzip {
		var b stdbytes.Buffer
		w := gzip.NewWriter(&b)
		_, _ = w.Write(body)
		_ = w.Close()
		body = b.Bytes()
	}
	for try := 1; ; try++ {
		after, err := c.try(ctx, body)
		if err == nil || after < 0 || try == maxTries {
			return err
		}
		if after == 0 {
			after = time.Second << (try - 1)
			after += rand.N(after/2 + 1)
		}
		timer := time.NewTimer(after)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
}

// try sends a message once, and says when to send it again; below 0 never.
func (c *Client) try(ctx context.Context, body []byte) (after time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL, stdbytes.NewReader(body))
	if err != nil {
		return -1, err
	}
	maps.Copy(req.Header, c.Header)
	req.Header.Set("Content-Type", "application/x-protobuf")
	req.Header.Set("User-Agent", "dragoman")
	if c.Gzip {
		req.Header.Set("Content-Encoding", "gzip")
	}
	res, err := c.http.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	_, _ = io.CopyN(io.Discard, res.Body, 64<<10)
	switch res.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		seconds, _ := strconv.Atoi(res.Header.Get("Retry-After"))
		return time.Duration(max(seconds, 0)) * time.Second, &StatusError{res.StatusCode}
	}
	if res.StatusCode/100 != 2 {
		return -1, &StatusError{res.StatusCode}
	}
	return 0, nil
}
