package e2e

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// pasted returns the block of a language in docs/operations.md.
func pasted(t *testing.T, language string) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "docs", "operations.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?ms)^```" + language + "\n(.*?)^```$").FindSubmatch(page)
	if found == nil {
		t.Fatalf("docs/operations.md has no block of %s", language)
	}
	return string(found[1])
}

// A proxied gateway is asked through a proxy by its name.
type proxied struct {
	*testing.T
	client *http.Client
	base   string
}

// TestProxies runs the examples of docs/operations.md as they stand there, but for ports
// and the paths of certificates: a stream comes in parts, an MCP client works, an upgrade
// is answered by the gateway, and a name that is not allowed is refused by it.
func TestProxies(t *testing.T) {
	for _, proxy := range []struct {
		name, block string
		start       func(t *testing.T, text, gateway, port, cert, key string) *exec.Cmd
	}{
		{"nginx", "nginx", startNginx},
		{"caddy", "caddyfile", startCaddy},
		{"haproxy", "haproxy", startHAProxy},
		{"apache2", "apache", startApache},
	} {
		t.Run(proxy.name, func(t *testing.T) {
			if _, err := exec.LookPath(proxy.name); err != nil {
				missing(t, "%s is not on this machine; \"make proxies\" installs it", proxy.name)
			}
			g := start(t, nil, nil, with("allowed_hosts", []string{"gateway.example"})).ready()
			cert, key, roots := certificateOf(t, "gateway.example")
			address := freeAddress(t)
			_, port, _ := net.SplitHostPort(address)
			cmd := proxy.start(t, pasted(t, proxy.block), strings.TrimPrefix(g.Root, "http://"), port, cert, key)
			var said bytes.Buffer
			cmd.Stdout, cmd.Stderr = &said, &said
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			t.Cleanup(func() {
				_ = cmd.Process.Signal(syscall.SIGTERM)
				<-ended
				if t.Failed() {
					t.Logf("%s says %s", proxy.name, &said)
				}
			})
			p := &proxied{T: t, base: "https://gateway.example:" + port, client: through(t, address, roots)}
			g.until("the proxy answers", func() bool {
				res, err := p.client.Get(p.base + "/healthz")
				if err == nil {
					res.Body.Close()
				}
				return err == nil && res.StatusCode == 200
			})
			p.streams()
			p.speaksMCP()
			p.upgrades()
			p.large()
		})
	}
}

// startNginx returns nginx with a block of a server.
func startNginx(t *testing.T, text, gateway, port, cert, key string) *exec.Cmd {
	text = changed(t, text, "443", port, "/etc/ssl/gateway.crt", cert, "/etc/ssl/gateway.key", key, "127.0.0.1:8787", gateway)
	dir := t.TempDir()
	path := filepath.Join(dir, "nginx.conf")
	temp := ""
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		temp += kind + "_temp_path " + filepath.Join(dir, kind) + ";\n"
	}
	writeFile(t, path, "daemon off;\nmaster_process off;\npid "+filepath.Join(dir, "pid")+";\nerror_log stderr;\nevents {}\nhttp {\naccess_log off;\n"+temp+text+"}\n")
	return exec.Command("nginx", "-p", dir, "-e", "stderr", "-c", path)
}

// startCaddy returns Caddy with a block of a site, and a certificate of ours.
func startCaddy(t *testing.T, text, gateway, port, cert, key string) *exec.Cmd {
	text = changed(t, text, "gateway.example {", "https://gateway.example:"+port+" {\n\ttls "+cert+" "+key, "127.0.0.1:8787", gateway)
	dir := t.TempDir()
	path := filepath.Join(dir, "Caddyfile")
	writeFile(t, path, "{\n\tadmin off\n\tauto_https off\n}\n"+text)
	cmd := exec.Command("caddy", "run", "--config", path, "--adapter", "caddyfile")
	cmd.Env = append(cleanEnv(t), "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
	return cmd
}

// startHAProxy returns HAProxy with sections of ours.
func startHAProxy(t *testing.T, text, gateway, port, cert, key string) *exec.Cmd {
	dir := t.TempDir()
	crt, path := filepath.Join(dir, "gateway.pem"), filepath.Join(dir, "haproxy.cfg")
	var both []byte
	for _, part := range []string{cert, key} {
		text, err := os.ReadFile(part)
		if err != nil {
			t.Fatal(err)
		}
		both = append(both, text...)
	}
	writeFile(t, crt, string(both))
	writeFile(t, path, "global\n    nbthread 1\n"+changed(t, text, "bind :443", "bind 127.0.0.1:"+port, "/etc/ssl/gateway.pem", crt, "127.0.0.1:8787", gateway))
	return exec.Command("haproxy", "-db", "-f", path)
}

// startApache returns Apache with a virtual host, and the modules that Debian has beside it.
func startApache(t *testing.T, text, gateway, port, cert, key string) *exec.Cmd {
	dir := t.TempDir()
	path, all := filepath.Join(dir, "apache.conf"), ""
	for _, module := range []string{"mpm_event", "authz_core", "ssl", "http2", "proxy", "proxy_http"} {
		all += "LoadModule " + module + "_module /usr/lib/apache2/modules/mod_" + module + ".so\n"
	}
	if os.Getuid() == 0 {
		all += "User nobody\nGroup nogroup\n"
	}
	writeFile(t, path, "ServerName localhost\nServerRoot "+dir+"\nDefaultRuntimeDir "+dir+"\nPidFile pid\nErrorLog /dev/stderr\nListen 127.0.0.1:"+port+"\n"+all+
		changed(t, text, "*:443", "127.0.0.1:"+port, "/etc/ssl/gateway.crt", cert, "/etc/ssl/gateway.key", key, "127.0.0.1:8787", gateway))
	return exec.Command("apache2", "-X", "-f", path)
}

// changed puts what is of this test in the place of what an example says.
func changed(t *testing.T, text string, pairs ...string) string {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("the example does not have %s", pairs[i])
		}
		text = strings.Replace(text, pairs[i], pairs[i+1], 1)
	}
	return text
}

// through returns a client that finds every host at an address.
func through(t *testing.T, address string, roots *x509.CertPool) *http.Client {
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, address)
		},
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func (p *proxied) post(path, body string) *http.Response {
	p.Helper()
	req, err := http.NewRequestWithContext(p.Context(), http.MethodPost, p.base+path, strings.NewReader(body))
	if err != nil {
		p.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	res, err := p.client.Do(req)
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { res.Body.Close() })
	return res
}

// streams reads the beginning of an answer whose end comes later.
func (p *proxied) streams() {
	p.Helper()
	res := p.post("/v1/chat/completions", `{"model":"rehearsal:slow-stream","stream":true,"messages":[{"role":"user","content":"SAY `+strings.Repeat("word ", 20)+`"}]}`)
	lines, first, last := bufio.NewScanner(res.Body), time.Time{}, time.Time{}
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "data: ") {
			if last = time.Now(); first.IsZero() {
				first = last
			}
		}
	}
	if err := lines.Err(); err != nil || last.Sub(first) < time.Second {
		p.Errorf("the stream came in %s: %v", last.Sub(first), err)
	}
}

// speaksMCP lists the tools as an MCP client does.
func (p *proxied) speaksMCP() {
	p.Helper()
	res := p.post("/mcp", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != 200 || res.Header.Get("Mcp-Session-Id") == "" || !bytes.Contains(body, []byte(`"protocolVersion":"2025-11-25"`)) {
		p.Errorf("MCP: %s %s, %v", res.Status, body, err)
	}
}

// upgrades asks for a WebSocket, of which the gateway has none, and says so itself.
func (p *proxied) upgrades() {
	p.Helper()
	req, err := http.NewRequestWithContext(p.Context(), http.MethodGet, p.base+"/v1/responses", nil)
	if err != nil {
		p.Fatal(err)
	}
	for name, value := range map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="} {
		req.Header.Set(name, value)
	}
	transport := p.client.Transport.(*http.Transport).Clone()
	transport.ForceAttemptHTTP2, transport.TLSNextProto = false, map[string]func(string, *tls.Conn) http.RoundTripper{}
	defer transport.CloseIdleConnections()
	res, err := transport.RoundTrip(req)
	if err != nil {
		p.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusSwitchingProtocols || res.Header.Get("X-Dragoman-Request") == "" {
		p.Errorf("an upgrade: %s %v", res.Status, res.Header)
	}
}

// large sends more than proxies take by default, and less than the gateway does.
func (p *proxied) large() {
	p.Helper()
	res := p.post("/v1/chat/completions", `{"model":"rehearsal","messages":[{"role":"user","content":"SAY done"},{"role":"user","content":"`+strings.Repeat("x", 8<<20)+`"}]}`)
	if body, err := io.ReadAll(res.Body); err != nil || res.StatusCode != 200 {
		p.Errorf("a large body: %s %.200s, %v", res.Status, body, err)
	}
}

// certificateOf makes a certificate for a host that signs itself.
func certificateOf(t *testing.T, host string) (cert, key string, roots *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	writeFile(t, cert, string(text))
	writeFile(t, key, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})))
	roots = x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	return cert, key, roots
}
