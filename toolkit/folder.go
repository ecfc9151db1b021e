package toolkit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// A Folder is the part of the file system that a server may touch. Names are
// slash-separated and relative to it; no name and no link leads out, because
// everything goes through an [os.Root]. Errors about names are refusals that a
// model can read; they never show where the folder is.
type Folder struct{ root *os.Root }

// OpenFolder opens an existing directory.
func OpenFolder(dir string) (*Folder, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open folder: %w", err)
	}
	return &Folder{root}, nil
}

// Close gives the directory back.
func (f *Folder) Close() error { return f.root.Close() }

// Root is the os.Root behind the folder.
func (f *Folder) Root() *os.Root { return f.root }

// Name cleans a name and refuses those that are no file's of this folder:
// empty, absolute, with "..", a NUL, a backslash or a drive letter.
func (f *Folder) Name(name string) (string, error) {
	clean := path.Clean(name)
	switch {
	case name == "", strings.ContainsAny(name, "\x00\\"), path.IsAbs(name), !filepath.IsLocal(filepath.FromSlash(clean)),
		len(name) > 1 && name[1] == ':':
		return "", Refuse("%q is not a path inside the folder; give one relative to it, such as notes/today.txt.", name)
	}
	return clean, nil
}

// ReadFile reads a regular file of at most limit bytes.
func (f *Folder) ReadFile(name string, limit int64) ([]byte, error) {
	clean, err := f.Name(name)
	if err != nil {
		return nil, err
	}
	info, err := f.root.Stat(clean)
	if err != nil {
		return nil, f.refusal(name, err)
	}
	if !info.Mode().IsRegular() { // a pipe would block
		return nil, Refuse("%q is not a file.", name)
	}
	file, err := f.root.Open(clean)
	if err != nil {
		return nil, f.refusal(name, err)
	}
	defer file.Close()
	data, err := readBeyond(file, limit)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", clean, err)
	}
	if int64(len(data)) > limit {
		return nil, Refuse("%q is larger than %d bytes.", name, limit)
	}
	return data, nil
}

// WriteFile writes a file and the folders on the way to it. What was there is
// replaced only if replace is set.
func (f *Folder) WriteFile(name string, data []byte, replace bool) error {
	clean, err := f.Name(name)
	if err != nil {
		return err
	}
	if info, err := f.root.Stat(clean); err == nil && !info.Mode().IsRegular() {
		return Refuse("%q is not a file.", name)
	}
	if dir := path.Dir(clean); dir != "." {
		if err := f.root.MkdirAll(dir, 0o700); err != nil {
			return f.refusal(name, err)
		}
	}
	flags := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	if !replace {
		flags = os.O_WRONLY | os.O_CREATE | os.O_EXCL
	}
	file, err := f.root.OpenFile(clean, flags, 0o600)
	if err != nil {
		return f.refusal(name, err)
	}
	_, err = file.Write(data)
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("write %s: %w", clean, err)
	}
	return nil
}

// Remove deletes one file or link, never a folder.
func (f *Folder) Remove(name string) error {
	clean, err := f.Name(name)
	if err != nil {
		return err
	}
	info, err := f.root.Lstat(clean)
	if err != nil {
		return f.refusal(name, err)
	}
	if info.IsDir() {
		return Refuse("%q is a folder; only files are deleted.", name)
	}
	if err := f.root.Remove(clean); err != nil {
		return f.refusal(name, err)
	}
	return nil
}

// Files lists the names of at most limit files below the folder, in order; more
// tells whether there are others.
func (f *Folder) Files(limit int) (names []string, more bool, err error) {
	err = fs.WalkDir(f.root.FS(), ".", func(p string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir():
			return nil
		case len(names) == limit:
			more = true
			return fs.SkipAll
		}
		names = append(names, p)
		return nil
	})
	if err != nil {
		return nil, false, fmt.Errorf("list folder: %w", err)
	}
	return names, more, nil
}

// refusal turns what the system says about a name into words for a model; other
// trouble stays inside.
func (f *Folder) refusal(name string, err error) error {
	var wrong *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return NotFound("There is no file %q.", name)
	case errors.Is(err, fs.ErrExist):
		return Refuse("%q exists already.", name)
	case errors.Is(err, fs.ErrPermission):
		return Refuse("%q may not be touched.", name)
	case errors.As(err, &wrong):
		return Refuse("%q is not a path that can be used here.", name)
	}
	return fmt.Errorf("%s: %w", name, err)
}
