package lint

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/text/pattern"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// foreign is an origin and a host that are not the server's.
const foreign = "evil.example"

// doors tries the ways into a server over HTTP that should be shut.
func (w *watcher) doors() {
	web := w.live.Web
	if web == nil || w.live.Transport == "sse" {
		return
	}
	c := w.main
	knock := func(name string, change map[string]string) {
		m := w.message(c, "tools/list", params())
		maps.Copy(m.header, change)
		w.note(name, w.send(c, m, patience))
	}
	knock(askOrigin, map[string]string{"Origin": "https://" + foreign, "Sec-Fetch-Site": "cross-site"})
	if web.Loopback {
		knock(askHost, map[string]string{"Host": foreign})
		w.exposed()
	}
	if web.Token {
		drop := map[string]string{}
		for name := range w.target.Header {
			drop[name] = ""
		}
		knock(askAnonymous, drop)
		w.stranger(drop)
		w.refusals()
		knock(askForged, map[string]string{"Authorization": "Bearer " + forgedToken()})
	}
	switch {
	case c.client.modern():
		knock(askMismatch, map[string]string{"Mcp-Method": "tools/call"})
	case c.client.version() >= "2025-06-18": // which have the header
		knock(askHeader, map[string]string{"Mcp-Protocol-Version": noVersion})
	}
	w.get()
	w.live.Answers[askNotification] = w.send(c, raw{
		body: []byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"lint-none"}}`), silent: true,
		method: "notifications/cancelled", header: modernHeader(c, "notifications/cancelled"),
	}, patience)
	w.oldSession()
}

// get asks for the stream that a server may have, and lets go of it at once.
func (w *watcher) get() {
	web, ok := w.main.wire.(*webWire)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	req, err := web.request(ctx, raw{header: map[string]string{"Content-Type": ""}})
	if err != nil {
		return
	}
	req.Method, req.Body, req.ContentLength = http.MethodGet, http.NoBody, 0
	req.Header.Set("Accept", "text/event-stream")
	w.record.sent("GET "+web.url, "a request for a stream")
	began := time.Now()
	resp, err := web.client.Do(req)
	if err != nil {
		return
	}
	resp.Body.Close()
	w.note(askGet, Answer{Method: http.MethodGet, Took: time.Since(began), Status: resp.StatusCode, Header: resp.Header})
}

// stranger greets a server without credentials and outside of any session.
func (w *watcher) stranger(drop map[string]string) {
	if w.main.client.modern() {
		m := w.message(w.main, "server/discover", params())
		maps.Copy(m.header, drop)
		w.note(askStranger, w.send(w.main, m, patience))
		return
	}
	m := w.message(w.main, "initialize", params("protocolVersion", string(rawjson.Quote(w.live.Version)),
		"capabilities", `{}`, "clientInfo", `{"name":"dragoman-lint","version":"1"}`))
	m.header = maps.Clone(drop)
	m.header["Mcp-Session-Id"] = ""
	w.note(askStranger, w.send(w.main, m, patience))
}

func modernHeader(c *connection, method string) map[string]string {
	if !c.client.modern() {
		return nil
	}
	return map[string]string{"Mcp-Method": method, "Mcp-Protocol-Version": c.client.version()}
}

// forgedToken is a token that says it needs no signature.
func forgedToken() string {
	part := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	return part(`{"alg":"none","typ":"JWT"}`) + "." + part(`{"sub":"dragoman-lint","aud":"https://`+foreign+`","exp":1}`) + "."
}

// oldSession opens a session, deletes it, and asks in it.
func (w *watcher) oldSession() {
	if w.main.client.modern() {
		return
	}
	c, err := w.connect(ownName)
	if err != nil {
		return
	}
	web := c.wire.(*webWire)
	had := web.session != ""
	w.disconnect(c) // deletes the session
	if had {
		w.note(askOldSession, w.send(c, w.message(c, "tools/list", params()), patience))
	}
}

// exposed looks whether a server on loopback answers at another address of this
// machine, too.
func (w *watcher) exposed() {
	u, err := url.Parse(w.target.URL)
	if err != nil || u.Port() == "" {
		return
	}
	addresses, _ := net.InterfaceAddrs() // none: nothing to look at
	for _, a := range addresses {
		prefix, err := netip.ParsePrefix(a.String())
		if err != nil || prefix.Addr().IsLoopback() || prefix.Addr().IsLinkLocalUnicast() {
			continue
		}
		where := net.JoinHostPort(prefix.Addr().String(), u.Port())
		dialer := net.Dialer{Timeout: time.Second}
		if conn, err := dialer.DialContext(w.ctx, "tcp", where); err == nil {
			conn.Close()
			w.live.Web.Exposed = where
			return
		}
	}
}

// loopback reports whether a host is this machine.
func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && ip.IsLoopback()
}

// certificateProblem says what is wrong with a server's certificate; empty where
// something else went wrong.
func certificateProblem(err error) string {
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok {
		return invalid.Error()
	}
	if unknown, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return unknown.Error()
	}
	if host, ok := errors.AsType[x509.HostnameError](err); ok {
		return host.Error()
	}
	if version, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return version.Error()
	}
	return ""
}

// Metadata is what the documents of OAuth say (RFC 9728, RFC 8414).
type Metadata struct {
	// Status is that of the refusal of a request without credentials, and Challenges its
	// WWW-Authenticate headers.
	Status     int
	Challenges []string
	// Where is the address of the resource's document, Resource the resource that
	// it names, Servers its authorization servers, Scopes its scopes. Err says
	// why there is no document.
	Where, Resource string
	Servers, Scopes []string
	Err             string
	// Issuer is what the first authorization server calls itself, Methods its
	// PKCE methods, Insecure an endpoint without TLS; IssuerErr says why its
	// document cannot be read.
	Issuer    string
	Methods   []string
	Insecure  string
	IssuerErr string
	// Missing is an endpoint that the document does not name.
	Missing string
}

var metadataLink = pattern.Of(`resource_metadata="([^"]+)"`)

// refusals looks at how a server that was reached with a token refuses requests without
// one. Who has another kind of key is asked nothing about OAuth.
func (w *watcher) refusals() {
	a := w.live.Answers[askAnonymous]
	token, bearer := strings.CutPrefix(w.target.Header.Get("Authorization"), "Bearer ")
	if !bearer || token == "" || a.Err != nil || a.Result != nil || a.Status == 0 {
		return
	}
	w.metadata(a.Status, a.Header.Values("WWW-Authenticate"))
}

// metadata reads the documents that a server which wants authorization must
// have.
func (w *watcher) metadata(status int, challenges []string) {
	m := &Metadata{Status: status, Challenges: challenges}
	w.live.Web.Metadata = m
	base, err := url.Parse(w.target.URL)
	if err != nil {
		return
	}
	candidates := []string{
		base.Scheme + "://" + base.Host + "/.well-known/oauth-protected-resource" + strings.TrimSuffix(base.Path, "/"),
		base.Scheme + "://" + base.Host + "/.well-known/oauth-protected-resource",
	}
	for _, c := range challenges {
		if link := metadataLink.FindStringSubmatch(c); link != nil {
			candidates = append([]string{link[1]}, candidates...)
		}
	}
	var doc struct {
		Resource string   `json:"resource"`
		Servers  []string `json:"authorization_servers"`
		Scopes   []string `json:"scopes_supported"`
	}
	for _, m.Where = range candidates {
		if m.Err = w.document(m.Where, &doc); m.Err == "" {
			break
		}
	}
	m.Resource, m.Servers, m.Scopes = doc.Resource, doc.Servers, doc.Scopes
	if m.Err == "" && len(m.Servers) > 0 {
		w.issuer(m)
	}
}

// issuer reads the document of the first authorization server.
func (w *watcher) issuer(m *Metadata) {
	u, err := url.Parse(m.Servers[0])
	if err != nil {
		m.IssuerErr = "its address is not a URL"
		return
	}
	var doc struct {
		Issuer    string   `json:"issuer"`
		Methods   []string `json:"code_challenge_methods_supported"`
		Authorize string   `json:"authorization_endpoint"`
		Token     string   `json:"token_endpoint"`
	}
	root, path := u.Scheme+"://"+u.Host, strings.TrimSuffix(u.Path, "/")
	for _, where := range []string{root + "/.well-known/oauth-authorization-server" + path, root + "/.well-known/openid-configuration" + path, root + path + "/.well-known/openid-configuration"} {
		if m.IssuerErr = w.document(where, &doc); m.IssuerErr == "" {
			break
		}
	}
	m.Issuer, m.Methods = doc.Issuer, doc.Methods
	switch {
	case m.IssuerErr != "":
	case doc.Authorize == "":
		m.Missing = "authorization_endpoint"
	case doc.Token == "":
		m.Missing = "token_endpoint"
	}
	for _, endpoint := range []string{doc.Authorize, doc.Token} {
		if e, err := url.Parse(endpoint); err == nil && e.Scheme == "http" && !loopback(e.Hostname()) {
			m.Insecure = endpoint
		}
	}
}

// document fetches a small JSON document, and says why it could not. Only
// addresses of the server's own host and those that its documents name are
// fetched, without credentials.
func (w *watcher) document(where string, into any) string {
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, where, nil)
	if err != nil {
		return "its address is not a URL"
	}
	client := w.target.Client
	if client == nil {
		client = http.DefaultClient
	}
	w.record.sent("GET "+where, "a request of "+quote(where))
	resp, err := client.Do(req)
	if err != nil {
		return "it cannot be reached"
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxText))
	switch {
	case resp.StatusCode != http.StatusOK:
		return http.StatusText(resp.StatusCode)
	case err != nil || json.Unmarshal(body, into) != nil:
		return "it is not JSON"
	}
	return ""
}
