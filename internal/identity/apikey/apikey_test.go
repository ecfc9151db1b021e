package apikey_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/identity/apikey"
)

func TestNew(t *testing.T) {
	shape := regexp.MustCompile(`^dgm_[a-z2-7]{13}_[a-z2-7]{59}$`)
	seen := map[string]bool{}
	for range 100 {
		key, id := apikey.New()
		if !shape.MatchString(key) || len(key) != apikey.Length || seen[key] || seen[id] {
			t.Fatalf("key %q", key)
		}
		seen[key], seen[id] = true, true
		if got, err := apikey.ID(key); err != nil || got != id {
			t.Errorf("ID(%q) = %q, %v, want %q", key, got, err, id)
		}
		hash := apikey.Hash(key)
		if !apikey.Matches(key, hash) || strings.Contains(hash, key[18:30]) {
			t.Errorf("hash %q", hash)
		}
	}
}

func TestOneWrongLetter(t *testing.T) {
	key, _ := apikey.New()
	hash := apikey.Hash(key)
	for i := range len(key) {
		wrong := []byte(key)
		wrong[i] ^= 1
		if _, err := apikey.ID(string(wrong)); err == nil {
			t.Errorf("letter %d: no error", i)
		}
		if apikey.Matches(string(wrong), hash) {
			t.Errorf("letter %d: matches", i)
		}
	}
}

func TestMistakes(t *testing.T) {
	key, _ := apikey.New()
	for text, want := range map[string]error{
		"": apikey.ErrFormat, "sk-1234": apikey.ErrFormat, "DGM_" + key[4:]: apikey.ErrFormat,
		"dgm_": apikey.ErrChecksum, key[:76]: apikey.ErrChecksum, key + "a": apikey.ErrChecksum, strings.ToUpper(key[:40]) + key[40:]: apikey.ErrFormat,
		"dgm_" + strings.Repeat("1", 13) + "_" + strings.Repeat("a", 59): apikey.ErrChecksum,
	} {
		if _, err := apikey.ID(text); !errors.Is(err, want) {
			t.Errorf("ID(%q): %v, want %v", text, err, want)
		}
	}
	for _, hash := range []string{"", key, "sha256:", apikey.Hash(key)[:70], strings.ToUpper(apikey.Hash(key)), apikey.Hash(key) + " "} {
		if apikey.Matches(key, hash) {
			t.Errorf("matches %q", hash)
		}
	}
}

func FuzzID(f *testing.F) {
	key, _ := apikey.New()
	f.Add(key)
	f.Add("dgm_q_")
	f.Fuzz(func(t *testing.T, text string) {
		id, err := apikey.ID(text)
		if err == nil && (len(text) != apikey.Length || !strings.HasPrefix(text, "dgm_"+id+"_")) {
			t.Errorf("%q has id %q", text, id)
		}
	})
}

// What could be the id of a key is whole.
func TestCouldBeID(t *testing.T) {
	_, id := apikey.New()
	for text, want := range map[string]bool{
		id: true, "0ac1e49b": true,
		id[1:]: false, id + "a": false, "0ac1e49": false, "0AC1E49B": false, "0ac1e49g": false, "": false, "ada": false,
	} {
		if apikey.CouldBeID(text) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}
