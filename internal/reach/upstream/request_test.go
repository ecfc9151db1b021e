package upstream_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

func one(t *testing.T, m upstream.Model) *upstream.Upstream {
	t.Helper()
	set, err := upstream.New([]upstream.Model{m}, upstream.Options{Rehearsal: rehearsal{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(set.Close)
	return set.First()
}

func TestNewRequestHeader(t *testing.T) {
	client := http.Header{
		"Accept":                 {"text/event-stream"},
		"Accept-Encoding":        {"gzip, br"},
		"Api_key":                {"client"},
		"Authorization":          {"Bearer client"},
		"Connection":             {"keep-alive, Upgrade, X-Hop"},
		"Content-Length":         {"3"},
		"Content-Type":           {"application/json"},
		"Cookie":                 {"session=client"},
		"Host":                   {"gateway.test"},
		"Idempotency-Key":        {"7"},
		"X-Idempotency-Key":      {"8"},
		"Openai-Beta":            {"assistants=v2", "realtime=v1"},
		"Openai-Organization":    {"org-client"},
		"Origin":                 {"http://gateway.test"},
		"Proxy-Authorization":    {"Basic client"},
		"Sec-Fetch-Site":         {"same-origin"},
		"Sec-Websocket-Protocol": {"realtime, openai-insecure-api-key.client, openai-beta.realtime-v1"},
		"Transfer-Encoding":      {"chunked"},
		"Upgrade":                {"websocket"},
		"User-Agent":             {"openai-python"},
		"X-Dragoman-Servers":     {"a"},
		"X-Forwarded-For":        {"10.0.0.1"},
		"X-Hop":                  {"1"},
		"X-Http-Method-Override": {"DELETE"},
		"X-Original-Url":         {"/v1/files"},
		"X-Stainless-Lang":       {"python"},
		"X_Forwarded_Host":       {"gateway.test"},
		"X_rewrite_url":          {"/v1/files"},
	}
	common := map[string]string{
		"Accept":           "text/event-stream",
		"Accept-Encoding":  "identity",
		"Content-Type":     "application/json",
		"Openai-Beta":      "assistants=v2|realtime=v1",
		"User-Agent":       "openai-python",
		"X-Stainless-Lang": "python",
	}
	clientCredentials := map[string]string{
		"Api_key":                "client",
		"Authorization":          "Bearer client",
		"Openai-Organization":    "org-client",
		"Sec-Websocket-Protocol": "realtime, openai-insecure-api-key.client, openai-beta.realtime-v1",
	}
	noKeys := map[string]string{"Sec-Websocket-Protocol": "realtime, openai-beta.realtime-v1"}
	relay := map[string]string{"Accept-Encoding": "gzip, br", "Idempotency-Key": "7", "X-Idempotency-Key": "8", "Connection": "Upgrade", "Upgrade": "websocket"}

	plain := upstream.Model{BaseURL: "http://a.test/v1"}
	keyed := upstream.Model{BaseURL: "http://a.test/v1", APIKey: secret.New("own")}
	headed := upstream.Model{BaseURL: "http://a.test/v1", Headers: secret.Map(map[string]string{"api-key": "own", "openai-beta": "none"})}
	tests := []struct {
		name    string
		model   upstream.Model
		request upstream.Request
		want    []map[string]string
	}{
		{"nothing of the client's", plain, upstream.Request{}, []map[string]string{common, noKeys}},
		{"the client's", plain, upstream.Request{ClientCredentials: true}, []map[string]string{common, clientCredentials}},
		{"our key", keyed, upstream.Request{}, []map[string]string{common, noKeys, {"Authorization": "Bearer own"}}},
		{"our key wins", keyed, upstream.Request{ClientCredentials: true}, []map[string]string{common, noKeys, {"Authorization": "Bearer own"}}},
		{"our header is a key", headed, upstream.Request{ClientCredentials: true}, []map[string]string{common, noKeys, {"Api-Key": "own", "Openai-Beta": "none"}}},
		{"relay", keyed, upstream.Request{Relay: true}, []map[string]string{common, noKeys, relay, {"Authorization": "Bearer own"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := client.Clone()
			tt.request.Method, tt.request.Path, tt.request.Header = "POST", "/chat/completions", client
			req, err := one(t, tt.model).NewRequest(t.Context(), tt.request)
			if err != nil {
				t.Fatal(err)
			}
			want := make(map[string]string)
			for _, part := range tt.want {
				maps.Copy(want, part)
			}
			got := make(map[string]string)
			for name, values := range req.Header {
				got[name] = strings.Join(values, "|")
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("header (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, client); diff != "" {
				t.Errorf("the client's header changed:\n%s", diff)
			}
		})
	}
}

// A Host in the configuration is the one that is asked for; a client's never is.
func TestNewRequestHost(t *testing.T) {
	for _, headers := range []map[string]string{nil, {"host": "b.test"}} {
		var got string
		server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Host }))
		defer server.Close()
		u := one(t, upstream.Model{BaseURL: server.URL + "/v1", Headers: secret.Map(headers)})
		want := u.Host()
		if headers != nil {
			want = headers["host"]
		}
		req, err := u.NewRequest(t.Context(), upstream.Request{Method: "GET", Path: "/models", Header: http.Header{"Host": {"gateway.test"}}})
		if err != nil {
			t.Fatal(err)
		}
		res, err := u.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if got != want {
			t.Errorf("headers %v: the upstream was asked as %q, want %q", headers, got, want)
		}
	}
}

func TestNewRequestTarget(t *testing.T) {
	tests := []struct {
		base, path, query string
		want              string
	}{
		{"http://a.test/v1", "/chat/completions", "", "http://a.test/v1/chat/completions"},
		{"http://a.test/v1/", "models", "limit=2&after=a%2Fb", "http://a.test/v1/models?limit=2&after=a%2Fb"},
		{"http://a.test", "/chat/completions", "", "http://a.test/chat/completions"},
		{"http://a.test/v1", "/models/meta%2Fllama", "", "http://a.test/v1/models/meta%2Fllama"},
		{"http://a.test/x%2Fy/v1", "/models", "", "http://a.test/x%2Fy/v1/models"},
		{"https://a.test/openai?api-version=1", "/models", "", "https://a.test/openai/models?api-version=1"},
		{"https://a.test/openai?api-version=1", "/models", "b=2", "https://a.test/openai/models?api-version=1&b=2"},
		{"http://a.test/v1", "/files/..a/b..", "", "http://a.test/v1/files/..a/b.."},
		{"http://a.test/v1", "/../admin", "", ""},
		{"http://a.test/v1", "/files/%2e%2E/%2e./admin", "", ""},
		{"http://a.test/v1", "/files/..%2fadmin", "", ""},
		{"http://a.test/v1", `/files/..\admin`, "", ""},
		{"http://a.test/v1", "/files/%zz", "", ""},
		{"http://a.test/v1", "/files/%00", "", ""},
	}
	for _, tt := range tests {
		req, err := one(t, upstream.Model{BaseURL: tt.base}).NewRequest(t.Context(), upstream.Request{Method: "GET", Path: tt.path, RawQuery: tt.query})
		switch {
		case tt.want == "":
			if !errors.Is(err, upstream.ErrPath) {
				t.Errorf("%s %s: got %v, want ErrPath", tt.base, tt.path, err)
			}
		case err != nil:
			t.Errorf("%s %s: %v", tt.base, tt.path, err)
		case req.URL.String() != tt.want:
			t.Errorf("%s %s:\ngot  %s\nwant %s", tt.base, tt.path, req.URL, tt.want)
		}
	}
}

func TestDo(t *testing.T) {
	type seen struct {
		Method, URI, Host, Authorization, Body string
		Length                                 int64
	}
	var got seen
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = seen{r.Method, r.RequestURI, r.Host, r.Header.Get("Authorization"), string(body), r.ContentLength}
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(http.StatusTemporaryRedirect)
	}))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	u := one(t, upstream.Model{BaseURL: server.URL + "/v1", APIKey: secret.New("own")})

	for name, tt := range map[string]struct {
		body   io.Reader
		length int64
		want   seen
	}{
		"bytes":           {bytes.NewReader([]byte("abc")), 0, seen{"POST", "/v1/x?q=1", host, "Bearer own", "abc", 3}},
		"empty":           {bytes.NewReader(nil), 0, seen{"POST", "/v1/x?q=1", host, "Bearer own", "", 0}},
		"none":            {nil, 0, seen{"POST", "/v1/x?q=1", host, "Bearer own", "", 0}},
		"no body":         {http.NoBody, 0, seen{"POST", "/v1/x?q=1", host, "Bearer own", "", 0}},
		"stream":          {strings.NewReader("abc"), 0, seen{"POST", "/v1/x?q=1", host, "Bearer own", "abc", -1}},
		"stream and size": {io.NopCloser(strings.NewReader("abc")), 3, seen{"POST", "/v1/x?q=1", host, "Bearer own", "abc", 3}},
	} {
		t.Run(name, func(t *testing.T) {
			req, err := u.NewRequest(t.Context(), upstream.Request{Method: "POST", Path: "/x", RawQuery: "q=1", Body: tt.body, Length: tt.length})
			if err != nil {
				t.Fatal(err)
			}
			res, err := u.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if res.StatusCode != http.StatusTemporaryRedirect {
				t.Errorf("status %d: the redirect was followed", res.StatusCode)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRequestCanBeSentAgain(t *testing.T) {
	req, err := one(t, upstream.Model{BaseURL: "http://a.test"}).NewRequest(t.Context(), upstream.Request{Method: "POST", Path: "/x", Body: bytes.NewReader([]byte("abc"))})
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, req.Body)
	for range 2 {
		again, err := req.GetBody()
		if err != nil {
			t.Fatal(err)
		}
		if b, _ := io.ReadAll(again); string(b) != "abc" {
			t.Errorf("got %q", b)
		}
	}
}

func TestDoErrors(t *testing.T) {
	hang := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hang }))
	defer server.Close()
	defer close(hang)
	const nobody = "http://127.0.0.1:1" // a port that nobody is given by chance

	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tt := range map[string]struct {
		ctx     context.Context
		url     string
		want    string
		timeout bool
	}{
		"slow":    {t.Context(), server.URL, "did not answer within", true},
		"refused": {t.Context(), nobody, "cannot be reached", false},
		"gave up": {cancelled, server.URL, "context canceled", false},
	} {
		t.Run(name, func(t *testing.T) {
			limit := time.Minute
			if tt.timeout {
				limit = 50 * time.Millisecond
			}
			u := one(t, upstream.Model{BaseURL: tt.url + "/v1?code=canary", Timeout: limit})
			req, err := u.NewRequest(tt.ctx, upstream.Request{Method: "GET", Path: "/x"})
			if err != nil {
				t.Fatal(err)
			}
			_, err = u.Do(req)
			failed, ok := errors.AsType[*upstream.Error](err)
			if !ok {
				t.Fatalf("got %v", err)
			}
			if failed.Timeout() != tt.timeout || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), u.Host()) {
				t.Errorf("timeout %v: %v", failed.Timeout(), err)
			}
			if strings.Contains(err.Error(), "canary") {
				t.Errorf("the error shows the query: %v", err)
			}
		})
	}
}

func TestUpgradePassesThrough(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		io.WriteString(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+r.Header.Get("Upgrade")+"\r\n\r\n")
		rw.Flush()
		echo(conn)
	}))
	defer server.Close()
	u := one(t, upstream.Model{BaseURL: server.URL + "/v1"})
	req, err := u.NewRequest(t.Context(), upstream.Request{Method: "GET", Path: "/realtime", Relay: true,
		Header: http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}}})
	if err != nil {
		t.Fatal(err)
	}
	res, err := u.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusSwitchingProtocols || res.Header.Get("Upgrade") != "websocket" {
		t.Fatalf("got %s, upgrade to %q", res.Status, res.Header.Get("Upgrade"))
	}
	conn := res.Body.(io.ReadWriteCloser)
	io.WriteString(conn, "ping")
	answer := make([]byte, 4)
	if _, err := io.ReadFull(conn, answer); err != nil || string(answer) != "ping" {
		t.Errorf("got %q, %v", answer, err)
	}
}

// echo sends four bytes back.
func echo(conn net.Conn) {
	b := make([]byte, 4)
	if _, err := io.ReadFull(conn, b); err == nil {
		conn.Write(b)
	}
}

func BenchmarkNewRequest(b *testing.B) {
	set, err := upstream.New([]upstream.Model{{BaseURL: "http://a.test/v1", APIKey: secret.New("k")}}, upstream.Options{})
	if err != nil {
		b.Fatal(err)
	}
	header := http.Header{
		"Accept": {"application/json"}, "Accept-Encoding": {"gzip"}, "Authorization": {"Bearer x"}, "Connection": {"keep-alive"},
		"Content-Type": {"application/json"}, "Content-Length": {"300"}, "User-Agent": {"openai-node"}, "X-Stainless-Lang": {"js"},
		"X-Stainless-Os": {"Linux"}, "X-Stainless-Retry-Count": {"0"}, "X-Stainless-Runtime": {"node"},
	}
	body := []byte(`{"model":"a"}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := set.First().NewRequest(b.Context(), upstream.Request{Method: "POST", Path: "/chat/completions", Header: header, Body: bytes.NewReader(body)}); err != nil {
			b.Fatal(err)
		}
	}
}
