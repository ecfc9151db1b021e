package jwt_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/auth"

	"github.com/dragoman-mcp/dragoman/toolkit/jwt"
)

const resource = "https://weather.example/mcp"

// An issuer is an authorization server with discovery and keys.
type issuer struct {
	*httptest.Server
	down    atomic.Bool
	fetched atomic.Int32
	keys    atomic.Pointer[jose.JSONWebKeySet]
}

func newIssuer(t *testing.T) *issuer {
	i := &issuer{}
	mux := http.NewServeMux()
	i.Server = httptest.NewServer(mux)
	t.Cleanup(i.Close)
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		if i.down.Load() {
			w.WriteHeader(503)
			return
		}
		fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q}`, i.URL, i.URL+"/keys")
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		i.fetched.Add(1)
		if i.down.Load() {
			w.WriteHeader(503)
			return
		}
		json.NewEncoder(w).Encode(i.keys.Load())
	})
	return i
}

// rotate makes a new key the only one.
func (i *issuer) rotate(t *testing.T, id string) jose.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i.keys.Store(&jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: id, Algorithm: "ES256", Use: "sig"}}})
	return signer(t, jose.ES256, key, id)
}

func signer(t *testing.T, alg jose.SignatureAlgorithm, key any, id string) jose.Signer {
	t.Helper()
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key}, (&jose.SignerOptions{}).WithHeader("kid", id))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func token(t *testing.T, s jose.Signer, claims map[string]any) string {
	t.Helper()
	body, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := s.Sign(body)
	if err != nil {
		t.Fatal(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestVerifier(t *testing.T) {
	i, other := newIssuer(t), newIssuer(t)
	s := i.rotate(t, "k1")
	foreign := other.rotate(t, "k1")
	verify := jwt.Verifier(jwt.Options{Resource: resource, Issuers: []string{i.URL}})
	in := time.Now().Add(time.Hour).Unix()
	good := func(more map[string]any) map[string]any {
		claims := map[string]any{"iss": i.URL, "sub": "ada", "aud": resource, "exp": in, "scope": "tickets:read tickets:write"}
		for name, value := range more {
			claims[name] = value
			if value == nil {
				delete(claims, name)
			}
		}
		return claims
	}
	for name, tt := range map[string]struct {
		token  string
		scopes []string
	}{
		"good":                    {token(t, s, good(nil)), []string{"tickets:read", "tickets:write"}},
		"several audiences":       {token(t, s, good(map[string]any{"aud": []string{"x", resource}})), []string{"tickets:read", "tickets:write"}},
		"scp":                     {token(t, s, good(map[string]any{"scope": nil, "scp": []string{"a:b"}})), []string{"a:b"}},
		"no scopes":               {token(t, s, good(map[string]any{"scope": nil})), []string{}},
		"expired":                 {token(t, s, good(map[string]any{"exp": time.Now().Add(-time.Hour).Unix()})), nil},
		"never expires":           {token(t, s, good(map[string]any{"exp": nil})), nil},
		"not yet":                 {token(t, s, good(map[string]any{"nbf": time.Now().Add(time.Hour).Unix()})), nil},
		"other audience":          {token(t, s, good(map[string]any{"aud": resource + "/"})), nil},
		"no audience":             {token(t, s, good(map[string]any{"aud": nil})), nil},
		"nobody":                  {token(t, s, good(map[string]any{"sub": nil})), nil},
		"unknown issuer":          {token(t, foreign, good(map[string]any{"iss": other.URL})), nil},
		"signed by somebody else": {token(t, foreign, good(nil)), nil},
		"signed with a secret":    {token(t, signer(t, jose.HS256, []byte(strings.Repeat("k", 32)), "k1"), good(nil)), nil},
		"not signed":              {"eyJhbGciOiJub25lIn0." + strings.Split(token(t, s, good(nil)), ".")[1] + ".", nil},
		"not a token":             {"opaque", nil},
		"too long":                {strings.Repeat("x", 20_000), nil},
	} {
		t.Run(name, func(t *testing.T) {
			info, err := verify(t.Context(), tt.token, nil)
			if tt.scopes == nil {
				if !errors.Is(err, auth.ErrInvalidToken) {
					t.Errorf("%v, %v", info, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if info.UserID != "ada" || info.Expiration.Unix() != in || cmp.Diff(tt.scopes, append([]string{}, info.Scopes...)) != "" {
				t.Errorf("%+v", info)
			}
		})
	}
	if n := i.fetched.Load(); n > 5 {
		t.Errorf("the keys were fetched %d times", n)
	}
}

// TestIssuerInTrouble keeps a server whose issuer is down from sending its
// clients to log in again, and lets it recover.
func TestIssuerInTrouble(t *testing.T) {
	i := newIssuer(t)
	s := i.rotate(t, "k1")
	verify := jwt.Verifier(jwt.Options{Resource: resource, Issuers: []string{i.URL}, Client: i.Client()})
	text := token(t, s, map[string]any{"iss": i.URL, "sub": "ada", "aud": resource, "exp": time.Now().Add(time.Hour).Unix()})
	i.down.Store(true)
	if _, err := verify(t.Context(), text, nil); err == nil || errors.Is(err, auth.ErrInvalidToken) {
		t.Errorf("discovery down: %v", err)
	}
	i.down.Store(false)
	if _, err := verify(t.Context(), text, nil); err != nil {
		t.Errorf("up again: %v", err)
	}
	s = i.rotate(t, "k2")
	text = token(t, s, map[string]any{"iss": i.URL, "sub": "ada", "aud": resource, "exp": time.Now().Add(time.Hour).Unix()})
	// The library hands out what it has just fetched for a moment longer than the
	// fetch lasts, so the first try may still see the old keys.
	var err error
	for range 1000 {
		if _, err = verify(t.Context(), text, nil); err == nil {
			return
		}
		runtime.Gosched()
	}
	t.Errorf("after a rotation: %v", err)
}

// TestForgedKeys keeps tokens with unknown keys from making the server fetch
// without end, and an issuer that is down from looking like a bad token.
func TestForgedKeys(t *testing.T) {
	i, forger := newIssuer(t), newIssuer(t)
	s := i.rotate(t, "k1")
	verify := jwt.Verifier(jwt.Options{Resource: resource, Keys: map[string]string{i.URL: i.URL + "/keys"}, Issuers: []string{i.URL, "https://other.example"}})
	claims := map[string]any{"iss": i.URL, "sub": "ada", "aud": resource, "exp": time.Now().Add(time.Hour).Unix()}
	if info, err := verify(t.Context(), token(t, s, claims), nil); err != nil || info.UserID != i.URL+"#ada" {
		t.Fatalf("%+v, %v", info, err)
	}
	var last error
	for n := range 20 {
		_, last = verify(t.Context(), token(t, forger.rotate(t, fmt.Sprint("forged", n)), claims), nil)
	}
	if n := i.fetched.Load(); n > 5 {
		t.Errorf("the keys were fetched %d times", n)
	}
	if last == nil || errors.Is(last, auth.ErrInvalidToken) {
		t.Errorf("when keys cannot be fetched: %v", last)
	}
	if _, err := verify(t.Context(), token(t, s, claims), nil); err != nil {
		t.Errorf("a known key needs no fetching: %v", err)
	}
}
