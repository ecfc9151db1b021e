// Package atomicfile replaces files whole: whoever reads one sees what was there
// before or what is there after, and nothing in between, also when the machine stops
// in the middle. Whoever has read one finds out here whether it has to be read again.
package atomicfile

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/rogpeppe/go-internal/lockedfile"
)

// Replace puts a file in place of another one, or of none. Only its owner can read
// it. A link to a file stays one.
func Replace(path string, data []byte) error {
	return replace(path, data, 0o600, func(*os.File, string) error { return nil })
}

// Update is [Replace] for a file that others may read: where there was one, its mode
// stays, and its owner and group where we may give files away.
func Update(path string, data []byte) error { return replace(path, data, 0o600, like) }

// Share is [Update] for a file that is no secret: a new one can be read by whoever can
// read other files of this process.
func Share(path string, data []byte) error { return replace(path, data, 0o666, like) }

// Place is [Replace] for a file that belongs to whoever has the folder, whoever makes it:
// root makes it for a service that runs as another user.
func Place(path string, data []byte) error {
	return replace(path, data, 0o600, func(file *os.File, _ string) error {
		GiveToFolder(file)
		return nil
	})
}

// GiveToFolder gives a new file to the owner of its folder, where we may and can still
// open it then. The file must not be open elsewhere in this process, for its locks.
func GiveToFolder(file *os.File) {
	was, err := file.Stat()
	if err != nil {
		return
	}
	folder, err := os.Stat(filepath.Dir(file.Name()))
	if err != nil {
		return
	}
	give(file, folder)
	again, err := os.OpenFile(file.Name(), os.O_RDWR|noFollow, 0)
	if err != nil {
		give(file, was)
		return
	}
	again.Close()
}

// like makes a file like the one at a path, if there is one.
func like(file *os.File, path string) error {
	was, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	give(file, was)
	return file.Chmod(was.Mode().Perm())
}

// replace is Replace. The system takes from the mode of a new file what this process
// keeps to itself; adapt makes it like the one at the path.
func replace(path string, data []byte, mode fs.FileMode, adapt func(file *os.File, path string) error) (err error) {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
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
	_, err = temporary.Write(data)
	if err = errors.Join(err, adapt(temporary, path), temporary.Sync(), temporary.Close()); err != nil {
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

// patience is how long Lock waits for somebody else: a change takes milliseconds.
const patience = 10 * time.Second

// Lock waits until nobody else, in this process or another one, has the lock of a
// file, and takes it until unlock is called. It stands at a file beside it, which
// stays; the system takes the lock back when the process that has it ends, however
// it does. Whoever may replace the file may lock it: the lock belongs to the owner of
// the folder.
func Lock(path string) (unlock func(), err error) { return lock(path, patience) }

func lock(path string, patience time.Duration) (unlock func(), err error) {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	path += ".lock"
	type opened struct {
		file *lockedfile.File
		err  error
	}
	got := make(chan opened)
	gone := make(chan struct{})
	defer close(gone)
	go func() {
		file, err := openLock(path)
		select {
		case got <- opened{file, err}:
		case <-gone:
			if err == nil {
				file.Close() // too late
			}
		}
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case o := <-got:
		if o.err != nil {
			return nil, o.err
		}
		return func() { o.file.Close() }, nil
	case <-timer.C:
		return nil, fmt.Errorf("another program has had the lock of the file for %v: %s", patience, path)
	}
}

// openLock waits for the lock, and makes its file where there is none. A link in its
// place is not followed: the folder may be somebody else's than ours.
func openLock(path string) (*lockedfile.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	switch {
	case err == nil:
		GiveToFolder(file)
		file.Close()
	case !errors.Is(err, fs.ErrExist):
		return nil, err
	}
	return lockedfile.OpenFile(path, os.O_RDWR|noFollow, 0)
}
