package upstream_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

// rehearsal answers every request with its own path.
type rehearsal struct{}

func (rehearsal) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	fmt.Fprint(w, r.URL.Path)
	return w.Result(), nil
}

func env(pairs ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1], true
			}
		}
		return "", false
	}
}

func TestForFirstMatchWins(t *testing.T) {
	set, err := upstream.New([]upstream.Model{
		{Match: "gpt-5", BaseURL: "http://one.test/v1", Dialect: "openai"},
		{Match: "gpt-*", BaseURL: "http://two.test/v1/", APIKey: secret.New("k")},
		{Match: "fast", BaseURL: "http://three.test/v1", Name: "meta/llama-3"},
		{Match: "meta/*", BaseURL: "http://three.test/v1", Headers: secret.Map(map[string]string{"api_key": "k"})},
		{Match: "secret", BaseURL: "http://four.test/3f2b9c1e-7a60-4d0b-9e55-0c1d2e3f4a5b/v1?key=k"},
		{Match: "practice", BaseURL: upstream.RehearsalURL},
	}, upstream.Options{Rehearsal: rehearsal{}})
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		model, address, sent string
		key, rehearsal       bool
	}{
		{"gpt-5", "http://one.test/v1", "gpt-5", false, false},
		{"gpt-5-mini", "http://two.test/v1", "gpt-5-mini", true, false},
		{"fast", "http://three.test/v1", "meta/llama-3", false, false},
		{"meta/llama-3", "http://three.test/v1", "meta/llama-3", true, false},
		{"secret", "http://four.test/***/v1", "secret", false, false},
		{"practice", "http://rehearsal.invalid/v1", "practice", false, true},
	}
	for _, tt := range tests {
		u, err := set.For(tt.model)
		if err != nil {
			t.Errorf("For(%q): %v", tt.model, err)
			continue
		}
		if u.String() != tt.address || u.ModelName(tt.model) != tt.sent || u.HasKey != tt.key || u.Rehearsal != tt.rehearsal {
			t.Errorf("For(%q) = %s, sent as %q, key %v, rehearsal %v; want %+v", tt.model, u, u.ModelName(tt.model), u.HasKey, u.Rehearsal, tt)
		}
	}
	if got := set.DefaultModel(); got != "gpt-5" {
		t.Errorf("DefaultModel() = %q", got)
	}
}

func TestForUnknownModel(t *testing.T) {
	set, err := upstream.New([]upstream.Model{{Match: "gpt-*", BaseURL: "http://one.test/v1"}}, upstream.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = set.For("claude")
	if !errors.Is(err, upstream.ErrUnknownModel) || err.Error() != `no upstream serves this model: "claude"` {
		t.Errorf("got %v", err)
	}
	if _, err = set.For(strings.Repeat("语", 10_000)); len(err.Error()) > 300 {
		t.Errorf("the error of a long name has %d bytes", len(err.Error()))
	}
}

func TestWithoutModelsTheEnvironmentDecides(t *testing.T) {
	tests := []struct {
		name         string
		env          func(string) (string, bool)
		address      string
		key          bool
		defaultModel string
	}{
		{"nil", nil, upstream.RehearsalURL, false, "rehearsal"},
		{"empty", env(), upstream.RehearsalURL, false, "rehearsal"},
		{"blank key", env("OPENAI_API_KEY", " "), upstream.RehearsalURL, false, "rehearsal"},
		{"only a model", env("OPENAI_MODEL", "gpt-5"), upstream.RehearsalURL, false, "rehearsal"},
		{"key", env("OPENAI_API_KEY", "k"), "https://api.openai.com/v1", true, ""},
		{"base URL", env("OPENAI_BASE_URL", "http://localhost:11434/v1", "OPENAI_MODEL", "qwen3"), "http://localhost:11434/v1", false, "qwen3"},
		{"both", env("OPENAI_BASE_URL", "http://a.test/", "OPENAI_API_KEY", "k\n"), "http://a.test", true, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			set, err := upstream.New(nil, upstream.Options{Rehearsal: rehearsal{}, Getenv: tt.env})
			if err != nil {
				t.Fatal(err)
			}
			u, err := set.For("any/name")
			if err != nil {
				t.Fatal(err)
			}
			if u.String() != tt.address || u.HasKey != tt.key || set.DefaultModel() != tt.defaultModel {
				t.Errorf("got %s, key %v, default %q; want %s, %v, %q", u, u.HasKey, set.DefaultModel(), tt.address, tt.key, tt.defaultModel)
			}
			if set.First() != u {
				t.Error("First is another upstream")
			}
		})
	}
}

func TestNewRefuses(t *testing.T) {
	tests := []struct {
		name  string
		model upstream.Model
		want  string
	}{
		{"no base URL", upstream.Model{Match: "a"}, "models[0]: base_url: a model needs a base_url, such as https://api.openai.com/v1"},
		{"not a URL", upstream.Model{BaseURL: "http://a b/canary"}, "models[0]: base_url: not a valid URL"},
		{"scheme", upstream.Model{BaseURL: "ftp://a.test"}, "models[0]: base_url: a URL here begins with http:// or https://"},
		{"host", upstream.Model{BaseURL: "http://:80/v1"}, "models[0]: base_url: the URL has no host"},
		{"password", upstream.Model{BaseURL: "http://me:canary@a.test/v1"}, "models[0]: base_url: a user name or password in the URL is not sent; use api_key or headers"},
		{"fragment", upstream.Model{BaseURL: "http://a.test/v1#canary"}, "models[0]: base_url: a URL with # cannot be a base"},
		{"too long a path", upstream.Model{BaseURL: "http://a.test/v1/chat/completions"}, "models[0]: base_url: give the address where the API begins, without /chat/completions"},
		{"key", upstream.Model{BaseURL: "http://a.test", APIKey: secret.New("canary\n")}, "models[0]: api_key: the key has a line break or a control character"},
		{"header name", upstream.Model{BaseURL: "http://a.test", Headers: secret.Map(map[string]string{"a b": "canary"})}, `models[0]: headers: "a b" cannot be the name of a header`},
		{"header value", upstream.Model{BaseURL: "http://a.test", Headers: secret.Map(map[string]string{"a": "canary\r\nb: c"})}, "models[0]: headers: the value of a has a line break or a control character"},
		{"no rehearsal", upstream.Model{BaseURL: upstream.RehearsalURL}, "models[0]: there is no rehearsal model in this program"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := upstream.New([]upstream.Model{tt.model}, upstream.Options{})
			if err == nil || err.Error() != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

func TestNothingPrintsTheKey(t *testing.T) {
	m := upstream.Model{Match: "*", BaseURL: "https://a.test/v1?code=canary", APIKey: secret.New("canary"), Headers: secret.Map(map[string]string{"X": "canary"})}
	set, err := upstream.New([]upstream.Model{m}, upstream.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		if got := fmt.Sprintf(format+format, m, set.First()); strings.Contains(got, "canary") {
			t.Errorf("%s shows a secret: %s", format, got)
		}
	}
}

// A variable of the environment that is wrong is blamed by its name.
func TestEnvironmentIsBlamed(t *testing.T) {
	for name, env := range map[string]map[string]string{
		"OPENAI_BASE_URL: a URL here begins with": {"OPENAI_BASE_URL": "localhost:11434"},
		"OPENAI_API_KEY: the key has a line":      {"OPENAI_API_KEY": "a\nb"},
		"OPENAI_ORG_ID or OPENAI_PROJECT_ID: ":    {"OPENAI_API_KEY": "a", "OPENAI_ORG_ID": "a\x01b"},
	} {
		_, err := upstream.New(nil, upstream.Options{Getenv: func(n string) (string, bool) { v, ok := env[n]; return v, ok }})
		if err == nil || !strings.Contains(err.Error(), "the environment variable "+name) || strings.Contains(err.Error(), "models[") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Whoever asked is told where the upstream should be, why it is not, and who says so.
func TestErrorTold(t *testing.T) {
	env := map[string]string{"OPENAI_API_KEY": "sk"}
	set, err := upstream.New(nil, upstream.Options{Getenv: func(n string) (string, bool) { v, ok := env[n]; return v, ok }})
	if err != nil {
		t.Fatal(err)
	}
	if from := set.First().From; !strings.Contains(from, "OPENAI_API_KEY chose this address") {
		t.Errorf("From = %q", from)
	}
	e := func(err error) *upstream.Error {
		return &upstream.Error{Host: "h:1", Address: "http://h:1/v1", From: "OPENAI_BASE_URL", Err: err, Waited: time.Second}
	}
	for want, err := range map[string]error{
		"The model's API at http://h:1/v1 cannot be reached: connection refused. Check that it runs there, and OPENAI_BASE_URL.":                                  &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED},
		"The model's API at http://h:1/v1 cannot be reached: there is no host named h. Check OPENAI_BASE_URL.":                                                    &net.OpError{Op: "dial", Err: &net.DNSError{Name: "h", IsNotFound: true}},
		"The model's API at http://h:1/v1 cannot be reached: the proxy of the environment: connection refused. Check HTTPS_PROXY, HTTP_PROXY and NO_PROXY.":       &net.OpError{Op: "proxyconnect", Err: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}},
		"The model's API at http://h:1/v1 cannot be reached: the proxy of the environment: there is no host named p. Check HTTPS_PROXY, HTTP_PROXY and NO_PROXY.": &net.OpError{Op: "proxyconnect", Err: &net.OpError{Op: "dial", Err: &net.DNSError{Name: "p", IsNotFound: true}}},
		"The model's API at http://h:1/v1 did not answer within 1s.":                                                                                              context.DeadlineExceeded,
	} {
		if got := e(err).Told(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
