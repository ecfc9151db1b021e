package upstream_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

// Some APIs repeat the key that they refuse; nobody but us may see it. What else they say is told,
// where it can be read.
func TestErrorsDoNotShowOurKeys(t *testing.T) {
	const key, header = "sk-our-own-key-0123", "another-secret"
	for _, encoding := range []string{"", "gzip", "GZIP", "br", "none", "utf-8"} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			said := "wrong key: " + r.Header.Get("Authorization") + ", tenant " + r.Header.Get("X-Tenant")
			w.Header().Set("X-Said", said)
			if encoding != "" {
				w.Header().Set("Content-Encoding", encoding)
			}
			w.WriteHeader(http.StatusUnauthorized)
			if strings.EqualFold(encoding, "gzip") {
				z := gzip.NewWriter(w)
				defer z.Close()
				_, _ = z.Write([]byte(said))
				return
			}
			_, _ = w.Write([]byte(said))
		}))
		u := one(t, upstream.Model{Match: "*", BaseURL: server.URL, APIKey: secret.New(key), Headers: secret.Map(map[string]string{"X-Tenant": header})})
		res, body := answerOf(t, u, upstream.Request{Method: "GET", Path: "/models"})
		all := string(body) + res.Header.Get("X-Said")
		told := 2 // in the body, too
		if encoding == "br" {
			told = 1
		}
		if strings.Contains(all, key) || strings.Contains(all, header) || strings.Count(all, "wrong key: Bearer ***, tenant ***") != told {
			t.Errorf("%q: got %s", encoding, all)
		}
		if res.ContentLength != int64(len(body)) || res.Header.Get("Content-Encoding") != "" {
			t.Errorf("%q: length %d of %d, header %v", encoding, res.ContentLength, len(body), res.Header)
		}
		server.Close()
	}
}

// An API that sends a request on, or says where what it made is, repeats the address that
// was asked, in which a key can be.
func TestAddressesDoNotShowOurKeys(t *testing.T) {
	const key = "sk-our-own-key-0123"
	for _, status := range []int{http.StatusCreated, http.StatusAccepted, http.StatusMovedPermanently, http.StatusTemporaryRedirect} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if status >= 300 {
				http.Redirect(w, r, r.URL.Path+"/?"+r.URL.RawQuery, status) // with a page
				return
			}
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Location", r.URL.String())
			w.Header().Set("Operation-Location", "http://"+r.Host+r.URL.String())
			w.WriteHeader(status)
		}))
		u := one(t, upstream.Model{Match: "*", BaseURL: server.URL + "?key=" + key, Headers: secret.Map(map[string]string{"Accept": "application/json"})})
		res, body := answerOf(t, u, upstream.Request{Method: "GET", Path: "/files", Relay: true})
		if said := fmt.Sprint(string(body), res.Header); strings.Contains(said, key) || !strings.Contains(said, "key=***") {
			t.Errorf("%d: got %s", status, said)
		}
		if kind := res.Header.Get("Content-Type"); status < 300 && kind != "application/json" {
			t.Errorf("%d: the type is %q", status, kind)
		}
		if status >= 300 && !strings.Contains(string(body), "<a href=") {
			t.Errorf("%d: the page is gone: %s", status, body)
		}
		server.Close()
	}
}

// answerOf returns what an upstream answers, whole.
func answerOf(t *testing.T, u *upstream.Upstream, r upstream.Request) (*http.Response, []byte) {
	t.Helper()
	req, err := u.NewRequest(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	res, err := u.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, body
}
