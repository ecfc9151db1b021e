package toolkit

import (
	"context"
	"errors"

	"github.com/dragoman-mcp/dragoman/internal/identity/apikey"
)

// A KeyFile holds API keys in a file, one JSON object in each line, in the form
// of [APIKey]; the gateway's "dragoman keys" makes the same files. It is read
// again when it changes, so a line that is deleted is a key that is revoked,
// without a restart. A file that cannot be read, has a line that cannot be, or
// that everybody on the machine may write, admits nobody.
type KeyFile struct{ file *apikey.File }

// OpenKeys reads a file of keys. The error names the line that is wrong.
func OpenKeys(path string) (*KeyFile, error) {
	file, err := apikey.Open(path)
	return &KeyFile{file}, err
}

// APIKey returns the key with that id, [ErrNoKey], or what is wrong with the
// file.
func (f *KeyFile) APIKey(_ context.Context, id string) (APIKey, error) {
	r, err := f.file.Get(id)
	if errors.Is(err, apikey.ErrUnknown) {
		err = ErrNoKey
	}
	return APIKey(r), err
}

// Add adds a key to the file.
func (f *KeyFile) Add(k APIKey) error { return apikey.Add(f.file.Path(), apikey.Record(k)) }
