package gateway

import (
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/state/keeping"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
	"github.com/dragoman-mcp/dragoman/openai/memory"
)

// TestQuotaExceeded: who has stored all that may be stored is refused a response that
// would be stored, in words, and gets one that would not.
func TestQuotaExceeded(t *testing.T) {
	file := config.Default()
	file.Listen, file.Store.Path = "127.0.0.1:0", filepath.Join(t.TempDir(), "dragoman.db")
	file.Store.Quota.Owner = 1000
	g, err := New(file, Options{Lookup: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if err := g.ledger.DB.Write(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec("INSERT INTO turns (owner, id, content, size, expires) VALUES ($1, 'x', $2, 1000, $3)", store.Owner("local\x00\"ann\"\x00\"\"\x00\"\"\x00"), []byte{1}, store.Time(time.Now().Add(time.Hour)))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if err := g.keeper.Count(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := serve(t, g)
	for body, want := range map[string]string{
		`{"model":"m","input":"hello","user":"ann"}`:               "quota_exceeded",
		`{"model":"m","input":"hello","user":"ann","store":true}`:  "quota_exceeded",
		`{"model":"m","input":"hello","user":"ann","store":false}`: `"completed"`,
		`{"model":"m","input":"hello","user":"bob"}`:               `"completed"`,
	} {
		answer, err := http.Post(s.url+"/v1/responses", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		if !strings.Contains(string(text), want) || (answer.StatusCode == http.StatusTooManyRequests) != (want == "quota_exceeded") {
			t.Errorf("%s: %d %s", body, answer.StatusCode, text)
		}
	}
}

// TestErasedIsForgotten: once somebody is erased, by whichever process, a gateway that runs
// has nothing of them in memory either.
func TestErasedIsForgotten(t *testing.T) {
	file := config.Default()
	file.Store.Path = filepath.Join(t.TempDir(), "dragoman.db")
	g, err := New(file, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	for _, owner := range []string{"key-1", "key-2"} {
		if err := g.remembered.Keep(t.Context(), owner, []string{"k"}, &memory.Turn{Text: "hidden"}); err != nil {
			t.Fatal(err)
		}
	}
	other, err := store.Open(t.Context(), file.Store)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := keeping.Erase(t.Context(), other, keeping.Whose{Caller: "key-1"}); err != nil {
		t.Fatal(err)
	}
	for start := time.Now(); ; <-time.After(20 * time.Millisecond) {
		found, err := g.remembered.Find(t.Context(), "key-1", []string{"k"})
		if err != nil {
			t.Fatal(err)
		}
		if len(found) == 0 {
			break
		}
		if time.Since(start) > 30*time.Second {
			t.Fatal("it remembers still")
		}
	}
	if found, err := g.remembered.Find(t.Context(), "key-2", []string{"k"}); err != nil || len(found) != 1 {
		t.Errorf("of others: %v, %v", found, err)
	}
}
