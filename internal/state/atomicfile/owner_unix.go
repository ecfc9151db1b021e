//go:build unix

package atomicfile

import (
	"io/fs"
	"os"
	"syscall"
)

// noFollow opens no link.
const noFollow = syscall.O_NOFOLLOW

// give gives a file to the owner and the group of another one, or to the group alone,
// where we may.
func give(file *os.File, was fs.FileInfo) {
	if stat, ok := was.Sys().(*syscall.Stat_t); ok && file.Chown(int(stat.Uid), int(stat.Gid)) != nil {
		_ = file.Chown(-1, int(stat.Gid))
	}
}
