package caller

import (
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"sync/atomic"

	"github.com/dragoman-mcp/dragoman/internal/identity/apikey"
	"github.com/dragoman-mcp/dragoman/internal/state/watchedfile"
)

// Accepted is what a configuration accepts from callers: a value that is judged before it
// counts ([Authenticator.Use]), and then replaced by another one.
type Accepted struct {
	config Config
	fixed  fixed
	place  *place // of the file of keys; nil where none can be
	oauth  *oauth // nil without authorization servers
}

// A place is where a file of keys is, or may come to be.
type place struct {
	file *apikey.File
	sure atomic.Bool // the configuration names it, or it was seen
}

// Judge returns what a configuration accepts, and changes nothing. What is as it was
// before goes on: the file of keys as it was read, the keys of authorization servers.
func (f *Authenticator) Judge(c Config) (*Accepted, error) {
	before := f.now.Load()
	if before == nil {
		before = &Accepted{}
	}
	a := &Accepted{config: c, fixed: newFixed(append(slices.Clip(f.keys), c.APIKeys...)), oauth: before.oauth}
	var err error
	if a.place, err = placeOf(c, before.place); err != nil {
		return nil, fmt.Errorf("auth.keys_file: %w%s", err, advice(err))
	}
	if c.PublicURL != before.config.PublicURL || !reflect.DeepEqual(c.OAuth, before.config.OAuth) {
		if a.oauth, err = newOAuth(c); err != nil {
			return nil, fmt.Errorf("auth.oauth: %w", err)
		}
	}
	return a, nil
}

// placeOf returns where the file of keys is: the place before it where that is the same.
func placeOf(c Config, before *place) (*place, error) {
	path := c.KeysFile
	if path == "" {
		path = c.Awaited
	}
	switch {
	case path == "":
		return nil, nil
	case before != nil && before.file.Path() == path:
		return before, nil // what is wrong with it, it says when it is asked
	}
	p := &place{file: apikey.Await(path)}
	if c.KeysFile == "" {
		return p, nil
	}
	p.sure.Store(true)
	_, err := p.file.Keys()
	return p, err
}

// advice is what can be done about a file of keys that cannot be opened.
func advice(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "; dragoman keys new makes it"
	case errors.Is(err, fs.ErrPermission):
		return "; let the user read it whom the gateway runs as: it holds hashes alone"
	}
	return ""
}

// asks reports whether there is anything that callers could show.
func (a *Accepted) asks() bool {
	return len(a.fixed.callers) > 0 || a.oauth != nil || a.place != nil && a.place.sure.Load()
}

// Use makes this what is accepted. What runs for those who could not come any more as
// they came is ended.
func (f *Authenticator) Use(a *Accepted) {
	if a.config.KeysFile != "" && a.place != nil {
		a.place.sure.Store(true)
	}
	before := f.now.Swap(a)
	if a.asks() {
		f.guard()
	}
	if before.oauth != a.oauth {
		before.oauth.close()
	}
	for _, who := range f.present.unlike(before, a) {
		f.end(who)
	}
	f.look()
}

// guard has all callers asked from now on.
func (f *Authenticator) guard() {
	if !f.asks.CompareAndSwap(false, true) {
		return
	}
	if f.Guarded != nil {
		f.Guarded()
	}
	f.end(Local.ID)
}

// file returns the file of keys; nil for none. One that was awaited stays one though
// it goes away again, as one that was there from the start does.
func (f *Authenticator) file(now *Accepted) *apikey.File {
	p := now.place
	if p == nil {
		return nil
	}
	if !p.sure.Load() {
		if _, err := p.file.Keys(); errors.Is(err, fs.ErrNotExist) || errors.Is(err, watchedfile.ErrHung) {
			return nil
		}
		p.sure.Store(true) // what is wrong with it, it says when it is asked
		f.guard()
	}
	return p.file
}
