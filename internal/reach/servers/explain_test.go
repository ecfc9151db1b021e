package servers

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman"
)

// A URL with the wrong scheme is said in words that tell what to write.
func TestWrongScheme(t *testing.T) {
	none := http.NewServeMux()
	plain := web(t, none)
	s := httptest.NewTLSServer(none)
	t.Cleanup(s.Close)
	nginx := web(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "<title>400 The plain HTTP request was sent to HTTPS port</title>", http.StatusBadRequest)
	}))
	for _, tt := range []struct{ name, url, says string }{
		{"TLS to where there is none", "https" + strings.TrimPrefix(plain, "http"), "it does not speak TLS; is it http:// instead of https://?"},
		{"no TLS to a server in Go", "http" + strings.TrimPrefix(s.URL, "https"), "it speaks TLS; is it https:// instead of http://?"},
		{"no TLS to nginx", nginx, "it speaks TLS; is it https:// instead of http://?"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			st := state(openOne(t, Config{URL: tt.url + "/mcp"}, Options{}))
			if st.State != dragoman.Failed || st.Problem == nil || !strings.HasPrefix(st.Problem.Message, tt.says) {
				t.Errorf("%s: %v", st.State, st.Problem)
			}
		})
	}
}
