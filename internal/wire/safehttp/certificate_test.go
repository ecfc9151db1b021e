package safehttp

import (
	"context"
	"errors"
	"net"
	"net/url"
	"testing"
)

// Other failures are no certificate's; e2e TestFaultCertificates has those that are.
func TestCertificateOfOthers(t *testing.T) {
	for _, err := range []error{nil, context.Canceled} {
		if said := Cause(err); said != "" {
			t.Errorf("%v: %s", err, said)
		}
	}
}

// A server that refuses what it was shown says so with an alert, which HTTP/2 sometimes loses.
func TestCauseOfRefusedCertificates(t *testing.T) {
	alert := func(text string) error {
		return &url.Error{Op: "Post", URL: "https://a.test", Err: &net.OpError{Op: "remote error", Err: errors.New(text)}}
	}
	for _, tt := range []struct {
		err  error
		want string
	}{
		{alert("tls: certificate required"), "it wants a certificate of who connects (tls.cert and tls.key)"},
		{alert("tls: unknown certificate authority"), "it does not take the certificate (tls.cert) that it was shown, or wants one: tls: unknown certificate authority"},
		{errors.New("http2: client conn could not be established"), "it ended the connection at once, as one does that wants a certificate of who connects (tls.cert and tls.key), or another one"},
		{alert("tls: internal error"), ""},
		{&net.OpError{Op: "read", Err: errors.New("tls: bad certificate")}, ""},
	} {
		if said := Cause(tt.err); said != tt.want {
			t.Errorf("%v: %q", tt.err, said)
		}
	}
}
