package jwt

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"golang.org/x/time/rate"
)

var rawURL = base64.RawURLEncoding

// maxDocument is the size of a discovery document or a set of keys, in bytes.
const maxDocument = 1 << 20

// newClient is for issuers, which the operator chose: it bounds time, size and
// how often it is asked, and follows no redirect.
func newClient() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.ResponseHeaderTimeout = 10 * time.Second
	t.MaxResponseHeaderBytes = 64 << 10
	return &http.Client{
		Timeout:       10 * time.Second,
		Transport:     &limited{next: t, rate: rate.NewLimiter(rate.Every(10*time.Second), 5)},
		CheckRedirect: func(*http.Request, []*http.Request) error { return errors.New("an issuer redirects") },
	}
}

type limited struct {
	next http.RoundTripper
	rate *rate.Limiter
}

// A fetchError is the fault of the issuer or the network, not of a token.
type fetchError struct{ err error }

func (e *fetchError) Error() string { return e.err.Error() }
func (e *fetchError) Unwrap() error { return e.err }

func (l *limited) RoundTrip(r *http.Request) (*http.Response, error) {
	if !l.rate.Allow() {
		return nil, &fetchError{fmt.Errorf("%s was asked too often", r.URL.Host)}
	}
	res, err := l.next.RoundTrip(r)
	if err != nil {
		return nil, &fetchError{err}
	}
	if res.StatusCode != http.StatusOK {
		res.Body.Close()
		return nil, &fetchError{fmt.Errorf("%s answered %d", r.URL.Host, res.StatusCode)}
	}
	res.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(res.Body, maxDocument), res.Body}
	return res, nil
}
