package caller

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/identity/apikey"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

// TestStanding: what outlasts requests sees that its key was revoked, changed or expired.
func TestStanding(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.jsonl")
	key, r, err := apikey.NewRecord("laptop", []string{"tool:*"}, time.Hour)
	if err == nil {
		err = apikey.Add(path, r)
	}
	if err != nil {
		t.Fatal(err)
	}
	f, err := New(Config{KeysFile: path, APIKeys: []secret.Text{secret.New("s3cret")}})
	if err != nil {
		t.Fatal(err)
	}
	who, err := f.Recognise(request("Authorization", "Bearer "+key))
	if err != nil {
		t.Fatal(err)
	}
	now, mark, ok := f.Standing(who)
	if !ok || mark == "" || now.ID != who.ID || now.Name != "laptop" {
		t.Errorf("%+v %q %t", now, mark, ok)
	}
	fixed, err := f.Recognise(request("Authorization", "Bearer s3cret"))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, ok := f.Standing(fixed); !ok {
		t.Error("a key of the configuration does not stand")
	}
	for _, nobody := range []Caller{{}, Local, {ID: "key-none"}, {ID: "https://issuer#ada", Issuer: "https://issuer"}} {
		if _, _, ok := f.Standing(nobody); ok {
			t.Errorf("%+v stands", nobody)
		}
	}
	for _, change := range []func(*apikey.Record){
		func(r *apikey.Record) { r.Rights = []string{"model:*"} },
		func(r *apikey.Record) { other, _ := apikey.New(); r.Hash = apikey.Hash(other) },
		func(r *apikey.Record) { r.Expires = time.Now().Add(-time.Second).UTC() },
	} {
		if err := apikey.Change(path, func(all []apikey.Record) ([]apikey.Record, error) {
			change(&all[0])
			return all, nil
		}); err != nil {
			t.Fatal(err)
		}
		_, _ = f.Recognise(request("Authorization", "Bearer "+key[:len(key)-1])) // it looks at the file
		_, again, ok := f.Standing(who)
		if ok && again == mark {
			t.Error("a key that was changed stands as it was")
		}
		mark = again
	}
	if _, _, ok := f.Standing(who); ok {
		t.Error("a key that has expired stands")
	}
}
