package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"github.com/dragoman-mcp/dragoman/toolkit"
)

// scratch is a folder of our own under the system's temporary one. It exists
// from its first use to close, and is reached through an os.Root, so that no
// path and no link leads out of it.
type scratch struct {
	mu     sync.Mutex // held while the folder is used: its files are few and small
	dir    string
	root   *os.Root
	closed bool
}

// samples are the files that a new scratch folder holds.
var samples = []struct{ name, text string }{
	{"notes.txt", "Call the tea house about Friday.\n"},
	{"todo.md", "- water the plants\n- delete this file\n"},
	{"reports/draft.txt", "Draft, not for circulation.\n"},
	{"reports/expenses.csv", "date,item,amount\n2026-04-01,train,41.80\n2026-04-02,lunch,12.50\n2026-04-02,taxi,9.70\n"},
}

// use runs do with the folder's root, creating the folder before if need be.
func (s *scratch) use(do func(*os.Root) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	if s.root == nil {
		if err := s.create(); err != nil {
			return err
		}
	}
	return do(s.root)
}

func (s *scratch) create() (err error) {
	dir, err := os.MkdirTemp("", "dragoman-demo-")
	if err != nil {
		return fmt.Errorf("create scratch folder: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		os.RemoveAll(dir)
		return fmt.Errorf("open scratch folder: %w", err)
	}
	for _, f := range samples {
		if err = root.MkdirAll(path.Dir(f.name), 0o700); err == nil {
			err = root.WriteFile(f.name, []byte(f.text), 0o600)
		}
		if err != nil {
			root.Close()
			os.RemoveAll(dir)
			return fmt.Errorf("fill scratch folder: %w", err)
		}
	}
	s.dir, s.root = dir, root
	return nil
}

// close removes the folder for good.
func (s *scratch) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.root == nil {
		return nil
	}
	err := errors.Join(s.root.Close(), os.RemoveAll(s.dir))
	s.root = nil
	if err != nil {
		return fmt.Errorf("demo: remove scratch folder: %w", err)
	}
	return nil
}

// files lists the files in root by their slash-separated paths.
func files(root *os.Root) ([]string, error) {
	list := []string{}
	err := fs.WalkDir(root.FS(), ".", func(p string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			list = append(list, p)
		}
		return err
	})
	return list, err
}

// openFile opens a file that must be a regular one: a pipe somebody put into
// the folder would block the reader.
func openFile(root *os.Root, name string) (io.ReadCloser, error) {
	info, err := root.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	return root.Open(name)
}

var deleteTool = toolkit.Tool{
	Name:  "delete_file",
	Title: "Delete a scratch file (删除文件)",
	Description: `Deletes one file for good (永久删除文件) from this server's scratch folder. There is no undo. The
		folder starts with notes.txt, todo.md, reports/draft.txt and reports/expenses.csv. Paths outside the
		folder, and folders themselves, are refused.`,
	// Deleting twice leaves the same folder as deleting once; only the answer differs.
	Hints: toolkit.Hints{ReadOnly: toolkit.No, Destructive: toolkit.Yes, Idempotent: toolkit.Yes, OpenWorld: toolkit.No},
	Examples: []toolkit.Example{
		{Ask: "Delete my notes", Arguments: `{"path":"notes.txt"}`},
	},
}

type scratchFile struct {
	Path string `json:"path" desc:"File to delete, relative to the scratch folder (文件路径), e.g. reports/draft.txt" min:"1" max:"1000"`
}

type deletion struct {
	Deleted   string   `json:"deleted" desc:"Path of the file that is gone (已删除)"`
	Remaining []string `json:"remaining" desc:"Files still in the scratch folder"`
}

func (d *Demo) deleteFile(_ context.Context, args scratchFile) (deletion, error) {
	var gone deletion
	err := d.scratch.use(func(root *os.Root) error {
		err := remove(root, args.Path)
		left, listErr := files(root)
		if listErr != nil {
			return errors.Join(err, listErr)
		}
		if _, ok := errors.AsType[*fs.PathError](err); ok {
			return toolkit.Refuse("Cannot delete %q: it is no file in the scratch folder. Give a path relative to that folder. Files there: %s.",
				args.Path, orNone(left))
		}
		gone = deletion{path.Clean(filepath.ToSlash(args.Path)), left}
		return err
	})
	return gone, err
}

// remove deletes a regular file or a link, never a folder.
func remove(root *os.Root, name string) error {
	info, err := root.Lstat(name)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return &fs.PathError{Op: "remove", Path: name, Err: fs.ErrInvalid}
	}
	return root.Remove(name)
}

func orNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}
