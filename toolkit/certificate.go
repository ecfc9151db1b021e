package toolkit

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"
)

// listener listens, with TLS where there is a certificate.
func (c *CommandLine) listener(ctx context.Context, address string) (l net.Listener, scheme string, err error) {
	var config *tls.Config
	if c.cert != "" || c.certKey != "" {
		if c.cert == "" || c.certKey == "" {
			return nil, "", &usageError{errors.New("--tls-cert and --tls-key go together")}
		}
		files := &certificate{cert: c.cert, key: c.certKey}
		if _, err := files.get(nil); err != nil {
			return nil, "", &usageError{err}
		}
		config = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: files.get, NextProtos: []string{"h2", "http/1.1"}}
	}
	l, err = (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, "", fmt.Errorf("listen: %w", err)
	}
	if config == nil {
		return l, "http", nil
	}
	return tls.NewListener(l, config), "https", nil
}

// A certificate is read from its files again when they change, so that it can be
// renewed without a restart. A new one that cannot be read leaves the old one in
// use.
type certificate struct {
	cert, key string

	mu      sync.Mutex
	changed time.Time
	current *tls.Certificate
}

func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	info, err := os.Stat(c.cert)
	if err == nil && c.current != nil && info.ModTime().Equal(c.changed) {
		return c.current, nil
	}
	pair, loadErr := tls.LoadX509KeyPair(c.cert, c.key)
	if loadErr == nil && err == nil {
		c.current, c.changed = &pair, info.ModTime()
	}
	if c.current == nil {
		return nil, fmt.Errorf("certificate: %w", errors.Join(err, loadErr))
	}
	return c.current, nil
}
