package caller

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/identity/accesstoken/issuertest"
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

// TestStandingOfTokens: what began with an access token ends where the configuration gives
// such tokens other rights, as requests do that run.
func TestStandingOfTokens(t *testing.T) {
	i := issuertest.Serve(t)
	f := authorized(t, i, nil)
	who, err := f.Recognise(at("/mcp", i.Token(i.Good(endpoint, issuertest.Claims{"scope": "mcp:read"}))))
	if err != nil {
		t.Fatal(err)
	}
	if now, _, ok := f.Standing(who); !ok || now.ID != who.ID {
		t.Errorf("%+v %t", now, ok)
	}
	for name, change := range map[string]func(*Issuer){
		"fewer rights":          func(i *Issuer) { i.Grants = nil },
		"more rights":           func(i *Issuer) { i.Grants = append(slices.Clip(i.Grants), "route:*") },
		"another scope":         func(i *Issuer) { i.Scopes = i.Scopes[1:] },
		"a scope that it lacks": func(i *Issuer) { i.Required = []string{"mcp:write"} },
	} {
		config := f.now.Load().config
		config.OAuth = slices.Clone(config.OAuth)
		change(&config.OAuth[0])
		changed, err := New(config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(changed.Close)
		if _, _, ok := changed.Standing(who); ok {
			t.Errorf("%s: it stands", name)
		}
	}
}
