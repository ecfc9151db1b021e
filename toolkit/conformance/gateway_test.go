package conformance

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/gateway"
	"github.com/dragoman-mcp/dragoman/internal/reach/servers"

	"github.com/dragoman-mcp/dragoman"
)

// beyond are the scenarios that the server behind cannot do in its era, by the era
// and the requirements, with the reason.
var beyond = map[string]map[string]string{
	"modern 2025-11-25": {
		"tools-call-sampling":          noAsking,
		"tools-call-elicitation":       noAsking,
		"elicitation-sep1034-defaults": noAsking,
		"elicitation-sep1330-enums":    noAsking,
		"server-sse-polling":           noStream,
	},
	"legacy 2025-11-25": {"server-sse-polling": noStream},
	"legacy 2026-07-28": {
		"server-stateless":                        "its tool looks at capabilities in the modern era alone",
		"input-required-result-basic-elicitation": "a legacy server's questions have ids, not the keys that the suite looks for",
		"input-required-result-multi-round":       "the SDK asks a legacy client one round only",
	},
}

const (
	noAsking = "in the modern era the SDK lets these tools ask nobody"
	noStream = "a call that says nothing on its way is answered with JSON, so there is no stream to come back to, and nothing is checked"
)

// TestSuiteThroughTheGateway runs the server side of the suite against a gateway
// with the suite's server behind it, in each era on either side.
func TestSuiteThroughTheGateway(t *testing.T) {
	node, suite := programs(t)
	direct := serve(t, newServer(t))
	for _, era := range []string{"modern", "legacy"} {
		behind := direct
		if era == "legacy" {
			behind = legacyOnly(t, direct)
		}
		t.Run("a "+era+" server", func(t *testing.T) {
			file := config.Default()
			file.MCPServers = map[string]servers.Config{"only": {URL: behind}}
			g, err := gateway.New(file, gateway.Options{Can: dragoman.AskForm | dragoman.AskURL | dragoman.AskSampling | dragoman.AskRoots})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(g.Close)
			if err := g.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := g.Servers()[0].Era; got != era {
				t.Fatalf("the gateway speaks the %s era with the server", got)
			}
			front := httptest.NewServer(g.Handler())
			t.Cleanup(front.Close)
			// The later requirements first: their client leaves questions unanswered,
			// which must not keep the next client's from being asked.
			for _, version := range slices.Backward(slices.Sorted(maps.Keys(required))) {
				t.Run(version, func(t *testing.T) {
					runSuite(t, node, suite, front.URL+"/mcp/only", version, required[version], beyond[era+" "+version])
				})
			}
		})
	}
}

// legacyOnly returns the address of the server at url as a server of the legacy
// era alone.
func legacyOnly(t *testing.T, address string) string {
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: u.Scheme, Host: u.Host})
		r.Out.Host = u.Host
	}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var message struct {
			ID     json.RawMessage
			Method string
		}
		if json.Unmarshal(body, &message) == nil && message.Method == "server/discover" {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"jsonrpc":"2.0","id":` + string(message.ID) + `,"error":{"code":-32601,"message":"method not found"}}`))
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL + u.Path
}
