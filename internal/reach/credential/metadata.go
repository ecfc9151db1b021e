package credential

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// maxMetadata is the size of metadata that are read, in bytes.
const maxMetadata = 1 << 20

// A metadataJudge judges the metadata of a login more strictly than the SDK does, which
// takes an issuer with a slash more for the same, and any method of PKCE for one.
type metadataJudge struct {
	next   http.RoundTripper
	chosen string               // the issuer of the configuration; empty for none
	read   func(*metadataFound) // is called with those of each authorization server

	mu      sync.Mutex
	servers []string // authorization servers that the server's metadata name
	scopes  []string // and scopes
	of      string   // the issuer whose metadata were read last; empty for none
	says    bool     // its answers name it (RFC 9207)
	token   string   // where tokens are asked for there
	refused bool     // a client that wanted to register there
}

// metadataFound is what metadata say that is of use for registering.
type metadataFound struct {
	resource []string // scopes of the server
	scopes   []string // of the authorization server
	methods  []string // how clients show there who they are
	token    string   // its token endpoint
}

// refusedClient reports whether an authorization server refused to register a client.
func (j *metadataJudge) refusedClient() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.refused
}

// issuer returns the authorization server whose metadata were read last, empty where there
// are none, and whether its answers name it.
func (j *metadataJudge) issuer() (name string, says bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.of, j.says
}

// tokenURL returns the token endpoint of that server; empty for none.
func (j *metadataJudge) tokenURL() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.token
}

// CloseIdleConnections ends the connections that are kept open.
func (j *metadataJudge) CloseIdleConnections() {
	if c, ok := j.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// RoundTrip implements [http.RoundTripper].
func (j *metadataJudge) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := j.next.RoundTrip(r)
	if err == nil && r.Method == http.MethodPost && strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
		j.mu.Lock()
		j.refused = res.StatusCode >= http.StatusBadRequest && res.StatusCode < http.StatusInternalServerError
		j.mu.Unlock()
	}
	if err != nil || r.Method != http.MethodGet || res.StatusCode != http.StatusOK {
		return res, err
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxMetadata+1))
	_ = res.Body.Close()
	if err == nil && len(body) > maxMetadata {
		err = fmt.Errorf("metadata of more than %d bytes", maxMetadata)
	}
	if err == nil {
		body, err = j.judge(body)
	}
	if err != nil {
		return nil, err
	}
	res.ContentLength = int64(len(body))
	res.Body = io.NopCloser(bytes.NewReader(body))
	return res, nil
}

// judge judges a document, and returns it as the SDK is to read it: of the authorization
// servers of a server, of which the SDK takes the first, it has the one that the operator
// chose, where that is among them.
func (j *metadataJudge) judge(body []byte) ([]byte, error) {
	if err := rawjson.Check(body); err != nil {
		return nil, fmt.Errorf("metadata that are no JSON: %w", err)
	}
	document, err := rawjson.ParseObject(body)
	if err != nil {
		return nil, errors.New("metadata that are no object")
	}
	const servers = "authorization_servers"
	if listed := texts(document.Get(servers)); listed != nil { // RFC 9728
		if slices.Contains(listed, j.chosen) {
			listed = []string{j.chosen}
			document.Set(servers, rawjson.AppendArray(nil, []json.RawMessage{rawjson.Quote(j.chosen)}))
			body = document.Bytes()
		}
		j.mu.Lock()
		defer j.mu.Unlock()
		j.servers, j.scopes = listed, texts(document.Get("scopes_supported"))
		return body, nil
	}
	return body, j.judgeIssuer(document)
}

// judgeIssuer judges the metadata of an authorization server; other documents are fine.
func (j *metadataJudge) judgeIssuer(document *rawjson.Object) error {
	issuer, ok := rawjson.String(document.Get("issuer"))
	if !ok {
		return nil // of something else
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.servers) > 0 && !slices.Contains(j.servers, issuer) { // RFC 8414 section 3.3
		return fmt.Errorf("the metadata are those of the issuer %.200q, and the server names %.200q: they are compared letter by letter", issuer, strings.Join(j.servers, ", "))
	}
	if !slices.Contains(texts(document.Get("code_challenge_methods_supported")), "S256") {
		return fmt.Errorf("the authorization server %.200q does not say that it takes PKCE with S256", issuer)
	}
	j.of, j.says = issuer, string(document.Get("authorization_response_iss_parameter_supported")) == "true"
	j.token, _ = rawjson.String(document.Get("token_endpoint"))
	j.read(&metadataFound{
		token: j.token, resource: j.scopes, scopes: texts(document.Get("scopes_supported")), methods: texts(document.Get("token_endpoint_auth_methods_supported")),
	})
	return nil
}

// texts returns the texts of a list; nil for what is none.
func texts(raw []byte) (list []string) {
	elements, err := rawjson.Elements(raw)
	if err != nil {
		return nil
	}
	for _, e := range elements {
		if text, ok := rawjson.String(e); ok {
			list = append(list, text)
		}
	}
	return list
}
