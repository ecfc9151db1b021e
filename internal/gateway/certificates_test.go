package gateway

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/stage/authority"
)

// A secure gateway serves with certificates in files.
type secure struct {
	*testing.T
	*living
	*authority.Authority
	cert, key, ca string
	address       string
}

func (s *secure) put(path string, text []byte) {
	s.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		s.Fatal(err)
	}
}

// secured starts one; clients need certificates of the authority where they are asked for.
func newSecure(t *testing.T, clients bool) *secure {
	t.Helper()
	folder := t.TempDir()
	s := &secure{T: t, Authority: authority.New(t), cert: filepath.Join(folder, "tls.crt"), key: filepath.Join(folder, "tls.key"), ca: filepath.Join(folder, "ca.crt")}
	cert, key := s.Leaf()
	s.put(s.cert, cert)
	s.put(s.key, key)
	s.put(s.ca, s.PEM())
	file := "listen: 127.0.0.1:0\nhttp: {max_connections: 5000}\ntls: {cert: " + s.cert + ", key: " + s.key
	if clients {
		file += ", client_ca: " + s.ca
	}
	s.living = live(t, file+"}\nmcpServers: {}\n")
	s.address = strings.TrimPrefix(s.url, "http://")
	return s
}

// dial connects, and returns the number of the certificate that it is shown.
func (s *secure) dial(c *tls.Config) (*tls.Conn, int64, error) {
	c.RootCAs = s.Roots()
	conn, err := tls.Dial("tcp", s.address, c)
	if err != nil {
		return nil, 0, err
	}
	return conn, conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64(), nil
}

// healthy asks over a connection that stays.
func healthy(conn net.Conn) error {
	if _, err := io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"); err != nil {
		return err
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return err
}

// A certificate is renewed under a thousand connections, or as many as this machine lets a
// process have: all of them go on, new ones get the new one, and none is refused while the
// key and the certificate do not go together.
func TestCertificateRenewed(t *testing.T) {
	s := newSecure(t, false)
	many := 1000
	if most := openFiles(); most > 0 && most < 2*many+200 {
		many = (most - 200) / 2
		t.Logf("%d connections in place of 1000: the process may open no more than %d files", many, most)
	}
	conns := make([]*tls.Conn, many)
	each := func(do func(i int) error) {
		t.Helper()
		var all sync.WaitGroup
		for worker := range 8 {
			all.Go(func() {
				for i := worker; i < many; i += 8 {
					if err := do(i); err != nil {
						t.Errorf("connection %d: %v", i, err)
						return
					}
				}
			})
		}
		all.Wait()
	}
	var first int64
	each(func(i int) (err error) {
		var serial int64
		if conns[i], serial, err = s.dial(&tls.Config{}); err != nil {
			return err
		}
		if i == 0 {
			first = serial
		}
		return healthy(conns[i])
	})
	defer func() {
		for _, conn := range conns {
			if conn != nil {
				conn.Close()
			}
		}
	}()
	shown := func() int64 {
		t.Helper()
		conn, serial, err := s.dial(&tls.Config{})
		if err != nil {
			t.Fatalf("a new connection: %v", err)
		}
		defer conn.Close()
		return serial
	}
	cert, key := s.Leaf()
	s.put(s.key, key)
	late := time.Now().Add(2500 * time.Millisecond) // looked at once at the least
	eventually(t, "the half of it is seen", func() bool {
		if serial := shown(); serial != first {
			t.Errorf("the half of it counts: %d", serial)
		}
		return time.Now().After(late)
	})
	s.put(s.cert, cert)
	eventually(t, "the new one is shown", func() bool { return shown() != first })
	each(func(i int) error { return healthy(conns[i]) })
	if got := shown(); got != first+1 {
		t.Errorf("certificate %d", got)
	}
}

// HTTP/2 is spoken, and nothing below TLS 1.2.
func TestTLSVersions(t *testing.T) {
	s := newSecure(t, false)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: s.Roots()}, ForceAttemptHTTP2: true}}
	defer client.CloseIdleConnections()
	res, err := client.Post("https://"+s.address+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"rehearsal","stream":true,"messages":[{"role":"user","content":"SAY done"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.ProtoMajor != 2 || res.TLS.Version != tls.VersionTLS13 || !strings.Contains(string(body), "[DONE]") {
		t.Errorf("%s, TLS %x, %v: %s", res.Proto, res.TLS.Version, err, body)
	}
	for version, fine := range map[uint16]bool{tls.VersionTLS11: false, tls.VersionTLS12: true} {
		conn, _, err := s.dial(&tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: version})
		if (err == nil) != fine {
			t.Errorf("%s: %v", tls.VersionName(version), err)
		}
		if err == nil {
			conn.Close()
		}
	}
}

// With client_ca only clients with a certificate of it get in, but for health checks; who
// they are is still for their key to say.
func TestClientCertificates(t *testing.T) {
	s := newSecure(t, true)
	own, err := tls.X509KeyPair(s.Leaf())
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := tls.X509KeyPair(authority.New(t).Leaf())
	if err != nil {
		t.Fatal(err)
	}
	ask := func(path string, shown ...tls.Certificate) (status int, body string) {
		t.Helper()
		c := &tls.Config{RootCAs: s.Roots()}
		if len(shown) > 0 { // whatever the gateway says that it takes
			c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &shown[0], nil }
		}
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: c}}
		defer client.CloseIdleConnections()
		res, err := client.Get("https://" + s.address + path)
		if err != nil {
			return 0, err.Error()
		}
		defer res.Body.Close()
		text, _ := io.ReadAll(res.Body)
		return res.StatusCode, string(text)
	}
	for _, path := range []string{"/v1/models", "/mcp", "/", "/ops/reload", "/approvals"} {
		if status, body := ask(path); status != 403 || !strings.Contains(body, "client_certificate_required") {
			t.Errorf("%s without: %d %s", path, status, body)
		}
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if status, body := ask(path); status != 200 {
			t.Errorf("%s without: %d %s", path, status, body)
		}
	}
	if status, body := ask("/v1/models", own); status != 200 {
		t.Errorf("with one: %d %s", status, body)
	}
	if status, body := ask("/healthz", foreign); status != 0 {
		t.Errorf("with another's: %d %s", status, body)
	}
	t.Run("key", func(t *testing.T) {
		s.reload("listen: 127.0.0.1:0\ntls: {cert: " + s.cert + ", key: " + s.key + ", client_ca: " + s.ca + "}\nauth: {api_keys: ['a key for a test 5Zq']}\nmcpServers: {}\n")
		if status, body := ask("/v1/models", own); status != 401 {
			t.Errorf("a certificate is a key: %d %s", status, body)
		}
	})
}
