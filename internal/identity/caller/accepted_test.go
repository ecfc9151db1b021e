package caller

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

// use has a configuration count in place of the one before.
func use(t *testing.T, f *Authenticator, c Config) {
	t.Helper()
	a, err := f.Judge(c)
	if err != nil {
		t.Fatal(err)
	}
	f.Use(a)
}

// What is not accepted any more ends what runs by it, and nothing else does.
func TestUse(t *testing.T) {
	const one, other = "the one key of a file", "the other key, of it"
	text := func(keys ...string) (all []secret.Text) {
		for _, key := range keys {
			all = append(all, secret.New(key))
		}
		return all
	}
	path := filepath.Join(t.TempDir(), "keys.jsonl")
	filed := newKey(t, path)
	f, err := New(Config{APIKeys: text(one, other), KeysFile: path})
	if err != nil {
		t.Fatal(err)
	}
	var ended []string
	f.Ended = func(who string) { ended = append(ended, who) }
	stay := func(key string) (string, context.Context) {
		t.Helper()
		who, err := f.Recognise(request("Authorization", "Bearer "+key))
		if err != nil {
			t.Fatal(err)
		}
		ctx, leave := f.Stay(t.Context(), who)
		t.Cleanup(leave)
		return who.ID, ctx
	}
	_, ofOne := stay(one)
	otherID, ofOther := stay(other)
	filedID, ofFiled := stay(filed)

	use(t, f, Config{APIKeys: text(one), KeysFile: path})
	if ofOne.Err() != nil || ofFiled.Err() != nil || !errors.Is(context.Cause(ofOther), ErrEnded) || !slices.Equal(ended, []string{otherID}) {
		t.Errorf("without the other key: %v, %v, %v; ended are %v", ofOne.Err(), ofFiled.Err(), ofOther.Err(), ended)
	}
	use(t, f, Config{APIKeys: text(one)})
	if ofOne.Err() != nil || !errors.Is(context.Cause(ofFiled), ErrEnded) || !slices.Equal(ended, []string{otherID, filedID}) {
		t.Errorf("without the file: %v, %v; ended are %v", ofOne.Err(), ofFiled.Err(), ended)
	}
	if _, err := f.Recognise(request("Authorization", "Bearer "+filed)); refused(t, err).Status != 401 {
		t.Errorf("a key of a file that counts no more: %v", err)
	}
	use(t, f, Config{})
	if !errors.Is(context.Cause(ofOne), ErrEnded) || !f.Required() {
		t.Errorf("without any key: %v", ofOne.Err())
	}
	if _, err := f.Recognise(request()); refused(t, err).Status != 401 {
		t.Errorf("the last key went, and that opened: %v", err)
	}
	if len(f.present.all) != 0 {
		t.Errorf("what is kept: %v", f.present.all)
	}
}

// The first key guards at once, and what ran without one is ended.
func TestUseFirstKey(t *testing.T) {
	f, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, leave := f.Stay(t.Context(), Local)
	defer leave()
	use(t, f, Config{APIKeys: []secret.Text{secret.New("a first key of them")}})
	if !errors.Is(context.Cause(ctx), ErrEnded) {
		t.Errorf("what ran without a key: %v", context.Cause(ctx))
	}
	if _, err := f.Recognise(request()); refused(t, err).Status != 401 {
		t.Errorf("without a key: %v", err)
	}
	late, leave := f.Stay(t.Context(), Local)
	if leave(); !errors.Is(context.Cause(late), ErrEnded) {
		t.Errorf("who was recognised just before: %v", context.Cause(late))
	}
}
