package credential

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

// clients has a token endpoint that takes each client in its own way alone, as that of Ory
// Hydra does, and says of all ways that it has them. It tells how it was asked.
func clients(w *world) *[]string {
	w.metadata["token_endpoint_auth_methods_supported"] = []string{"client_secret_post", "client_secret_basic", "none"}
	var asked []string
	w.login.Config.Handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/token" {
			w.authorize(rw, r)
			return
		}
		_ = r.ParseForm()
		id, key, header := r.BasicAuth()
		way := "public"
		switch {
		case header:
			id, _ = url.QueryUnescape(id)
			key, _ = url.QueryUnescape(key)
			way = "basic"
		case r.Form.Has("client_secret"):
			way = "post"
			fallthrough
		default:
			id, key = r.Form.Get("client_id"), r.Form.Get("client_secret")
		}
		asked = append(asked, fmt.Sprint(way, " ", r.Form.Get("grant_type")))
		if id != way+":1" || way != "public" && key != "a secret+" || header && r.Form.Has("client_id") {
			rw.Header().Set("Content-Type", "application/json")
			rw.WriteHeader(http.StatusUnauthorized)
			_ = json.NewEncoder(rw).Encode(map[string]any{"error": "invalid_client"})
			return
		}
		w.authorize(rw, r)
	})
	return &asked
}

// TestWayOfSecret: a client logs in, and renews what comes of it, in the way in which its
// authorization server takes it, be that found out by a refusal; which is so once.
func TestWayOfSecret(t *testing.T) {
	const code, renewal = "authorization_code", "refresh_token"
	for id, want := range map[string][]string{
		"basic:1":  {"post " + code, "basic " + code, "post " + renewal, "basic " + renewal, "basic " + renewal},
		"post:1":   {"post " + code, "post " + renewal, "post " + renewal},
		"public:1": {"public " + code, "public " + renewal, "public " + renewal},
	} {
		w, s := newWorld(t), newStore(t)
		asked := clients(w)
		c := Config{ClientID: id, Issuer: w.login.URL}
		if id != "public:1" {
			c.ClientSecret = secret.New("a secret+")
		}
		if err := logIn(t, w, s, c); err != nil {
			t.Errorf("%s: %v", id, err)
			continue
		}
		client := gatewayOf(t, w, s, c)
		for range 2 {
			w.do(func() { clear(w.tokens) })
			if status, err := ask(t.Context(), client, w.url()); status != 200 || err != nil {
				t.Errorf("%s: %d, %v", id, status, err)
			}
		}
		if diff := cmp.Diff(want, *asked); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", id, diff)
		}
	}
}

// TestClientWithoutSecret: where an authorization server takes secrets in the header alone,
// clients without one are named in the body.
func TestClientWithoutSecret(t *testing.T) {
	w, s := newWorld(t), newStore(t)
	asked := clients(w)
	w.metadata["token_endpoint_auth_methods_supported"] = []string{"client_secret_basic", "none"}
	if err := logIn(t, w, s, Config{ClientID: "public:1", Issuer: w.login.URL}); err != nil {
		t.Errorf("%v, asked %v", err, *asked)
	}
}

// TestWayOfRobot: the same by client credentials. A secret that is wrong is said to be so.
func TestWayOfRobot(t *testing.T) {
	for _, id := range []string{"basic:1", "post:1", "nobody"} {
		w := newWorld(t)
		asked := clients(w)
		w.anybody = true
		c := Config{Grant: ClientCredentialsGrant, ClientID: id, ClientSecret: secret.New("a secret+"), Issuer: w.login.URL}
		status, err := ask(t.Context(), gatewayOf(t, w, nil, c), w.url())
		if want := id != "nobody"; (status == 200 && err == nil) != want {
			t.Errorf("%s: %d, %v, asked %v", id, status, err, *asked)
		}
		if id == "nobody" && !slices.Equal(*asked, []string{"basic client_credentials", "post client_credentials"}) {
			t.Errorf("asked %v", *asked)
		}
	}
}

// TestPublicClientAsksOnce: what a client without a secret asks is sent once, though it is
// refused: a second time would be use of a refresh token, or of a code, that was used.
func TestPublicClientAsksOnce(t *testing.T) {
	w, s := newWorld(t), newStore(t)
	a, c := Account{w.url(), "ann"}, Config{ClientID: "public"}
	o := LoginOptions{Config: c, Store: s, Redirect: "http://127.0.0.1:1/callback", Use: func(ctx context.Context, client *http.Client) error {
		_, err := ask(ctx, client, w.url())
		return err
	}}
	login := func() error {
		address, begun, err := Begin(t.Context(), a, http.DefaultTransport, o)
		if err != nil {
			t.Fatal(err)
		}
		back := visit(t, address)
		_, _, err = Finish(t.Context(), a, http.DefaultTransport, o, begun, Answer{Code: back.Get("code"), Issuer: back.Get("iss")})
		return err
	}
	if err := login(); err != nil {
		t.Fatal(err)
	}
	w.do(func() { w.asked, w.away = nil, true; clear(w.tokens) })
	client := &http.Client{Transport: transportOf(t, TransportOptions{Account: a, Config: c, Store: s})}
	if _, err := ask(t.Context(), client, w.url()); err == nil {
		t.Error("renewed by a server that is away")
	}
	w.do(func() {
		if len(w.asked) != 1 || w.asked[0].Get("grant_type") != "refresh_token" {
			t.Errorf("renewing asks %d times", len(w.asked))
		}
		w.asked = nil
	})
	if err := login(); err == nil {
		t.Error("logged in at a server that is away")
	}
	w.do(func() {
		if len(w.asked) != 1 || w.asked[0].Get("grant_type") != "authorization_code" {
			t.Errorf("a login asks %d times", len(w.asked))
		}
	})
}
