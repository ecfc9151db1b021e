package credential

import (
	"net/http"
	"strings"
)

// A discovery looks for the metadata of an issuer with a slash at its end where they are:
// the slash goes before the address is made (RFC 8414 section 3.1), as it does behind the
// host of a server (RFC 9728 section 3.1). The SDK leaves it, and many have one: those of
// the Python SDK, Auth0.
type discovery struct{ next http.RoundTripper }

// CloseIdleConnections ends the connections that are kept open.
func (d *discovery) CloseIdleConnections() {
	if c, ok := d.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// RoundTrip implements [http.RoundTripper].
func (d *discovery) RoundTrip(r *http.Request) (*http.Response, error) {
	if path := metadataPath(r.URL.Path); path != r.URL.Path {
		r = r.Clone(r.Context())
		r.URL.Path, r.URL.RawPath = path, metadataPath(r.URL.RawPath)
	}
	return d.next.RoundTrip(r)
}

// metadataPath is the path of metadata without that slash; any other path is as it was.
func metadataPath(path string) string {
	const (
		oauth    = "/.well-known/oauth-authorization-server"
		openid   = "/.well-known/openid-configuration"
		resource = "/.well-known/oauth-protected-resource"
	)
	switch {
	case strings.HasPrefix(path, oauth+"/"), strings.HasPrefix(path, openid+"/"), path == resource+"/":
		return strings.TrimRight(path, "/")
	case path == "/"+openid: // behind the slash
		return openid
	}
	return path
}
