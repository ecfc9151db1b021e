package model

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// A hint at a forgotten /v1 says where the upstream was asked, but no key in its path: who
// asks us may not have it.
func TestMisplacedShowsNoKey(t *testing.T) {
	at, err := url.Parse("https://me:pw@a.test/s/8f3ca09be1d74c52aa10/chat/completions?key=k")
	if err != nil {
		t.Fatal(err)
	}
	e := statusError(&http.Response{StatusCode: http.StatusNotFound, Body: io.NopCloser(strings.NewReader("")), Request: &http.Request{URL: at}})
	if !strings.Contains(e.Message, "asked at https://a.test/s/***/chat/completions: ") {
		t.Error(e.Message)
	}
}

// A redirect, such as that of a base URL with http:// to https://, is not followed, and where
// it leads is said: without what a page to log in at is told in its address.
func TestRedirectSaysWhere(t *testing.T) {
	at, err := url.Parse("http://a.test/v1/chat/completions")
	if err != nil {
		t.Fatal(err)
	}
	for location, says := range map[string]string{
		"https://a.test/v1/chat/completions": "redirects to https://a.test/v1/chat/completions, which is not followed: ",
		"/llm/v1/chat/completions":           "redirects to http://a.test/llm/v1/chat/completions, which",
		"https://me:pw@b.test/in?state=s#f":  "redirects to https://b.test/in, which",
		"":                                   "answered with status 301.",
	} {
		e := statusError(&http.Response{StatusCode: http.StatusMovedPermanently, Header: http.Header{"Location": {location}},
			Body: io.NopCloser(strings.NewReader("")), Request: &http.Request{URL: at}})
		if !strings.Contains(e.Message, says) || e.Status != http.StatusBadGateway {
			t.Errorf("%q: %d %s", location, e.Status, e.Message)
		}
	}
}
