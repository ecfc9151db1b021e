package gateway

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync/atomic"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/door"
	"github.com/dragoman-mcp/dragoman/internal/state/watchedfile"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// Certificates are what the gateway shows clients, and wants of them, as it stands in
// files that are looked at each second. What is half renewed does not count: the key and
// the certificate that were good last stay until both are good again.
type certificates struct {
	files *watchedfile.File[*tls.Config]
	log   *slog.Logger
	good  atomic.Pointer[tls.Config]
	wrong string // what was said last of files that cannot be used; for watch alone
}

// certificates returns those of the configuration; nil for none.
func (g *Gateway) certificates() (*certificates, error) {
	t := g.file.TLS
	if t == (config.TLS{}) {
		return nil, nil
	}
	paths := []string{t.Cert, t.Key}
	if t.ClientCA != "" {
		paths = append(paths, t.ClientCA)
	}
	c := &certificates{files: watchedfile.New(func() (*tls.Config, error) { return secured(t) }, paths...), log: g.log}
	first, err := c.files.Now()
	if err != nil {
		return nil, fmt.Errorf("tls: %w", err)
	}
	c.good.Store(first)
	return c, nil
}

// CheckCertificates returns why the files of tls cannot be used, if they cannot. [Gateway.Serve]
// fails for the same reason.
func (g *Gateway) CheckCertificates() error {
	_, err := g.certificates()
	return err
}

// secured reads the files. Each reading is a configuration of its own, so that no session
// that clients of former authorities began is taken up again.
func secured(t config.TLS) (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
	if err != nil {
		return nil, fmt.Errorf("%s with %s: %w", t.Cert, t.Key, err)
	}
	c := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
	if t.ClientCA == "" {
		return c, nil
	}
	text, err := os.ReadFile(t.ClientCA)
	if err != nil {
		return nil, err
	}
	c.ClientCAs = x509.NewCertPool()
	if !c.ClientCAs.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s: there is no certificate in it", t.ClientCA)
	}
	c.ClientAuth = tls.VerifyClientCertIfGiven // who needs one is told so; see identified
	return c, nil
}

// config is what a server needs to ask for the newest with each connection.
func (c *certificates) config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return c.good.Load(), nil },
	}
}

// watch has certificates count that were renewed, until ctx ends.
func (c *certificates) watch(ctx context.Context) { c.files.Watch(ctx, c.look) }

func (c *certificates) look() {
	now, err := c.files.Now()
	switch {
	case err != nil && err.Error() != c.wrong:
		c.wrong = err.Error()
		c.log.Error("the files of tls cannot be used as they are now, and what was read of them before stays", "error", err)
	case err == nil && c.good.Swap(now) != now:
		c.wrong = ""
		c.log.Info("the files of tls were read again", "until", now.Certificates[0].Leaf.NotAfter)
	}
}

// demanding refuses clients without a certificate where one is wanted, but for health
// checks, whose senders rarely have one.
func (g *Gateway) demanding(next http.Handler) http.Handler {
	if g.file.TLS.ClientCA == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		health := r.Method == http.MethodGet && (r.URL.Path == "/healthz" || r.URL.Path == "/readyz")
		if health || g.certified(r) {
			next.ServeHTTP(w, r)
			return
		}
		g.refuse(w, r, door.OpenAI, &model.Error{
			Status: http.StatusForbidden, Type: model.TypePermission, Code: "client_certificate_required", Err: errNoCertificate,
			Message: "This gateway is for clients with a certificate of an authority that it knows: show one when you connect. The API key goes with it.",
		})
	})
}

// certified reports whether the client has a certificate, where one is wanted.
func (g *Gateway) certified(r *http.Request) bool {
	return g.file.TLS.ClientCA == "" || r.TLS != nil && len(r.TLS.VerifiedChains) > 0
}

var errNoCertificate = errors.New("a client without certificate")
