package credential

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// registrations has an authorization server of a world see what clients say of themselves,
// and refuse who says something else than it allows.
func registrations(w *world, allowed func(client map[string]any) bool) *[]map[string]any {
	var all []map[string]any
	w.login.Config.Handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/register" {
			w.authorize(rw, r)
			return
		}
		body, _ := io.ReadAll(r.Body)
		var client map[string]any
		if err := json.Unmarshal(body, &client); err != nil {
			w.t.Error(err)
		}
		if all = append(all, client); !allowed(client) {
			rw.WriteHeader(http.StatusForbidden) // as Keycloak does
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		w.authorize(rw, r)
	})
	return &all
}

// TestRegisteredScopes: a client registers for the scopes that it asks for then. Where it
// may not name any, it gets those that it gets.
func TestRegisteredScopes(t *testing.T) {
	for name, test := range map[string]struct {
		needs   string
		allowed func(map[string]any) bool
		want    []any
	}{
		"of the challenge": {"write", func(map[string]any) bool { return true }, []any{"write offline_access"}},
		"of the metadata":  {"", func(map[string]any) bool { return true }, []any{"read write offline_access"}},
		"none are wanted":  {"write", func(c map[string]any) bool { return c["scope"] == nil }, []any{"write offline_access", nil}},
		"nobody may":       {"write", func(map[string]any) bool { return false }, []any{"write offline_access", nil}},
	} {
		w, s := newWorld(t), newStore(t)
		w.needs = test.needs
		clients := registrations(w, test.allowed)
		if err := logIn(t, w, s, Config{}); (err != nil) != (name == "nobody may") {
			t.Errorf("%s: %v", name, err)
		}
		var got []any
		for _, c := range *clients {
			got = append(got, c["scope"])
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

// TestRegisteredMethod: a client registers as what its authorization server has.
func TestRegisteredMethod(t *testing.T) {
	for want, methods := range map[string][]string{
		"none":                {"client_secret_basic", "none"},
		"client_secret_basic": {"client_secret_post", "client_secret_basic"},
		"client_secret_post":  {"private_key_jwt", "client_secret_post"},
	} {
		w, s := newWorld(t), newStore(t)
		w.metadata["token_endpoint_auth_methods_supported"] = methods
		clients := registrations(w, func(c map[string]any) bool {
			method, _ := c["token_endpoint_auth_method"].(string)
			return slices.Contains(methods, method)
		})
		if err := logIn(t, w, s, Config{}); err != nil {
			t.Errorf("%v: %v", methods, err)
		}
		if len(*clients) != 1 || (*clients)[0]["token_endpoint_auth_method"] != want {
			t.Errorf("%v: registered %v", methods, *clients)
		}
	}
}

// TestRefusalIsBrief: what an authorization server writes about a client that it does not want
// is one line to whoever logs in.
func TestRefusalIsBrief(t *testing.T) {
	w, s := newWorld(t), newStore(t)
	w.login.Config.Handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/register" {
			w.authorize(rw, r)
			return
		}
		rw.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(rw, "no\nlogged in as root\n"+strings.Repeat("x", 100_000))
	})
	err := logIn(t, w, s, Config{})
	if err == nil || len(err.Error()) > 500 || strings.Contains(err.Error(), "\n") {
		t.Errorf("%.600v", err)
	}
}
