package tlsfiles_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/reach/tlsfiles"
	"github.com/dragoman-mcp/dragoman/internal/stage/authority"
	"github.com/dragoman-mcp/dragoman/internal/text/invalid"
	"github.com/dragoman-mcp/dragoman/internal/wire/safehttp"
)

// demanding starts a server that wants a certificate of who, which may be replaced, and says
// the number of the one that it is shown.
func demanding(t *testing.T, who *atomic.Pointer[authority.Authority]) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.TLS.PeerCertificates[0].SerialNumber.String())
	}))
	server.EnableHTTP2 = true
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	now := who.Load().Demanding()
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: now.Certificates, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		c := who.Load().Demanding()
		c.NextProtos = []string{"h2", "http/1.1"}
		return c, nil
	}}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

func put(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// get returns what a server says, or in words why nothing comes of it.
func get(t *testing.T, client *http.Client, url string) string {
	t.Helper()
	res, err := client.Get(url)
	if err != nil {
		if said := safehttp.Cause(err); said != "" {
			return said
		}
		return err.Error()
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A server with a certificate of an authority of its own, which wants one of who connects, is
// reached with the files; an authority and certificates that are renewed count with the next
// request, and not while they do not go together.
func TestRenewed(t *testing.T) {
	var who atomic.Pointer[authority.Authority]
	first := authority.New(t)
	who.Store(first)
	server := demanding(t, &who)
	folder := t.TempDir()
	f := tlsfiles.Files{CA: filepath.Join(folder, "ca.crt"), Cert: filepath.Join(folder, "tls.crt"), Key: filepath.Join(folder, "tls.key")}
	var log bytes.Buffer
	client := f.Client(safehttp.Options{}, slog.New(slog.NewTextHandler(&log, nil)))
	defer client.CloseIdleConnections()
	if said := get(t, client, server.URL); !strings.Contains(said, "ca.crt: no such file") && !strings.Contains(said, "tls.crt: no such file") {
		t.Error("without files:", said)
	}

	write := func(a *authority.Authority) {
		cert, key := a.Leaf()
		put(t, f.CA, a.PEM())
		put(t, f.Cert, cert)
		put(t, f.Key, key)
	}
	write(first)
	was := get(t, client, server.URL)
	if strings.Trim(was, "0123456789") != "" {
		t.Fatal(was)
	}
	if again := get(t, client, server.URL); again != was {
		t.Errorf("%s, then %s", was, again)
	}

	cert, key := first.Leaf() // half renewed
	put(t, f.Cert, cert)
	if said := get(t, client, server.URL); said != was || !strings.Contains(log.String(), "cannot be used as they are now") {
		t.Errorf("half renewed: %s; %s", said, &log)
	}
	put(t, f.Key, key)
	if said := get(t, client, server.URL); said == was || strings.Trim(said, "0123456789") != "" {
		t.Errorf("renewed: %s, as before", said)
	}

	second := authority.New(t)
	write(second)
	if said := get(t, client, server.URL); !strings.Contains(said, "which this machine does not trust") {
		t.Error("what was trusted before is asked still:", said)
	}
	who.Store(second)
	if said := get(t, client, server.URL); strings.Trim(said, "0123456789") != "" {
		t.Error("an authority of its own, renewed:", said)
	}

	blank := tlsfiles.Files{CA: f.CA}.Client(safehttp.Options{}, nil)
	defer blank.CloseIdleConnections()
	if said := get(t, blank, server.URL); strings.Trim(said, "0123456789") == "" {
		t.Error("answered with no certificate")
	}
	write(first)
	put(t, f.CA, second.PEM())
	other := f.Client(safehttp.Options{}, nil)
	defer other.CloseIdleConnections()
	if said := get(t, other, server.URL); strings.Trim(said, "0123456789") == "" {
		t.Error("answered with another one's certificate")
	}
}

// Nobody whom a server names acts in our name elsewhere.
func TestRedirected(t *testing.T) {
	var who atomic.Pointer[authority.Authority]
	who.Store(authority.New(t))
	inner := demanding(t, &who)
	server := httptest.NewUnstartedServer(http.RedirectHandler(inner.URL, http.StatusTemporaryRedirect))
	server.TLS = who.Load().Demanding()
	server.StartTLS()
	t.Cleanup(server.Close)
	folder := t.TempDir()
	f := tlsfiles.Files{CA: filepath.Join(folder, "ca.crt"), Cert: filepath.Join(folder, "tls.crt"), Key: filepath.Join(folder, "tls.key")}
	cert, key := who.Load().Leaf()
	put(t, f.CA, who.Load().PEM())
	put(t, f.Cert, cert)
	put(t, f.Key, key)
	client := f.Client(safehttp.Options{}, nil)
	defer client.CloseIdleConnections()
	if said := get(t, client, server.URL); !strings.Contains(said, "redirect refused: to another origin, "+inner.URL) {
		t.Error(said)
	}
}

func TestValidate(t *testing.T) {
	for _, tt := range []struct {
		files        tlsfiles.Files
		scheme, want string
	}{
		{tlsfiles.Files{}, "http", ""},
		{tlsfiles.Files{CA: "ca"}, "https", ""},
		{tlsfiles.Files{Cert: "c", Key: "k"}, "https", ""},
		{tlsfiles.Files{CA: "ca"}, "http", "this is for an address that begins with https://"},
		{tlsfiles.Files{Cert: "c"}, "https", "go together"},
		{tlsfiles.Files{CA: "ca", Key: "k"}, "https", "go together"},
	} {
		err := tt.files.Validate(tt.scheme)
		wrong, ok := errors.AsType[*invalid.Error](err)
		if ok != (tt.want != "") || ok && (wrong.Key != "tls" || !strings.Contains(wrong.Reason, tt.want)) {
			t.Errorf("%+v: %v", tt.files, err)
		}
	}
}

// What cannot be used says why, and nothing is waited for.
func TestUnusable(t *testing.T) {
	dir := t.TempDir()
	cert, key := authority.New(t).Leaf()
	file := func(name string, text []byte) string {
		path := filepath.Join(dir, name)
		put(t, path, text)
		return path
	}
	good := tlsfiles.Files{Cert: file("cert", cert), Key: file("key", key)}
	for _, tt := range []struct {
		files tlsfiles.Files
		want  string
	}{
		{good, ""},
		{tlsfiles.Files{Cert: good.Cert, Key: file("sealed", []byte("-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n"))}, "sealed: the key has a passphrase"},
		{tlsfiles.Files{Cert: good.Cert, Key: file("old", []byte("-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n\nAAAA\n-----END EC PRIVATE KEY-----\n"))}, "old: the key has a passphrase"},
		{tlsfiles.Files{Cert: good.Key, Key: good.Cert}, "key with "},
		{tlsfiles.Files{Cert: good.Cert, Key: dir}, "it is no regular file"},
		{tlsfiles.Files{CA: os.DevNull}, "it is no regular file"},
		{tlsfiles.Files{CA: filepath.Join(dir, "none")}, "none: no such file"},
		{tlsfiles.Files{CA: good.Key}, "there is no certificate in it"},
	} {
		err := tt.files.Transport(nil, func(*tls.Config) http.RoundTripper { return nil }).Check()
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v", tt.files, err)
		}
	}
}
