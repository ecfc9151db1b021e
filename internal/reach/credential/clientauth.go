package credential

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/internal/wire/safehttp"
)

// A clientAuth shows token endpoints who the client is in the way that they take. A client
// without a secret is named in the body, whatever else there is (RFC 6749 section 2.3). A
// secret goes in the header or in the body; many servers take both, and from each client
// one, which their metadata cannot say: where it is refused, it is shown in the other way.
type clientAuth struct {
	next http.RoundTripper

	other sync.Map // of token endpoints and clients: the way is the other one
}

// CloseIdleConnections ends the connections that are kept open.
func (c *clientAuth) CloseIdleConnections() {
	if next, ok := c.next.(interface{ CloseIdleConnections() }); ok {
		next.CloseIdleConnections()
	}
}

// RoundTrip implements [http.RoundTripper].
func (c *clientAuth) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodPost || r.Body == nil || !strings.HasPrefix(r.Header.Get("Content-Type"), formType) {
		return c.next.RoundTrip(r)
	}
	body, err := safehttp.ReadAll(r.Body, maxMetadata)
	_ = r.Body.Close()
	if err != nil {
		return nil, err
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, err
	}
	id, secret, header := r.BasicAuth()
	if header {
		id, _ = url.QueryUnescape(id)
		secret, _ = url.QueryUnescape(secret)
	} else {
		id, secret = form.Get("client_id"), form.Get("client_secret")
	}
	if secret == "" {
		return c.next.RoundTrip(shown(r, form, id, "", false))
	}
	key := [2]string{r.URL.String(), id}
	if _, ok := c.other.Load(key); ok {
		header = !header
	}
	res, err := c.next.RoundTrip(shown(r, form, id, secret, header))
	if err != nil || !refusesClient(res) {
		return res, err
	}
	again, err := c.next.RoundTrip(shown(r, form, id, secret, !header))
	switch {
	case err != nil:
		return res, nil
	case refusesClient(again): // it is not the way
		again.Body.Close()
		return res, nil
	}
	res.Body.Close()
	if _, ok := c.other.LoadOrStore(key, true); ok {
		c.other.Delete(key)
	}
	return again, nil
}

// formType is the type of what token endpoints are asked.
const formType = "application/x-www-form-urlencoded"

// shown returns a request that shows who the client is in the header, or in the body.
func shown(r *http.Request, form url.Values, id, secret string, header bool) *http.Request {
	r = r.Clone(r.Context())
	form = maps.Clone(form)
	form.Del("client_id")
	form.Del("client_secret")
	r.Header.Del("Authorization")
	if header {
		r.SetBasicAuth(url.QueryEscape(id), url.QueryEscape(secret)) // RFC 6749 section 2.3.1
	} else if id != "" {
		form.Set("client_id", id)
		if secret != "" {
			form.Set("client_secret", secret)
		}
	}
	body := form.Encode()
	r.ContentLength = int64(len(body))
	r.Header.Set("Content-Length", strconv.Itoa(len(body)))
	r.Body = io.NopCloser(strings.NewReader(body))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(body)), nil }
	return r
}

// maxRefusal is how much of a refusal is read, in bytes.
const maxRefusal = 64 << 10

// refusesClient reports whether a token endpoint did not take the client for who it is. The
// code or token beside it is as good as before then.
func refusesClient(res *http.Response) bool {
	if res.StatusCode != http.StatusBadRequest && res.StatusCode != http.StatusUnauthorized {
		return false
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxRefusal))
	rest := res.Body
	res.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), rest), rest}
	if err != nil || rawjson.Check(body) != nil {
		return false
	}
	code, _ := rawjson.String(rawjson.Get(body, "error"))
	return code == "invalid_client"
}
