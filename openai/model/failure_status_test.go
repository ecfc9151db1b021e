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
