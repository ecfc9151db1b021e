// Package issuertest is an authorization server for tests: metadata, keys,
// introspection, and tokens good and bad.
package issuertest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Claims are those of a token. A value of nil leaves a claim of [Issuer.Good] out.
type Claims map[string]any

// An Issuer is an authorization server.
type Issuer struct {
	// Name is its identifier.
	Name string

	t      testing.TB
	mu     sync.Mutex
	signer jose.Signer
	key    *ecdsa.PrivateKey
	id     string
	set    jose.JSONWebKeySet
	opaque map[string]Claims
	refuse int
	hold   chan struct{}
	asked  map[string]int
}

// New returns an issuer with a key "k1" that answers requests through
// [Issuer.Client] alone.
func New(t testing.TB, name string) *Issuer {
	i := &Issuer{Name: name, t: t, opaque: map[string]Claims{}, asked: map[string]int{}}
	i.Rotate("k1")
	return i
}

// Serve returns an issuer that listens.
func Serve(t testing.TB) *Issuer {
	i := New(t, "")
	server := httptest.NewServer(i)
	t.Cleanup(server.Close)
	i.Name = server.URL
	return i
}

// Secret is what the client "gateway" has for introspection.
const Secret = "s:cret/é"

// Rotate makes a new key the only one.
func (i *Issuer) Rotate(id string) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		i.t.Fatal(err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.key, i.id, i.signer = key, id, i.sign(jose.ES256, key, id, "at+jwt")
	i.set = jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: id, Algorithm: "ES256", Use: "sig"}}}
}

// Publish adds a key to those that are told.
func (i *Issuer) Publish(key jose.JSONWebKey) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.set.Keys = append(i.set.Keys, key)
}

// Refuse answers every request with a status from now on; 0 answers them again.
func (i *Issuer) Refuse(status int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.refuse = status
}

// Hold lets every request wait from now on until the returned function is called.
func (i *Issuer) Hold() (release func()) {
	hold := make(chan struct{})
	i.mu.Lock()
	defer i.mu.Unlock()
	i.hold = hold
	return sync.OnceFunc(func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.hold = nil
		close(hold)
	})
}

// Asked returns how often a path was asked for.
func (i *Issuer) Asked(path string) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.asked[path]
}

// ServeHTTP answers.
func (i *Issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	i.asked[r.URL.Path]++
	hold, refuse, set := i.hold, i.refuse, i.set
	i.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-r.Context().Done():
			return
		}
	}
	switch {
	case refuse != 0:
		w.WriteHeader(refuse)
	case r.URL.Path == "/.well-known/openid-configuration":
		i.write(w, map[string]any{"issuer": i.Name, "jwks_uri": i.Name + "/keys"})
	case r.URL.Path == "/keys":
		i.write(w, set)
	case r.URL.Path == "/introspect":
		i.introspect(w, r)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func (i *Issuer) introspect(w http.ResponseWriter, r *http.Request) {
	user, secret, _ := r.BasicAuth()
	if user != "gateway" || secret != "s%3Acret%2F%C3%A9" || r.Method != http.MethodPost {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	i.mu.Lock()
	answer, ok := i.opaque[r.PostFormValue("token")]
	i.mu.Unlock()
	if !ok {
		answer = Claims{"active": false}
	}
	i.write(w, answer)
}

func (i *Issuer) write(w http.ResponseWriter, document any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(document); err != nil {
		i.t.Error(err)
	}
}

// Client returns a client whose requests the issuer answers, whatever they are for,
// without a network.
func (i *Issuer) Client() *http.Client { return &http.Client{Transport: transport{i}} }

type transport struct{ i *Issuer }

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	t.i.ServeHTTP(w, r)
	if r.Body != nil {
		_, _ = io.Copy(io.Discard, r.Body)
		r.Body.Close()
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return w.Result(), nil
}

// Good are the claims of a good token for an audience, changed.
func (i *Issuer) Good(audience string, change Claims) Claims {
	now := time.Now()
	claims := Claims{
		"iss": i.Name, "sub": "ada", "aud": audience, "client_id": "ide",
		"iat": now.Unix(), "exp": now.Add(time.Hour).Unix(), "scope": "openid tool:weather",
	}
	maps.Copy(claims, change)
	maps.DeleteFunc(claims, func(_ string, value any) bool { return value == nil })
	return claims
}

// Token signs claims with the issuer's key.
func (i *Issuer) Token(claims Claims) string {
	i.mu.Lock()
	signer := i.signer
	i.mu.Unlock()
	return i.serialize(signer, claims)
}

// Opaque makes a token that only introspection tells about.
func (i *Issuer) Opaque(claims Claims) string {
	token := rand.Text()
	i.mu.Lock()
	defer i.mu.Unlock()
	i.opaque[token] = claims
	return token
}

// Revoke makes an opaque token inactive.
func (i *Issuer) Revoke(token string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.opaque, token)
}

func (i *Issuer) sign(algorithm jose.SignatureAlgorithm, key any, id, kind string, header ...any) jose.Signer {
	options := (&jose.SignerOptions{}).WithHeader("kid", id)
	if kind != "" {
		options = options.WithType(jose.ContentType(kind))
	}
	for n := 0; n < len(header); n += 2 {
		options = options.WithHeader(jose.HeaderKey(header[n].(string)), header[n+1])
	}
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: key}, options)
	if err != nil {
		i.t.Fatal(err)
	}
	return s
}

func (i *Issuer) serialize(s jose.Signer, claims Claims) string {
	body, err := json.Marshal(claims)
	if err != nil {
		i.t.Fatal(err)
	}
	signed, err := s.Sign(body)
	if err != nil {
		i.t.Fatal(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		i.t.Fatal(err)
	}
	return text
}

// Bad returns tokens that nobody must accept for an audience, by what is wrong with
// them.
func (i *Issuer) Bad(audience string) map[string]string {
	past, future := time.Now().Add(-time.Hour).Unix(), time.Now().Add(time.Hour).Unix()
	good := i.Token(i.Good(audience, nil))
	parts := strings.Split(good, ".")
	raw := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	bad := map[string]string{
		"empty but for a space":   " ",
		"no token":                "opaque",
		"of other letters":        "ключ",
		"too long":                good + strings.Repeat("x", 20_000),
		"cut off":                 good[:len(good)-10],
		"without its signature":   parts[0] + "." + parts[1] + ".",
		"algorithm none":          raw(`{"alg":"none","typ":"at+jwt"}`) + "." + parts[1] + ".",
		"algorithm NoNe":          raw(`{"alg":"NoNe","kid":"k1"}`) + "." + parts[1] + "." + parts[2],
		"other claims":            parts[0] + "." + raw(`{"iss":"`+i.Name+`","sub":"eve","aud":"`+audience+`","exp":9999999999}`) + "." + parts[2],
		"a claim twice":           i.signRaw(`{"iss":"` + i.Name + `","sub":"ada","aud":"x","aud":"` + audience + `","exp":9999999999}`),
		"a JWS of JSON":           `{"payload":"` + parts[1] + `","protected":"` + parts[0] + `","signature":"` + parts[2] + `"}`,
		"encrypted, of five":      good + ".x.y",
		"signed by somebody else": New(i.t, i.Name).Token(i.Good(audience, nil)),
	}
	for name, change := range map[string]Claims{
		"expired":              {"exp": past},
		"expired in 1970":      {"exp": 0},
		"never expires":        {"exp": nil},
		"expires in words":     {"exp": "tomorrow"},
		"not good yet":         {"nbf": future},
		"issued in the future": {"iat": future},
		"another audience":     {"aud": "https://other.example/mcp"},
		"an audience above":    {"aud": audience + "/"},
		"an audience in capitals": {
			"aud": strings.ToUpper(audience)},
		"the audience in a text":   {"aud": "x " + audience},
		"no audience":              {"aud": nil},
		"an audience of numbers":   {"aud": []any{1, audience}},
		"another issuer":           {"iss": "https://evil.example"},
		"an issuer with a slash":   {"iss": i.Name + "/"},
		"no issuer":                {"iss": nil},
		"nobody":                   {"sub": nil},
		"a subject of two lines":   {"sub": "ada\nroot"},
		"bound to a key":           {"cnf": map[string]string{"jkt": "x"}},
		"scopes that are a number": {"scope": 7},
		"an ID token":              {"at_hash": "MTIzNDU2Nzg5MDEyMzQ1Ng"},
		"an ID token of Cognito":   {"token_use": "id"},
		"an ID token of Keycloak":  {"typ": "ID"},
		"a refresh token":          {"typ": "Refresh"},
		"a logout token":           {"events": map[string]any{"http://schemas.openid.net/event/backchannel-logout": map[string]any{}}},
	} {
		bad[name] = i.Token(i.Good(audience, change))
	}
	maps.Copy(bad, i.badlySigned(audience))
	return bad
}

// foreignKey is an RSA key that is nobody's.
var foreignKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

// badlySigned are tokens whose header or key is wrong.
func (i *Issuer) badlySigned(audience string) map[string]string {
	i.mu.Lock()
	key, id := i.key, i.id
	i.mu.Unlock()
	public, err := json.Marshal(jose.JSONWebKey{Key: key.Public(), KeyID: id})
	if err != nil {
		i.t.Fatal(err)
	}
	other := foreignKey()
	own, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: other}, &jose.SignerOptions{EmbedJWK: true})
	if err != nil {
		i.t.Fatal(err)
	}
	claims := i.Good(audience, nil)
	return map[string]string{
		"a shared secret":         i.serialize(i.sign(jose.HS256, []byte(strings.Repeat("k", 32)), id, "at+jwt"), claims),
		"the public key a secret": i.serialize(i.sign(jose.HS256, public, id, "at+jwt"), claims),
		"a key of its own":        i.serialize(own, claims),
		"an unknown key":          i.serialize(i.sign(jose.ES256, key, "k7", "at+jwt"), claims),
		"another algorithm":       i.serialize(i.sign(jose.RS256, other, id, "at+jwt"), claims),
		"a logout token":          i.serialize(i.sign(jose.ES256, key, id, "logout+jwt"), claims),
		"a type that is a number": i.serialize(i.sign(jose.ES256, key, id, "", "typ", 7), claims),
		"a type that is a list":   i.serialize(i.sign(jose.ES256, key, id, "", "typ", []string{"logout+jwt"}), claims),
		"a type that is null":     i.serialize(i.sign(jose.ES256, key, id, "", "typ", nil), claims),
		"an empty type":           i.serialize(i.sign(jose.ES256, key, id, "", "typ", ""), claims),
		"compressed":              i.serialize(i.sign(jose.ES256, key, id, "at+jwt", "zip", "DEF"), claims),
		"encrypted, it says":      i.serialize(i.sign(jose.ES256, key, id, "at+jwt", "enc", "A256GCM"), claims),
		"expired, of no key":      i.serialize(i.sign(jose.ES256, key, "k9", "at+jwt"), i.Good(audience, Claims{"exp": time.Now().Add(-time.Hour).Unix()})),
		"keys from elsewhere":     i.serialize(i.sign(jose.RS256, other, "x", "at+jwt", "jku", "https://evil.example/keys"), claims),
	}
}

// signRaw signs a text as it is.
func (i *Issuer) signRaw(text string) string {
	i.mu.Lock()
	defer i.mu.Unlock()
	signed, err := i.signer.Sign([]byte(text))
	if err != nil {
		i.t.Fatal(err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		i.t.Fatal(err)
	}
	return token
}

// TokenBy signs claims with another key.
func (i *Issuer) TokenBy(s jose.Signer, claims Claims) string { return i.serialize(s, claims) }
