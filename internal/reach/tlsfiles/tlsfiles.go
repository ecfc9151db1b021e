// Package tlsfiles has what an operator gives the gateway for its own connections to one
// address: authorities that are good there beside the system's, and a certificate to show.
// They stand in files that somebody renews while the gateway runs.
package tlsfiles

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"sync/atomic"

	"github.com/dragoman-mcp/dragoman/internal/state/watchedfile"
	"github.com/dragoman-mcp/dragoman/internal/text/invalid"
	"github.com/dragoman-mcp/dragoman/internal/wire/safehttp"
)

// Files are the tls of a model or a server in the configuration. The zero value is that of
// an address to which the system's authorities are enough.
type Files struct {
	CA   string `yaml:"ca" doc:"File with authorities, in PEM, whose certificates are good at this address beside those of the system. A relative path starts at the folder of the configuration file, as those below do."`
	Cert string `yaml:"cert" doc:"File with the certificate that is shown to who wants one, and those between it and its authority, in PEM."`
	Key  string `yaml:"key" doc:"File with its private key, in PEM."`
}

// IsZero reports whether there are none.
func (f Files) IsZero() bool { return f == Files{} }

// Paths returns where the files are; empty for one that there is not.
func (f *Files) Paths() []*string { return []*string{&f.CA, &f.Cert, &f.Key} }

// Validate reports a certificate without key, or a key without certificate, and files for
// an address that is not reached over TLS.
func (f Files) Validate(scheme string) error {
	switch {
	case f.IsZero():
		return nil
	case scheme != "https":
		return invalid.Key("tls", "this is for an address that begins with https://")
	case (f.Cert == "") != (f.Key == ""):
		return invalid.Key("tls", "a certificate (cert) and its private key (key) go together")
	}
	return nil
}

// config reads the files.
func (f Files) config() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.Cert != "" {
		pair, err := f.pair()
		if err != nil {
			return nil, err
		}
		c.Certificates = []tls.Certificate{pair}
	}
	if f.CA == "" {
		return c, nil
	}
	text, err := read(f.CA)
	if err != nil {
		return nil, err
	}
	if c.RootCAs, err = x509.SystemCertPool(); err != nil {
		c.RootCAs = x509.NewCertPool()
	}
	if !c.RootCAs.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("tls: %s: there is no certificate in it", f.CA)
	}
	return c, nil
}

// pair reads the certificate and its key.
func (f Files) pair() (pair tls.Certificate, err error) {
	cert, err := read(f.Cert)
	if err != nil {
		return pair, err
	}
	key, err := read(f.Key)
	if err != nil {
		return pair, err
	}
	if block, _ := pem.Decode(key); block != nil && (block.Type == "ENCRYPTED PRIVATE KEY" || block.Headers["DEK-Info"] != "") {
		return pair, fmt.Errorf("tls: %s: the key has a passphrase; openssl pkey -in FILE -out FILE writes it without", f.Key)
	}
	if pair, err = tls.X509KeyPair(cert, key); err != nil {
		err = fmt.Errorf("tls: %s with %s: %w", f.Cert, f.Key, err)
	}
	return pair, err
}

// read reads a file. Whoever opens a pipe may wait for ever, so it has to be a regular one.
func read(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("tls: %w", err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("tls: %s: it is no regular file", path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("tls: %w", err)
	}
	return text, nil
}

// Client returns a client that uses the files. With a certificate it follows redirects within
// one origin alone: elsewhere nobody is to act in our name. log is told of files that cannot
// be used any more; nil for nobody.
func (f Files) Client(o safehttp.Options, log *slog.Logger) *http.Client {
	o.SameOrigin = f.Cert != ""
	client := safehttp.NewClient(o)
	if !f.IsZero() {
		client.Transport = f.Transport(log, func(c *tls.Config) http.RoundTripper {
			o.TLS = c
			return safehttp.NewClient(o).Transport
		})
	}
	return client
}

// Transport returns a transport that sends requests by what with makes of the files: another
// one as soon as they have changed, so that no connection is used on that what stood there
// before allowed. While they cannot be used what was read of them before stays.
func (f Files) Transport(log *slog.Logger, with func(*tls.Config) http.RoundTripper) *Transport {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	var paths []string
	for _, path := range f.Paths() {
		if *path != "" {
			paths = append(paths, *path)
		}
	}
	return &Transport{log: log, files: watchedfile.New(func() (*made, error) {
		c, err := f.config()
		if err != nil {
			return nil, err
		}
		return &made{with(c)}, nil
	}, paths...)}
}

// A Transport is an [http.RoundTripper] that follows files. Make it with [Files.Transport].
type Transport struct {
	log   *slog.Logger
	files *watchedfile.File[*made]
	good  atomic.Pointer[made]

	looking sync.Mutex
	wrong   string // what was said last of files that cannot be used
}

// made is a transport of files as they were once.
type made struct{ http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	next, err := t.now()
	if err != nil {
		if req.Body != nil {
			req.Body.Close()
		}
		return nil, err
	}
	return next.RoundTrip(req)
}

// Check returns why the files cannot be used, if they never could be.
func (t *Transport) Check() error {
	_, err := t.now()
	return err
}

// now returns what goes with the files. One request at a time looks at them, and the others
// go on with what was good last: a folder that hangs holds up one.
func (t *Transport) now() (*made, error) {
	if !t.looking.TryLock() {
		if good := t.good.Load(); good != nil {
			return good, nil
		}
		t.looking.Lock()
	}
	defer t.looking.Unlock()
	next, err := t.files.Now()
	good := t.good.Load()
	switch {
	case err != nil && good == nil:
		return nil, err
	case err != nil:
		if err.Error() != t.wrong {
			t.wrong = err.Error()
			t.log.Error("files of tls cannot be used as they are now, and what was read of them before stays", "error", err)
		}
		return good, nil
	case next == good:
		return good, nil
	}
	t.good.Store(next)
	if t.wrong = ""; good != nil {
		good.close()
		t.log.Info("files of tls were read again")
	}
	return next, nil
}

// CloseIdleConnections closes what is not in use.
func (t *Transport) CloseIdleConnections() {
	if good := t.good.Load(); good != nil {
		good.close()
	}
}

func (m *made) close() {
	if c, ok := m.RoundTripper.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
