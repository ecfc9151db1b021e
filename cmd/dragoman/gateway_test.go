package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestAddressesOfGateways: each command that asks a gateway says what is wrong with an
// address, and what to write in its place.
func TestAddressesOfGateways(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	nothing := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) })
	plain, secure := httptest.NewServer(nothing), httptest.NewTLSServer(nothing)
	t.Cleanup(plain.Close)
	t.Cleanup(secure.Close)
	const noScheme, example = "begins with http:// or https://", " http://127.0.0.1:8787"
	for _, tt := range []struct {
		name, address string
		want, hint    string
	}{
		{"a name without a scheme", "localhost:8787", noScheme, example},
		{"a number without a scheme", "127.0.0.1:8787", noScheme, example},
		{"a port", "8787", noScheme, example},
		{"another scheme", "ftp://127.0.0.1", noScheme, example},
		{"no host", "http:/127.0.0.1:8787", noScheme, example},
		{"TLS where there is none", "https" + strings.TrimPrefix(plain.URL, "http"), "does not answer", "http:// in place of https://"},
		{"no TLS where there is one", "http" + strings.TrimPrefix(secure.URL, "https"), "over TLS alone", "https:// in place of http://"},
		{"a certificate of an authority of one's own", secure.URL, "does not answer", "SSL_CERT_FILE"},
	} {
		for _, args := range [][]string{{"reload", "--gateway"}, {"config", "diff", "--gateway"}, {"login", "files", "--gateway"}, {"console", "--gateway"}, {"codex", "--url"}, {"claude", "--url"}} {
			if args[0] == "console" && tt.want != noScheme {
				continue // it asks nobody
			}
			t.Run(args[0]+", "+tt.name, func(t *testing.T) {
				cmd := command()
				cmd.SetArgs(append(args, tt.address))
				err := cmd.ExecuteContext(t.Context())
				var hint string
				if wrong, ok := errors.AsType[*usageError](err); ok {
					hint = wrong.hint
				} else if failed, ok := errors.AsType[*failure](err); ok {
					hint = failed.hint
				}
				if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(hint, tt.hint) {
					t.Errorf("%v\nhint: %s", err, hint)
				}
			})
		}
	}
}

// The key goes to the gateway that was named, and not where that one redirects.
func TestKeyFollowsNoRedirect(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("%s was asked for, with the key %q", r.URL, r.Header.Get("Authorization"))
	}))
	defer other.Close()
	moved := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	defer moved.Close()
	t.Setenv("DRAGOMAN_API_KEY", "0123456789abcdef")
	for _, args := range [][]string{{"codex", "--url", moved.URL + "/v1"}, {"claude", "--url", moved.URL}, {"claude", "--url", moved.URL, "--model", "m"}} {
		cmd := command()
		cmd.SetArgs(args)
		failed, ok := errors.AsType[*failure](cmd.ExecuteContext(t.Context()))
		if !ok || !strings.Contains(failed.Error(), "redirects to "+other.URL) || !strings.Contains(failed.hint, "--url") {
			t.Errorf("%v: %v", args, failed)
		}
	}
}
