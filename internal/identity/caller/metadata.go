package caller

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

// MetadataPath is where clients find out whose tokens are good (RFC 9728): for the
// whole gateway here, and for what is at a path at this, followed by the path.
const MetadataPath = "/.well-known/oauth-protected-resource"

// rooms are the paths that are resources of their own, with all that is below them.
var rooms = []string{"/mcp", "/sse", "/v1"}

// resourcePath is the path of the resource that is at a path, without a slash at its
// end: below /v1 that is /v1, and the whole gateway has none.
func resourcePath(path string) string {
	path = strings.TrimRight(path, "/")
	for _, room := range rooms {
		if path == room || strings.HasPrefix(path, room+"/") {
			if room == "/v1" {
				return room
			}
			return path
		}
	}
	return ""
}

// metadataURL is where the metadata are of what is at a path.
func (o *oauth) metadataURL(path string) string { return o.base + MetadataPath + resourcePath(path) }

// metadata is a document of RFC 9728, section 2.
type metadata struct {
	Resource             string   `json:"resource"`
	AuthorizationServers []string `json:"authorization_servers"`
	ScopesSupported      []string `json:"scopes_supported,omitempty"`
	BearerMethods        []string `json:"bearer_methods_supported"`
	ResourceName         string   `json:"resource_name"`
}

// ServeMetadata answers a request below [MetadataPath], for which nobody has to say
// who they are. It reports false where there are no such metadata. Whether there is a
// server of the name in the path is not said here.
func (f *Authenticator) ServeMetadata(w http.ResponseWriter, r *http.Request) bool {
	path := strings.TrimRight(strings.TrimPrefix(r.URL.EscapedPath(), MetadataPath), "/")
	o := f.now.Load().oauth
	if o == nil || r.Method != http.MethodGet && r.Method != http.MethodHead || resourcePath(path) != path || len(path) > 256 {
		return false
	}
	m := metadata{Resource: o.base + path, BearerMethods: []string{"header"}, ResourceName: "Dragoman"}
	for _, i := range o.issuers {
		m.AuthorizationServers = append(m.AuthorizationServers, i.Issuer)
		for _, scope := range i.scopes() {
			if !slices.Contains(m.ScopesSupported, scope) {
				m.ScopesSupported = append(m.ScopesSupported, scope)
			}
		}
	}
	document, err := json.Marshal(m)
	if err != nil {
		return false // never happens: it is texts
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "public, max-age=300")
	_, _ = w.Write(append(document, '\n'))
	return true
}

// scopes are those that mean something here.
func (i *Issuer) scopes() []string {
	all := slices.Clone(i.Required)
	for _, s := range i.Scopes {
		all = append(all, s.Scope)
	}
	return all
}
