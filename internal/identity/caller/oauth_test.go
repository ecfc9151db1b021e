package caller

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-mcp/dragoman/internal/identity/accesstoken/issuertest"
	"github.com/dragoman-mcp/dragoman/internal/identity/apikey"
	"github.com/dragoman-mcp/dragoman/internal/text/invalid"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

const (
	base     = "https://gateway.example"
	endpoint = base + "/mcp"
)

// authorized returns a front that accepts the tokens of an issuer.
func authorized(t *testing.T, i *issuertest.Issuer, change func(*Config)) *Authenticator {
	t.Helper()
	c := Config{PublicURL: base, OAuth: []Issuer{{
		Issuer: i.Name, Grants: []string{"model:*"},
		Scopes: []Scope{{"mcp:read", []string{"tool:*_get", "tool:*_list"}}, {"mcp:write", []string{"tool:*"}}},
	}}}
	if change != nil {
		change(&c)
	}
	f, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

// at is a request for a path with a token.
func at(path, token string) *http.Request {
	r := httptest.NewRequest("POST", base+path, nil)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return r
}

func TestToken(t *testing.T) {
	i := issuertest.Serve(t)
	f := authorized(t, i, nil)
	if !f.Required() {
		t.Error("nobody is asked")
	}
	c, err := f.Recognise(at("/mcp", i.Token(i.Good(endpoint, issuertest.Claims{"scope": "openid mcp:read model:x"}))))
	if err != nil {
		t.Fatal(err)
	}
	want := Caller{
		ID: i.Name + "#ada", Name: "ada", Issuer: i.Name, Client: "ide", Expires: c.Expires,
		Grants: []string{"model:*", "tool:*_get", "tool:*_list"}, Scopes: []string{"openid", "mcp:read", "model:x"},
		Reach: []string{"tool:*_get", "tool:*_list", "tool:*"},
	}
	if diff := cmp.Diff(want, c); diff != "" || c.Expires.IsZero() {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !c.May("tool:files_get") || c.May("tool:files_delete") || !c.May("model:gpt") || c.May("route:/v1/files") {
		t.Error("rights")
	}
	// Without scopes there is what every token has, and nothing adds up over time.
	c, err = f.Recognise(at("/mcp", i.Token(i.Good(endpoint, issuertest.Claims{"scope": nil, "preferred_username": "Ada L."}))))
	if err != nil || !slices.Equal(c.Grants, []string{"model:*"}) || c.Name != "Ada L." {
		t.Errorf("%+v, %v", c, err)
	}
}

// Each bad token is refused with what its client needs to get a good one.
func TestBadTokens(t *testing.T) {
	i := issuertest.Serve(t)
	f := authorized(t, i, func(c *Config) { c.OAuth[0].Required = []string{"mcp:read"} })
	bad := i.Bad(endpoint)
	challenge := regexp.MustCompile(`^Bearer (error="invalid_token", error_description="the token [^"]+", )?scope="mcp:read", resource_metadata="https://gateway.example/.well-known/oauth-protected-resource/mcp/github"$`)
	invalid := 0
	for name, token := range bad {
		who, err := f.Recognise(at("/mcp/github", token))
		r := refused(t, err)
		if who.Valid() || strings.Contains(r.Message+r.Challenge, token) && strings.TrimSpace(token) != "" {
			t.Errorf("%s: %+v, %+v", name, who, r)
		}
		if r.Status == 503 && strings.Contains(r.Error(), "too often") {
			continue // one of several with keys that nobody knows
		}
		invalid++
		if r.Status != 401 || !challenge.MatchString(r.Challenge) {
			t.Errorf("%s: %d %s", name, r.Status, r.Challenge)
		}
	}
	if invalid < 24 {
		t.Errorf("%d of %d are refused for good", invalid, len(bad))
	}
}

// TestChallenges says to each what to do, and nothing where there is nothing to do.
func TestChallenges(t *testing.T) {
	i := issuertest.Serve(t)
	keys := filepath.Join(t.TempDir(), "keys.jsonl")
	key, record, err := apikey.NewRecord("laptop", everyday, 0)
	if err == nil {
		err = apikey.Add(keys, record)
	}
	if err != nil {
		t.Fatal(err)
	}
	f := authorized(t, i, func(c *Config) { c.KeysFile, c.OAuth[0].Required = keys, []string{"mcp:use"} })
	token := func(scope string) string { return i.Token(i.Good(endpoint, issuertest.Claims{"scope": scope})) }
	metadata := func(path string) string { return `resource_metadata="` + base + MetadataPath + path + `"` }
	for name, tt := range map[string]struct {
		path, token string
		status      int
		challenge   string
	}{
		"nothing, MCP":    {"/mcp", "", 401, `Bearer scope="mcp:use", ` + metadata("/mcp")},
		"nothing, server": {"/mcp/github/", "", 401, `Bearer scope="mcp:use", ` + metadata("/mcp/github")},
		"nothing, set":    {"/mcp/set/safe", "", 401, `Bearer scope="mcp:use", ` + metadata("/mcp/set/safe")},
		"nothing, SSE":    {"/sse", "", 401, `Bearer scope="mcp:use", ` + metadata("/sse")},
		"nothing, API":    {"/v1/chat/completions", "", 401, `Bearer scope="mcp:use", ` + metadata("/v1")},
		"nothing, else":   {"/nowhere", "", 401, `Bearer scope="mcp:use", ` + metadata("")},
		"another scope":   {"/mcp", token("mcp:read"), 403, `Bearer error="insufficient_scope", scope="mcp:use", ` + metadata("/mcp")},
		"good":            {"/mcp", token("mcp:use"), 0, ""},
		"a key":           {"/mcp", key, 0, ""},
		"a key cut off":   {"/mcp", key[:70], 401, `Bearer error="invalid_token", error_description="the API key was mistyped or cut off: its checksum is wrong", ` + metadata("/mcp")},
	} {
		t.Run(name, func(t *testing.T) {
			who, err := f.Recognise(at(tt.path, tt.token))
			if tt.status == 0 {
				if err != nil || !who.Valid() {
					t.Error(err)
				}
				return
			}
			if r := refused(t, err); r.Status != tt.status || r.Challenge != tt.challenge {
				t.Errorf("%d %s", r.Status, r.Challenge)
			}
		})
	}
	// An access token is no API key.
	r := at("/mcp", "")
	r.Header.Set("Api-Key", token("mcp:use"))
	if _, err := f.Recognise(r); refused(t, err).Status != 401 {
		t.Error("taken as Api-Key")
	}
	r = httptest.NewRequest("GET", base+"/mcp?access_token="+token("mcp:use"), nil)
	if _, err := f.Recognise(r); refused(t, err).Status != 401 {
		t.Error("taken from the query")
	}
}

// TestResources holds that a token is good where it was made for, and below.
func TestResources(t *testing.T) {
	i := issuertest.Serve(t)
	f := authorized(t, i, nil)
	everywhere := []string{"/mcp", "/mcp/", "/mcp/github", "/mcp/github/", "/mcp/set/safe", "/v1/models", "/sse", "/"}
	for audience, good := range map[string][]string{
		base:                        everywhere,
		base + "/":                  everywhere,
		base + "/mcp":               {"/mcp", "/mcp/", "/mcp/github", "/mcp/github/", "/mcp/set/safe"},
		base + "/mcp/github":        {"/mcp/github", "/mcp/github/"},
		base + "/v1":                {"/v1/models"},
		base + "/mcp/":              {},
		base + "/mcp/git":           {},
		base + "/MCP":               {},
		"http://gateway.example":    {},
		base + ":443/mcp":           {},
		"https://gateway.example.x": {},
	} {
		for _, path := range everywhere {
			_, err := f.Recognise(at(path, i.Token(i.Good(audience, nil))))
			if want := slices.Contains(good, path); (err == nil) != want {
				t.Errorf("made for %s, at %s: %v", audience, path, err)
			}
		}
	}
	f = authorized(t, i, func(c *Config) { c.OAuth[0].Audience = "api://dragoman" })
	for audience, want := range map[string]bool{"api://dragoman": true, endpoint: false} {
		if _, err := f.Recognise(at("/mcp", i.Token(i.Good(audience, nil)))); (err == nil) != want {
			t.Errorf("made for %s: %v", audience, err)
		}
	}
}

func TestSeveralIssuers(t *testing.T) {
	a, b, c := issuertest.Serve(t), issuertest.Serve(t), issuertest.Serve(t)
	f := authorized(t, a, func(config *Config) {
		config.OAuth = append(config.OAuth, Issuer{
			Issuer: b.Name, Grants: []string{"tool:b_*"},
			Introspection: Introspection{b.Name + "/introspect", "gateway", secret.New(issuertest.Secret)},
		})
	})
	ids := map[string]bool{}
	for name, tt := range map[string]struct {
		token string
		right string
	}{
		"signed by one":         {a.Token(a.Good(endpoint, nil)), "model:x"},
		"looked up with other":  {b.Opaque(b.Good(endpoint, issuertest.Claims{"active": true})), "tool:b_x"},
		"signed by a third one": {c.Token(c.Good(endpoint, nil)), ""},
		"known to a third one":  {c.Opaque(c.Good(endpoint, issuertest.Claims{"active": true})), ""},
		"claiming another":      {c.Token(c.Good(endpoint, issuertest.Claims{"iss": a.Name})), ""},
	} {
		who, err := f.Recognise(at("/mcp", tt.token))
		if tt.right == "" {
			if refused(t, err).Status != 401 {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || !who.May(tt.right) || who.May("tool:a") || ids[who.ID] {
			t.Errorf("%s: %+v, %v", name, who, err)
		}
		ids[who.ID] = true // both are called ada
	}
}

// TestIssuerDown is no fault of whoever has a token.
func TestIssuerDown(t *testing.T) {
	i := issuertest.Serve(t)
	f := authorized(t, i, nil)
	i.Refuse(http.StatusBadGateway)
	token := i.Token(i.Good(endpoint, nil))
	_, err := f.Recognise(at("/mcp", token))
	if r := refused(t, err); r.Status != 503 || r.RetryAfter == 0 || r.Challenge != "" || strings.Contains(r.Message, i.Name) {
		t.Errorf("%+v", r)
	}
	i.Refuse(0)
	if _, err := f.Recognise(at("/mcp", token)); err != nil {
		t.Errorf("up again: %v", err)
	}
}

func TestStepUp(t *testing.T) {
	i := issuertest.Serve(t)
	f := authorized(t, i, func(c *Config) { c.OAuth[0].Required = []string{"mcp:use"} })
	who, err := f.Recognise(at("/mcp", i.Token(i.Good(endpoint, issuertest.Claims{"scope": "openid mcp:use"}))))
	if err != nil {
		t.Fatal(err)
	}
	if r := f.StepUp(who, "/mcp/files", "tool:files_list"); r == nil || r.Status != 403 ||
		r.Challenge != `Bearer error="insufficient_scope", scope="mcp:use openid mcp:read", resource_metadata="`+base+MetadataPath+`/mcp/files"` {
		t.Errorf("%+v", r)
	}
	if r := f.StepUp(who, "/mcp", "tool:files_delete"); r == nil || !strings.Contains(r.Challenge, "mcp:write") {
		t.Errorf("%+v", r)
	}
	for _, right := range []string{"model:x", "route:/v1/files", "approve:x"} {
		if r := f.StepUp(who, "/mcp", right); r != nil {
			t.Errorf("%s, which is had, or which no scope gives: %+v", right, r)
		}
	}
	if r := f.StepUp(Caller{ID: "key-1"}, "/mcp", "tool:x"); r != nil {
		t.Errorf("a key cannot be stepped up: %+v", r)
	}
	if r := f.StepUp(Local, "/mcp", "tool:x"); r != nil {
		t.Errorf("%+v", r)
	}
}

func TestMetadata(t *testing.T) {
	i := issuertest.Serve(t)
	f := authorized(t, i, func(c *Config) { c.OAuth[0].Required = []string{"mcp:use"} })
	for path, resource := range map[string]string{
		"": base, "/": base, "/mcp": endpoint, "/mcp/": endpoint, "/mcp/github": endpoint + "/github", "/mcp/set/safe": endpoint + "/set/safe",
		"/sse": base + "/sse", "/v1": base + "/v1",
		"/v1/models": "", "/mcpx": "", "/nowhere": "", "/mcp/" + strings.Repeat("x", 300): "",
	} {
		w := httptest.NewRecorder()
		served := f.ServeMetadata(w, httptest.NewRequest("GET", base+MetadataPath+path, nil))
		if served != (resource != "") {
			t.Errorf("%s: served %v", path, served)
		}
		if !served {
			continue
		}
		var got map[string]any
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%s: %v", path, err)
		}
		want := map[string]any{
			"resource": resource, "authorization_servers": []any{i.Name}, "bearer_methods_supported": []any{"header"},
			"scopes_supported": []any{"mcp:use", "mcp:read", "mcp:write"}, "resource_name": "Dragoman",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
	keysOnly, err := New(Config{APIKeys: []secret.Text{secret.New("0123456789abcdef")}})
	if err != nil {
		t.Fatal(err)
	}
	if keysOnly.ServeMetadata(httptest.NewRecorder(), httptest.NewRequest("GET", base+MetadataPath, nil)) {
		t.Error("metadata without authorization servers")
	}
	if f.ServeMetadata(httptest.NewRecorder(), httptest.NewRequest("POST", base+MetadataPath, nil)) {
		t.Error("POST")
	}
}

func TestConfig(t *testing.T) {
	good := func() Config {
		return Config{PublicURL: base, OAuth: []Issuer{{Issuer: "https://login.example", Grants: []string{"tool:*"}}}}
	}
	for name, tt := range map[string]struct {
		change func(*Config)
		key    string // empty: fine
	}{
		"fine":                {func(*Config) {}, ""},
		"a port":              {func(c *Config) { c.PublicURL = "https://gateway.example:8443" }, ""},
		"this machine":        {func(c *Config) { c.PublicURL = "http://127.0.0.1:8787" }, ""},
		"no public_url":       {func(c *Config) { c.PublicURL = "" }, "public_url"},
		"plain http":          {func(c *Config) { c.PublicURL = "http://gateway.example" }, "public_url"},
		"a path":              {func(c *Config) { c.PublicURL = base + "/mcp" }, "public_url"},
		"a slash":             {func(c *Config) { c.PublicURL = base + "/" }, "public_url"},
		"an issuer of http":   {func(c *Config) { c.OAuth[0].Issuer = "http://login.example" }, "oauth"},
		"an issuer twice":     {func(c *Config) { c.OAuth = append(c.OAuth, c.OAuth[0]) }, "oauth"},
		"nothing is granted":  {func(c *Config) { c.OAuth[0].Grants = nil }, "grants"},
		"no grant":            {func(c *Config) { c.OAuth[0].Grants = []string{"everything"} }, "grants"},
		"no scope":            {func(c *Config) { c.OAuth[0].Required = []string{"a b"} }, "required_scopes"},
		"keys and questions":  {func(c *Config) { c.OAuth[0].JWKSURI, c.OAuth[0].Introspection.URL = "https://x", "https://y" }, "jwks_uri"},
		"half a question":     {func(c *Config) { c.OAuth[0].Introspection.ClientID = "x" }, "introspection"},
		"a scope with spaces": {func(c *Config) { c.OAuth[0].Scopes = []Scope{{"a b", []string{"*"}}} }, "scope"},
		"a scope's grant":     {func(c *Config) { c.OAuth[0].Scopes = []Scope{{"a", []string{"b"}}} }, "grants"},
	} {
		c := good()
		tt.change(&c)
		_, err := newOAuth(c)
		wrong, _ := err.(*invalid.Error)
		if (err == nil) != (tt.key == "") || wrong != nil && wrong.Key != tt.key {
			t.Errorf("%s: %v", name, err)
		}
	}
}
