// Package resetting plays a server of HTTP/2 that resets a stream once it has read all of its
// request, and so may have done what that asks for.
package resetting

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

// Server returns a server, on TLS, that resets the first stream with a code, and answers those
// after it with 204, and how many requests it has read. It is closed when the test is over.
func Server(t testing.TB, code http2.ErrCode) (s *httptest.Server, requests *atomic.Int64) {
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

// Posts has a transport send one POST to such a server, which complains with PROTOCOL_ERROR,
// and fails the test where the server got it twice, or that is taken for an answer.
func Posts(t testing.TB, with *http.Transport) {
	t.Helper()
	s, requests := Server(t, http2.ErrCodeProtocol)
	if with.TLSClientConfig == nil {
		with.TLSClientConfig = &tls.Config{}
	}
	with.TLSClientConfig.RootCAs = x509.NewCertPool()
	with.TLSClientConfig.RootCAs.AddCert(s.Certificate())
	defer with.CloseIdleConnections()
	res, err := (&http.Client{Transport: with}).Post(s.URL, "application/json", strings.NewReader("{}"))
	if err == nil {
		res.Body.Close()
	}
	if n := requests.Load(); err == nil || n != 1 {
		t.Errorf("the server had it %d times: %v", n, err)
	}
}
