package upstream_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

// Some APIs repeat the key that they refuse; nobody but us may see it.
func TestErrorsDoNotShowOurKeys(t *testing.T) {
	const key, header = "sk-our-own-key-0123", "another-secret"
	for _, encoding := range []string{"", "gzip", "br"} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			said := "wrong key: " + r.Header.Get("Authorization") + ", tenant " + r.Header.Get("X-Tenant")
			w.Header().Set("X-Said", said)
			if encoding != "" {
				w.Header().Set("Content-Encoding", encoding)
			}
			w.WriteHeader(http.StatusUnauthorized)
			if encoding == "gzip" {
				z := gzip.NewWriter(w)
				defer z.Close()
				_, _ = z.Write([]byte(said))
				return
			}
			_, _ = w.Write([]byte(said))
		}))
		u := one(t, upstream.Model{Match: "*", BaseURL: server.URL, APIKey: secret.New(key), Headers: secret.Map(map[string]string{"X-Tenant": header})})
		req, err := u.NewRequest(t.Context(), upstream.Request{Method: "GET", Path: "/models"})
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
		all := string(body) + res.Header.Get("X-Said")
		if strings.Contains(all, key) || strings.Contains(all, header) || !strings.Contains(all, "wrong key: Bearer ***, tenant ***") {
			t.Errorf("%q: got %s", encoding, all)
		}
		if res.ContentLength != int64(len(body)) || res.Header.Get("Content-Encoding") != "" {
			t.Errorf("%q: length %d of %d, header %v", encoding, res.ContentLength, len(body), res.Header)
		}
		server.Close()
	}
}
