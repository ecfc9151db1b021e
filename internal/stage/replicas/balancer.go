//go:build unix

package replicas

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
)

// A Balancer gives each request to the next replica, whoever sends it and whatever it
// belongs to. One that cannot be connected to is passed over; a request that has been
// sent is not sent again. Make it with [NewBalancer].
type Balancer struct {
	proxy *httputil.ReverseProxy
	to    *http.Transport

	mu   sync.Mutex
	urls []string
	out  []string
	next int
}

// NewBalancer returns a balancer without replicas.
func NewBalancer() *Balancer {
	b := &Balancer{to: &http.Transport{MaxIdleConnsPerHost: 64}}
	b.proxy = &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = "http", "replica" },
		Transport:     b,
		FlushInterval: -1,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
			w.WriteHeader(http.StatusBadGateway)
		},
	}
	return b
}

// Use has requests given to these replicas from now on.
func (b *Balancer) Use(urls []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.urls, b.out = slices.Clone(urls), nil
}

// Out takes a replica out, as a health check does that it fails.
func (b *Balancer) Out(url string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.out = append(b.out, url)
}

// In takes it in again.
func (b *Balancer) In(url string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.out = slices.DeleteFunc(b.out, func(each string) bool { return each == url })
}

func (b *Balancer) ServeHTTP(w http.ResponseWriter, r *http.Request) { b.proxy.ServeHTTP(w, r) }

// turn returns the replicas in the order in which a request tries them.
func (b *Balancer) turn() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	order := make([]string, 0, len(b.urls))
	for i := range b.urls {
		if at := b.urls[(b.next+i)%len(b.urls)]; !slices.Contains(b.out, at) {
			order = append(order, at)
		}
	}
	b.next++
	return order
}

// errNobody: no replica takes requests.
var errNobody = errors.New("no replica takes requests")

// RoundTrip sends a request to the next replica.
func (b *Balancer) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		r.Body.Close()
	}
	last := errNobody
	for _, at := range b.turn() {
		target, err := url.Parse(at)
		if err != nil {
			return nil, err
		}
		out := r.Clone(r.Context())
		out.URL.Host = target.Host
		if body != nil {
			out.Body = io.NopCloser(bytes.NewReader(body))
		}
		res, err := b.to.RoundTrip(out)
		if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
			last = err
			continue
		}
		if res != nil {
			res.Header.Set("X-Replica", at)
		}
		return res, err
	}
	return nil, last
}
