package safehttp_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-mcp/dragoman/internal/wire/plainhttp"
	"github.com/dragoman-mcp/dragoman/internal/wire/safehttp"
)

// newClient makes a client that trusts test servers.
func newClient(t *testing.T, opts safehttp.Options) *http.Client {
	t.Helper()
	client := safehttp.NewClient(opts)
	client.Transport.(*plainhttp.Transport).Rest().TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
	t.Cleanup(client.CloseIdleConnections)
	return client
}

func serve(t *testing.T, secure bool, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	if secure {
		server.StartTLS()
	} else {
		server.Start()
	}
	t.Cleanup(server.Close)
	return server
}

func redirectTo(status int, target func() string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, target(), status) }
}

func TestRedirectDropsCredentialsAcrossOrigins(t *testing.T) {
	var got http.Header
	record := func(_ http.ResponseWriter, r *http.Request) { got = r.Header.Clone() }
	other := serve(t, false, record)
	var there, away *httptest.Server
	there = serve(t, false, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/same":
			http.Redirect(w, r, "/end", http.StatusTemporaryRedirect)
		case "/other":
			http.Redirect(w, r, other.URL+"/end", http.StatusTemporaryRedirect)
		case "/round-trip":
			http.Redirect(w, r, away.URL, http.StatusTemporaryRedirect)
		default:
			record(w, r)
		}
	})
	back := serve(t, false, redirectTo(http.StatusTemporaryRedirect, func() string { return there.URL + "/end" }))
	away = serve(t, false, redirectTo(http.StatusTemporaryRedirect, func() string { return back.URL }))

	secrets := []string{"Authorization", "Cookie", "Mcp-Session-Id", "X-Api-Key", "X-Team"}
	for path, kept := range map[string]bool{"/end": true, "/same": true, "/other": false, "/round-trip": false} {
		t.Run(path, func(t *testing.T) {
			got = nil
			req, err := http.NewRequestWithContext(t.Context(), "POST", there.URL+path+"?key=canary", strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range secrets {
				req.Header.Set(name, "canary")
			}
			req.Header.Set("Mcp-Protocol-Version", "2026-07-28")
			req.Header.Set("Content-Type", "application/json")
			res, err := newClient(t, safehttp.Options{}).Do(req)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if got.Get("Mcp-Protocol-Version") == "" || got.Get("Content-Type") == "" {
				t.Errorf("harmless headers are gone: %v", got)
			}
			var arrived []string
			for _, name := range secrets {
				if got.Get(name) != "" {
					arrived = append(arrived, name)
				}
			}
			want := secrets
			if !kept {
				want = nil
			}
			if diff := cmp.Diff(want, arrived); diff != "" {
				t.Errorf("credentials (-want +got):\n%s", diff)
			}
			if !kept && strings.Contains(fmt.Sprint(got), "canary") {
				t.Errorf("a secret arrived: %v", got)
			}
		})
	}
}

func TestRedirectsRefused(t *testing.T) {
	plain := serve(t, false, func(http.ResponseWriter, *http.Request) {})
	toPlain := serve(t, true, redirectTo(http.StatusFound, func() string { return plain.URL }))
	toFile := serve(t, false, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "ftp://example.com/x")
		w.WriteHeader(http.StatusFound)
	})
	loop := serve(t, false, redirectTo(http.StatusFound, func() string { return "/" }))
	once := serve(t, false, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			http.Redirect(w, r, "/end", http.StatusFound)
		}
	})
	for name, tt := range map[string]struct {
		method, url string
		opts        safehttp.Options
		want        string
	}{
		"one":            {"GET", once.URL, safehttp.Options{}, ""},
		"https to http":  {"GET", toPlain.URL, safehttp.Options{}, "redirect refused: from https to http"},
		"other scheme":   {"GET", toFile.URL, safehttp.Options{}, "redirect refused: to a URL that is not http or https"},
		"loop":           {"GET", loop.URL, safehttp.Options{}, "redirect refused: more than 5 in a row"},
		"limit":          {"GET", loop.URL, safehttp.Options{MaxRedirects: 2}, "redirect refused: more than 2 in a row"},
		"none allowed":   {"GET", once.URL, safehttp.Options{MaxRedirects: -1}, "redirect refused: to " + once.URL},
		"POST to GET":    {"POST", once.URL, safehttp.Options{}, "redirect refused: it would turn POST into GET; the new address is " + once.URL},
		"POST to itself": {"POST", plain.URL, safehttp.Options{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), tt.method, tt.url, nil)
			if err != nil {
				t.Fatal(err)
			}
			res, err := newClient(t, tt.opts).Do(req)
			if res != nil {
				res.Body.Close()
			}
			if tt.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			failed, ok := errors.AsType[*url.Error](err)
			if !ok || failed.Err.Error() != tt.want || !errors.Is(err, safehttp.ErrRedirect) {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

func TestUntrustedConnectsToPublicAddressesOnly(t *testing.T) {
	reached := false
	server := serve(t, false, func(http.ResponseWriter, *http.Request) { reached = true })
	port := server.URL[strings.LastIndexByte(server.URL, ':'):]
	client := newClient(t, safehttp.Options{Untrusted: true, DialTimeout: 2 * time.Second})
	t.Setenv("HTTP_PROXY", server.URL) // would do the connecting for us
	for _, host := range []string{"127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "[::]", "169.254.169.254", "10.0.0.1", "[64:ff9b::7f00:1]"} {
		req, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+host+port, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := client.Do(req)
		if err == nil {
			res.Body.Close()
		}
		if !errors.Is(err, safehttp.ErrAddress) {
			t.Errorf("%s: got %v", host, err)
		}
	}
	if reached {
		t.Error("a connection was made")
	}
	if _, err := newClient(t, safehttp.Options{}).Get(server.URL); err != nil || !reached {
		t.Errorf("the operator's own address: %v", err)
	}
}

func TestHeaderLimits(t *testing.T) {
	stop := make(chan struct{})
	server := serve(t, false, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			<-stop
		}
		w.Header().Set("X-Big", strings.Repeat("x", 20<<10))
	})
	defer close(stop)
	for name, tt := range map[string]struct {
		path, want string
		opts       safehttp.Options
	}{
		"fits":      {"/", "", safehttp.Options{}},
		"too large": {"/", "server response headers exceeded", safehttp.Options{MaxHeaderBytes: 10 << 10}},
		"too slow":  {"/slow", "timeout awaiting response headers", safehttp.Options{HeaderTimeout: 30 * time.Millisecond}},
	} {
		t.Run(name, func(t *testing.T) {
			res, err := newClient(t, tt.opts).Get(server.URL + tt.path)
			if res != nil {
				res.Body.Close()
			}
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestBodiesComeAsTheyWereSent(t *testing.T) {
	var asked string
	server := serve(t, false, func(w http.ResponseWriter, r *http.Request) {
		asked = r.Header.Get("Accept-Encoding")
		w.Header().Set("Content-Encoding", "gzip")
		io.WriteString(w, "not gzip at all")
	})
	res, err := newClient(t, safehttp.Options{}).Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || string(body) != "not gzip at all" || asked != "" {
		t.Errorf("got %q, %v; asked for %q", body, err, asked)
	}
}

func TestRedact(t *testing.T) {
	_, err := newClient(t, safehttp.Options{Untrusted: true}).Get("http://me:canary@127.0.0.1:9/canary?key=canary")
	if err == nil {
		t.Fatal("no error")
	}
	redacted := safehttp.Redact(fmt.Errorf("connecting: %w", err))
	if strings.Contains(redacted.Error(), "canary") || !strings.Contains(redacted.Error(), "http://127.0.0.1:9") || !errors.Is(redacted, safehttp.ErrAddress) {
		t.Errorf("got %v", redacted)
	}
	other := errors.New("other")
	if safehttp.Redact(other) != other || safehttp.Redact(nil) != nil {
		t.Error("another error was changed")
	}
}
