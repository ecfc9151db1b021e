package toolkit

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// writeCertificate writes a certificate for this machine and its key.
func writeCertificate(t *testing.T, dir string, serial int64) (cert, key string, pool *x509.CertPool) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}, &x509.Certificate{SerialNumber: big.NewInt(serial)}, k.Public(), k)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for name, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool = x509.NewCertPool()
	pool.AddCert(parsed)
	return cert, key, pool
}

func TestTLS(t *testing.T) {
	dir := t.TempDir()
	cert, key, pool := writeCertificate(t, dir, 1)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	errs := &watched{address: make(chan string, 1)}
	ended := make(chan int, 1)
	s := mainServer(t, Options{})
	go func() {
		ended <- s.run(ctx, []string{"hotel", "--http", ":0", "--tls-cert", cert, "--tls-key", key}, func(string) string { return "" }, nil, io.Discard, errs)
	}()
	address := <-errs.address
	look := func(pool *x509.CertPool) string {
		t.Helper()
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
		defer client.CloseIdleConnections()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address+"/healthz", nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := client.Do(req)
		if err != nil {
			return err.Error()
		}
		defer res.Body.Close()
		return res.Status
	}
	if got := look(pool); got != "200 OK" {
		t.Error(got)
	}
	_, _, renewed := writeCertificate(t, dir, 2)
	later := time.Now().Add(time.Minute)
	if err := os.Chtimes(cert, later, later); err != nil {
		t.Fatal(err)
	}
	if got := look(renewed); got != "200 OK" {
		t.Errorf("renewed: %s", got)
	}
	stop()
	if status := <-ended; status != 0 {
		t.Errorf("status %d: %s", status, errs.String())
	}
	for _, args := range [][]string{{"--tls-cert", cert}, {"--tls-cert", key, "--tls-key", cert}} {
		if status, _, errs := run(t.Context(), mainServer(t, Options{}), nil, strings.NewReader(""), append([]string{"--http", ":0"}, args...)...); status != 2 || errs == "" {
			t.Errorf("%v: status %d, %s", args, status, errs)
		}
	}
}
