package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/dragoman-mcp/dragoman/internal/wire/safehttp"
)

// ourGateway is where a gateway is that nothing else is said of.
const ourGateway = "http://127.0.0.1:8787"

// checkGateway says why a flag, whose value is such as the example, names no gateway. What is
// left out most often is the scheme, and "localhost:8787" without one is a URL, too.
func checkGateway(flag, address, example string) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return &usageError{fmt.Errorf("%s: the address of a gateway begins with http:// or https://", flag), "for example: " + flag + " " + example}
	}
	return nil
}

// unanswered is why a gateway does not answer, with what to do about it.
func unanswered(flag string, err error) error {
	hint := `start it with "dragoman serve", or say where it is: ` + flag + " ADDRESS"
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		hint = "if an authority of your own signed its certificate, set SSL_CERT_FILE to that authority's"
	} else if errors.Is(err, http.ErrSchemeMismatch) {
		hint = "it answers without TLS: write http:// in place of https://"
	}
	return &failure{fmt.Errorf("the gateway does not answer: %w", err), hint}
}

// checkTLS is why an answer is none of a gateway's where it was asked without TLS and wants
// it: the HTTP server answers for it then, with a sentence.
func checkTLS(status int, answer []byte) error {
	if safehttp.WantsTLS(status, answer) {
		return &failure{errors.New("the gateway answers over TLS alone"), "write https:// in place of http://"}
	}
	return nil
}

// gatewayClient asks gateways. It follows no redirect: the key is for nobody else, and
// [http.Client] would send it to any port of the same host, and there without TLS, too.
var gatewayClient = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// checkRedirect is why an answer is none of a gateway's where it leads elsewhere.
func checkRedirect(res *http.Response) error {
	to, err := res.Location()
	if err != nil || res.StatusCode/100 != 3 {
		return nil
	}
	return &failure{fmt.Errorf("what answers at %s redirects to %s://%s", res.Request.URL.Host, to.Scheme, to.Host),
		"a key goes to the address that is named and to no other: if the gateway is there, name that one with --url"}
}
