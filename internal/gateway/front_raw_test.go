package gateway

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/identity/apikey"
	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

// raw sends bytes to a gateway and returns the status of the answer.
func raw(t *testing.T, url, request string) int {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	if _, err := c.Write([]byte(request)); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatalf("%q: %v", request, err)
	}
	defer res.Body.Close()
	return res.StatusCode
}

// TestNothingButTheKeySaysWhoAsks: of requests as bytes, no header, spelling or form of
// target stands for the key, or for a host that is ours.
func TestNothingButTheKeySaysWhoAsks(t *testing.T) {
	g := build(t, func(f *config.File) { f.Auth.APIKeys = []secret.Text{secret.New(key)} })
	if err := g.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	url := serve(t, g).url
	good := "Authorization: Bearer " + key + "\r\n"
	for _, tt := range []struct {
		name, line, header string
		status             int
	}{
		{"the key", "GET /v1/models HTTP/1.1", "Host: localhost\r\n" + good, 200},
		{"a target of our host", "GET http://localhost/v1/models HTTP/1.1", "Host: localhost\r\n" + good, 200},

		{"a target of another host", "GET http://evil.example/v1/models HTTP/1.1", "Host: localhost\r\n" + good, 403},
		{"a name that we are said to have", "GET /v1/models HTTP/1.1", "Host: evil.example\r\nX-Forwarded-Host: localhost\r\nForwarded: host=localhost\r\nX-Original-Host: localhost\r\n" + good, 403},
		{"two hosts", "GET /v1/models HTTP/1.1", "Host: localhost\r\nHost: evil.example\r\n" + good, 400},
		{"no host", "GET /v1/models HTTP/1.1", good, 400},
		{"no host, in 1.0", "GET /v1/models HTTP/1.0", good, 403},
		{"a folded header", "GET /v1/models HTTP/1.1", "Host: localhost\r\nX: y\r\n Authorization: Bearer " + key + "\r\n", 401},
		{"a space before the colon", "GET /v1/models HTTP/1.1", "Host: localhost\r\nAuthorization : Bearer " + key + "\r\n", 400},
		{"two lengths", "POST /v1/chat/completions HTTP/1.1", "Host: localhost\r\nContent-Length: 0\r\nContent-Length: 5\r\n" + good, 400},
		{"an unknown coding", "POST /v1/chat/completions HTTP/1.1", "Host: localhost\r\nTransfer-Encoding: chunked, identity\r\n" + good, 501},

		{"underscores", "GET /v1/models HTTP/1.1", "Host: localhost\r\nApi_Key: " + key + "\r\nHTTP_AUTHORIZATION: Bearer " + key + "\r\n", 401},
		{"a header of another API", "GET /v1/models HTTP/1.1", "Host: localhost\r\nX-Api-Key: " + key + "\r\nX-Goog-Api-Key: " + key + "\r\n", 401},
		{"a cookie", "GET /v1/models HTTP/1.1", "Host: localhost\r\nCookie: key=" + key + "; Authorization=Bearer " + key + "\r\n", 401},
		{"the query", "GET /v1/models?key=" + strings.ReplaceAll(key, " ", "%20") + "&api_key=x&access_token=x HTTP/1.1", "Host: localhost\r\n", 401},
		{"the target", "GET http://x:" + strings.ReplaceAll(key, " ", "%20") + "@localhost/v1/models HTTP/1.1", "Host: localhost\r\n", 401},
		{"who a proxy says it is", "GET /v1/models HTTP/1.1", "Host: localhost\r\nX-Forwarded-For: 127.0.0.1\r\nX-Real-Ip: 127.0.0.1\r\nX-Forwarded-User: local\r\nX-Remote-User: local\r\nRemote-User: local\r\nX-Dragoman-Caller: local\r\n", 401},
		{"another method that is meant", "GET /v1/models HTTP/1.1", "Host: localhost\r\nX-Http-Method-Override: OPTIONS\r\n", 401},
		{"a header that is said to be for the next hop", "GET /v1/models HTTP/1.1", "Host: localhost\r\nConnection: Authorization, keep-alive\r\n", 401},
		{"the hash of the key", "GET /v1/models HTTP/1.1", "Host: localhost\r\nAuthorization: Bearer " + apikey.Hash(key) + "\r\n", 401},
		{"a path around the front", "GET /healthz/../v1/models HTTP/1.1", "Host: localhost\r\n", 401},
		{"another path around it", "GET /healthz/%2e%2e/v1/models HTTP/1.1", "Host: localhost\r\n", 401},
		{"two slashes", "GET //v1/models HTTP/1.1", "Host: localhost\r\n", 401},
		{"the approvals", "GET /approvals HTTP/1.1", "Host: localhost\r\n", 401},
		{"the approvals, written otherwise", "GET /approvals/ HTTP/1.1", "Host: localhost\r\n", 401},
		{"the door of MCP", "GET /sse HTTP/1.1", "Host: localhost\r\n", 401},
	} {
		status := raw(t, url, fmt.Sprintf("%s\r\n%sConnection: close\r\n\r\n", tt.line, tt.header))
		if redirected := status == http.StatusMovedPermanently || status == http.StatusTemporaryRedirect; status != tt.status && (!redirected || tt.status != 401) {
			t.Errorf("%s: %d, want %d", tt.name, status, tt.status)
		}
	}
}

// TestHalfClosed: a client that closes its half of a connection when it has asked is taken for
// one that left, and finds the connection broken: it was told 200, with nothing behind it.
func TestHalfClosed(t *testing.T) {
	asked, left := make(chan struct{}), make(chan struct{})
	model := web(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		close(asked)
		<-r.Context().Done()
		close(left)
	}))
	url := serve(t, build(t, func(f *config.File) { f.Models = []upstream.Model{{Match: "*", BaseURL: model + "/v1"}} })).url
	c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	body := `{"model":"m","messages":[{"role":"user","content":"hi"}]}`
	fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	<-asked
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	<-left
	if answer, _ := io.ReadAll(c); len(answer) > 0 {
		t.Errorf("the client is told %q", answer)
	}
}
