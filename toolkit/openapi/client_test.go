package openapi

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

// A service that resets a stream with PROTOCOL_ERROR may have done what it was asked: the
// request is not sent again, as net/http does over HTTP/2.
func TestResetIsSentOnce(t *testing.T) {
	var requests atomic.Int64
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
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
			if settings, ok := frame.(*http2.SettingsFrame); ok && !settings.IsAck() {
				_ = f.WriteSettingsAck()
			} else if !ok && frame.Header().Flags.Has(http2.FlagDataEndStream) {
				if requests.Add(1) == 1 {
					_ = f.WriteRSTStream(frame.Header().StreamID, http2.ErrCodeProtocol)
				} else { // ":status: 204", of HPACK's table
					_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: frame.Header().StreamID, BlockFragment: []byte{0x89}, EndStream: true, EndHeaders: true})
				}
			}
		}
	}}
	s.StartTLS()
	defer s.Close()
	client := newClient(true, time.Minute)
	defer client.CloseIdleConnections()
	t1 := client.Transport.(*http.Transport)
	if t1.TLSClientConfig == nil {
		t1.TLSClientConfig = &tls.Config{}
	}
	t1.TLSClientConfig.RootCAs = s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	res, err := client.Post(s.URL, "application/json", strings.NewReader("{}"))
	if err == nil {
		res.Body.Close()
	}
	if n := requests.Load(); err == nil || n != 1 {
		t.Errorf("the service had it %d times: %v", n, err)
	}
}
