// Package resetting plays servers of HTTP/2 that reset a stream, or end its connection, once
// they have read all of its request, and so may have done what that asks for.
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
	return server(t, func(f *http2.Framer, stream uint32, nth int64) {
		if nth > 1 {
			answer(f, stream)
			return
		}
		_ = f.WriteRSTStream(stream, code)
	})
}

// Leaving returns such a server that ends the connections of requests 1 to most with a
// GOAWAY that says that it took none.
func Leaving(t testing.TB, most int64) (s *httptest.Server, requests *atomic.Int64) {
	return server(t, func(f *http2.Framer, stream uint32, nth int64) {
		if nth > most {
			answer(f, stream)
			return
		}
		_ = f.WriteGoAway(0, http2.ErrCodeNo, nil) // the client closes the connection
	})
}

// answer answers with ":status: 204", of HPACK's table.
func answer(f *http2.Framer, stream uint32) {
	_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: []byte{0x89}, EndStream: true, EndHeaders: true})
}

// server returns a server that reads requests and does with the nth what it is told.
func server(t testing.TB, does func(f *http2.Framer, stream uint32, nth int64)) (s *httptest.Server, requests *atomic.Int64) {
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
				if frame.Header().Flags.Has(http2.FlagDataEndStream) {
					does(f, frame.Header().StreamID, requests.Add(1))
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
