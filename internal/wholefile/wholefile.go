// Package wholefile replaces files whole: whoever reads one sees what was there
// before or what is there after, and nothing in between, also when the machine stops
// in the middle. Whoever has read one finds out here whether it has to be read again.
package wholefile

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Replace puts a file in place of another one, or of none. Only its owner can read
// it. A link to a file stays one.
func Replace(path string, data []byte) error { return replace(path, data, false) }

// ReplaceShared is [Replace] for a file that is no secret: it keeps the mode of the one
// before, and a new one can be read by whoever can read other files of this process.
func ReplaceShared(path string, data []byte) error { return replace(path, data, true) }

func replace(path string, data []byte, shared bool) (err error) {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	mode := fs.FileMode(0o600)
	if shared {
		mode = 0o666 // of which the system takes what this process keeps to itself
	}
	temporary, err := os.OpenFile(filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"-"+rand.Text()), os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(temporary.Name())
		}
	}()
	if was, statErr := os.Stat(path); shared && statErr == nil {
		err = temporary.Chmod(was.Mode().Perm())
	}
	_, writeErr := temporary.Write(data)
	if err = errors.Join(err, writeErr, temporary.Sync(), temporary.Close()); err != nil {
		return err
	}
	return os.Rename(temporary.Name(), path)
}

// Unchanged reports whether a file is, as far as its entry tells, what it was when it
// was read: the same one, of the same size, time and mode. Was is nil where it was not
// read.
func Unchanged(was, now fs.FileInfo) bool {
	return was != nil && os.SameFile(was, now) && was.Size() == now.Size() &&
		was.ModTime().Equal(now.ModTime()) && was.Mode() == now.Mode()
}

// patience is how long Lock waits for somebody else.
const patience = 10 * time.Second

// Lock waits until nobody else, in this process or another one, has the lock of a
// file, and takes it until unlock is called. It is a file beside it; one that a
// process left behind when it was killed has to be deleted by hand, which the error
// says.
func Lock(path string) (unlock func(), err error) {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	path += ".lock"
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		switch {
		case err == nil:
			file.Close()
			return func() { os.Remove(path) }, nil
		case !errors.Is(err, fs.ErrExist):
			return nil, err
		case time.Since(began) > patience:
			return nil, fmt.Errorf("another program is changing the file; if none is, delete %s", path)
		}
	}
}
