package toolkit

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"
)

// maxKeyFile bounds a file of keys, in bytes.
const maxKeyFile = 16 << 20

// A KeyFile holds API keys in a file, one JSON object in each line, in the form
// of [APIKey]. It is read again when it changes, so a line that is deleted is a
// key that is revoked, without a restart. A file that cannot be read, or has a
// line that cannot be, admits nobody.
type KeyFile struct {
	path string

	mu    sync.Mutex
	seen  stamp
	keys  map[string]APIKey
	wrong error
}

// A stamp tells versions of a file apart.
type stamp struct {
	size    int64
	changed time.Time
}

// OpenKeys reads a file of keys. The error names the line that is wrong.
func OpenKeys(path string) (*KeyFile, error) {
	f := &KeyFile{path: path}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f, f.refresh()
}

// APIKey returns the key with that id, [ErrNoKey], or what is wrong with the
// file.
func (f *KeyFile) APIKey(_ context.Context, id string) (APIKey, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.refresh(); err != nil {
		return APIKey{}, err
	}
	k, ok := f.keys[id]
	if !ok {
		return APIKey{}, ErrNoKey
	}
	return k, nil
}

// refresh reads the file again if it has changed.
func (f *KeyFile) refresh() error {
	info, err := os.Stat(f.path)
	if err != nil {
		return fmt.Errorf("keys: %w", err)
	}
	now := stamp{info.Size(), info.ModTime()}
	if now == f.seen {
		return f.wrong
	}
	f.seen = now
	if f.keys, f.wrong = nil, fmt.Errorf("keys: %s has more than %d bytes", f.path, maxKeyFile); now.size <= maxKeyFile {
		f.keys, f.wrong = readKeys(f.path)
	}
	return f.wrong
}

func readKeys(path string) (map[string]APIKey, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	defer file.Close()
	keys := map[string]APIKey{}
	lines := bufio.NewScanner(file)
	for n := 1; lines.Scan(); n++ {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		var k APIKey
		d := json.NewDecoder(bytes.NewReader(line))
		d.DisallowUnknownFields()
		err := d.Decode(&k)
		if err == nil {
			err = k.check()
		}
		if _, twice := keys[k.ID]; err == nil && twice {
			err = fmt.Errorf("key %s stands there twice", k.ID)
		}
		if err != nil {
			return nil, fmt.Errorf("keys: %s, line %d: %w", path, n, err)
		}
		keys[k.ID] = k
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("keys: %s: %w", path, err)
	}
	return keys, nil
}

// Add appends a key to the file.
func (f *KeyFile) Add(k APIKey) error { return appendKey(f.path, k) }

// appendKey adds a line to a file of keys, which only its owner can read, and
// makes the file if there is none.
func appendKey(path string, k APIKey) (err error) {
	if err := k.check(); err != nil {
		return err
	}
	line, err := json.Marshal(k)
	if err != nil {
		return fmt.Errorf("keys: %w", err)
	}
	line = append(line, '\n')
	if ends, err := endsInLine(path); err != nil {
		return err
	} else if !ends {
		line = append([]byte("\n"), line...)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("keys: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if _, err := file.Write(line); err != nil {
		return fmt.Errorf("keys: %w", err)
	}
	return file.Sync()
}

// endsInLine reports whether what is appended to a file begins a line.
func endsInLine(path string) (bool, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("keys: %w", err)
	}
	return len(data) == 0 || data[len(data)-1] == '\n', nil
}
