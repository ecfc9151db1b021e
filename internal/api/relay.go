package api

import (
	"bytes"
	"errors"
	"io"
	"log"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/caller"
	"github.com/dragoman-mcp/dragoman/internal/pace"
	"github.com/dragoman-mcp/dragoman/internal/policy"
	"github.com/dragoman-mcp/dragoman/internal/rawjson"
	"github.com/dragoman-mcp/dragoman/internal/upstream"
	"github.com/dragoman-mcp/dragoman/openai"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// relay passes a request to the upstream and its answer back, both untouched.
func (a *API) relay(w http.ResponseWriter, r *http.Request, who caller.Caller) {
	leave, err := a.admit(r.Context(), who, policy.Route, r.URL.Path)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	defer leave()
	up, name, err := a.relayTarget(w, r)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	if name != "" {
		leave, err := a.admit(r.Context(), who, policy.Model, name)
		if err != nil {
			a.fail(w, r, err)
			return
		}
		defer leave()
	}
	a.relayTo(w, r, up, nil, func(usage []byte) { a.used(who, name, usage) })
}

// relayTarget finds the upstream that a request is for: by the model that it
// names, in its path, its JSON body, or the beginning of its form, and returns the
// name with it; the first upstream when it names none.
func (a *API) relayTarget(w http.ResponseWriter, r *http.Request) (up *upstream.Upstream, name string, err error) {
	if name, ok := strings.CutPrefix(r.URL.Path, "/v1/models/"); ok && name != "" {
		up, err = a.upstream(name)
		return up, name, err
	}
	kind, params, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case r.Body == nil || r.Body == http.NoBody:
	case kind == "application/json":
		body, err := a.readBody(w, r)
		if err != nil {
			return nil, "", err
		}
		up, name, body, err := a.jsonTarget(body)
		if err != nil {
			return nil, "", err
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		if up != nil {
			return up, name, nil
		}
	case kind == "multipart/form-data":
		if name := peekModel(r, params["boundary"]); name != "" {
			up, err = a.upstream(name)
			return up, name, err
		}
	}
	if name := r.URL.Query().Get("model"); name != "" { // Realtime
		up, err = a.upstream(name)
		return up, name, err
	}
	return a.Upstreams.First(), "", nil
}

// jsonTarget finds the upstream of the model that a JSON body names, and returns
// the body with the name by which that upstream knows the model; nil when it
// names none. The body must be JSON in everybody's reading: what is decided here
// is what the upstream gets.
func (a *API) jsonTarget(body []byte) (up *upstream.Upstream, name string, sent []byte, err error) {
	if len(body) == 0 {
		return nil, "", body, nil // a POST that needs none
	}
	if err := rawjson.Check(body); err != nil {
		return nil, "", nil, &openai.Error{
			Status: http.StatusBadRequest, Type: openai.TypeInvalidRequest, Code: openai.CodeInvalidJSON,
			Message: "The request body is not valid JSON: " + err.Error() + ".", Err: err,
		}
	}
	o, err := rawjson.ParseObject(body)
	if err != nil {
		return nil, "", body, nil
	}
	name, ok := rawjson.String(o.Get("model"))
	if !ok {
		return nil, "", body, nil
	}
	if up, err = a.upstream(name); err != nil {
		return nil, "", nil, err
	}
	if theirs := up.ModelName(name); theirs != name {
		o.Set("model", rawjson.Quote(theirs))
		body = o.Bytes()
	}
	return up, name, body, nil
}

// peekModel looks for a field named model in the first 64 KiB of a form, which
// the request's body still begins with afterwards.
func peekModel(r *http.Request, boundary string) string {
	head, err := io.ReadAll(io.LimitReader(r.Body, 64<<10))
	if err != nil && len(head) == 0 {
		return ""
	}
	rest := r.Body
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(head), rest), rest}
	form := multipart.NewReader(bytes.NewReader(head), boundary)
	for {
		part, err := form.NextPart()
		if err != nil {
			return ""
		}
		if part.FormName() == "model" {
			name, _ := io.ReadAll(io.LimitReader(part, 256))
			return string(name)
		}
	}
}

// relayTo passes a request to an upstream; with a body, in place of its own. said
// is told the usage that the answer ends with.
func (a *API) relayTo(w http.ResponseWriter, r *http.Request, up *upstream.Upstream, body []byte, said func(usage []byte)) {
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(p *httputil.ProxyRequest) { p.Out.URL = &url.URL{Scheme: "http", Host: "upstream"} },
		Transport:     relayTransport{a, up, r, body},
		FlushInterval: -1,
		BufferPool:    buffers,
		ErrorLog:      log.New(io.Discard, "", 0),
		ModifyResponse: func(res *http.Response) error {
			relayedHeader(res.Header)
			if res.StatusCode != http.StatusSwitchingProtocols {
				res.Body = pace.Reader(res.Body, relayIdle)
				if a.Sessions.Gate().CountsTokens() {
					res.Body = &usageReader{ReadCloser: res.Body, said: said}
				}
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() == nil {
				a.fail(w, r, model.Unreachable(err))
			}
		},
	}
	defer func() {
		// The proxy panics when an answer breaks off in the middle: the server
		// then breaks off ours.
		if p := recover(); p != nil {
			if err, ok := p.(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
				panic(p)
			}
			a.Log.Warn("an upstream's answer broke off", "upstream", up.Host(), "path", r.URL.Path)
			panic(p)
		}
	}()
	if body == nil {
		// The upstream may answer before it has read everything; the server must
		// not close the request's body then.
		_ = http.NewResponseController(w).EnableFullDuplex()
	}
	proxy.ServeHTTP(w, r)
}

// relayIdle is how long an upstream may say nothing in the middle of an answer
// that is passed on.
const relayIdle = 5 * time.Minute

// relayedHeader takes out of an upstream's header what is between it and us: its
// cookies, and its word on which web pages may read the answer. We have said
// ours.
func relayedHeader(h http.Header) {
	h.Del("Set-Cookie")
	h.Del("Alt-Svc")
	for name := range h {
		if strings.HasPrefix(name, "Access-Control-") {
			delete(h, name)
		}
	}
}

// relayTransport sends the proxy's request with the upstream's address and
// credentials.
type relayTransport struct {
	a    *API
	up   *upstream.Upstream
	in   *http.Request
	body []byte
}

func (t relayTransport) RoundTrip(out *http.Request) (*http.Response, error) {
	request := upstream.Request{
		Method: out.Method, Path: strings.TrimPrefix(t.in.URL.EscapedPath(), "/v1"), RawQuery: t.in.URL.RawQuery,
		Header: out.Header, Body: out.Body, Length: out.ContentLength,
		ClientCredentials: t.a.ClientCredentials, Relay: true,
	}
	if t.body != nil {
		request.Body, request.Length = bytes.NewReader(t.body), 0
	} else if out.Body == nil || out.Body == http.NoBody {
		request.Body = nil
	}
	req, err := t.up.NewRequest(out.Context(), request)
	if err != nil {
		return nil, err
	}
	return t.up.Do(req)
}

// buffers are smaller than the proxy's own of 32 KiB: most of what passes is
// events, and many streams are open at a time.
var buffers = &bufferPool{}

type bufferPool struct{ pool sync.Pool }

func (p *bufferPool) Get() []byte {
	if b, ok := p.pool.Get().(*[]byte); ok {
		return *b
	}
	return make([]byte, 8<<10)
}

func (p *bufferPool) Put(b []byte) { p.pool.Put(&b) }
