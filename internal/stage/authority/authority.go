// Package authority makes certificates for tests.
package authority

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"testing"
	"time"
)

// An Authority signs certificates. Make it with [New].
type Authority struct {
	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	last int64
}

// New returns an authority that nobody else has.
func New(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{t: t}
	a.cert, a.key = a.issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
	return a
}

// issue signs a certificate, the first one itself.
func (a *Authority) issue(template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	a.last++
	template.SerialNumber = big.NewInt(a.last)
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert, key
}

// Leaf returns a certificate for the loopback address, and for clients, in PEM with its key.
// Its serial number is one more than that of the one before.
func (a *Authority) Leaf() (cert, key []byte) {
	a.t.Helper()
	leaf, private := a.issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: "leaf"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		a.t.Fatal(err)
	}
	return encoded("CERTIFICATE", leaf.Raw), encoded("PRIVATE KEY", der)
}

// Demanding returns what a server at the loopback address needs that wants clients to have a
// certificate of the authority.
func (a *Authority) Demanding() *tls.Config {
	a.t.Helper()
	pair, err := tls.X509KeyPair(a.Leaf())
	if err != nil {
		a.t.Fatal(err)
	}
	return &tls.Config{
		Certificates: []tls.Certificate{pair}, ClientCAs: a.Roots(), ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12,
	}
}

// Roots trust the authority.
func (a *Authority) Roots() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// PEM returns the authority's own certificate.
func (a *Authority) PEM() []byte { return encoded("CERTIFICATE", a.cert.Raw) }

func encoded(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
