package caller

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/identity/apikey"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

func request(header ...string) *http.Request {
	r, err := http.NewRequest("POST", "https://gateway.example/mcp", nil)
	if err != nil {
		panic(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	return r
}

// refused returns the refusal that an error is.
func refused(t *testing.T, err error) *Refusal {
	t.Helper()
	r, ok := errors.AsType[*Refusal](err)
	if !ok {
		t.Fatalf("%v is no refusal", err)
	}
	return r
}

func TestZeroCaller(t *testing.T) {
	var nobody Caller
	if nobody.Valid() || nobody.IsLocal() || nobody.May("tool:x") || (Caller{Grants: []string{"*"}}).May("tool:x") {
		t.Error("the zero caller is somebody")
	}
	if !Local.Valid() || !Local.IsLocal() || !Local.May("anything:at_all") {
		t.Error("the local caller is nobody")
	}
}

func TestMay(t *testing.T) {
	key := Caller{ID: "key-1", Grants: []string{"tool:github_*", "model:gpt-5"}}
	token := Caller{ID: "https://login.example#ada", Scopes: []string{"tool:github_search", "model:*", "*"}}
	for right, want := range map[string][2]bool{
		"tool:github_search": {true, true}, "tool:github_delete": {true, false}, "tool:git": {false, false},
		"model:gpt-5": {true, false}, "model:gpt-55": {false, false}, "route:/v1/files": {false, false},
	} {
		if got := [2]bool{key.May(right), token.May(right)}; got != want {
			t.Errorf("%s: %v, want %v", right, got, want)
		}
	}
}

// The ids of keys of the configuration are those that they always had: what is kept
// for a caller is kept under them.
func TestFixedKeys(t *testing.T) {
	f, err := New(Config{APIKeys: []secret.Text{secret.New("s3cret"), secret.New("other")}}, secret.Text{}, secret.New("third"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, value string
		want        int
	}{
		{"Authorization", "Bearer s3cret", 0},
		{"Authorization", "bearer  s3cret ", 0},
		{"Api-Key", "s3cret", 0},
		{"Authorization", "Bearer s3cre", 401},
		{"Authorization", "Basic s3cret", 401},
		{"Authorization", "Bearer ", 401},
		{"X-Other", "s3cret", 401},
	} {
		c, err := f.Recognise(request(tc.name, tc.value))
		if tc.want == 0 {
			if err != nil || c.ID != "key-0ac1e49b" || !c.May("tool:x") || !c.May("model:y") || !c.May("route:/v1/files") || c.May("approve:x") {
				t.Errorf("%s: %q: %+v, %v", tc.name, tc.value, c, err)
			}
			continue
		}
		if r := refused(t, err); r.Status != tc.want || r.Challenge != "Bearer" || c.Valid() {
			t.Errorf("%s: %q: %+v, %+v", tc.name, tc.value, c, r)
		}
	}
	for _, twice := range [][]string{
		{"Authorization", "Bearer s3cret", "Authorization", "Bearer other"},
		{"Api-Key", "other", "Api-Key", "s3cret"},
		{"Authorization", "Bearer s3cret", "Api-Key", "other"},
		{"Authorization", "Bearer nobody's", "Api-Key", "s3cret"},
	} {
		if _, err := f.Recognise(request(twice...)); refused(t, err).Status != 400 {
			t.Errorf("%v: %v", twice, err)
		}
	}
	for _, same := range [][]string{{"Authorization", "Bearer s3cret", "Api-Key", "s3cret"}, {"Authorization", "Basic eA==", "Api-Key", "s3cret"}} {
		if c, err := f.Recognise(request(same...)); err != nil || !c.Valid() {
			t.Errorf("%v: %v", same, err)
		}
	}
	ids := map[string]bool{}
	for _, key := range []string{"s3cret", "other", "third"} {
		c, err := f.Recognise(request("Api-Key", key))
		if err != nil {
			t.Fatal(err)
		}
		ids[c.ID] = true
	}
	if len(ids) != 3 {
		t.Errorf("ids %v", ids)
	}
	open, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	if c, err := open.Recognise(request("Authorization", "Bearer x")); err != nil || !c.IsLocal() {
		t.Errorf("without keys: %v, %v", c, err)
	}
}

func TestFiledKeys(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.jsonl")
	if _, err := New(Config{KeysFile: path}); err == nil || !strings.Contains(err.Error(), "auth.keys_file") || !strings.Contains(err.Error(), "dragoman keys new makes it") {
		t.Errorf("no file: %v", err)
	}
	add := func(life time.Duration, rights ...string) (string, apikey.Record) {
		t.Helper()
		key, r, err := apikey.NewRecord("laptop", rights, life)
		if err == nil {
			err = apikey.Add(path, r)
		}
		if err != nil {
			t.Fatal(err)
		}
		return key, r
	}
	key, r := add(time.Hour, "tool:github_*")
	f, err := New(Config{KeysFile: path})
	if err != nil {
		t.Fatal(err)
	}
	show := func(key string) (Caller, error) { return f.Recognise(request("Authorization", "Bearer "+key)) }
	c, err := show(key)
	if err != nil || c.ID != "key-"+r.ID || c.Name != "laptop" || !c.Expires.Equal(r.Expires) || !c.May("tool:github_search") || c.May("model:x") {
		t.Errorf("%+v, %v", c, err)
	}
	// A key that is made while the gateway runs, and one that has expired.
	later, _ := add(0)
	if c, err := show(later); err != nil || !c.Expires.IsZero() {
		t.Errorf("%+v, %v", c, err)
	}
	expired, old := add(time.Hour)
	change := func(change func([]apikey.Record) []apikey.Record) {
		t.Helper()
		if err := apikey.Change(path, func(all []apikey.Record) ([]apikey.Record, error) { return change(all), nil }); err != nil {
			t.Fatal(err)
		}
	}
	change(func(all []apikey.Record) []apikey.Record {
		for i := range all {
			if all[i].ID == old.ID {
				all[i].Expires = time.Now().Add(-time.Second)
			}
		}
		return all
	})
	other, _ := apikey.New()
	for _, bad := range []string{expired, other, key[:len(key)-1], key + "a", key[:20] + later[20:], "dgm_", "nothing", r.Hash} {
		if _, err := show(bad); refused(t, err).Status != 401 || strings.Contains(refused(t, err).Message, bad) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	// Revoked, and the last one gone: the file still asks everybody.
	change(func([]apikey.Record) []apikey.Record { return nil })
	if _, err := show(key); refused(t, err).Status != 401 || !f.Required() {
		t.Errorf("revoked: %v", err)
	}
	// Our trouble is no fault of the key.
	if err := os.WriteFile(path, []byte("nonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := show(key); refused(t, err).Status != 503 || strings.Contains(refused(t, err).Message, path) || refused(t, err).Challenge != "" {
		t.Errorf("a file that cannot be read: %+v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := show(key); refused(t, err).Status != 503 || !f.Required() {
		t.Errorf("a file that is gone: %v", err)
	}
}

// A file of keys that comes to be while the gateway runs lets nobody in without a key.
// Its keys are good at once, and what runs for those without one is ended.
func TestAwaitedKeys(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.jsonl")
	open, err := New(Config{Awaited: path})
	if err != nil {
		t.Fatal(err)
	}
	asking, err := New(Config{APIKeys: []secret.Text{secret.New("s3cret")}, Awaited: path})
	if err != nil {
		t.Fatal(err)
	}
	guarded := 0
	open.Guarded = func() { guarded++ }
	if c, err := open.Recognise(request()); err != nil || !c.IsLocal() {
		t.Errorf("before there is a file: %v, %v", c, err)
	}
	key, r, err := apikey.NewRecord("laptop", []string{"tool:*"}, 0)
	if err == nil {
		err = apikey.Add(path, r)
	}
	if err != nil {
		t.Fatal(err)
	}
	runs, leave := open.Stay(t.Context(), Local)
	defer leave()
	if _, err := open.Recognise(request()); refused(t, err).Status != 401 || guarded != 1 || !open.Required() {
		t.Errorf("without a key: %v, guarded %d times", err, guarded)
	}
	if !errors.Is(context.Cause(runs), ErrEnded) {
		t.Errorf("what ran without a key: %v", context.Cause(runs))
	}
	if c, err := open.Recognise(request("Authorization", "Bearer "+key)); err != nil || c.ID != "key-"+r.ID {
		t.Errorf("the first key: %v, %v", c, err)
	}
	for shown, id := range map[string]string{key: "key-" + r.ID, "s3cret": "key-0ac1e49b"} {
		if c, err := asking.Recognise(request("Authorization", "Bearer "+shown)); err != nil || c.ID != id {
			t.Errorf("%s: %v, %v", shown, c, err)
		}
	}
	// That the file goes away opens nothing.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := open.Recognise(request()); refused(t, err).Status != 401 {
		t.Errorf("without the file: %v", err)
	}
	if _, err := asking.Recognise(request("Authorization", "Bearer "+key)); refused(t, err).Status != 503 {
		t.Errorf("without the file: %v", err)
	}
}

func TestCheckKey(t *testing.T) {
	for key, fine := range map[string]bool{
		"": false, "a": false, "0123456789abcde": false, "aaaaaaaaaaaaaaaaaaaaaaaa": false, "abcabcabcabcabcabc": false,
		"0123456789abcdef": false, "sk-1234567890abcdefghij": false, "Change-Me-please-42": false, "YOUR_API_KEY_goes-in-here": false, "my super secret key 7": false,
		"correct horse battery": true, "s3cr3t-q8Zk2mVb71": true, "pass the word on 99": true,
	} {
		if err := CheckKey(key); (err == nil) != fine {
			t.Errorf("CheckKey(%q) = %v", key, err)
		}
	}
}

// What comes from tokens cannot add parameters to a challenge.
func TestChallenge(t *testing.T) {
	got := challenge{}.with("error", "invalid_token").with("scope", "").with("error_description", "a\"b\\c\r\nX: y\u00e9").String()
	if want := `Bearer error="invalid_token", error_description="abcX: y"`; got != want {
		t.Errorf("got %s", got)
	}
}
