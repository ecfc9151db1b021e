//go:build unix

package plainhttp_test

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/net/http2"
)

// frames is a server of HTTP/2 that resets the first stream with a code after it has read
// all of its request, and answers those after it with 204. It counts requests.
func frames(t *testing.T, code http2.ErrCode) (s *httptest.Server, requests *atomic.Int64) {
	requests = &atomic.Int64{}
	s = httptest.NewUnstartedServer(http.NotFoundHandler())
	s.EnableHTTP2 = true
	s.Config.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){"h2": func(_ *http.Server, c *tls.Conn, _ http.Handler) {
		_, _ = io.ReadFull(c, make([]byte, len(http2.ClientPreface)))
		f := http2.NewFramer(c, c)
		_ = f.WriteSettings()
		for {
			frame, err := f.ReadFrame()
			if err != nil {
				return
			}
			switch frame := frame.(type) {
			case *http2.SettingsFrame:
				if !frame.IsAck() {
					_ = f.WriteSettingsAck()
				}
			case *http2.HeadersFrame, *http2.DataFrame:
				switch ended := frame.Header().Flags.Has(http2.FlagDataEndStream); {
				case !ended:
				case requests.Add(1) == 1:
					_ = f.WriteRSTStream(frame.Header().StreamID, code)
				default: // ":status: 204", of HPACK's table
					_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: frame.Header().StreamID, BlockFragment: []byte{0x89}, EndStream: true, EndHeaders: true})
				}
			}
		}
	}}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s, requests
}

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
			s, requests := frames(t, tt.code)
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
