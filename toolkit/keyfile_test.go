package toolkit

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/identity/apikey"
)

func TestKeyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.jsonl")
	if _, err := OpenKeys(path); err == nil {
		t.Error("no file: no error")
	}
	text, first, err := NewAPIKey("ada", "tickets:*")
	if err != nil {
		t.Fatal(err)
	}
	if err := apikey.Add(path, apikey.Record(first)); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("mode: %v, %v", info.Mode(), err)
	}
	f, err := OpenKeys(path)
	if err != nil {
		t.Fatal(err)
	}
	k, err := f.APIKey(t.Context(), first.ID)
	if err != nil || k.User != "ada" || !apikey.Matches(text, k.Hash) {
		t.Errorf("%+v, %v", k, err)
	}
	_, second, err := NewAPIKey("bob")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.APIKey(t.Context(), second.ID); !errors.Is(err, ErrNoKey) {
		t.Errorf("not there yet: %v", err)
	}
	if err := f.Add(second); err != nil {
		t.Fatal(err)
	}
	if k, err := f.APIKey(t.Context(), second.ID); err != nil || k.User != "bob" {
		t.Errorf("added while in use: %+v, %v", k, err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(whole), text[18:40]) {
		t.Error("the key itself is in the file")
	}
	lines := strings.SplitAfter(string(whole), "\n")
	write := func(content string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(lines[1] + "\n")
	if _, err := f.APIKey(t.Context(), first.ID); !errors.Is(err, ErrNoKey) {
		t.Errorf("revoked: %v", err)
	}
	// Somebody's editor left out the last line break.
	write(strings.TrimSuffix(lines[0], "\n"))
	if err := f.Add(second); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{first.ID, second.ID} {
		if _, err := f.APIKey(t.Context(), id); err != nil {
			t.Error(err)
		}
	}
	for content, want := range map[string]string{
		lines[0] + "nonsense": "line 2", lines[0] + lines[0]: "stands there twice", lines[0] + `{"id":"x","hash":"y","user":"z"}`: "the hash is not",
		strings.Replace(lines[0], `"user":"ada"`, `"user":""`, 1): "the user must have", strings.Replace(lines[0], "tickets:*", "all", 1): "kind:what",
		strings.Replace(lines[0], `"user"`, `"usr"`, 1): `unknown field "usr"`,
	} {
		write(content)
		if _, err := f.APIKey(t.Context(), first.ID); err == nil || errors.Is(err, ErrNoKey) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", content, err, want)
		}
		if _, err := OpenKeys(path); err == nil {
			t.Errorf("%s: opened", content)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := f.APIKey(t.Context(), first.ID); err == nil || errors.Is(err, ErrNoKey) {
		t.Errorf("a file that is gone: %v", err)
	}
}

// TestNewKey makes a key on the command line and uses it.
func TestNewKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.jsonl")
	for _, args := range [][]string{
		{"--new-key", "ada"},
		{"--new-key", "ada", "--keys", path, "--rights", "nonsense"},
		{"--new-key", "ada", "--keys", path, "--days", "-1"},
		{"--keys", path, "--check"}, // there is no file yet
	} {
		if status, out, errs := run(t.Context(), mainServer(t, Options{}), nil, strings.NewReader(""), args...); status != 2 || out != "" || errs == "" {
			t.Errorf("%v: status %d, %s%s", args, status, out, errs)
		}
	}
	status, out, errs := run(t.Context(), mainServer(t, Options{}), nil, nil, "--new-key", "ada", "--keys", path, "--rights", "tickets:read, tickets:write", "--days", "30")
	if status != 0 || !strings.Contains(errs, "shown this once") {
		t.Fatalf("status %d: %s", status, errs)
	}
	key := strings.TrimSpace(out)
	id, err := apikey.ID(key)
	if err != nil {
		t.Fatalf("%q: %v", out, err)
	}
	f, err := OpenKeys(path)
	if err != nil {
		t.Fatal(err)
	}
	k, err := f.APIKey(t.Context(), id)
	if err != nil || len(k.Rights) != 2 || k.Expires.Sub(k.Created).Hours() != 30*24 {
		t.Errorf("%+v, %v", k, err)
	}
	s := mainServer(t, Options{})
	line := &CommandLine{keys: path, check: true, audit: "off"}
	if err := line.Run(t.Context(), s, strings.NewReader(""), io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	served := newServer(t, Options{HTTP: s.opts.HTTP})
	if w := get(t, served, "/mcp", "Bearer "+key); w.Code != 200 {
		t.Errorf("with the key: %d %s", w.Code, w.Body)
	}
	if w := get(t, served, "/mcp", ""); w.Code != 401 {
		t.Errorf("without: %d", w.Code)
	}
}
