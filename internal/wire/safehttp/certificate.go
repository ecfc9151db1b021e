package safehttp

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/text/clip"
)

// certificate says in words for people what is wrong with a server's certificate,
// where err is of a connection that failed for it, such as "its certificate expired on
// 21 Nov 2026 23:00 UTC"; "" where it failed for something else.
func certificate(err error) string {
	failed, ok := errors.AsType[*tls.CertificateVerificationError](err)
	if !ok || len(failed.UnverifiedCertificates) == 0 {
		return ""
	}
	own := failed.UnverifiedCertificates[0]
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](failed.Err); ok && invalid.Reason == x509.Expired {
		what := "its certificate"
		if !invalid.Cert.Equal(own) {
			what = fmt.Sprintf("the certificate of the authority %q, which signed its own,", clip.Text(invalid.Cert.Subject.String(), 100))
		}
		if time.Now().Before(invalid.Cert.NotBefore) {
			return what + " is not valid before " + moment(invalid.Cert.NotBefore)
		}
		return what + " expired on " + moment(invalid.Cert.NotAfter)
	}
	if other, ok := errors.AsType[x509.HostnameError](failed.Err); ok {
		names := append([]string{}, own.DNSNames...)
		for _, address := range own.IPAddresses {
			names = append(names, address.String())
		}
		return fmt.Sprintf("its certificate is for %q, and not for %s", clip.Text(strings.Join(names, ", "), 100), other.Host)
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](failed.Err); ok {
		return fmt.Sprintf("its certificate is signed by %q, which this machine does not trust", clip.Text(own.Issuer.String(), 100))
	}
	return "its certificate cannot be verified: " + failed.Err.Error()
}

func moment(t time.Time) string { return t.UTC().Format("2 Jan 2006 15:04 MST") }

// notEstablished is what HTTP/2 says of a connection that ended before the server said
// anything over it. What TLS said then, a moment after its handshake, is sometimes lost.
const notEstablished = "http2: client conn could not be established"

// refusedCertificate says in words for people that a server did not like what it was shown, or
// that it was shown nothing; "" where that is not what it said.
func refusedCertificate(err error) string {
	if err != nil && strings.Contains(err.Error(), notEstablished) {
		return "it ended the connection at once, as one does that wants a certificate of who connects (tls.cert and tls.key), or another one"
	}
	said, ok := errors.AsType[*net.OpError](err)
	if !ok || said.Op != "remote error" || said.Err == nil {
		return ""
	}
	switch text := said.Err.Error(); text {
	case "tls: certificate required":
		return "it wants a certificate of who connects (tls.cert and tls.key)"
	case "tls: bad certificate", "tls: unsupported certificate", "tls: revoked certificate", "tls: expired certificate",
		"tls: unknown certificate", "tls: unknown certificate authority":
		return "it does not take the certificate (tls.cert) that it was shown, or wants one: " + text
	}
	return ""
}
