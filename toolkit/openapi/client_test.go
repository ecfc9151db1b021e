package openapi

import (
	"crypto/tls"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/dragoman-mcp/dragoman/internal/stage/resetting"
)

// A service that resets a stream with PROTOCOL_ERROR may have done what it was asked: the
// request is not sent again, as net/http does over HTTP/2.
func TestResetIsSentOnce(t *testing.T) {
	s, requests := resetting.Server(t, http2.ErrCodeProtocol)
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
