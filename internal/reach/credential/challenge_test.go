package credential

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

// TestEmptyParameters: a challenge has parameters that say nothing, and all others count.
func TestEmptyParameters(t *testing.T) {
	for _, change := range []func(string) string{
		func(c string) string { return strings.Replace(c, "Bearer ", `Bearer realm="", `, 1) },
		func(c string) string { return c + `, realm=""` },
		func(c string) string { return strings.Replace(c, ", scope=", `, error_description = "" ,scope=`, 1) },
		func(string) string { return `Bearer realm=""` },
	} {
		w, s := newWorld(t), newStore(t)
		w.server.Config.Handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			recorded := httptest.NewRecorder()
			w.serve(recorded, r)
			if challenge := recorded.Header().Get("WWW-Authenticate"); challenge != "" {
				recorded.Header().Set("WWW-Authenticate", change(challenge))
			}
			maps.Copy(rw.Header(), recorded.Header())
			rw.WriteHeader(recorded.Code)
			_, _ = rw.Write(recorded.Body.Bytes())
		})
		name := change(`Bearer resource_metadata="…", scope="…"`)
		if err := logIn(t, w, s, Config{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if name == `Bearer realm=""` {
			continue // the scopes of a robot are in its challenge
		}
		robot := Config{Grant: ClientCredentialsGrant, ClientID: "robot", ClientSecret: secret.New("robot-secret"), Issuer: w.login.URL}
		if status, err := ask(t.Context(), gatewayOf(t, w, nil, robot), w.url()); status != 200 || err != nil {
			t.Errorf("%s, by client credentials: %d, %v", name, status, err)
		}
	}
}
