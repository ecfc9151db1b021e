package gateway

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/stage/authority"
	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
)

// Inside a company, where a model API, an MCP server and its authorization server have
// certificates of an authority of their own and want one of who connects, all are reached
// with tls of the model and the server, and go on when everything is renewed.
func TestInsideACompany(t *testing.T) {
	folder := t.TempDir()
	company := authority.New(t)
	renew := func() {
		cert, key := company.Leaf()
		for name, text := range map[string][]byte{"ca.crt": company.PEM(), "tls.crt": cert, "tls.key": key} {
			if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	renew()
	var numbers sync.Map // of the certificates that were shown last
	demanding := func(name string, answer http.HandlerFunc) string {
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			numbers.Store(name, r.TLS.PeerCertificates[0].SerialNumber.String())
			answer(w, r)
		}))
		s.TLS = company.Demanding()
		s.StartTLS()
		t.Cleanup(s.Close)
		return s.URL
	}
	var issuer string
	issuer = demanding("issuer", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.HasPrefix(r.URL.Path, "/.well-known/") {
			fmt.Fprintf(w, `{"issuer":%q,"authorization_endpoint":%q,"token_endpoint":%q,"response_types_supported":["code"],"code_challenge_methods_supported":["S256"]}`, issuer, issuer+"/authorize", issuer+"/token")
			return
		}
		_, _ = io.WriteString(w, `{"access_token":"for-orders","token_type":"Bearer","expires_in":3600}`)
	})
	orders := fakemcp.New(fakemcp.Config{Tools: []fakemcp.Tool{{Name: "echo"}}})
	var at string
	at = demanding("server", func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, "/.well-known/"):
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"resource":%q,"authorization_servers":[%q]}`, at+"/mcp", issuer)
		case r.Header.Get("Authorization") != "Bearer for-orders":
			w.Header().Set("WWW-Authenticate", "Bearer")
			w.WriteHeader(http.StatusUnauthorized)
		default:
			orders.ServeHTTP(w, r)
		}
	})
	model := demanding("model", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"1","object":"chat.completion","model":"m","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"here"}}]}`)
	})
	const files = "tls: {ca: ca.crt, cert: tls.crt, key: tls.key}"
	l := &living{T: t, path: filepath.Join(folder, "dragoman.yaml")}
	l.write("listen: 127.0.0.1:0\nwait_for_servers: 20s\nmodels: [{match: m, base_url: " + model + "/v1, " + files + "}]\nmcpServers:\n" +
		server("orders", at, files, "oauth: {grant: client_credentials, client_id: gateway, client_secret: for-the-issuer, issuer: "+issuer+"}"))
	l.begin()
	chat := func() {
		t.Helper()
		res, err := http.Post(l.url+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"m","messages":[{"role":"user","content":"hi"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if said, _ := io.ReadAll(res.Body); !strings.Contains(string(said), "here") {
			t.Errorf("%s: %s", res.Status, said)
		}
	}
	chat()
	list, err := l.servers.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range list.Servers {
		if s.Problem != nil {
			t.Error(s.Label, s.Problem)
		}
	}
	for _, name := range []string{"issuer", "server", "model"} {
		if _, asked := numbers.Load(name); !asked {
			t.Errorf("the %s was not asked", name)
		}
	}
	was, _ := numbers.Load("model")
	renew()
	chat()
	if now, _ := numbers.Load("model"); now == was {
		t.Error("after it was renewed the model's API is shown the certificate before")
	}
}
