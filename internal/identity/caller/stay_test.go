package caller

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/identity/accesstoken"
	"github.com/dragoman-mcp/dragoman/internal/identity/apikey"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

// A request of a key that is not good any more ends, whatever became of the key, and
// all others go on.
// lookEach is how often the file of keys is looked at.
const lookEach = time.Second

func TestStay(t *testing.T) {
	for name, change := range map[string]func(*apikey.Record) bool{
		"revoked":       func(*apikey.Record) bool { return false },
		"other rights":  func(r *apikey.Record) bool { r.Rights = []string{"tool:*"}; return true },
		"another name":  func(r *apikey.Record) bool { r.Name = "x"; return true },
		"shorter":       func(r *apikey.Record) bool { r.Expires = time.Now().Add(time.Minute); return true },
		"another key":   func(r *apikey.Record) bool { r.Hash = apikey.Hash("x"); return true },
		"time goes by":  nil,
		"shown another": func(r *apikey.Record) bool { r.Rights = []string{"tool:y"}; return true },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "keys.jsonl")
				key, r, err := apikey.NewRecord("ann", []string{"tool:x"}, time.Hour)
				if err == nil {
					err = apikey.Add(path, r)
				}
				other, o, err2 := apikey.NewRecord("bob", []string{"tool:x"}, 0)
				if err2 == nil {
					err2 = apikey.Add(path, o)
				}
				const fixed = "a key of the configuration"
				f, err3 := New(Config{KeysFile: path}, secret.New(fixed))
				if err := errors.Join(err, err2, err3); err != nil {
					t.Fatal(err)
				}
				var ended []string
				f.Ended = func(caller string) { ended = append(ended, caller) }
				ctx, stop := context.WithCancel(t.Context())
				defer synctest.Wait()
				defer stop()
				go f.Watch(ctx)
				stay := func(key string) (context.Context, func()) {
					who, err := f.Recognise(request("Authorization", "Bearer "+key))
					if err != nil {
						t.Fatal(err)
					}
					return f.Stay(ctx, who)
				}
				mine, leave := stay(key)
				defer leave()
				over, leave := stay(key)
				leave()
				bobs, leave := stay(other)
				defer leave()
				firm, leave := stay(fixed)
				defer leave()
				time.Sleep(3 * lookEach)
				if mine.Err() != nil || !errors.Is(context.Cause(over), context.Canceled) {
					t.Fatalf("before anything happens: %v, %v", mine.Err(), context.Cause(over))
				}
				if change != nil {
					if err := apikey.Change(path, func(all []apikey.Record) ([]apikey.Record, error) {
						if !change(&all[0]) {
							all = all[1:]
						}
						return all, nil
					}); err != nil {
						t.Fatal(err)
					}
				}
				switch name {
				case "time goes by":
					time.Sleep(time.Hour)
				case "shown another":
					time.Sleep(2 * lookEach)
					again, leave := stay(key)
					defer leave()
					if again.Err() != nil {
						t.Error("the key as it is now is not good")
					}
				}
				if name != "shown another" {
					time.Sleep(2 * lookEach)
				}
				synctest.Wait()
				if !errors.Is(context.Cause(mine), ErrEnded) || !slices.Equal(ended, []string{"key-" + r.ID}) {
					t.Errorf("the request is %v, and ended are %v", context.Cause(mine), ended)
				}
				if bobs.Err() != nil || firm.Err() != nil {
					t.Errorf("those of others: %v, %v", bobs.Err(), firm.Err())
				}
				if len(f.present.all) > 3 || len(f.present.all["key-"+o.ID].running) != 1 {
					t.Errorf("what is kept: %+v", f.present.all)
				}
			})
		})
	}
}

// Who was recognised just before the key was changed does not get in between.
func TestStayTooLate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.jsonl")
	key, r, err := apikey.NewRecord("ann", []string{"tool:*"}, 0)
	if err == nil {
		err = apikey.Add(path, r)
	}
	if err != nil {
		t.Fatal(err)
	}
	f, err := New(Config{KeysFile: path})
	if err != nil {
		t.Fatal(err)
	}
	show := func() Caller {
		who, err := f.Recognise(request("Authorization", "Bearer "+key))
		if err != nil {
			t.Fatal(err)
		}
		return who
	}
	before := show()
	if err := apikey.Change(path, func(all []apikey.Record) ([]apikey.Record, error) {
		all[0].Rights = []string{"tool:x"}
		return all, nil
	}); err != nil {
		t.Fatal(err)
	}
	f.look()
	for _, again := range []bool{false, true} {
		if again {
			show()
		}
		ctx, leave := f.Stay(t.Context(), before)
		if leave(); !errors.Is(context.Cause(ctx), ErrEnded) {
			t.Errorf("shown again: %t: it goes on", again)
		}
	}
	// A file that cannot be read puts nobody out.
	ctx, leave := f.Stay(t.Context(), show())
	defer leave()
	f.now.Load().place.file = broken(t)
	if f.look(); ctx.Err() != nil {
		t.Error("ended by our own trouble")
	}
}

// broken is a file of keys that is gone.
func broken(t *testing.T) *apikey.File {
	t.Helper()
	file, err := apikey.Open(filepath.Join(t.TempDir(), "none"))
	if err == nil {
		t.Fatal("a file that is not there is opened")
	}
	return file
}

func TestUntil(t *testing.T) {
	at := time.Now().Add(time.Hour)
	for _, tt := range []struct {
		who  Caller
		want time.Time
	}{
		{Caller{ID: "key-x"}, time.Time{}},
		{Caller{ID: "key-x", Expires: at}, at},
		{Caller{ID: "https://i#x", Issuer: "https://i", Expires: at}, at.Add(accesstoken.Leeway)},
	} {
		ctx, cancel := tt.who.Until(t.Context())
		defer cancel()
		if got, ok := ctx.Deadline(); !got.Equal(tt.want) || ok == tt.want.IsZero() {
			t.Errorf("%+v: %s", tt.who, got)
		}
	}
}
