package e2e

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// An authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, name string, from, until time.Time) *authority {
	template := &x509.Certificate{Subject: pkix.Name{CommonName: name}, NotBefore: from, NotAfter: until, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	a := &authority{}
	a.certificate, a.key = sign(t, template, nil)
	return a
}

// sign makes a certificate; without an authority one that signs itself.
func sign(t *testing.T, template *x509.Certificate, by *authority) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	if by == nil {
		by = &authority{template, key}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by.certificate, &key.PublicKey, by.key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return certificate, key
}

// issue makes a certificate for a host.
func (a *authority) issue(t *testing.T, host string, from, until time.Time) *tls.Certificate {
	template := &x509.Certificate{Subject: pkix.Name{CommonName: "server"}, NotBefore: from, NotAfter: until, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	if address := net.ParseIP(host); address != nil {
		template.IPAddresses = []net.IP{address}
	} else {
		template.DNSNames = []string{host}
	}
	certificate, key := sign(t, template, a)
	return &tls.Certificate{Certificate: [][]byte{certificate.Raw}, PrivateKey: key}
}

// secure serves h over TLS with the certificate that is current.
func secure(t *testing.T, h http.Handler, current *atomic.Pointer[tls.Certificate]) string {
	s := httptest.NewUnstartedServer(h)
	s.TLS = &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return current.Load(), nil }}
	s.Config.ErrorLog = nil
	s.StartTLS()
	s.TLS.Certificates = nil // httptest's own
	t.Cleanup(s.Close)
	return s.URL
}

// Fault 40: a server's certificate is not valid, or not any more. It is said which,
// others are not harmed, and the next one is taken as soon as it is there.
func TestFaultCertificates(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED, NOT TESTED: authorities are told by SSL_CERT_FILE")
	}
	now := time.Now()
	long, soonEnough := now.Add(-48*time.Hour), now.Add(48*time.Hour)
	good, old, strange := newAuthority(t, "good", long, soonEnough), newAuthority(t, "old", long, now.Add(-time.Hour)), newAuthority(t, "strange", long, soonEnough)
	var roots bytes.Buffer
	for _, a := range []*authority{good, old} {
		_ = pem.Encode(&roots, &pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw})
	}
	bundle := filepath.Join(t.TempDir(), "roots.pem")
	writeFile(t, bundle, roots.String())
	fine := good.issue(t, "127.0.0.1", long, soonEnough)
	bad := []struct {
		name, says  string
		certificate *tls.Certificate
	}{
		{"expired", "its certificate expired on", good.issue(t, "127.0.0.1", long, now.Add(-time.Minute))},
		{"early", "its certificate is not valid before", good.issue(t, "127.0.0.1", now.Add(time.Hour), soonEnough)},
		{"authority", "which signed its own, expired on", old.issue(t, "127.0.0.1", long, soonEnough)},
		{"elsewhere", "and not for 127.0.0.1", good.issue(t, "example.com", long, soonEnough)},
		{"strange", "which this machine does not trust", strange.issue(t, "127.0.0.1", long, soonEnough)},
	}
	all := servers{"other": idle(t)}
	var models []any
	certificates := make([]atomic.Pointer[tls.Certificate], len(bad))
	model := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"id":"x","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"Hi."},"finish_reason":"stop"}]}`)
	})
	for i, b := range bad {
		certificates[i].Store(b.certificate)
		mux := http.NewServeMux()
		mux.Handle("/mcp", fakemcp.New(fakemcp.Config{Keep: -1, Tools: []fakemcp.Tool{{Name: "echo"}}}))
		mux.Handle("/v1/", model)
		url := secure(t, mux, &certificates[i])
		all[b.name] = server{"url": url + "/mcp"}
		models = append(models, map[string]any{"match": b.name, "base_url": url + "/v1"})
	}
	g := start(t, nil, all, environment("SSL_CERT_FILE="+bundle), with("models", models), with("wait_for_servers", "100ms"))
	ask := func(model string) (int, string) {
		resp, err := http.Post(g.Base+"/chat/completions", "application/json", strings.NewReader(`{"model":"`+model+`","messages":[{"role":"user","content":"Hi"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(body)
	}
	c := g.dial(mcp.Modern)
	noop := g.lists(c, "other__noop").Exact("other__noop")
	for _, b := range bad {
		g.until("the log telling of "+b.name, func() bool {
			for line := range strings.Lines(g.logged()) {
				if strings.Contains(line, "server failed") && strings.Contains(line, `"server":"`+b.name+`"`) && strings.Contains(line, b.says) {
					return true
				}
			}
			return false
		})
		if status, said := ask(b.name); status != http.StatusBadGateway || !strings.Contains(said, b.says) {
			t.Errorf("%s: the model's client was told %d %s", b.name, status, said)
		}
		if err := echoes(soon(t), c, noop, 1); err != nil {
			t.Errorf("another server: %v", err)
		}
	}
	for i := range bad {
		certificates[i].Store(fine)
	}
	began := time.Now()
	for _, b := range bad {
		if status, said := ask(b.name); status != http.StatusOK {
			t.Errorf("%s: after the change the model's client was told %d %s", b.name, status, said)
		}
		tool := g.lists(c, b.name+"__echo").Exact(b.name + "__echo")
		if err := echoes(soon(t), c, tool, 1); err != nil {
			t.Errorf("%s: after the change: %v", b.name, err)
		}
	}
	t.Logf("%d kinds of bad certificates: each named to clients and in the log; another server unharmed; good ones used at the latest after %s", len(bad), time.Since(began).Round(time.Millisecond))
}
