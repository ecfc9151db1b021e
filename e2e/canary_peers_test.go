package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
	"github.com/dragoman-mcp/dragoman/rehearsal"
)

// A listener keeps every byte of the requests that a peer gets.
type listener struct {
	*httptest.Server
	mu  sync.Mutex
	got bytes.Buffer
}

// listen starts a peer that listens.
func listen(t *testing.T, next http.HandlerFunc) *listener {
	l := &listener{}
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if dump, err := httputil.DumpRequest(r, true); err == nil {
			l.mu.Lock()
			l.got.Write(dump)
			l.mu.Unlock()
		}
		next(w, r)
	}))
	t.Cleanup(l.Close)
	return l
}

func (l *listener) heard() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.got.String()
}

// repeat refuses a request, and says all of it again: in the header, and in the body
// as text and as JSON.
func repeat(w http.ResponseWriter, r *http.Request) {
	dump, _ := httputil.DumpRequest(r, true)
	quoted, _ := json.Marshal(string(dump))
	for name, values := range r.Header {
		w.Header()["X-Said-"+name] = values
	}
	w.Header().Set("X-Said-Url", r.URL.String())
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusUnauthorized)
	fmt.Fprintf(w, `{"error":{"message":%s,"code":"invalid_api_key"}}`, quoted)
	fmt.Fprintf(w, "\n%s", dump)
}

// object answers an MCP request with an error that says all of it again.
func object(w http.ResponseWriter, r *http.Request) {
	dump, _ := httputil.DumpRequest(r, false)
	var request struct{ ID json.RawMessage }
	_ = json.NewDecoder(r.Body).Decode(&request)
	quoted, _ := json.Marshal(string(dump))
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":%s,"data":{"again":[%[2]s]}}}`, request.ID, quoted)
}

// objectLater objects to calls alone.
func objectLater(next http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		if bytes.Contains(body, []byte(`"tools/call"`)) {
			object(w, r)
			return
		}
		next.ServeHTTP(w, r)
	}
}

// sendOn redirects to an address with a token, and with what it was asked.
func sendOn(token string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://127.0.0.1:1"+r.URL.Path+"?token="+token+"&"+r.URL.RawQuery, http.StatusTemporaryRedirect)
	}
}

// introspector is an authorization server that knows one token, and repeats what it is
// asked about all others.
func introspector(t *testing.T, good string) *listener {
	var l *listener
	l = listen(t, func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("token") != good {
			repeat(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"active":true,"sub":"ada","aud":"gateway","iss":%q,"exp":4102444800}`, l.URL)
	})
	return l
}

// loginServer is an authorization server that agrees at once, and an MCP server, at
// /mcp, that takes only its tokens.
func loginServer(t *testing.T, secret func(string) string) *listener {
	mcp := fakemcp.New(fakemcp.Config{Tools: []fakemcp.Tool{{Name: "echo"}}})
	tokens := map[string]string{
		"client_credentials": fmt.Sprintf(`{"access_token":%q,"token_type":"Bearer","expires_in":3600}`, secret("token of a client")),
		// It ends at once, so that it is renewed.
		"authorization_code":                              fmt.Sprintf(`{"access_token":%q,"refresh_token":%q,"token_type":"Bearer","expires_in":1}`, secret("token of a login"), secret("refresh token")),
		"urn:ietf:params:oauth:grant-type:token-exchange": fmt.Sprintf(`{"access_token":%q,"issued_token_type":"urn:ietf:params:oauth:token-type:access_token","token_type":"Bearer","expires_in":3600}`, secret("exchanged token")),
		"refresh_token":                                   fmt.Sprintf(`{"access_token":%q,"token_type":"Bearer","expires_in":3600}`, secret("renewed token")),
	}
	mux := http.NewServeMux()
	l := listen(t, mux.ServeHTTP)
	document := func(path, text string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, strings.ReplaceAll(text, "HERE", l.URL))
		})
	}
	document("/.well-known/oauth-protected-resource/mcp", `{"resource":"HERE/mcp","authorization_servers":["HERE"]}`)
	document("/.well-known/oauth-authorization-server", `{"issuer":"HERE","authorization_endpoint":"HERE/authorize","token_endpoint":"HERE/token",`+
		`"response_types_supported":["code"],"code_challenge_methods_supported":["S256"],"token_endpoint_auth_methods_supported":["client_secret_basic","none"]}`)
	mux.HandleFunc("/authorize", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		http.Redirect(w, r, q.Get("redirect_uri")+"?"+url.Values{"code": {secret("code of a login")}, "state": {q.Get("state")}}.Encode(), http.StatusFound)
	})
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, tokens[r.FormValue("grant_type")])
	})
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		shown := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		good := []string{secret("token of a client"), secret("token of a login"), secret("renewed token"), secret("exchanged token")}
		if !slices.Contains(good, shown) {
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+l.URL+`/.well-known/oauth-protected-resource/mcp"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		mcp.ServeHTTP(w, r)
	})
	return l
}

// talkative is a server over stdio that says on its standard error how it was started,
// and in that file, too; then it works, or ends.
func talkative(t *testing.T, works bool, vars map[string]string, args ...string) (entry server, seen string) {
	path, _, env := fakemcp.Command(fakemcp.Config{Tools: []fakemcp.Tool{{Name: "local"}}})
	dir := t.TempDir()
	seen = filepath.Join(dir, "seen")
	rest := "echo \"cannot log in with $PASSWORD\" >&2; exit 3"
	if works {
		rest = "exec " + path
	}
	script := filepath.Join(dir, "server")
	writeFile(t, script, "#!/bin/sh\n"+
		"{ env; echo \"started with $*\"; echo \"$PASSWORD\" | base64; } | tee -a "+seen+" >&2\n"+rest+"\n")
	if err := os.Chmod(script, 0o755); err != nil {
		t.Fatal(err)
	}
	vars["GORACE"] = "atexit_sleep_ms=0"
	for _, variable := range env {
		name, value, _ := strings.Cut(variable, "=")
		vars[name] = strings.ReplaceAll(value, "$", "$$")
	}
	return server{"command": script, "args": args, "env": vars}, seen
}

// stand is the model that is built in.
func stand() http.HandlerFunc { return (&rehearsal.Model{}).ServeHTTP }
