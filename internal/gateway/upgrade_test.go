package gateway

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/identity/apikey"
	"github.com/dragoman-mcp/dragoman/internal/judge/approval"
	"github.com/dragoman-mcp/dragoman/internal/judge/audit"
	"github.com/dragoman-mcp/dragoman/internal/judge/pinning"
	"github.com/dragoman-mcp/dragoman/internal/reach/credential"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// previous returns a folder with the files that a gateway of commit 3158d39 wrote: a store
// with its master key, a file of keys, one of logins, and one of pins.
func previous(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	files, err := filepath.Glob("testdata/previous/*")
	if err != nil || len(files) != 6 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, name := range files {
		file, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		var from io.Reader = file
		if strings.HasSuffix(name, ".gz") {
			if from, err = gzip.NewReader(file); err != nil {
				t.Fatal(err)
			}
		}
		data, err := io.ReadAll(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, strings.TrimSuffix(filepath.Base(name), ".gz")), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// upgraded is a gateway on the files of the one before.
func upgraded(t *testing.T, dir string) *Gateway {
	t.Helper()
	file := config.Default()
	file.Store.Path, file.Audit.Retention = filepath.Join(dir, "dragoman.db"), 0
	file.Auth.KeysFile, file.Pins.Lock = filepath.Join(dir, "keys.jsonl"), filepath.Join(dir, "dragoman.lock")
	g, err := New(file, Options{Lookup: func(string) (string, bool) { return "", false }, Credentials: &credential.File{Path: filepath.Join(dir, "logins.json")}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return g
}

// TestUpgrade: what the version before wrote opens: the chain of the audit log is whole,
// and approvals, pins, encrypted content, callers' keys and logins are there.
func TestUpgrade(t *testing.T) {
	dir := previous(t)
	g := upgraded(t, dir)
	head, err := audit.ParseHead("18:ae7718094e2bfabe9cf11b92a8e11929faac5ffcb03b1b4d68311ca267ebde10")
	if err != nil {
		t.Fatal(err)
	}
	if check, err := g.ledger.Audit.Verify(t.Context(), head); err != nil || check.Records < 18 {
		t.Errorf("the audit log: %+v, %v", check, err)
	}
	states := map[approval.State]int{}
	asked, err := g.ledger.Inbox.List(t.Context(), approval.Filter{})
	for _, a := range asked {
		states[a.State]++
	}
	if err != nil || states[approval.Used] != 1 || states[approval.Pending] != 1 || !strings.Contains(string(asked[0].Arguments), "notes.txt") {
		t.Errorf("approvals: %+v, %v", asked, err)
	}
	pins, err := g.ledger.Book.List(t.Context(), "notes")
	if err != nil || len(pins) != 9 || pins[0].State != pinning.Standing {
		t.Errorf("pins: %+v, %v", pins, err)
	}
	if err := g.ledger.DB.Read(t.Context(), func(tx *store.Tx) error {
		var owner, id string
		var content []byte
		if err := tx.Row("SELECT owner, id, content FROM turns LIMIT 1", nil, &owner, &id, &content); err != nil {
			return err
		}
		plain, err := g.vault.Open(tx, owner, "turn "+id, content)
		if !strings.Contains(string(plain), "get_weather") {
			t.Errorf("what was remembered: %s", plain)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
	if keys, err := apikey.Read(filepath.Join(dir, "keys.jsonl")); err != nil || len(keys) != 1 || keys[0].User != "laptop" {
		t.Errorf("keys: %+v, %v", keys, err)
	}
	theirs := credential.Account{Server: "https://mcp.example/mcp", Caller: "key-1"}
	for name, logins := range map[string]credential.Store{"the file": &credential.File{Path: filepath.Join(dir, "logins.json")}, "the store": g.credentials()} {
		if entry, err := logins.Get(theirs); err != nil || entry.Refresh.Reveal() != "refresh of key-1" {
			t.Errorf("logins in %s: %+v, %v", name, entry, err)
		}
	}
}

// TestDowngrade: the version before goes on with the tables as they are now. What it asks
// is the highest version in its table migrations, and in schema_steps the least that one
// has to know: 8 is what it knows.
func TestDowngrade(t *testing.T) {
	g := upgraded(t, previous(t))
	if err := g.ledger.DB.Read(t.Context(), func(tx *store.Tx) error {
		var highest, least int
		err := tx.Row("SELECT (SELECT max(version) FROM migrations), (SELECT max(compatible_from) FROM schema_steps)", nil, &highest, &least)
		if highest > 8 || least > 8 {
			t.Errorf("it finds %d and %d", highest, least)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}
