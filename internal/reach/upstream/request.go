package upstream

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/observe"
)

// A Request is what [Upstream.NewRequest] makes a request to the upstream from.
type Request struct {
	// Method is the HTTP method.
	Method string
	// Path is the path below the base URL, escaped, such as /chat/completions:
	// what follows /v1 in the client's own request.
	Path string
	// RawQuery is the client's query, without the question mark.
	RawQuery string
	// Header is the client's header. What belongs to the connection, to us, or
	// to the client's credentials is left out; the rest is copied.
	Header http.Header
	// Body is the body to send; nil for none. With a [*bytes.Reader] the request
	// has a length and can be sent again on a connection that broke at once.
	Body io.Reader
	// Length is the length of Body where that is no *bytes.Reader; 0 means that
	// it is not known.
	Length int64
	// ClientCredentials lets the client's own Authorization or api-key header
	// go to the upstream, where the configuration has none for it. Set it only
	// when the gateway does not use these headers to recognise its callers.
	ClientCredentials bool
	// Relay asks for an answer that can be handed to the client as it is: the
	// client's Accept-Encoding, Idempotency-Key and a wish to switch to WebSocket
	// are kept. Without it the answer comes uncompressed.
	Relay bool
}

// ErrPath is what [Upstream.NewRequest] returns, wrapped, for a path that would
// leave the base URL.
var ErrPath = errors.New("not a path below the API's base")

// NewRequest makes a request to the upstream.
func (u *Upstream) NewRequest(ctx context.Context, r Request) (*http.Request, error) {
	target, err := u.join(r.Path, r.RawQuery)
	if err != nil {
		return nil, err
	}
	req := (&http.Request{
		Method:     r.Method,
		URL:        target,
		Host:       target.Host,
		Proto:      "HTTP/1.1",
		ProtoMajor: 1,
		ProtoMinor: 1,
		Header:     make(http.Header, len(r.Header)+len(u.header)+1),
	}).WithContext(ctx)
	copyHeader(req.Header, r, r.ClientCredentials && !u.HasKey)
	if !r.Relay {
		// Where nothing is said, any encoding will do (RFC 9110, section 12.5.3).
		req.Header["Accept-Encoding"] = uncompressed
	}
	maps.Copy(req.Header, u.header)
	if host := u.header.Get("Host"); host != "" { // a request has it beside its header
		req.Host = host
	}
	if u.Speaks(Messages) && u.HasKey && (r.Path == "/messages" || strings.HasPrefix(r.Path, "/messages/")) {
		// On these routes a key stands in a header of its own; Anthropic takes a bearer
		// token for something else.
		if key, ok := strings.CutPrefix(u.header.Get("Authorization"), "Bearer "); ok && u.header.Get("X-Api-Key") == "" {
			req.Header.Set("X-Api-Key", key)
			if u.BaseURL.Hostname() == anthropicHost {
				req.Header.Del("Authorization")
			}
		}
	}
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", "dragoman")
	}
	observe.Carry(ctx, req.Header)
	setBody(req, r)
	return req, nil
}

// uncompressed is how an answer comes that is read here. Nobody changes what is in it.
var uncompressed = []string{"identity"}

func setBody(req *http.Request, r Request) {
	if r.Body == http.NoBody {
		return
	}
	switch body := r.Body.(type) {
	case nil:
	case *bytes.Reader:
		req.ContentLength = int64(body.Len())
		if body.Len() == 0 {
			req.Body = http.NoBody
			req.GetBody = func() (io.ReadCloser, error) { return http.NoBody, nil }
			return
		}
		snapshot := *body
		req.Body = io.NopCloser(body)
		req.GetBody = func() (io.ReadCloser, error) {
			again := snapshot
			return io.NopCloser(&again), nil
		}
	case io.ReadCloser:
		req.Body, req.ContentLength = body, length(r.Length)
	default:
		req.Body, req.ContentLength = io.NopCloser(body), length(r.Length)
	}
}

// length says unknown the way [http.Request] wants it.
func length(n int64) int64 {
	if n <= 0 {
		return -1
	}
	return n
}

// join returns the address of path below the base URL.
func (u *Upstream) join(path, rawQuery string) (*url.URL, error) {
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	plain, err := url.PathUnescape(path)
	if err != nil || strings.ContainsAny(plain, "\\\x00") {
		return nil, ErrPath
	}
	for segment := range strings.SplitSeq(plain, "/") {
		if segment == "." || segment == ".." {
			return nil, ErrPath
		}
	}
	target := *u.BaseURL
	if plain != path || target.RawPath != "" {
		target.RawPath = target.EscapedPath() + path
	}
	target.Path += plain
	switch {
	case target.RawQuery == "":
		target.RawQuery = rawQuery
	case rawQuery != "":
		target.RawQuery += "&" + rawQuery
	}
	return &target, nil
}

// Do sends a request that [Upstream.NewRequest] made and returns the answer
// once its header is there, whatever its status. It follows no redirect. The
// caller closes the body. Errors are [*Error]s.
func (u *Upstream) Do(req *http.Request) (*http.Response, error) {
	start := time.Now()
	res, err := u.transport.RoundTrip(req)
	if err != nil {
		return nil, &Error{Host: u.Host(), Address: u.String(), From: u.From, Err: err, Waited: time.Since(start)}
	}
	u.redactHeader(res)
	if res.StatusCode >= 300 && res.StatusCode != http.StatusNotModified {
		u.redactBody(res)
	}
	return res, nil
}

// credentialHeaders are the headers that carry credentials to one API or
// another, or choose on whose account a key is used.
var credentialHeaders = map[string]bool{
	"Authorization":       true,
	"Api-Key":             true,
	"X-Api-Key":           true,
	"X-Goog-Api-Key":      true,
	"Openai-Organization": true,
	"Openai-Project":      true,
}

// droppedHeaders are the headers that end here: those of the connection
// (RFC 9110, section 7.6.1), those that say who the client is or where a
// browser came from, those that the transport sets, and those by which some servers
// take a request for another than it is: what was judged is its method and its path.
var droppedHeaders = map[string]bool{
	"Connection":          true,
	"Keep-Alive":          true,
	"Proxy-Authenticate":  true,
	"Proxy-Authorization": true,
	"Proxy-Connection":    true,
	"Te":                  true,
	"Trailer":             true,
	"Transfer-Encoding":   true,
	"Upgrade":             true,
	"Http2-Settings":      true, // of Upgrade: h2c

	"Host":           true,
	"Content-Length": true,
	"Expect":         true,
	"Cookie":         true,
	"Origin":         true,
	"Referer":        true,
	"Forwarded":      true,
	"Via":            true,
	"X-Real-Ip":      true,

	"X-Http-Method":          true,
	"X-Http-Method-Override": true,
	"X-Method-Override":      true,
	"X-Original-Method":      true,
	"X-Original-Uri":         true,
	"X-Original-Url":         true,
	"X-Rewrite-Url":          true,
}

// droppedPrefixes are beginnings of further such headers, and of our own.
var droppedPrefixes = []string{"X-Forwarded-", "Sec-Fetch-", "Sec-Ch-", "X-Dragoman-"}

// webSocket is the one protocol to which a client may switch.
const webSocket = "websocket"

// wsProtocols is the header in which browsers send the key of a realtime
// session, since they can set no other.
const (
	wsProtocols   = "Sec-Websocket-Protocol"
	wsKeyProtocol = "openai-insecure-api-key."
)

// Lasting returns what may be written down of a client's header, for a request that is made
// without the client later: what would travel, but for credentials and whatever is named
// like a secret.
func Lasting(client http.Header) http.Header {
	kept := http.Header{}
	copyHeader(kept, Request{Header: client}, false)
	for name := range kept {
		for _, word := range []string{"auth", "key", "token", "secret", "password", "signature", "credential", "session"} {
			if strings.Contains(strings.ToLower(name), word) {
				delete(kept, name)
			}
		}
	}
	return kept
}

// Lends reports whether a client's header has credentials that would go to the upstream,
// since the configuration has none for it.
func (u *Upstream) Lends(client http.Header) bool {
	return !u.HasKey && slices.ContainsFunc(slices.Collect(maps.Keys(client)), func(name string) bool { return credentialHeaders[fold(name)] })
}

// copyHeader copies to dst what may travel of a client's header.
func copyHeader(dst http.Header, r Request, credentials bool) {
	var listed []string // headers that Connection names
	for _, value := range r.Header["Connection"] {
		for name := range strings.SplitSeq(value, ",") {
			listed = append(listed, fold(strings.TrimSpace(name)))
		}
	}
	for name, values := range r.Header {
		folded := fold(name)
		switch {
		case droppedHeaders[folded], hasDroppedPrefix(folded), slices.Contains(listed, folded):
		case credentialHeaders[folded] && !credentials:
		case folded == "Accept-Encoding" && !r.Relay:
		case (folded == "Idempotency-Key" || folded == "X-Idempotency-Key") && !r.Relay:
			// Of the client's one request, not of our many. By either name a transport sends
			// again what may have arrived.
		case folded == wsProtocols && !credentials:
			if kept := withoutKeys(values); len(kept) > 0 {
				dst[name] = kept
			}
		default:
			dst[name] = slices.Clip(values)
		}
	}
	// Behind another protocol, such as h2c, there are requests that nobody judges.
	if r.Relay && strings.EqualFold(r.Header.Get("Upgrade"), webSocket) && slices.Contains(listed, "Upgrade") {
		dst.Set("Connection", "Upgrade")
		dst.Set("Upgrade", webSocket)
	}
}

// Credentials returns a digest of the credentials in a client's header: those who
// sent the same have the same.
func Credentials(client http.Header) string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(client)) {
		if credentialHeaders[fold(name)] {
			fmt.Fprintf(h, "%q %q\n", fold(name), client[name])
		}
	}
	return string(h.Sum(nil))
}

func hasDroppedPrefix(folded string) bool {
	for _, prefix := range droppedPrefixes {
		if strings.HasPrefix(folded, prefix) {
			return true
		}
	}
	return false
}

func withoutKeys(values []string) []string {
	var kept []string
	for _, value := range values {
		for protocol := range strings.SplitSeq(value, ",") {
			if protocol = strings.TrimSpace(protocol); !strings.HasPrefix(protocol, wsKeyProtocol) {
				kept = append(kept, protocol)
			}
		}
	}
	if len(kept) == 0 {
		return nil
	}
	return []string{strings.Join(kept, ", ")}
}

// fold makes names equal that some server on the way may take for the same:
// case does not count, and an underscore counts as a dash.
func fold(name string) string {
	if strings.IndexByte(name, '_') >= 0 {
		name = strings.ReplaceAll(name, "_", "-")
	}
	return http.CanonicalHeaderKey(name)
}
