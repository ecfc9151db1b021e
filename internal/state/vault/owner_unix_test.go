//go:build unix

package vault

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// TestFilesAreOfTheFolder: what is made of a store belongs to whoever has the folder, so
// that a service can open what root made when it looked.
func TestFilesAreOfTheFolder(t *testing.T) {
	dir := t.TempDir()
	_ = os.Chown(dir, 65534, 65534) // as root only
	folder, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	vaulted(t, store.Config{Path: filepath.Join(dir, "dragoman.db")})
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) < 3 { // the file, the key and its lock
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := info.Sys().(*syscall.Stat_t).Uid, folder.Sys().(*syscall.Stat_t).Uid; got != want || info.Mode().Perm() != 0o600 {
			t.Errorf("%s is of %d, its folder of %d; %v", filepath.Base(file), got, want, info.Mode())
		}
	}
}
