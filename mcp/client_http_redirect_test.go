package mcp

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/cookiejar"
	"strconv"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman"
)

// A call that is answered with a redirect reached its server once, and stays there: it is
// not made again, neither where it came from nor where it is sent, and nobody says that it
// did not run.
func TestCallsAreNotRedirected(t *testing.T) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, status := range []int{301, 302, 303, 307, 308} {
		for _, era := range []Era{Legacy, Modern} {
			for name, change := range map[string]func(*HTTP){
				"plain":           func(*HTTP) {},
				"with cookies":    func(tr *HTTP) { tr.Client.Jar = jar },
				"with a password": func(tr *HTTP) { tr.URL = "http://u:p@server.test/mcp" },
			} {
				t.Run(strconv.Itoa(status)+"/"+era.String()+"/"+name, func(t *testing.T) {
					var calls []string
					srv := &fake{era: era, on: on{"tools/call": func(w http.ResponseWriter, r *http.Request, _, _ json.RawMessage) {
						calls = append(calls, r.URL.Path)
						http.Redirect(w, r, "/other?secret=1", status)
					}}}
					tr := serveHTTP(t, srv)
					change(tr)
					c, err := Connect(t.Context(), tr, &ClientOptions{Passive: true})
					if err != nil {
						t.Fatal(err)
					}
					defer c.Close()
					res, err := c.Call(t.Context(), dragoman.Call{Tool: echo})
					if err != nil || res.Problem == nil || res.Ran != dragoman.RanMaybe || !strings.Contains(res.Problem.Message, strconv.Itoa(status)) {
						t.Errorf("%+v, ran: %s, %v", res.Problem, res.Ran, err)
					}
					e, ok := errors.AsType[*StatusError](res.Problem)
					if !ok || e.Status != status || e.Location != "http://server.test/other" {
						t.Errorf("%+v", e)
					}
					if len(calls) != 1 {
						t.Errorf("the server got it %d times: %q", len(calls), calls)
					}
				})
			}
		}
	}
}

// What only asks follows a redirect, once, and calls go at once where it led; all of it by the
// name that the headers give.
func TestHandshakesAreRedirected(t *testing.T) {
	for _, era := range []Era{Legacy, Modern} {
		srv := &fake{era: era, on: on{"tools/call": func(w http.ResponseWriter, _ *http.Request, id, _ json.RawMessage) { result(w, id, `{"ok":1}`) }}}
		sent := map[string]int{}
		tr := serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			sent[r.URL.Path]++
			if r.Host != "tools.test" {
				t.Errorf("%s: %s of %s", era, r.URL.Path, r.Host)
			}
			if r.URL.Path == "/mcp" {
				http.Redirect(w, r, "/mcp/", http.StatusTemporaryRedirect)
				return
			}
			srv.ServeHTTP(w, r)
		}))
		tr.Header = http.Header{"Host": {"tools.test"}}
		c, err := Connect(t.Context(), tr, &ClientOptions{Passive: true, Era: era})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if res, err := c.Call(t.Context(), dragoman.Call{Tool: echo}); err != nil || res.Problem != nil {
				t.Errorf("%s: %+v, %v", era, res.Problem, err)
			}
		}
		_ = c.Close()
		if n := srv.count("tools/call"); n != 2 || sent["/mcp"] != 1 {
			t.Errorf("%s: %d calls, %d requests to the old address", era, n, sent["/mcp"])
		}
	}
}

// Nothing is followed to another origin, for ever, or against the word of the http.Client.
func TestRedirectsThatAreNotFollowed(t *testing.T) {
	for name, to := range map[string]string{"another host": "http://elsewhere.test/mcp", "another scheme": "https://server.test/mcp", "itself": "/mcp", "nowhere": ""} {
		asked := 0
		tr := serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked++
			if to != "" {
				w.Header().Set("Location", to)
			}
			w.WriteHeader(http.StatusPermanentRedirect)
		}))
		_, err := Connect(t.Context(), tr, &ClientOptions{Era: Modern})
		if e, ok := errors.AsType[*StatusError](err); !ok || e.Status != http.StatusPermanentRedirect {
			t.Errorf("%s: %v", name, err)
		}
		// It is asked for either era.
		if each := map[bool]int{true: maxRedirects + 1, false: 1}[name == "itself"]; asked != 2*each {
			t.Errorf("%s: asked %d times", name, asked)
		}
	}
	tr := serveHTTP(t, http.RedirectHandler("/other", http.StatusPermanentRedirect))
	asked := 0
	tr.Client.CheckRedirect = func(req *http.Request, via []*http.Request) error {
		if asked++; req.URL.Path != "/other" || len(via) != 1 || via[0].URL.Path != "/mcp" {
			t.Errorf("asked about %s after %d", req.URL, len(via))
		}
		return http.ErrUseLastResponse
	}
	if _, err := Connect(t.Context(), tr, &ClientOptions{Era: Modern}); err == nil || asked == 0 {
		t.Errorf("%v, asked %d times", err, asked)
	}
}
