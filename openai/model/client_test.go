package model

import (
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A Client is all that it takes to ask a model: over real HTTP, with a key, and with
// what the model says told as it says it.
func TestClient(t *testing.T) {
	var got *http.Request
	var body string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got, body = r, string(b)
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, delta(`{"role":"assistant","content":"Hel"}`)+delta(`{"content":"lo"}`)+"data: [DONE]\n\n")
	}))
	defer srv.Close()
	c := &Client{BaseURL: srv.URL + "/v1/", Key: "sk-test", Header: http.Header{"X-Org": {"o"}}}
	var said strings.Builder
	r, err := c.Ask(t.Context(), [][]byte{[]byte(`{"model":"m",`), []byte(`"stream":true}`)}, Listener{
		Chunk: func(c *Chunk) error { said.WriteString(c.Text()); return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.Text() != "Hello" || said.String() != "Hello" {
		t.Errorf("reply %q, said %q", r.Text(), said.String())
	}
	if got.URL.Path != "/v1/chat/completions" || got.Header.Get("Authorization") != "Bearer sk-test" || got.Header.Get("X-Org") != "o" ||
		body != `{"model":"m","stream":true}` || got.ContentLength != int64(len(body)) {
		t.Errorf("asked %s %v %q", got.URL, got.Header, body)
	}
}

// An answer is asked for as it is, since any encoding will do for a server that is told
// nothing (RFC 9110, section 12.5.3). One that is compressed all the same is called so.
func TestClientTakesNothingCompressed(t *testing.T) {
	always := false
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		var out io.Writer = w
		if always || r.Header.Get("Accept-Encoding") != "identity" {
			w.Header().Set("Content-Encoding", "gzip")
			packed := gzip.NewWriter(w)
			defer packed.Close()
			out = packed
		}
		io.WriteString(out, delta(`{"role":"assistant","content":"Hello"}`)+"data: [DONE]\n\n")
	}))
	defer srv.Close()
	c := &Client{BaseURL: srv.URL}
	if r, err := c.Ask(t.Context(), nil, Listener{}); err != nil || r.Text() != "Hello" {
		t.Errorf("%v, %v", r, err)
	}
	always = true
	_, err := c.Ask(t.Context(), nil, Listener{})
	if e, ok := err.(*Error); !ok || e.Code != CodeUpstreamInvalid || !strings.Contains(e.Message, "compressed (Content-Encoding: gzip)") {
		t.Errorf("error %v", err)
	}
}

// Servers say of an answer that is as it is that its encoding is "none", to keep proxies from
// compressing a stream, or name its charset there.
func TestClientTakesOddEncodings(t *testing.T) {
	for _, encoding := range []string{"none", "utf-8", "identity", "Identity, none"} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			w.Header().Set("Content-Encoding", encoding)
			io.WriteString(w, delta(`{"role":"assistant","content":"Hello"}`)+"data: [DONE]\n\n")
		}))
		if r, err := (&Client{BaseURL: srv.URL}).Ask(t.Context(), nil, Listener{}); err != nil || r.Text() != "Hello" {
			t.Errorf("%s: %v, %v", encoding, r, err)
		}
		srv.Close()
	}
}

// A redirect is not followed: it would carry the key to another address.
func TestClientFollowsNoRedirect(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("followed") }))
	defer other.Close()
	srv := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer srv.Close()
	_, err := (&Client{BaseURL: srv.URL, Key: "k"}).Ask(t.Context(), nil, Listener{})
	if e, ok := err.(*Error); !ok || e.Status != http.StatusBadGateway {
		t.Errorf("error %v", err)
	}
}

// Without an address, or with one that is none, there is an error that says so.
func TestClientWithoutAddress(t *testing.T) {
	for address, want := range map[string]string{
		"":                  "BaseURL or a Post",
		"api.openai.com/v1": "absolute http or https URL",
		"localhost:8000/v1": "absolute http or https URL",
		"http:///v1":        "absolute http or https URL",
		"http://a b/v1":     "absolute http or https URL",
	} {
		_, err := (&Client{BaseURL: address}).Ask(t.Context(), nil, Listener{})
		if e, ok := err.(*Error); !ok || e.Code != CodeInternal || !strings.Contains(e.Message, want) {
			t.Errorf("%q: %v", address, err)
		}
	}
}

// A Post that returns nothing, or an answer without a body, is an error and no panic: neither
// here nor where the silence of a body is watched.
func TestClientWithoutAnswer(t *testing.T) {
	for _, tt := range []struct {
		resp *http.Response
		want string
	}{
		{nil, "neither an answer nor an error"},
		{&http.Response{StatusCode: http.StatusOK}, "not JSON"},
		{&http.Response{StatusCode: http.StatusUnauthorized}, "status 401"},
	} {
		c := &Client{Post: func(context.Context, [][]byte) (*http.Response, error) { return tt.resp, nil }}
		if _, err := c.Ask(t.Context(), nil, Listener{}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("error %v, want %s", err, tt.want)
		}
	}
}

// What an API says against a request reaches the client, be it in a list, as Google's APIs
// have it. A list of more than that is nothing known.
func TestErrorInAList(t *testing.T) {
	const failure = `{"error":{"code":400,"message":"Function names must be short.","status":"INVALID_ARGUMENT"}}`
	for body, want := range map[string]string{
		failure:                             failure,
		" [\n" + failure + "\n]\n":          failure,
		`[` + failure + `,` + failure + `]`: "",
		`[]`:                                "",
		`["no"]`:                            "",
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			io.WriteString(w, body)
		}))
		_, err := (&Client{BaseURL: srv.URL}).Ask(t.Context(), nil, Listener{})
		srv.Close()
		if e, ok := err.(*Error); !ok || e.Status != http.StatusBadRequest || string(e.Body) != want || strings.Contains(e.Message, "must be short") != (want != "") {
			t.Errorf("%s: %v with the body %s", body, err, e.Body)
		}
	}
}
