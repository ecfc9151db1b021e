package caller

import (
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/identity/apikey"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

// TestRevokedWins: a key that is revoked is good nowhere, though a file or the
// configuration has it, and is refused as one that nobody knows; what runs for it ends.
// Others go on.
func TestRevokedWins(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.jsonl")
	filed, r, err := apikey.NewRecord("ann", []string{"tool:x"}, 0)
	if err == nil {
		err = apikey.Add(path, r)
	}
	const fixed, other = "a key of the configuration", "another key of the configuration"
	f, err2 := New(Config{KeysFile: path}, secret.New(fixed), secret.New(other))
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	revoked := map[string]bool{}
	f.Revoked = func(id string) bool { return revoked[strings.TrimPrefix(id, apikey.CallerPrefix)] }
	recognise := func(key string) (Caller, error) { return f.Recognise(request("Authorization", "Bearer "+key)) }
	_, unknown := recognise(other + "x")
	for _, key := range []string{filed, fixed} {
		who, err := recognise(key)
		if err != nil {
			t.Fatal(err)
		}
		ctx, leave := f.Stay(t.Context(), who)
		defer leave()
		id := strings.TrimPrefix(who.ID, apikey.CallerPrefix)
		revoked[id] = true
		f.Revoke(id)
		_, err = recognise(key)
		refusal, known := &Refusal{}, &Refusal{}
		if !errors.As(err, &refusal) || !errors.As(unknown, &known) || refusal.Status != http.StatusUnauthorized || refusal.Message != known.Message {
			t.Errorf("%s is revoked: %v, where an unknown one is %v", who.ID, err, unknown)
		}
		if key == filed && ctx.Err() == nil {
			t.Error("what runs for the key goes on")
		}
		if late, leave := f.Stay(t.Context(), who); key == filed && late.Err() == nil {
			leave()
			t.Error("a request that was recognised a moment before goes on")
		}
	}
	if _, err := recognise(other); err != nil {
		t.Error(err)
	}
}
