package openapi

import (
	"net/http"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/stage/resetting"
)

// A service that resets a stream with PROTOCOL_ERROR may have done what it was asked: the
// request is not sent again, as net/http does over HTTP/2.
func TestResetIsSentOnce(t *testing.T) {
	resetting.Posts(t, newClient(true, time.Minute).Transport.(*http.Transport))
}
