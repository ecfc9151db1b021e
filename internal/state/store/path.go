package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/dragoman-mcp/dragoman/internal/state/atomicfile"
)

// DefaultPath returns the file that is used where the configuration names none:
// in the user's folder for state (XDG Base Directory Specification 0.8).
func DefaultPath() (string, error) {
	dir, err := stateDir(runtime.GOOS)
	if err != nil {
		return "", fmt.Errorf("no place for the store: %w; name a file in store.path", err)
	}
	return filepath.Join(dir, "dragoman", "dragoman.db"), nil
}

func stateDir(system string) (string, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return dir, nil
	}
	switch system {
	case "windows":
		return os.UserCacheDir() // %LocalAppData%: does not roam
	case "darwin", "ios":
		return os.UserConfigDir() // ~/Library/Application Support
	}
	home, err := os.UserHomeDir()
	if err == nil && !filepath.IsAbs(home) {
		err = errors.New("$HOME is not an absolute path")
	}
	return filepath.Join(home, ".local", "state"), err
}

// prepareFile makes the file and its folder for one user alone, before SQLite,
// which would let others read it: for this one, or for that which has the folder, since
// root may look at what a service of another user is going to open. SQLite gives the files
// beside it the same owner and permissions. A file that is there is not opened here: closing
// it would drop the locks that this process may hold on it (fcntl, POSIX).
func prepareFile(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		atomicfile.GiveToFolder(file)
		return file.Close()
	}
	info, statErr := os.Stat(path)
	switch {
	case !errors.Is(err, fs.ErrExist):
		return err
	case statErr != nil:
		return statErr
	case !info.Mode().IsRegular():
		return &fs.PathError{Op: "open", Path: path, Err: errors.New("not a regular file")}
	case runtime.GOOS == "windows" || info.Mode().Perm()&0o077 == 0:
		return nil
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return fmt.Errorf("others may read the file, and that cannot be changed: %w", err)
	}
	return nil
}

// openFor is why we may not read and write a file; nil where we may. It must not be asked of
// one that this process has open: to close it again would give up SQLite's locks.
func openFor(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err == nil {
		file.Close()
	}
	return err
}

// refused says what to do where a file may not be written; nil where that is not what is wrong.
func refused(err error) error {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return errors.New("the file is another user's: be that user, such as with sudo, or name another file in store.path")
	case errors.Is(err, syscall.EROFS):
		return errors.New("the file is on a file system that can only be read, and what is read of it takes files beside it: copy it to another one, and name that in store.path")
	}
	return nil
}
