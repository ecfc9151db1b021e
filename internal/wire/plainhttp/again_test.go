//go:build unix

package plainhttp_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/dragoman-mcp/dragoman/internal/stage/resetting"
	"github.com/dragoman-mcp/dragoman/internal/wire/plainhttp"
)

// A stream is reset with PROTOCOL_ERROR by whoever has something to complain of, be it of
// the answer: what may have been acted on is not sent again, as net/http would. What was
// refused (REFUSED_STREAM) was not acted on.
func TestReset(t *testing.T) {
	for _, tt := range []struct {
		name   string
		method string
		code   http2.ErrCode
		want   int64
	}{
		{"a call", "POST", http2.ErrCodeProtocol, 1},
		{"a call that was refused", "POST", http2.ErrCodeRefusedStream, 2},
		{"what reads, and was refused", "GET", http2.ErrCodeRefusedStream, 2},
		{"a deletion", "DELETE", http2.ErrCodeProtocol, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, requests := resetting.Server(t, tt.code)
			rt := trusting(s)
			defer rt.CloseIdleConnections()
			var body io.Reader
			if tt.method == "POST" {
				body = strings.NewReader("{}")
			}
			req, err := http.NewRequestWithContext(t.Context(), tt.method, s.URL, body)
			if err != nil {
				t.Fatal(err)
			}
			res, err := rt.RoundTrip(req)
			if err == nil {
				res.Body.Close()
			}
			if n := requests.Load(); n != tt.want || (err == nil) != (tt.want == 2) {
				t.Errorf("the server had it %d times, want %d: %v", n, tt.want, err)
			}
		})
	}
}

// What a server does not take (GOAWAY, the last stream before it) goes to the next connection,
// a few times, and not for as long as somebody waits.
func TestLeaving(t *testing.T) {
	again, restore := plainhttp.WithoutPauses()
	t.Cleanup(restore)
	for _, tt := range []struct {
		name       string
		most, want int64
	}{
		{"once, as one that stops", 1, 2},
		{"nearly always", again, again + 1},
		{"always", 1 << 40, again + 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, requests := resetting.Leaving(t, tt.most)
			rt := trusting(s)
			defer rt.CloseIdleConnections()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, _, err := post(ctx, rt, s.URL, "{}")
			if n := requests.Load(); n != tt.want || (err != nil) != (tt.most > again) || err != nil && !plainhttp.Refused(err) {
				t.Errorf("the server had it %d times, want %d: %v", n, tt.want, err)
			}
		})
	}
}

// A server that took one request again has done with refusing.
func TestLeavingIsOver(t *testing.T) {
	again, restore := plainhttp.WithoutPauses()
	t.Cleanup(restore)
	s, requests := resetting.Leaving(t, again)
	rt := trusting(s)
	defer rt.CloseIdleConnections()
	for range 2 {
		if _, _, err := post(t.Context(), rt, s.URL, "{}"); err != nil {
			t.Error(err)
		}
		rt.CloseIdleConnections()
		requests.Store(0)
	}
}

// Requests at the same time are refused together, and none is given up while another one waits
// for the next connection.
func TestLeavingTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wait, began := plainhttp.Refusals(), time.Now()
		for range 3 {
			go func() {
				for time.Since(began) < 5*time.Second { // until then the server refuses
					if err := wait(t.Context(), "host"); err != nil {
						t.Errorf("after %s: %v", time.Since(began), err)
						return
					}
				}
			}()
		}
		synctest.Wait()
		time.Sleep(time.Minute)
	})
}

func trusting(s *httptest.Server, change ...func(*http.Transport)) *plainhttp.Transport {
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return transport(func(t *http.Transport) {
		t.TLSClientConfig, t.ForceAttemptHTTP2 = &tls.Config{RootCAs: roots}, true
		for _, change := range change {
			change(t)
		}
	})
}
