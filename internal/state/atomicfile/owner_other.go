//go:build !unix

package atomicfile

import (
	"io/fs"
	"os"
)

// noFollow opens no link, where there are links.
const noFollow = 0

// give does nothing: files have no owner that their mode is about.
func give(*os.File, fs.FileInfo) {}
