package toolkit

import (
	"net"
	"net/http"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/stage/resetting"
)

// What a tool asks for with the client for public addresses is sent once, too, where its
// stream is reset. The server is on this machine, which that client does not connect to.
func TestPublicClientSendsOnce(t *testing.T) {
	public := PublicClient(0).Transport.(*http.Transport)
	public.DialContext = (&net.Dialer{}).DialContext
	resetting.Posts(t, public)
}
