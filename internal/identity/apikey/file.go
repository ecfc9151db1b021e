package apikey

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"

	"github.com/dragoman-mcp/dragoman/internal/state/atomicfile"
	"github.com/dragoman-mcp/dragoman/internal/state/watchedfile"
)

// maxFile bounds a file of keys, in bytes.
const maxFile = 16 << 20

// ErrUnknown means that a file is well and does not have a key.
var ErrUnknown = errors.New("no such API key")

// A File holds records, one JSON object in each line. It is read again when it
// changes, so a key is revoked without a restart. A file that cannot be read, has
// a line that cannot be, or that everybody on the machine may write, has no keys
// but an error.
type File struct {
	path string
	kept *watchedfile.File[map[string]Record]
}

// Open reads a file of keys. The error names the line that is wrong; the File is
// of use all the same, once the file is mended.
func Open(path string) (*File, error) {
	f := Await(path)
	_, err := f.kept.Now()
	return f, err
}

// Await is Open for a file that may not be there yet: it is read when it is asked.
func Await(path string) *File {
	return &File{path, watchedfile.New(func() (map[string]Record, error) { return index(path) }, path)}
}

// index returns the records of a file by their ids.
func index(path string) (map[string]Record, error) {
	records, err := readFile(path)
	if err != nil {
		return nil, err
	}
	keys := make(map[string]Record, len(records))
	for _, r := range records {
		keys[r.ID] = r
	}
	return keys, nil
}

// Path is where the file is.
func (f *File) Path() string { return f.path }

// Watch looks at the file each second until ctx ends, and calls then after each look.
// Meanwhile the other methods do not touch the file system: what changes is seen within
// two seconds.
func (f *File) Watch(ctx context.Context, then func()) { f.kept.Watch(ctx, then) }

// Get returns the record of an id: [ErrUnknown] where there is none, or what is
// wrong with the file. An id that is not known may be new, so the file is looked at for
// it.
func (f *File) Get(id string) (Record, error) {
	keys, err := f.kept.Now()
	if _, ok := keys[id]; !ok && err == nil {
		keys, err = f.kept.Fresh()
	}
	if err != nil {
		return Record{}, err
	}
	r, ok := keys[id]
	if !ok {
		return Record{}, ErrUnknown
	}
	return r, nil
}

// Keys returns all records by their ids, or what is wrong with the file. The map is not
// to be changed.
func (f *File) Keys() (map[string]Record, error) { return f.kept.Now() }

// Count returns how many keys there are that have not expired.
func (f *File) Count() (n int, err error) {
	keys, err := f.kept.Now()
	if err != nil {
		return 0, err
	}
	for _, r := range keys {
		if !r.Expired() {
			n++
		}
	}
	return n, nil
}

// Read returns the records of a file in their order.
func Read(path string) ([]Record, error) { return readFile(path) }

func readFile(path string) ([]Record, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, fmt.Errorf("keys: %w", err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("keys: %s is no file", path)
	case info.Size() > maxFile:
		return nil, fmt.Errorf("keys: %s has more than %d bytes", path, maxFile)
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o002 != 0:
		return nil, fmt.Errorf("keys: everybody on this machine may write %s, and so let themselves in; run: chmod o-w %[1]s", path)
	}
	var records []Record
	known := map[string]bool{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, maxFile) // a key may have many rights
	for n := 1; lines.Scan(); n++ {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		r, err := parse(line)
		if err == nil && known[r.ID] {
			err = fmt.Errorf("key %s stands there twice", r.ID)
		}
		if err != nil {
			return nil, fmt.Errorf("keys: %s, line %d: %w", path, n, err)
		}
		known[r.ID] = true
		records = append(records, r)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("keys: %s: %w", path, err)
	}
	return records, nil
}

func parse(line []byte) (r Record, err error) {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return r, err
	}
	if _, err := d.Token(); err != io.EOF {
		return r, errors.New("more than one object")
	}
	return r, r.Check()
}

// Add adds a record to a file, and makes the file if there is none.
func Add(path string, r Record) error {
	if err := r.Check(); err != nil {
		return err
	}
	return Change(path, func(records []Record) ([]Record, error) { return append(records, r), nil })
}

// Change replaces the records of a file. A new one only its owner can read; one that
// others may read, such as a service that runs as somebody else, stays so. Readers see
// the old file or the new one, whole. Where the file does not exist there are no
// records. Changes at the same time wait for each other.
func Change(path string, change func([]Record) ([]Record, error)) error {
	unlock, err := atomicfile.Lock(path)
	if err != nil {
		return fmt.Errorf("keys: %w", err)
	}
	defer unlock()
	records, err := readFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if records, err = change(records); err != nil {
		return err
	}
	var text []byte
	for _, r := range records {
		line, err := json.Marshal(r)
		if err != nil {
			return fmt.Errorf("keys: %w", err)
		}
		text = append(append(text, line...), '\n')
	}
	if err := atomicfile.Update(path, text); err != nil {
		return fmt.Errorf("keys: %w", err)
	}
	return nil
}
