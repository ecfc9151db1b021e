//go:build unix

package atomicfile

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// What others may read they can still read afterwards; what is new they cannot.
func TestUpdate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	entry := func() fs.FileInfo {
		t.Helper()
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	if err := Update(path, []byte("one")); err != nil || entry().Mode().Perm() != 0o600 {
		t.Errorf("new: %v, %v", entry().Mode(), err)
	}
	const nobody = 65534
	given := os.Chown(path, nobody, nobody) == nil // as root only
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	was := entry()
	if err := Update(path, []byte("two")); err != nil {
		t.Fatal(err)
	}
	if now := entry(); now.Mode() != was.Mode() || os.SameFile(was, now) {
		t.Errorf("%v, then %v", was.Mode(), now.Mode())
	}
	if was, now := was.Sys().(*syscall.Stat_t), entry().Sys().(*syscall.Stat_t); was.Uid != now.Uid || was.Gid != now.Gid {
		t.Errorf("of %d:%d, then of %d:%d; given away: %v", was.Uid, was.Gid, now.Uid, now.Gid, given)
	}
	if err := Replace(path, nil); err != nil || entry().Mode().Perm() != 0o600 {
		t.Errorf("replaced: %v, %v", entry().Mode(), err)
	}
}

// The lock is whose the folder is, so that whoever may replace the file may lock it,
// and a link that somebody put in its place is not followed.
func TestLockIsOfTheFolder(t *testing.T) {
	dir := t.TempDir()
	_ = os.Chown(dir, 65534, 65534) // as root only
	path := filepath.Join(dir, "file")
	unlock, err := Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	unlock()
	folder, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(path + ".lock")
	if err != nil || info.Mode() != 0o600 || info.Sys().(*syscall.Stat_t).Uid != folder.Sys().(*syscall.Stat_t).Uid {
		t.Errorf("%v, %v", info, err)
	}
	other := filepath.Join(dir, "other")
	if err := os.Symlink(path, other+".lock"); err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(other); err == nil {
		t.Error("a link was followed")
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a link made a file")
	}
}
