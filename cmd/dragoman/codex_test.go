package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A gateway that answers, and not with its models, is told from one that does not.
func TestCodexSaysWhatTheGatewaySays(t *testing.T) {
	s := gatewayStub(t)
	broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	defer broken.Close()
	for name, tt := range map[string]struct{ url, key, want, hint string }{
		"no key":       {s.URL + "/v1", "", "the gateway at " + s.URL + "/v1 wants a key", "DRAGOMAN_API_KEY"},
		"without /v1":  {s.URL, "0123456789abcdef", "there is no list of models at " + s.URL + "/models", "/v1"},
		"unavailable":  {broken.URL, "", "says 503", "log"},
		"nobody there": {"http://127.0.0.1:1/v1", "", "does not answer", "dragoman serve"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(codexKey, tt.key)
			cmd := command()
			cmd.SetArgs([]string{"codex", "--url", tt.url})
			err := cmd.ExecuteContext(t.Context())
			failed, ok := errors.AsType[*failure](err)
			if !ok || !strings.Contains(failed.Error(), tt.want) || !strings.Contains(failed.hint, tt.hint) {
				t.Errorf("%v", err)
			}
		})
	}
}

// A model that is named needs no list: an API may have none, and serve it all the same.
func TestCodexModelWithoutAList(t *testing.T) {
	empty := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"object":"list","data":[],"models":[]}`))
	}))
	defer empty.Close()
	for model, served := range map[string]bool{"m": true, "": false} {
		err := (&codexWish{url: empty.URL + "/v1", model: model}).run(t.Context())
		if failed, ok := errors.AsType[*failure](err); (err == nil) != served || ok && !strings.Contains(failed.hint, "--model") {
			t.Errorf("the model %q: %v", model, err)
		}
	}
}

// What stands in Codex's configuration stays, the choice of another provider too; what
// is ours is replaced, and writing it again changes nothing.
func TestCodexConfigurationIsEdited(t *testing.T) {
	w := &codexWish{url: "http://127.0.0.1:8787/v1", model: "m"}
	for name, tt := range map[string]struct {
		before string
		keeps  []string
		chosen bool
	}{
		"empty":               {"", nil, true},
		"tables":              {"[mcp_servers.x]\ncommand = \"y\"\nmodel = \"no choice\"\n", []string{"[mcp_servers.x]", `command = "y"`}, true},
		"a choice":            {"model = \"gpt\"\n\n[tui]\na = 1\n", []string{`model = "gpt"`, "[tui]\na = 1"}, false},
		"ours":                {w.top() + "\n[model_providers.dragoman]\nbase_url = \"old\"\n\n[tui]\na = 1\n", []string{"[tui]\na = 1"}, true},
		"ours, with comments": {w.top() + "\n[ model_providers.\"dragoman\" ] # mine\nbase_url = \"old\"\n\n# Of the screen.\n[tui]\na = 1\n", []string{"# Of the screen.\n[tui]\na = 1"}, true},
		"a text that looks like tables": {"developer_instructions = \"\"\"\n[ ] read\nmodel = any\n[model_providers.dragoman]\nend\"\"\"\nmodel = \"gpt\"\n\n[tui]\na = 1\n",
			[]string{"\n[ ] read\nmodel = any\n[model_providers.dragoman]\nend\"\"\"\nmodel = \"gpt\"\n", "[tui]\na = 1"}, false},
		"a text that looks like a comment": {"model = \"gpt\"\ndeveloper_instructions = \"\"\"\n# Rules\n# Be kind.\"\"\"\n[tui]\na = 1\n",
			[]string{"\n# Rules\n# Be kind.\"\"\"\n", "[tui]\na = 1"}, false},
		"a byte order mark": {"\ufeffmodel = \"gpt\"\n", []string{`model = "gpt"`}, false},
	} {
		after, chosen, err := w.edit(tt.before)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if strings.Contains(after, "\ufeff") {
			t.Errorf("%s: a byte order mark is in\n%s", name, after)
		}
		for _, keep := range append(tt.keeps, w.provider(nil)) {
			if strings.Count(after, keep) != 1 {
				t.Errorf("%s: %q is not there once in\n%s", name, keep, after)
			}
		}
		if chosen != tt.chosen || strings.Contains(after, `"old"`) || chosen != strings.HasPrefix(after, w.top()) {
			t.Errorf("%s: chosen %v in\n%s", name, chosen, after)
		}
		if again, _, _ := w.edit(after); again != after {
			t.Errorf("%s: written again it is\n%s", name, again)
		}
	}
}

// What somebody has added to the provider's table stays, be it in a table of its own; a wish
// of theirs about usage, too.
func TestCodexProviderKeepsWhatWasAdded(t *testing.T) {
	w := &codexWish{url: "http://127.0.0.1:8787/v1", model: "m"}
	for name, tt := range map[string]struct {
		before string
		want   string
	}{
		"keys":    {"supports_websockets = true\nbase_url = \"old\"\nstream_max_retries = 3\n", "http_headers = {X-Dragoman-Usage = 'last'}\nstream_max_retries = 3\nsupports_websockets = true\n"},
		"headers": {"http_headers = {\"X-Team\" = \"a\"}\n", "http_headers = {X-Dragoman-Usage = 'last', X-Team = 'a'}\n"},
		"tables": {"base_url = \"old\"\n[model_providers.dragoman.http_headers]\nX-Dragoman-Usage = \"sum\"\n[model_providers.dragoman.query_params]\na = \"b\"\n",
			"http_headers = {X-Dragoman-Usage = 'sum'}\nquery_params = {a = 'b'}\n"},
	} {
		before := w.top() + "\n[model_providers.dragoman]\n" + tt.before + "\n[tui]\na = 1\n"
		ours, _, _ := strings.Cut(w.provider(nil), "http_headers")
		want := w.top() + "\n[tui]\na = 1\n\n" + ours + tt.want
		for range 2 { // the second time changes nothing
			after, _, err := w.edit(before)
			if err != nil || after != want {
				t.Errorf("%s: %v\n%s\nwant\n%s", name, err, after, want)
			}
			before = after
		}
	}
}

// A configuration in which the provider cannot be put is left as it is.
func TestCodexConfigurationIsLeft(t *testing.T) {
	w := &codexWish{url: "http://127.0.0.1:8787/v1", model: "m"}
	for name, before := range map[string]string{
		"no TOML":        "[[[\n",
		"another's form": "[model_providers]\ndragoman = {base_url = \"old\"}\n",
	} {
		path := filepath.Join(t.TempDir(), "config.toml")
		if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
			t.Fatal(err)
		}
		err := w.writeTo(path)
		if _, ok := errors.AsType[*failure](err); !ok || !strings.Contains(err.Error(), "left as it is") {
			t.Errorf("%s: %v", name, err)
		}
		if after, _ := os.ReadFile(path); string(after) != before {
			t.Errorf("%s: it is now\n%s", name, after)
		}
	}
}
