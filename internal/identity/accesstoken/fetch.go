package accesstoken

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

const (
	// maxDocument is the size of what an issuer answers, in bytes.
	maxDocument = 1 << 20
	// maxKeys is how many keys of an issuer are looked at.
	maxKeys = 64
	// fetchTimeout bounds everything that is fetched for one purpose.
	fetchTimeout = 10 * time.Second
)

// defaultClient bounds what an issuer can do to us, and follows no redirect.
func defaultClient() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.ResponseHeaderTimeout = fetchTimeout
	t.MaxResponseHeaderBytes = 64 << 10
	t.DisableCompression = true
	return &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return errors.New("an issuer redirects") }}
}

// A statusError is an answer that is none.
type statusError struct {
	host   string
	status int
	code   string // of RFC 6749 section 5.2; empty where it has none
}

// aboutToken reports whether an issuer refused to be asked about a token because of the
// token: many answer 400 to one that is malformed, and not that it is not active.
func (e *statusError) aboutToken() bool {
	switch e.status {
	case http.StatusBadRequest:
		return e.code != "invalid_client" && e.code != "unauthorized_client"
	case http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return true
	}
	return false
}

func (e *statusError) Error() string { return fmt.Sprintf("%s answered %d", e.host, e.status) }

// maxRefusal is how much of a refusal is read, in bytes.
const maxRefusal = 4 << 10

// errorCode returns the error that a refusal names; empty where it is none of OAuth's.
func errorCode(body []byte) string {
	if rawjson.Check(body) != nil {
		return ""
	}
	o, err := rawjson.ParseObject(body)
	if err != nil {
		return ""
	}
	code, _ := rawjson.String(o.Get("error"))
	return code
}

// do sends a request and returns the object that it is answered with, read strictly.
func (v *Verifier) do(r *http.Request) (*rawjson.Object, error) {
	r.Header.Set("Accept", "application/json")
	res, err := v.client.Do(r)
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok {
			err = failed.Err // the address may hold more than whoever reads logs should see
		}
		return nil, fmt.Errorf("%s: %w", r.URL.Host, err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(res.Body, maxRefusal))
		return nil, &statusError{r.URL.Host, res.StatusCode, errorCode(body)}
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxDocument+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", r.URL.Host, err)
	case len(body) > maxDocument:
		return nil, fmt.Errorf("%s answered with more than %d bytes", r.URL.Host, maxDocument)
	}
	if err := rawjson.Check(body); err != nil {
		return nil, fmt.Errorf("%s did not answer with JSON: %w", r.URL.Host, err)
	}
	object, err := rawjson.ParseObject(body)
	if err != nil {
		return nil, fmt.Errorf("%s did not answer with an object", r.URL.Host)
	}
	return object, nil
}

func (v *Verifier) get(ctx context.Context, address string) (*rawjson.Object, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	return v.do(r)
}

// fetchKeys fetches the keys of an issuer, and where they are, if that is not known.
func (v *Verifier) fetchKeys(ctx context.Context, from *issuer) (keys, error) {
	address := from.KeySet
	if address == "" {
		var err error
		if address, err = v.discover(ctx, from.Name); err != nil {
			return nil, err
		}
	}
	document, err := v.get(ctx, address)
	if err != nil {
		return nil, err
	}
	list, err := rawjson.Elements(document.Get("keys"))
	if err != nil {
		return nil, errors.New("its keys are no list")
	}
	found := keys{}
	for _, raw := range list[:min(len(list), maxKeys)] {
		// A key that is of no use to us, because of its type or use, is no trouble: the
		// issuer may have others for other purposes.
		var key jose.JSONWebKey
		if json.Unmarshal(raw, &key) == nil && usable(&key) {
			found = append(found, key)
		}
	}
	if len(found) == 0 {
		return nil, errors.New("it has no keys to verify signatures with")
	}
	return found, nil
}

// discover returns the address of an issuer's keys, by its metadata.
func (v *Verifier) discover(ctx context.Context, name string) (string, error) {
	metadata, err := v.metadata(ctx, name)
	if err != nil {
		return "", err
	}
	at, _ := rawjson.String(metadata.Get("jwks_uri"))
	if err := CheckURL(at); err != nil {
		return "", fmt.Errorf("its jwks_uri: %w", err)
	}
	return at, nil
}

// Endpoints are where people sign in at an issuer.
type Endpoints struct {
	// Authorize is where a browser is sent, and Token where a code is redeemed.
	Authorize, Token string
	// SaysIssuer says that an answer names its issuer (RFC 9207).
	SaysIssuer bool
	// InBody says that secrets of clients are taken in the body, and not in the header.
	InBody bool
}

// Endpoints returns those that an issuer's metadata name. One that does not say that it
// takes PKCE with S256 has none.
func (v *Verifier) Endpoints(ctx context.Context, name string) (e Endpoints, err error) {
	metadata, err := v.metadata(ctx, name)
	if err != nil {
		return e, err
	}
	e.Authorize, _ = rawjson.String(metadata.Get("authorization_endpoint"))
	e.Token, _ = rawjson.String(metadata.Get("token_endpoint"))
	e.SaysIssuer = string(metadata.Get("authorization_response_iss_parameter_supported")) == "true"
	if err := errors.Join(CheckURL(e.Authorize), CheckURL(e.Token)); err != nil {
		return Endpoints{}, fmt.Errorf("its metadata name nowhere to sign in: %w", err)
	}
	if !lists(metadata, "code_challenge_methods_supported", "S256") {
		return Endpoints{}, errors.New("its metadata do not say that it takes PKCE with S256")
	}
	const methods = "token_endpoint_auth_methods_supported"
	e.InBody = lists(metadata, methods, "client_secret_post") && !lists(metadata, methods, "client_secret_basic")
	return e, nil
}

// lists reports whether a list of metadata has a text.
func lists(metadata *rawjson.Object, name, text string) bool {
	elements, _ := rawjson.Elements(metadata.Get(name))
	return slices.ContainsFunc(elements, func(raw json.RawMessage) bool {
		each, _ := rawjson.String(raw)
		return each == text
	})
}

// metadata returns an issuer's metadata.
func (v *Verifier) metadata(ctx context.Context, name string) (*rawjson.Object, error) {
	var first error
	for _, address := range metadataURLs(name) {
		metadata, err := v.get(ctx, address)
		if err != nil {
			if first == nil {
				first = err
			}
			if _, ok := errors.AsType[*statusError](err); ok {
				continue
			}
			return nil, first
		}
		// Who answers for another issuer could have its tokens taken for ours (RFC 8414
		// section 3.3).
		if issuer, _ := rawjson.String(metadata.Get("issuer")); issuer != name {
			return nil, fmt.Errorf("its metadata are those of another issuer, %.200q", issuer)
		}
		return metadata, nil
	}
	return nil, fmt.Errorf("its metadata are not found: %w", first)
}

// metadataURLs are the addresses of an issuer's metadata, in the order in which MCP
// 2026-07-28 ("Authorization Server Metadata Discovery") tries them.
func metadataURLs(issuer string) []string {
	u, err := url.Parse(issuer)
	if err != nil {
		return nil
	}
	path := strings.TrimSuffix(u.EscapedPath(), "/")
	at := func(path string) string { return u.Scheme + "://" + u.Host + path }
	const oauth, openid = "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"
	if path == "" {
		return []string{at(oauth), at(openid)}
	}
	return []string{at(oauth + path), at(openid + path), at(path + openid)}
}
