//go:build unix

package plainhttp_test

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/net/http2"

	"github.com/dragoman-mcp/dragoman/internal/stage/resetting"
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
			roots := x509.NewCertPool()
			roots.AddCert(s.Certificate())
			rt := transport(func(t *http.Transport) {
				t.TLSClientConfig, t.ForceAttemptHTTP2 = &tls.Config{RootCAs: roots}, true
			})
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
